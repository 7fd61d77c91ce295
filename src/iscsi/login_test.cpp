// SPDX-License-Identifier: Apache-2.0
// The two login machines against each other.
#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "support/login_words.hpp"

namespace weft::iscsi {
namespace {

using namespace test::login;
using test::Bytes;
using wire::LoginStage;
using wire::LoginStatus;

/// Both machines until one has had enough. Counts the requests.
struct Talk {
    Policy policy;
    std::optional<LoginInitiator> initiator;
    std::optional<LoginTarget> target;
    int requests = 0;

    void run(LoginOptions with) {
        initiator.emplace(std::move(with));
        target.emplace(policy, 128);
        while (initiator->state() == LoginInitiator::State::running && requests < 100) {
            ++requests;
            // Copied, as a wire would.
            const auto header = initiator->request_header();
            const Bytes data(initiator->request_data().begin(), initiator->request_data().end());
            auto state = target->take(header, data);
            if (state == LoginTarget::State::waiting) {
                EXPECT_FALSE(target->has_response());
                state = target->seated(policy.where);
            }
            if (!target->has_response()) return;
            const auto answer = target->response_header();
            const Bytes text(target->response_data().begin(), target->response_data().end());
            initiator->take(answer, text);
        }
    }
    bool accepted() const {
        return initiator->state() == LoginInitiator::State::accepted &&
               target->state() == LoginTarget::State::accepted;
    }
};

TEST(Login, WithoutSecurityTakesOneRequest) {
    Talk talk;
    talk.policy.admission.target_alias = "the disk";
    talk.policy.admission.portal_group_tag = 9;
    talk.run(options());
    ASSERT_TRUE(talk.accepted());
    EXPECT_EQ(talk.requests, 1);
    EXPECT_EQ(talk.initiator->target_session_handle(), 77);
    EXPECT_EQ(talk.initiator->target_alias(), "the disk");
    EXPECT_EQ(talk.initiator->portal_group_tag(), 9u);
    EXPECT_EQ(talk.initiator->terms(), talk.target->terms());
    EXPECT_EQ(talk.initiator->numbers().expected_command_number, 1000u);
    EXPECT_EQ(talk.initiator->numbers().max_command_number, 1127u);
    EXPECT_EQ(talk.target->next_status_number(), talk.initiator->numbers().status_number + 1);
    EXPECT_EQ(talk.policy.asked.initiator_name, initiator_name);
    EXPECT_EQ(talk.policy.asked.target_name, target_name);
    EXPECT_EQ(talk.policy.asked.connection_id, 3);
    EXPECT_EQ(talk.policy.admitted, 1);
    EXPECT_EQ(talk.policy.seated, 1);
}

TEST(Login, AgreesOverAllCombinationsOfSecurityTransportAndPatience) {
    for (unsigned bits = 0; bits < 64; ++bits) {
        auto bit = [&](unsigned number) { return (bits >> number & 1) != 0; };
        Talk talk;
        talk.policy.later = bit(0);
        talk.policy.admission.authentication_required = bit(1);
        talk.policy.admission.wishes.terms.rdma_extensions = bit(2);
        talk.policy.admission.wishes.header_digest = DigestWish::preferred;
        auto with = options();
        if (bit(3)) with.credentials = user;
        if (bit(3) && bit(4)) with.expected_of_target = target_user;
        with.wishes.offer_rdma = bit(5);
        with.wishes.terms.rdma_extensions = bit(5);
        talk.run(with);
        const bool right = !bit(1) || bit(3);
        // A target that asks for nothing will not prove itself either, unless it is made to.
        EXPECT_EQ(talk.accepted(), right) << bits;
        if (!right) {
            EXPECT_EQ(talk.initiator->status(), LoginStatus::authentication_failure) << bits;
            EXPECT_EQ(talk.policy.seated, 0);
            continue;
        }
        EXPECT_EQ(talk.initiator->terms(), talk.target->terms()) << bits;
        EXPECT_EQ(talk.target->terms().rdma_extensions, bit(2) && bit(5));
        EXPECT_EQ(talk.target->terms().header_digest, !(bit(2) && bit(5)));
        EXPECT_EQ(talk.target->user(), bit(3) && (bit(1) || bit(4)) ? user.name : "") << bits;
    }
}

TEST(Login, ProvesBothSidesWithEachAlgorithm) {
    for (ChapAlgorithm algorithm : chap_algorithms) {
        Talk talk;
        talk.policy.admission.authentication_required = true;
        auto with = options();
        with.credentials = user;
        with.expected_of_target = target_user;
        with.algorithms = {algorithm};
        talk.run(with);
        EXPECT_TRUE(talk.accepted()) << static_cast<int>(algorithm);
        EXPECT_EQ(talk.target->user(), user.name);
    }
}

TEST(Login, RefusesAWrongSecretAndAnUnknownUser) {
    for (const ChapCredentials& wrong :
         {ChapCredentials{user.name, "another long secret"}, ChapCredentials{"nobody", user.secret},
          ChapCredentials{"", user.secret}}) {
        Talk talk;
        talk.policy.admission.authentication_required = true;
        auto with = options();
        with.credentials = wrong;
        talk.run(with);
        EXPECT_EQ(talk.initiator->state(), LoginInitiator::State::refused);
        EXPECT_EQ(talk.initiator->status(), LoginStatus::authentication_failure);
        EXPECT_EQ(talk.target->user(), "");
        EXPECT_EQ(talk.policy.seated, 0);
    }
}

TEST(Login, RefusesASecretThatIsTooShortOnEitherSide) {
    Talk talk;
    talk.policy.admission.authentication_required = true;
    talk.policy.secret = "short";
    auto with = options();
    with.credentials = ChapCredentials{user.name, "short"};
    talk.run(with);
    EXPECT_FALSE(talk.accepted());
    EXPECT_EQ(talk.policy.seated, 0);
}

TEST(Login, EndsWhenTheTargetCannotProveItself) {
    for (int kind = 0; kind < 4; ++kind) {
        Talk talk;
        talk.policy.admission.authentication_required = true;
        auto with = options();
        with.credentials = user;
        with.expected_of_target = target_user;
        if (kind == 0) talk.policy.own->secret = "not this one at all";
        if (kind == 1) talk.policy.own->name = "somebody else";
        if (kind == 2) talk.policy.own.reset();
        if (kind == 3) talk.policy.own->secret = user.secret;
        talk.run(with);
        EXPECT_FALSE(talk.accepted()) << kind;
        EXPECT_EQ(talk.policy.seated, 0) << kind;
    }
}

TEST(Login, IsSentElsewhereOrAway) {
    Talk talk;
    talk.policy.admission.status = LoginStatus::target_moved_temporarily;
    talk.policy.admission.target_address = "[fd00::1]:3261";
    talk.run(options());
    EXPECT_EQ(talk.initiator->state(), LoginInitiator::State::redirected);
    EXPECT_EQ(talk.initiator->target_address(), "[fd00::1]:3261");
    for (LoginStatus status : {LoginStatus::not_found, LoginStatus::authorization_failure,
                               LoginStatus::service_unavailable}) {
        Talk refused;
        refused.policy.admission.status = status;
        refused.run(options());
        EXPECT_EQ(refused.initiator->state(), LoginInitiator::State::refused);
        EXPECT_EQ(refused.initiator->status(), status);
        EXPECT_EQ(refused.target->state(), LoginTarget::State::refused);
    }
    Talk full;
    full.policy.where.status = LoginStatus::too_many_connections;
    full.run(options());
    EXPECT_EQ(full.initiator->status(), LoginStatus::too_many_connections);
}

TEST(Login, AddsAConnectionWithoutTouchingTheSession) {
    Terms session;
    session.max_burst = 4096;
    session.max_connections = 4;
    Talk talk;
    talk.policy.admission.session_terms = session;
    talk.policy.admission.session_window = {.expected = 2000, .last = 2003};
    talk.policy.where.session_window = {.expected = 2001, .last = 2003};
    auto with = options();
    with.session_terms = session;
    with.target_session_handle = 77;
    with.wishes.header_digest = DigestWish::preferred;
    talk.run(with);
    ASSERT_TRUE(talk.accepted());
    EXPECT_EQ(talk.initiator->terms().max_burst, 4096u);
    EXPECT_TRUE(talk.initiator->terms().header_digest);
    EXPECT_EQ(talk.initiator->terms(), talk.target->terms());
    EXPECT_EQ(talk.initiator->numbers().expected_command_number, 2001u);
    EXPECT_EQ(talk.initiator->numbers().max_command_number, 2003u);
}

TEST(Login, DiscoversWithoutATarget) {
    Talk talk;
    auto with = options();
    with.target_name.clear();
    with.session_type = SessionType::discovery;
    talk.run(with);
    ASSERT_TRUE(talk.accepted());
    EXPECT_EQ(talk.policy.asked.session_type, SessionType::discovery);
    EXPECT_FALSE(talk.initiator->portal_group_tag());
}

}  // namespace
}  // namespace weft::iscsi
