// SPDX-License-Identifier: Apache-2.0
#include "node/first_octets.hpp"

#include <algorithm>

#include "wire/mpa.hpp"

namespace weft::node {
namespace {

/// What every MPA request begins with.
const auto& mpa_key() {
    static const auto octets = [] {
        std::array<std::byte, wire_size<wire::MpaRequest>()> request{};
        encode(wire::MpaRequest{}, request);
        std::array<std::byte, 16> key{};
        std::copy_n(request.begin(), key.size(), key.begin());
        return key;
    }();
    return octets;
}

}  // namespace

bool feed(StreamEngine& engine, ConstBuffer octets) {
    while (!octets.empty()) {
        Buffer place = engine.want();
        if (place.empty()) return false;
        auto count = std::min(place.size(), octets.size());
        std::copy_n(octets.begin(), count, place.begin());
        octets = octets.subspan(count);
        engine.filled(count);
    }
    return true;
}

void FirstOctets::add(std::unique_ptr<Stream> stream) {
    if (waiting_.size() >= options_.waiting_max) waiting_.pop_front();
    auto& reader = waiting_.emplace_back(*this, world_.now() + options_.patience);
    reader.self = std::prev(waiting_.end());
    reader.stream = std::move(stream);
    reader.stream->drive(reader);
}

/// Out of the list and into the caller's hands: it is one of the reader's own calls that ends it.
std::list<FirstOctets::Reader> FirstOctets::take(Reader& reader) {
    std::list<Reader> taken;
    taken.splice(taken.begin(), waiting_, reader.self);
    return taken;
}

/// One octet tells most of them apart, and then the other protocol has all but that one itself.
Buffer FirstOctets::Reader::want() {
    return Buffer(octets_).subspan(have_, have_ == 0 ? 1 : octets_.size() - have_);
}

void FirstOctets::Reader::filled(std::size_t count) {
    have_ += count;
    bool may_be_mpa = std::equal(octets_.begin(), octets_.begin() + have_, mpa_key().begin());
    if (may_be_mpa && have_ < octets_.size()) return;
    auto taken = owner_.take(*this);  // what it has read lives until told_ is through
    auto told = owner_.told_;         // who may destroy the owner
    const auto spoken = may_be_mpa                     ? Spoken::mpa
                        : octets_[0] == std::byte{'{'} ? Spoken::json
                                                       : Spoken::iscsi;
    told(std::move(stream), spoken, ConstBuffer(octets_).first(have_));
}

}  // namespace weft::node
