// SPDX-License-Identifier: Apache-2.0
// The two engines, asked directly and without a disk: they must give what the system call gives.
#include "linux/file_io.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include "linux/ring_file_io.hpp"
#include "linux/thread_file_io.hpp"

namespace weft::linux {
namespace {

struct Asked final : FileOperation {
    bool done = false;
    std::int64_t answer = 0;
    std::thread::id where;
    std::int64_t on_thread() override {
        where = std::this_thread::get_id();
        return 4711;
    }
    void finished(std::int64_t value) override {
        EXPECT_FALSE(done) << "finished twice";
        done = true;
        answer = value;
    }
};

enum class Engine { ring, threads };

class FileIoTest : public testing::TestWithParam<Engine> {
protected:
    void SetUp() override {
        if (GetParam() == Engine::ring) {
            auto made = RingFileIo::make(*loop);
            if (!made) GTEST_SKIP() << "no io_uring here";
            io = std::move(*made);
        } else {
            io = std::move(*ThreadFileIo::make(*loop, 2));
        }
        std::string name = "weft_file_io_test_XXXXXX";
        file = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
        ASSERT_TRUE(file.is_open());
        ::unlink(name.c_str());
    }
    std::int64_t ask(Asked& operation) {
        operation.descriptor = file.number();
        io->start(operation);
        EXPECT_FALSE(operation.done) << "never from inside start()";
        loop->run_until([&] { return operation.done; });
        return operation.answer;
    }
    std::unique_ptr<EventLoop> loop = std::move(*EventLoop::make());
    std::unique_ptr<FileIo> io;
    Descriptor file;
};

TEST_P(FileIoTest, DoesEachKindOfOperation) {
    std::string written = "the warp and the weft", read(30, '.');
    std::array<iovec, 2> parts{iovec{written.data(), 8}, {written.data() + 8, 13}};
    Asked write;
    write.kind = FileOperation::Kind::write;
    write.memory = parts;
    write.offset = 100;
    EXPECT_EQ(ask(write), 21);

    Asked synchronize;
    synchronize.kind = FileOperation::Kind::synchronize;
    EXPECT_EQ(ask(synchronize), 0);

    iovec whole{read.data(), read.size()};
    Asked back;
    back.memory = std::span(&whole, 1);
    back.offset = 100;
    EXPECT_EQ(ask(back), 21) << "the file ends there";
    EXPECT_EQ(read.substr(0, 22), written + ".");

    Asked allocate;
    allocate.kind = FileOperation::Kind::allocate;
    allocate.offset = 0;
    allocate.length = 10'000;
    EXPECT_EQ(ask(allocate), 0);
    struct stat status {};
    ::fstat(file.number(), &status);
    EXPECT_EQ(status.st_size, 10'000);

    Asked advise;
    advise.kind = FileOperation::Kind::advise;
    advise.flags = POSIX_FADV_WILLNEED;
    advise.length = 5ull << 32;
    EXPECT_EQ(ask(advise), 0);

    Asked call;
    call.kind = FileOperation::Kind::call;
    EXPECT_EQ(ask(call), 4711);
    EXPECT_NE(call.where, std::this_thread::get_id());
}

TEST_P(FileIoTest, AnswersWithTheErrnoOfAFailure) {
    file = Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    iovec part{&file, sizeof file};
    Asked write;
    write.kind = FileOperation::Kind::write;
    write.memory = std::span(&part, 1);
    EXPECT_EQ(ask(write), -EBADF);
    Asked allocate;
    allocate.kind = FileOperation::Kind::allocate;
    allocate.length = 1;
    EXPECT_LT(ask(allocate), 0);
}

TEST_P(FileIoTest, TakesMoreThanTheKernelHoldsAtOnce) {
    std::vector<Asked> operations(limits::ring_depth * 5);
    std::vector<char> bytes(operations.size(), 'x');
    std::vector<iovec> parts(operations.size());
    std::size_t done = 0;
    for (std::size_t i = 0; i < operations.size(); ++i) {
        parts[i] = {&bytes[i], 1};
        operations[i].kind = FileOperation::Kind::write;
        operations[i].descriptor = file.number();
        operations[i].offset = i;
        operations[i].memory = std::span(&parts[i], 1);
        io->start(operations[i]);
    }
    loop->run_until([&] {
        done = 0;
        for (auto& each : operations) done += each.done;
        return done == operations.size();
    });
    for (auto& each : operations) EXPECT_EQ(each.answer, 1);
}

INSTANTIATE_TEST_SUITE_P(Engines, FileIoTest, testing::Values(Engine::ring, Engine::threads),
                         [](const auto& tested) {
                             return tested.param == Engine::ring ? "Ring" : "Threads";
                         });

}  // namespace
}  // namespace weft::linux
