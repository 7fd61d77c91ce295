// SPDX-License-Identifier: Apache-2.0
// Against an etcd of three members, which these tests start; where none is installed they are
// skipped.
#include "store/etcd_store.hpp"

#include "support/etcd_members.hpp"
#include "support/store_conformance.hpp"
#include "weft/linux_world.hpp"

namespace weft::test {
namespace {

using store::EtcdStore;

/// Stores of one array in the etcd that all tests have in common.
class EtcdBench {
public:
    EtcdBench() : world_(std::move(*open_linux_world({.files = FileEngine::none}))) {
        static int arrays = 0;
        prefix_ = "test" + std::to_string(++arrays) + "/";
        if (EtcdMembers::is_installed()) (void)members();
    }
    static EtcdMembers& members() {
        static EtcdMembers all;
        return all;
    }
    std::string trouble() const {
        return EtcdMembers::is_installed() ? "" : "there is no etcd here (etcd-server of Debian)";
    }
    std::unique_ptr<raid::MetadataStore> make() { return make({}); }
    std::unique_ptr<EtcdStore> make(std::vector<Address> at) {
        if (at.empty()) at = members().addresses();
        EtcdStore::Options options{.members = std::move(at), .prefix = prefix_};
        options.patience = std::chrono::milliseconds(1500);
        options.reading_patience = std::chrono::seconds(60);
        return std::make_unique<EtcdStore>(*world_, options);
    }
    bool run_until(const auto& done) {
        bool late = false;
        auto timer = world_->make_timer([&] { late = true; });
        timer->set(world_->now() + std::chrono::seconds(90));
        world_->run_until([&] { return late || done(); });
        return done();
    }

private:
    std::unique_ptr<LinuxWorld> world_;
    std::string prefix_;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Etcd, StoreConformance, EtcdBench);

class EtcdStoreTest : public StoreConformance<EtcdBench> {};

TEST_F(EtcdStoreTest, GoesOnWithoutOneOfThreeMembers) {
    auto epoch = elect(*one);
    ASSERT_TRUE(epoch);
    for (std::size_t gone = 0; gone < EtcdMembers::count; ++gone) {
        EtcdBench::members().kill(gone);
        const auto name = "volumes/" + std::to_string(gone);
        EXPECT_TRUE(commit(*one, *epoch, {{name, store_octets("kept")}}));
        EXPECT_TRUE(renew(*one, *epoch));
        EtcdBench::members().start(gone);
        EXPECT_EQ(read(*other).size(), gone + 1);
    }
}

TEST_F(EtcdStoreTest, GoesOnWhenAMemberSaysNothing) {
    auto epoch = elect(*one);
    ASSERT_TRUE(epoch);
    for (std::size_t silent = 0; silent < EtcdMembers::count; ++silent) {
        EtcdBench::members().pause(silent);
        // Those who are asked first may be the silent one, or one that waits for it as its leader.
        EXPECT_TRUE(commit(*one, *epoch, {{"cluster", store_octets(std::to_string(silent))}}));
        EtcdBench::members().resume(silent);
        EXPECT_EQ(read(*other), (StoreRecords{{"cluster", store_octets(std::to_string(silent))}}));
    }
}

/// A change that was carried out though nobody heard of it is not carried out again, nor taken for
/// another's.
TEST_F(EtcdStoreTest, KnowsItsOwnChangeWhenTheAnswerWasLost) {
    auto epoch = elect(*one);
    ASSERT_TRUE(epoch);
    for (int round = 0; round < 20; ++round) {
        StoreCommit asked;
        asked.epoch = *epoch;
        asked.changes = {{"cluster", store_octets(std::to_string(round))}};
        one->commit(asked);
        // All are cut off in the middle of it, at some moment or other.
        const auto moment = std::chrono::microseconds(200 * round);
        ::usleep(static_cast<useconds_t>(moment.count()));
        for (std::size_t i = 0; i < EtcdMembers::count; ++i) EtcdBench::members().pause(i);
        bench.run_until([] { return true; });
        for (std::size_t i = 0; i < EtcdMembers::count; ++i) EtcdBench::members().resume(i);
        ASSERT_TRUE(wait(asked)) << round;
        EXPECT_EQ(read(*other), (StoreRecords{{"cluster", store_octets(std::to_string(round))}}));
    }
}

TEST_F(EtcdStoreTest, SaysWhenNobodyAnswersAndCanBeGivenUp) {
    auto nowhere = bench.make({Address::tcp("127.0.0.1", 1)});
    StoreCommit commit;
    StoreElection election;
    nowhere->elect(election);
    nowhere->commit(commit);
    EXPECT_FALSE(nowhere->quiet());
    nowhere->give_up();
    EXPECT_TRUE(bench.run_until([&] { return election.outcome && commit.outcome; }));
    EXPECT_FALSE(*election.outcome);
    EXPECT_FALSE(*commit.outcome);
    EXPECT_TRUE(nowhere->quiet());
}

TEST_F(EtcdStoreTest, RefusesWhatEtcdWillNeverTake) {
    auto epoch = elect(*one);
    ASSERT_TRUE(epoch);
    // Its limit for a request is 1.5 MiB.
    auto outcome =
        commit(*one, *epoch, {{"cluster", std::vector<std::byte>(std::size_t{2} << 20)}});
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code, Code::out_of_range);
    EXPECT_TRUE(read(*one).empty());
    EXPECT_TRUE(commit(*one, *epoch, {{"cluster", store_octets("small")}}));
}

}  // namespace
}  // namespace weft::test
