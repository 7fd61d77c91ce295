// SPDX-License-Identifier: Apache-2.0
#include "node/memory_metadata_store.hpp"

#include "support/manual_world.hpp"
#include "support/store_conformance.hpp"

namespace weft::test {
namespace {

class MemoryBench {
public:
    std::string trouble() const { return {}; }
    std::unique_ptr<raid::MetadataStore> make() {
        return std::make_unique<node::MemoryMetadataStore>(world_, records_);
    }
    bool run_until(const auto& done) {
        world_.advance({});
        return done();
    }

private:
    ManualWorld world_;
    node::MemoryRecords records_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Memory, StoreConformance, MemoryBench);

TEST(MemoryMetadataStore, IsNotHeardOfByWhoCannotReachIt) {
    ManualWorld world;
    node::MemoryRecords records;
    node::MemoryMetadataStore store(world, records);
    store.set_reachable(false);
    StoreElection election;
    store.elect(election);
    world.advance({});
    ASSERT_TRUE(election.outcome);
    EXPECT_FALSE(*election.outcome);
    EXPECT_EQ(records.office.epoch, wire::Epoch{});
}

}  // namespace
}  // namespace weft::test
