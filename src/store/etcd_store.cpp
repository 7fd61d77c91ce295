// SPDX-License-Identifier: Apache-2.0
#include "store/etcd_store.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::store {

EtcdStore::EtcdStore(World& world, const Options& options)
    : world_(world),
      options_(options),
      link_(world, options.members, options.patience),
      candidate_(world.random()),
      patience_(world.make_timer([this] {
          link_.give_up();
          finish(Error{.code = Code::timed_out});
      })) {}

EtcdStore::~EtcdStore() {
    *alive_ = false;
    WEFT_CHECK(waiting_.empty());
}

// ------------------------------------------------------------------------ one after another

void EtcdStore::add(Request request, bool first) {
    if (waiting_.size() >= waiting_max) {
        world_.defer([told = std::move(request.told)] { told(Error{.code = Code::exhausted}); });
        return;
    }
    if (first && !waiting_.empty())
        waiting_.insert(std::next(waiting_.begin()), std::move(request));
    else
        waiting_.push_back(std::move(request));
    if (waiting_.size() > 1) return;
    world_.defer([this, alive = alive_] {
        if (*alive) begin();
    });
}

void EtcdStore::begin() {
    if (waiting_.empty()) return;
    const auto& request = waiting_.front();
    if (request.may_be_left) patience_->set(world_.now() + options_.reading_patience);
    request.begin();
}

/// Of the first.
void EtcdStore::finish(Result<void> outcome) {
    patience_->cancel();
    const auto over = std::move(waiting_.front());
    waiting_.pop_front();
    if (!waiting_.empty())
        world_.defer([this, alive = alive_] {
            if (*alive) begin();
        });
    over.told(outcome);
}

void EtcdStore::give_up() {
    link_.give_up();
    patience_->cancel();
    for (auto& request : std::exchange(waiting_, {}))
        world_.defer([told = std::move(request.told)] { told(Error{.code = Code::disconnected}); });
}

// ----------------------------------------------------------------------------------- requests

void EtcdStore::ask_office(std::function<void(const EtcdOffice&)> then) {
    link_.ask(etcd_range_path, etcd_ask_for_office(options_.prefix),
              [this, then = std::move(then)](const Result<std::string>& body) {
                  auto office = body ? parse_etcd_office(*body) : Result<EtcdOffice>(body.error());
                  if (!office) return finish(office.error());
                  then(*office);
              });
}

void EtcdStore::look(raid::MetadataLook& look) {
    add({.begin =
             [this, &look] {
                 ask_office([this, &look](const EtcdOffice& now) {
                     look.office = now.office;
                     finish({});
                 });
             },
         .told = [&look](Result<void> outcome) { look.completed(outcome); },
         .may_be_left = true},
        false);
}

void EtcdStore::read(raid::MetadataReading& reading) {
    auto heard = [this, &reading](const Result<std::string>& body) {
        auto records =
            body ? parse_etcd_records(options_.prefix, *body) : Result<EtcdRecords>(body.error());
        if (!records) return finish(records.error());
        reading.records = std::move(*records);
        finish({});
    };
    add({.begin =
             [this, heard] {
                 link_.ask(etcd_range_path, etcd_ask_for_records(options_.prefix), heard);
             },
         .told = [&reading](Result<void> outcome) { reading.completed(outcome); },
         .may_be_left = true},
        false);
}

void EtcdStore::elect(raid::MetadataElection& election) {
    add({.begin =
             [this, &election] {
                 ask_office([this, &election](const EtcdOffice& now) { stand(election, now); });
             },
         .told =
             [this, &election](Result<void> outcome) {
                 if (outcome) own_ = election.epoch;
                 election.completed(outcome);
             }},
        false);
}

void EtcdStore::stand(raid::MetadataElection& election, const EtcdOffice& now) {
    const bool ours = now.candidate == candidate_;
    auto won = raid::office_after(now.office, election, ours ? own_ : wire::Epoch{});
    if (!won) return finish(won.error());
    election.epoch = won->epoch;
    office_ = now;
    change({.office = std::move(*won), .candidate = candidate_}, {});
}

bool EtcdStore::is_ours(wire::Epoch epoch) const {
    return epoch == own_ && epoch == office_.office.epoch && own_ != wire::Epoch{};
}

EtcdOffice EtcdStore::renewed() const {
    auto next = office_;
    ++next.office.renewals;
    return next;
}

void EtcdStore::renew(raid::MetadataRenewal& renewal) {
    add({.begin =
             [this, &renewal] {
                 if (!is_ours(renewal.epoch)) return finish(Error{.code = Code::access_denied});
                 auto next = renewed();
                 if (renewal.releases) next.office.lease = {};
                 change(next, {});
             },
         .told = [&renewal](Result<void> outcome) { renewal.completed(outcome); }},
        !renewal.releases);
}

void EtcdStore::commit(raid::MetadataCommit& commit) {
    add({.begin =
             [this, &commit] {
                 if (!is_ours(commit.epoch)) return finish(Error{.code = Code::access_denied});
                 change(renewed(), commit.changes);
             },
         .told = [&commit](Result<void> outcome) { commit.completed(outcome); }},
        false);
}

void EtcdStore::change(const EtcdOffice& wanted, const std::vector<raid::MetadataChange>& changes) {
    auto heard = [this, wanted](const Result<std::string>& body) {
        auto change = body ? parse_etcd_change(*body) : Result<EtcdChange>(body.error());
        if (!change) return finish(change.error());
        if (change->made) {
            office_ = wanted;
            office_.revision = change->revision;
            return finish({});
        }
        // It is as we want it: an earlier try, of which we have heard nothing, did it.
        if (change->office.same_as(wanted)) {
            office_ = change->office;
            return finish({});
        }
        finish(Error{.code = Code::access_denied});
    };
    link_.ask(etcd_transaction_path,
              etcd_ask_for_change(options_.prefix, office_.revision, wanted, changes), heard);
}

}  // namespace weft::store
