// SPDX-License-Identifier: Apache-2.0
// What has happened to an array. The last of it is kept in the store, for whoever is in office
// next: what people want to know after a takeover is what came before it. They are kept a moment
// later, several at once, and nothing waits for them: the last events of a controller that is
// killed may be known to its standard output alone.
#pragma once

#include <deque>
#include <functional>

#include "node/controller_report.hpp"
#include "raid/metadata_store.hpp"
#include "weft/world.hpp"
#include "wire/array_superblock.hpp"

namespace weft::node {

class EventBook {
public:
    static constexpr std::size_t remembered = 1000;  ///< events, by the controller itself
    static constexpr std::size_t lasting = 256;      ///< in the store
    static constexpr std::size_t at_once = 64;       ///< a store may refuse longer transactions
    static constexpr std::uint64_t gap = 1024;       ///< of numbers, between two controllers
    static_assert(gap % lasting == 0, "so that what is new takes the place of what is oldest");
    static constexpr Duration gather = std::chrono::milliseconds(100);
    static constexpr Duration try_again_after = std::chrono::seconds(1);
    static constexpr const char* record_prefix = "events/";

    using Keep = std::function<void(std::vector<raid::MetadataChange>,
                                    std::function<void(Result<void>)> told)>;

    EventBook(World& world, Keep keep);
    ~EventBook() { *alive_ = false; }

    void on_event(std::function<void(const ControllerEvent&)> hear) { hear_ = std::move(hear); }
    /// Those of earlier controllers, in any order. Before any of its own.
    void recall(std::vector<wire::ArrayEventRecord> records);
    void note(const std::string& volume, const std::string& box, const std::string& what);
    /// What waits is kept without waiting for more.
    void flush() {
        if (!keeping_) keep_some();
    }
    /// Nothing waits to be kept.
    bool quiet() const { return !keeping_ && kept_ == last_; }

    const std::deque<ControllerEvent>& events() const { return events_; }
    /// The first of this controller's own; earlier ones are of those before it.
    std::uint64_t first_own() const { return first_own_; }

private:
    void keep_some();
    void kept(std::uint64_t last, Result<void> outcome);

    World& world_;
    Keep keep_;
    std::function<void(const ControllerEvent&)> hear_;
    std::deque<ControllerEvent> events_;
    std::uint64_t last_ = 0, first_own_ = 1;
    std::uint64_t kept_ = 0;  ///< up to this one
    bool keeping_ = false;
    std::unique_ptr<Timer> timer_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace weft::node
