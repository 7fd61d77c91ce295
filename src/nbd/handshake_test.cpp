// SPDX-License-Identifier: Apache-2.0
// Option haggling as conversations with a whole ServerConnection.
#include "nbd/handshake.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/nbd_server_talk.hpp"

namespace weft::nbd {
namespace {

using namespace wire::nbd;
using test::context_question;
using test::from_hex;
using test::info_question;
using test::join;
using test::number;
using test::OptionAnswer;
using testing::ElementsAre;

class HandshakeTest : public test::NbdServerTalk {
protected:
    void begin_options() {
        connect();
        say_flags();
        EXPECT_TRUE(driver->take_sent().empty());
    }
    std::string words(const OptionAnswer& answer) { return std::string(text_of(answer.data)); }
};

TEST_F(HandshakeTest, GreetsAsAFixedNewstyleServer) {
    connect();
    ServerConnection other(exports, pool, statistics, Instant{}, {});
    std::array<ConstBuffer, 3> pieces;
    ASSERT_EQ(other.pending(pieces), 1u);
    EXPECT_EQ(test::to_hex(pieces[0]), test::to_hex(test::golden("nbd/greeting.hex")));
}

TEST_F(HandshakeTest, DropsAClientWithFlagsItDoesNotKnow) {
    connect();
    say(from_hex("00000007"));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(connection->fault()->code, Code::unsupported);
}

TEST_F(HandshakeTest, DropsAClientThatDoesNotSayTheOptionMagic) {
    begin_options();
    say(from_hex("49484156454f5055 00000003 00000000"));
    EXPECT_TRUE(dropped());
}

TEST_F(HandshakeTest, AnswersAnUnknownOptionAndGoesOn) {
    begin_options();
    for (auto unknown : {Option{0}, Option::starttls, Option::extended_headers, Option{0xffffffff}})
        EXPECT_THAT(answers(unknown, from_hex("0102")), ElementsAre(Answer::error_unsupported));
    EXPECT_THAT(answers(Option::list, {}),
                ElementsAre(Answer::server, Answer::server, Answer::ack));
}

TEST_F(HandshakeTest, ListsEveryExport) {
    begin_options();
    auto list = ask(Option::list, {});
    ASSERT_EQ(list.size(), 3u);
    EXPECT_EQ(list[0].data, join({test::counted("disk"), bytes_of("a small disk")}));
    EXPECT_EQ(list[1].data, test::counted("archive"));
    EXPECT_THAT(answers(Option::list, from_hex("00")), ElementsAre(Answer::error_invalid));
}

TEST_F(HandshakeTest, TellsAboutAnExportWithoutChoosingIt) {
    begin_options();
    auto told = ask(Option::info, info_question("archive", {}));
    ASSERT_EQ(told.size(), 3u);
    EXPECT_EQ(decode<InfoExport>(told[0].data)->size, disk_size);
    EXPECT_TRUE(decode<InfoExport>(told[0].data)->flags.read_only);
    EXPECT_EQ(*decode<InfoBlockSize>(told[1].data), (InfoBlockSize{1, 4096, 32u << 20}));
    EXPECT_EQ(told[2].type, Answer::ack);
    EXPECT_EQ(connection->chosen(), nullptr);
    EXPECT_THAT(answers(Option::list, {}),
                ElementsAre(Answer::server, Answer::server, Answer::ack));
}

TEST_F(HandshakeTest, TellsNameAndDescriptionToThoseWhoAsk) {
    begin_options();
    auto told = ask(Option::info, info_question("", {InfoType::name, InfoType::description}));
    ASSERT_EQ(told.size(), 5u);
    EXPECT_EQ(told[2].data, join({from_hex("0001"), bytes_of("disk")})) << "its canonical name";
    EXPECT_EQ(told[3].data, join({from_hex("0002"), bytes_of("a small disk")}));
    told = ask(Option::info, info_question("archive", {InfoType::description, InfoType{77}}));
    EXPECT_EQ(told.size(), 3u) << "there is no description, and no information 77";
}

TEST_F(HandshakeTest, TellsWhatADiskCanDo) {
    begin_options();
    auto flags = [&](const char* name) {
        return decode<InfoExport>(ask(Option::info, info_question(name, {}))[0].data)->flags;
    };
    TransmissionFlags expected{.can_flush = true,
                               .can_write_durably = true,
                               .can_trim = true,
                               .can_write_zeroes = true,
                               .many_connections = true,
                               .can_cache = true,
                               .can_zero_fast = true};
    EXPECT_EQ(flags("disk"), expected);
    disk.shown.can_trim = disk.shown.can_write_zeroes = false;
    disk.shown.rotational = true;
    expected.can_trim = expected.can_write_zeroes = expected.can_zero_fast = false;
    expected.rotational = true;
    EXPECT_EQ(flags("disk"), expected);
    disk.shown.read_only = true;
    expected.read_only = true;
    EXPECT_EQ(flags("disk"), expected);
    ask(Option::structured_reply, {});
    expected.can_keep_together = true;
    EXPECT_EQ(flags("disk"), expected);
}

TEST_F(HandshakeTest, TellsTheBlockSizesOfTheDevice) {
    begin_options();
    auto sizes = [&] {
        return *decode<InfoBlockSize>(ask(Option::info, info_question("disk", {}))[1].data);
    };
    disk.shown.minimum_block = 512;
    disk.shown.preferred_block = 65536;
    disk.shown.maximum_transfer = (1 << 20) + 100;
    EXPECT_EQ(sizes(), (InfoBlockSize{512, 65536, 1 << 20})) << "a multiple of the smallest";
    // The protocol wants minimum <= preferred <= maximum, and 512 <= preferred.
    disk.shown.minimum_block = 8192;
    disk.shown.preferred_block = 1;
    disk.shown.maximum_transfer = 1;
    EXPECT_EQ(sizes(), (InfoBlockSize{8192, 8192, 8192}));
    disk.shown = {.size = disk_size, .preferred_block = 1};
    EXPECT_EQ(sizes(), (InfoBlockSize{1, 512, 32u << 20}));
}

TEST_F(HandshakeTest, GoesIntoTransmission) {
    begin_options();
    EXPECT_THAT(answers(Option::go, info_question("archive", {InfoType::block_size})),
                ElementsAre(Answer::info, Answer::info, Answer::ack));
    ASSERT_NE(connection->chosen(), nullptr);
    EXPECT_EQ(connection->chosen()->name, "archive");
    EXPECT_EQ(connection->deadline(), std::nullopt);
}

TEST_F(HandshakeTest, RefusesAnExportThatIsNotThereAndGoesOn) {
    begin_options();
    for (auto which : {Option::info, Option::go}) {
        auto answer = ask(which, info_question("nothere", {}));
        ASSERT_EQ(answer.size(), 1u);
        EXPECT_EQ(answer[0].type, Answer::error_unknown);
        EXPECT_FALSE(words(answer[0]).empty());
    }
    EXPECT_EQ(answers(Option::go, info_question("", {})).back(), Answer::ack);
}

TEST_F(HandshakeTest, RefusesQuestionsWhoseCountsDoNotFit) {
    begin_options();
    const test::Bytes wrong[] = {
        {},
        from_hex("000000"),
        test::counted("disk"),
        join({number<4>(5), bytes_of("disk")}),
        join({number<4>(0xffffffff), bytes_of("disk")}),
        join({test::counted("disk"), number<2>(1)}),
        join({test::counted("disk"), number<2>(0xffff), number<2>(3)}),
        join({test::counted("disk"), number<2>(0), number<2>(3)}),
        info_question(std::string(string_max + 1, 'x'), {}),
    };
    for (const auto& data : wrong) {
        EXPECT_THAT(answers(Option::info, data), ElementsAre(Answer::error_invalid));
        EXPECT_THAT(answers(Option::go, data), ElementsAre(Answer::error_invalid));
    }
    EXPECT_THAT(answers(Option::info, info_question(std::string(string_max, 'x'), {})),
                ElementsAre(Answer::error_unknown));
}

TEST_F(HandshakeTest, AcknowledgesAnAbortAndHangsUp) {
    begin_options();
    EXPECT_THAT(answers(Option::abort, {}), ElementsAre(Answer::ack));
    EXPECT_TRUE(driver->closed());
    EXPECT_EQ(connection->fault(), std::nullopt);
    EXPECT_EQ(gone, 1);
}

TEST_F(HandshakeTest, AgreesToStructuredReplies) {
    begin_options();
    EXPECT_THAT(answers(Option::structured_reply, from_hex("00")),
                ElementsAre(Answer::error_invalid));
    EXPECT_THAT(answers(Option::structured_reply, {}), ElementsAre(Answer::ack));
    EXPECT_THAT(answers(Option::structured_reply, {}), ElementsAre(Answer::ack));
}

TEST_F(HandshakeTest, SetsAMetaContextOnlyAfterStructuredReplies) {
    begin_options();
    auto question = context_question("disk", {"base:allocation"});
    EXPECT_THAT(answers(Option::set_meta_context, question), ElementsAre(Answer::error_invalid));
    ask(Option::structured_reply, {});
    auto answer = ask(Option::set_meta_context, question);
    ASSERT_EQ(answer.size(), 2u);
    EXPECT_EQ(answer[0].data, join({number<4>(1), bytes_of("base:allocation")}));
    EXPECT_EQ(answer[1].type, Answer::ack);
}

TEST_F(HandshakeTest, KnowsWhichContextsAreMeant) {
    begin_options();
    ask(Option::structured_reply, {});
    auto lists = [&](std::initializer_list<std::string_view> queries) {
        return answers(Option::list_meta_context, context_question("disk", queries)).size() == 2;
    };
    auto sets = [&](std::initializer_list<std::string_view> queries) {
        return answers(Option::set_meta_context, context_question("disk", queries)).size() == 2;
    };
    EXPECT_TRUE(lists({}));
    EXPECT_TRUE(lists({"base:"}));
    EXPECT_TRUE(lists({"x-other:thing", "base:allocation"}));
    EXPECT_FALSE(lists({"qemu:allocation-depth"}));
    EXPECT_FALSE(sets({}));
    EXPECT_FALSE(sets({"base:"}));
    EXPECT_FALSE(sets({"base:allocatio", "base:allocations", ""}));
    EXPECT_TRUE(sets({"x-other:thing", "base:allocation", "base:allocation"})) << "once, not twice";
    disk.shown.can_report_status = false;
    EXPECT_FALSE(lists({"base:allocation"}));
    EXPECT_FALSE(sets({"base:allocation"}));
}

TEST_F(HandshakeTest, RefusesContextQuestionsThatMakeNoSense) {
    begin_options();
    ask(Option::structured_reply, {});
    for (auto which : {Option::list_meta_context, Option::set_meta_context}) {
        EXPECT_THAT(answers(which, context_question("nothere", {})),
                    ElementsAre(Answer::error_unknown));
        EXPECT_THAT(answers(which, {}), ElementsAre(Answer::error_invalid));
        EXPECT_THAT(answers(which, join({test::counted("disk"), number<4>(0xffffffff)})),
                    ElementsAre(Answer::error_invalid));
        EXPECT_THAT(answers(which, join({context_question("disk", {"base:"}), number<1>(0)})),
                    ElementsAre(Answer::error_invalid));
    }
}

TEST_F(HandshakeTest, ForgetsAContextThatWasForAnotherExport) {
    for (const char* chosen : {"disk", "archive", ""}) {
        SCOPED_TRACE(chosen);
        if (connection) driver->close(std::nullopt), gone = 0;
        begin_options();
        ask(Option::structured_reply, {});
        ask(Option::set_meta_context, context_question("disk", {"base:allocation"}));
        ask(Option::go, info_question(chosen, {}));
        auto status = reply_to(header(Command::block_status, 0, 4096));
        bool same = std::string_view(chosen) != "archive";  // the empty name is the first export
        EXPECT_EQ(status.error, same ? ErrorNumber::none : ErrorNumber::invalid);
    }
}

TEST_F(HandshakeTest, ForgetsAContextWhenTheNextSettingFails) {
    begin_options();
    ask(Option::structured_reply, {});
    ask(Option::set_meta_context, context_question("disk", {"base:allocation"}));
    ask(Option::set_meta_context, context_question("nothere", {"base:allocation"}));
    ask(Option::go, info_question("disk", {}));
    EXPECT_EQ(error_of(header(Command::block_status, 0, 4096)), ErrorNumber::invalid);
}

TEST_F(HandshakeTest, SpeaksTheOldWayToThoseWhoNameAnExport) {
    for (const char* flags : {"00000000", "00000001", "00000002", "00000003"}) {
        SCOPED_TRACE(flags);
        if (connection) driver->close(std::nullopt), gone = 0;
        connect();
        say(from_hex(flags));
        say(test::option(Option::export_name, bytes_of("archive")));
        auto heard = driver->take_sent();
        bool no_zeroes = (from_hex(flags)[3] & std::byte{2}) != std::byte{0};
        ASSERT_EQ(heard.size(), no_zeroes ? 10u : 134u);
        auto told = *decode<ExportNameReply>(heard);
        EXPECT_EQ(told.size, disk_size);
        EXPECT_TRUE(told.flags.read_only);
        heard.erase(heard.begin(), heard.begin() + 10);
        EXPECT_EQ(heard, test::Bytes(heard.size()));
        EXPECT_EQ(error_of(header(Command::read, 0, 10)), ErrorNumber::none);
    }
}

TEST_F(HandshakeTest, HangsUpOnAnUnknownNameSaidTheOldWay) {
    begin_options();
    say(test::option(Option::export_name, bytes_of("nothere")));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(connection->fault()->code, Code::not_found);
    EXPECT_TRUE(driver->take_sent().empty());
}

TEST_F(HandshakeTest, HangsUpOnANameTooLongWhateverTheExportsAreCalled) {
    ASSERT_TRUE(exports.add({"?", "", &disk, false}).has_value());
    begin_options();
    say(test::option(Option::export_name, test::Bytes(option_bytes_max + 1)));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(connection->fault()->code, Code::not_found);
}

TEST_F(HandshakeTest, TakesOnlyTheOldWayFromAnOldClient) {
    connect();
    say(from_hex("00000000"));
    say(test::option(Option::list, {}));
    EXPECT_TRUE(dropped());
}

TEST_F(HandshakeTest, ReadsAnOptionTooLongToItsEnd) {
    begin_options();
    EXPECT_THAT(answers(Option::go, test::Bytes(option_bytes_max + 1)),
                ElementsAre(Answer::error_too_big));
    EXPECT_THAT(answers(Option::go, test::Bytes(option_skip_max)),
                ElementsAre(Answer::error_too_big));
    EXPECT_THAT(answers(Option{99}, test::Bytes(option_bytes_max)),
                ElementsAre(Answer::error_unsupported));
    say(encoded(OptionHeader{Option::go, option_skip_max + 1}));
    EXPECT_TRUE(dropped());
}

TEST_F(HandshakeTest, LosesPatienceAfterManyOptions) {
    begin_options();
    for (std::size_t i = 0; i < options_max; ++i)
        ASSERT_THAT(answers(Option{77}, {}), ElementsAre(Answer::error_unsupported));
    EXPECT_FALSE(dropped());
    say(test::option(Option::list, {}));
    EXPECT_TRUE(dropped());
    EXPECT_EQ(connection->fault()->code, Code::exhausted);
}

TEST_F(HandshakeTest, ReadsNoMoreOptionsWhileTheirAnswersAreNotHeard) {
    for (int i = 0; i < 20; ++i) {
        auto name = "export " + std::to_string(i);
        ASSERT_TRUE(exports.add({name, std::string(string_max, 'd'), &disk, false}).has_value());
    }
    begin_options();
    driver->peer_listens = false;
    for (int i = 0; i < 5; ++i) say(test::option(Option::list, {}));
    EXPECT_EQ(driver->unread(), 4 * wire_size<OptionHeader>()) << "one answer is enough to wait";
    driver->peer_listens = true;
    driver->run();
    EXPECT_EQ(driver->unread(), 0u);
    EXPECT_EQ(test::option_answers(driver->take_sent()).size(), 5u * 23);
}

TEST_F(HandshakeTest, GivesAClientHalfAMinute) {
    begin_options();
    ASSERT_EQ(connection->deadline(), Instant{} + handshake_time);
    connection->tick(Instant{} + (handshake_time - Duration(1)));
    driver->run_if_woken();
    EXPECT_FALSE(driver->closed());
    connection->tick(Instant{} + handshake_time);
    driver->run_if_woken();
    EXPECT_TRUE(dropped());
    EXPECT_EQ(connection->fault()->code, Code::timed_out);
}

TEST_F(HandshakeTest, IsNotDisturbedByExportsAddedMeanwhile) {
    begin(Speech::structured, "archive");
    for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(exports.add({std::to_string(i), "", &disk, false}).has_value());
    EXPECT_EQ(connection->chosen()->name, "archive");
    EXPECT_EQ(error_of(header(Command::trim, 0, 10)), ErrorNumber::not_permitted);
}

}  // namespace
}  // namespace weft::nbd
