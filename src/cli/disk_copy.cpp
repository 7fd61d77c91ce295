// SPDX-License-Identifier: Apache-2.0
// `weft disk copy`: one disk onto another, with progress, rate and time left.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error_text.hpp"
#include "block/copier.hpp"
#include "cli/command.hpp"
#include "cli/disk_access.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

/// A file that is not there yet is made, as large as the source and empty, and taken away again if
/// the copy fails: a file of full length with half the contents looks like a success.
class TargetFile {
public:
    TargetFile(const std::string& where, std::uint64_t size) : where_(where) {
        std::error_code failed;
        if (is_remote(where) || std::filesystem::exists(where, failed)) return;
        if (!failed) {
            made_ = std::ofstream(where).good();
            if (!made_) failed = std::make_error_code(static_cast<std::errc>(errno));
        }
        if (!failed) std::filesystem::resize_file(where, size, failed);
        if (!failed) return;
        remove();
        throw Refusal{
            fmt::format("{} of {} cannot be made: {}", where, show_size(size), failed.message())};
    }
    ~TargetFile() { remove(); }
    TargetFile(const TargetFile&) = delete;
    TargetFile& operator=(const TargetFile&) = delete;

    void keep() { made_ = false; }

private:
    void remove() {
        std::error_code failed;
        if (made_) std::filesystem::remove(where_, failed);
    }

    std::string where_;
    bool made_ = false;
};

void refuse_one_file_twice(const std::string& from, const std::string& to) {
    std::error_code failed;
    if (std::filesystem::equivalent(from, to, failed))
        throw Refusal{fmt::format("{} and {} are the same file", from, to)};
}

double seconds(Duration span) {
    return std::chrono::duration<double>(span).count();
}

/// One line, rewritten once a second, on a terminal only.
class ProgressLine {
public:
    ProgressLine(World& world, const block::Copier& copier) : world_(world), copier_(copier) {
        if (!isatty(STDERR_FILENO)) return;
        timer_ = world.make_timer([this] { show(); });
        timer_->set(world.now() + std::chrono::milliseconds(300));
    }
    ~ProgressLine() {
        if (shown_) fmt::print(stderr, "\r\033[K");
    }
    ProgressLine(const ProgressLine&) = delete;
    ProgressLine& operator=(const ProgressLine&) = delete;
    double elapsed() const { return seconds(world_.now() - began_); }

private:
    void show() {
        auto done_bytes = static_cast<double>(copier_.bytes_done());
        auto total = static_cast<double>(copier_.bytes_total());
        double rate = done_bytes / std::max(elapsed(), 1e-9);
        fmt::print(stderr, "\r\033[K{:3.0f} %  {} of {}  {}/s  {} left", 100 * done_bytes / total,
                   show_size(copier_.bytes_done()), show_size(copier_.bytes_total()),
                   show_size(static_cast<std::uint64_t>(rate)),
                   show_duration(rate > 0 ? (total - done_bytes) / rate : 0));
        std::fflush(stderr);
        shown_ = true;
        timer_->set(world_.now() + std::chrono::seconds(1));
    }

    World& world_;
    const block::Copier& copier_;
    Instant began_ = world_.now();
    std::unique_ptr<Timer> timer_;
    bool shown_ = false;
};

void copy(const std::string& from, const std::string& to, bool as_json) {
    auto world = make_world({});
    OpenedDisk source(*world, from, true);
    auto size = source.device().traits().size;
    refuse_one_file_twice(from, to);
    TargetFile target_file(to, size);
    OpenedDisk target(*world, to, false);
    auto room = target.device().traits().size;
    if (target.device().traits().read_only) throw Refusal{fmt::format("{} is read-only", to)};
    if (room < size)
        throw Refusal{fmt::format("{} holds {} bytes; {} are to be copied", to, room, size)};

    block::Copier copier(source.device(), target.device(), {});
    std::optional<Result<void>> outcome;
    double elapsed = 0;
    {
        ProgressLine progress(*world, copier);
        if (!copier.start([&](Result<void> result) { outcome = result; }))
            throw Refusal{fmt::format("{} takes only whole blocks of {} bytes, and {} has {} bytes",
                                      to, copier.block_bytes(), from, size)};
        world->run_until([&] { return outcome.has_value(); });
        elapsed = progress.elapsed();
    }
    if (!*outcome)
        throw Refusal{fmt::format("the copy failed after {} of {}: {}",
                                  show_size(copier.bytes_done()), show_size(size),
                                  to_text(outcome->error()))};
    target_file.keep();
    if (as_json)
        fmt::print("{}\n", show_json({{"source", from},
                                      {"target", to},
                                      {"size", size},
                                      {"bytes_moved", copier.bytes_moved()},
                                      {"seconds", elapsed}}));
    else
        fmt::print("{}: {} copied in {}, {} of it data\n", to, show_size(size),
                   show_duration(elapsed), show_size(copier.bytes_moved()));
}

}  // namespace

int disk_copy(const Command& self, const Arguments& arguments) {
    CLI::App options;
    std::string from, to;
    bool as_json = false;
    options.add_option("SOURCE", from, "a file, an NBD or an iSCSI URL")->required();
    options.add_option("TARGET", to, "a file (made if it is not there), an NBD or an iSCSI URL")
        ->required();
    options.add_flag("--json", as_json, "as a JSON document");
    if (auto leave = parse(self, options, arguments)) return *leave;
    copy(from, to, as_json);
    return done;
}

}  // namespace weft::cli
