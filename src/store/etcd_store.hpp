// SPDX-License-Identifier: Apache-2.0
// A controller's records in an etcd, for arrays whose controllers are on several machines.
//
// The office is one key. Every change, of records too, is one transaction that holds only if that
// key has not been changed since this candidate last changed it, and changes it: so whoever lost
// office changes nothing, and a transaction that is carried out late, or a second time, changes
// nothing either. One whose answer was lost is put again until its fate is known.
//
// etcd's own leases are not used: an office lapses by what candidates see of its counter, as in the
// other stores (raid/metadata_store.hpp), and what must not happen is kept from happening by
// epochs.
#pragma once

#include <list>

#include "store/etcd_codec.hpp"
#include "store/etcd_link.hpp"

namespace weft::store {

class EtcdStore final : public raid::MetadataStore {
public:
    static constexpr std::size_t waiting_max = 1024;
    struct Options {
        std::vector<Address> members;  ///< one at least
        std::string prefix = "weft/";  ///< of all keys: arrays that share an etcd differ in it
        /// With one member, for one answer.
        Duration patience = std::chrono::seconds(2);
        /// With all of them, for what may be left undone: looking and reading. Then `timed_out`.
        Duration reading_patience = std::chrono::seconds(10);
    };

    EtcdStore(World& world, const Options& options);
    EtcdStore(const EtcdStore&) = delete;
    EtcdStore& operator=(const EtcdStore&) = delete;
    /// Every request must have completed.
    ~EtcdStore() override;

    void look(raid::MetadataLook& look) override;
    void elect(raid::MetadataElection& election) override;
    void renew(raid::MetadataRenewal& renewal) override;
    void read(raid::MetadataReading& reading) override;
    void commit(raid::MetadataCommit& commit) override;

    /// All requests complete soon, as `disconnected` where their fate is not known.
    void give_up();
    bool quiet() const { return waiting_.empty(); }

private:
    struct Request {
        std::function<void()> begin;
        std::function<void(Result<void>)> told;
        bool may_be_left = false;  ///< nothing is changed by it
    };

    void add(Request request, bool first);
    void begin();
    void finish(Result<void> outcome);
    void ask_office(std::function<void(const EtcdOffice&)> then);
    void stand(raid::MetadataElection& election, const EtcdOffice& now);
    /// Puts `wanted` in the place of the office, until it is known what became of it.
    void change(const EtcdOffice& wanted, const std::vector<raid::MetadataChange>& changes);
    bool is_ours(wire::Epoch epoch) const;
    EtcdOffice renewed() const;

    World& world_;
    Options options_;
    EtcdLink link_;
    std::uint64_t candidate_;
    EtcdOffice office_;           ///< as this candidate last knew it
    wire::Epoch own_{};           ///< won by this candidate last
    std::list<Request> waiting_;  ///< the first is under way
    std::unique_ptr<Timer> patience_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::store
