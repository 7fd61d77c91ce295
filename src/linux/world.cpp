// SPDX-License-Identifier: Apache-2.0
#include "linux/world.hpp"

#include <stdlib.h>

#include "linux/file_disk.hpp"
#include "linux/in_place_file_io.hpp"
#include "linux/listener.hpp"
#include "linux/loop_timer.hpp"
#include "linux/ring_file_io.hpp"
#include "linux/system_error.hpp"
#include "linux/thread_file_io.hpp"

namespace weft::linux {
namespace {

/// Owns itself, from start() to finished().
class ThreadCall final : public FileOperation {
public:
    ThreadCall(std::function<void()> work, std::function<void()> done)
        : work_(std::move(work)), done_(std::move(done)) {
        kind = Kind::call;
    }

    std::int64_t on_thread() override { return work_(), 0; }
    void finished(std::int64_t) override {
        const std::unique_ptr<ThreadCall> self(this);
        done_();
    }

private:
    std::function<void()> work_, done_;
};

}  // namespace

Result<std::unique_ptr<World>> World::make(const LinuxWorldOptions& options) {
    if (auto usable = check_tcp_options(options); !usable) return usable.error();
    WEFT_TRY(auto loop, EventLoop::make());
    std::unique_ptr<World> world(new World(std::move(loop), options));
    if (auto chosen = world->choose_files(options.files); !chosen) return chosen.error();
    return world;
}

World::World(std::unique_ptr<EventLoop> loop, const LinuxWorldOptions& options)
    : loop_(std::move(loop)), sockets_(*loop_, options), signals_(*loop_) {}

std::uint64_t World::random() {
    std::uint64_t number = 0;
    ::arc4random_buf(&number, sizeof number);
    return number;
}

World::~World() {
    loop_->drop_tasks();  // streams and disks they hold still need the sockets' and files' parts
}

Result<void> World::choose_files(FileEngine wanted) {
    if (wanted == FileEngine::none) {
        file_engine_ = FileEngine::none;
        return {};
    }
    if (wanted != FileEngine::threads) {
        auto ring = RingFileIo::make(*loop_);
        if (ring) {
            files_ = std::make_unique<InPlaceFileIo>(
                *loop_, std::move(*ring), InPlaceFileIo::Reads::leave_to_engine, read_clock);
            file_engine_ = FileEngine::ring;
            return {};
        }
        if (wanted == FileEngine::ring) return ring.error();
    }
    auto threads = ThreadFileIo::make(*loop_, limits::file_threads);
    if (!threads) return threads.error();
    files_ = std::make_unique<InPlaceFileIo>(*loop_, std::move(*threads),
                                             InPlaceFileIo::Reads::try_in_place, read_clock);
    file_engine_ = FileEngine::threads;
    return {};
}

Result<void> World::on_signal(int number, std::function<void()> task) {
    return signals_.on_signal(number, std::move(task));
}

void World::call_on_thread(std::function<void()> work, std::function<void()> done) {
    if (files_) return files_->start(*new ThreadCall(std::move(work), std::move(done)));
    // A world without files has no threads either: slow, but done.
    defer([work = std::move(work), done = std::move(done)] { work(), done(); });
}

void World::call_for_outcome(std::function<Result<void>()> work,
                             std::function<void(Result<void>)> done) {
    auto outcome = std::make_shared<Result<void>>();
    call_on_thread([outcome, work = std::move(work)] { *outcome = work(); },
                   [outcome, done = std::move(done)] { done(*outcome); });
}

std::unique_ptr<Timer> World::make_timer(std::function<void()> task) {
    return linux::make_timer(*loop_, std::move(task));
}

Result<std::unique_ptr<Listener>> World::listen(const Address& address, Accepted accepted) {
    return linux::listen(sockets_, address, std::move(accepted));
}

Result<std::unique_ptr<Stream>> World::connect(const Address& address, StreamEngine& engine,
                                               const Address& from) {
    WEFT_TRY(auto addresses, linux::resolve(address, Purpose::connect));
    std::optional<SocketAddress> own;
    if (from != Address{}) {
        WEFT_TRY(auto found, linux::resolve(from, Purpose::listen));
        own = found.front();
    }
    return Connection::connecting(sockets_, std::move(addresses), engine, own);
}

Result<std::vector<Address>> World::resolve(const Address& address) {
    WEFT_TRY(auto found, linux::resolve(address, Purpose::connect));
    std::vector<Address> addresses;
    for (auto& each : found) addresses.push_back(each.address());
    return addresses;
}

Result<std::unique_ptr<BlockDevice>> World::open_disk(const DiskOptions& options) {
    if (!files_) return Error{.code = Code::unsupported};
    return FileDisk::open(*files_, options);
}

Result<std::vector<std::byte>> World::read_file(const std::string& path) {
    return SmallFiles::read(path);
}

void World::replace_file(const std::string& path, ConstBuffer contents,
                         std::function<void(Result<void>)> done) {
    if (!files_) return weft::World::replace_file(path, contents, std::move(done));
    if (!small_files_) small_files_.emplace(*files_);
    if (small_files_->has_room()) return small_files_->replace(path, contents, std::move(done));
    defer([done = std::move(done)] { done(Error{.code = Code::exhausted}); });
}

}  // namespace weft::linux

namespace weft {

Result<std::unique_ptr<LinuxWorld>> open_linux_world(const LinuxWorldOptions& options) {
    WEFT_TRY(auto world, linux::World::make(options));
    return std::unique_ptr<LinuxWorld>(std::move(world));
}

}  // namespace weft
