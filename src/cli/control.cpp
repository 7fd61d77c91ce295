// SPDX-License-Identifier: Apache-2.0
#include "cli/control.hpp"

#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error_text.hpp"
#include "cli/command.hpp"
#include "cli/outside.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

constexpr std::size_t line_bytes_max = 1u << 20;
constexpr std::size_t visitors_max = 16;

/// One line each way on a stream.
class LineEngine : public StreamEngine {
public:
    Buffer want() override {
        return has_line_ || incoming_.size() > line_bytes_max ? Buffer{} : Buffer(scratch_);
    }
    void filled(std::size_t count) override {
        incoming_.append(reinterpret_cast<const char*>(scratch_.data()), count);
        if (auto end = incoming_.find('\n'); end != std::string::npos) {
            has_line_ = true;
            line_came(incoming_.substr(0, end));
        }
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        if (gone_ == outgoing_.size()) return 0;
        pieces[0] = std::as_bytes(std::span(outgoing_)).subspan(gone_);
        return 1;
    }
    void sent(std::size_t count) override { gone_ += count; }

protected:
    ~LineEngine() = default;
    virtual void line_came(const std::string& line) = 0;
    void say(const json& document) { outgoing_ = show_json(document) + "\n"; }
    bool overlong() const { return incoming_.size() > line_bytes_max; }
    bool has_line() const { return has_line_; }

private:
    std::array<std::byte, 4096> scratch_{};
    std::string incoming_, outgoing_;
    std::size_t gone_ = 0;
    bool has_line_ = false;
};

json answer_to(const ControlServer::Answer& answer, const std::string& line) {
    auto request = json::parse(line, nullptr, false);
    if (request.is_discarded() || !request.is_object()) return {{"refused", "that is no request"}};
    try {
        return answer(request);
    } catch (const Refusal& refusal) {
        return {{"refused", refusal.sentence}};
    } catch (const Misuse& misuse) {
        return {{"refused", misuse.sentence}};
    } catch (const json::exception&) {
        return {{"refused", "a value in it is of the wrong kind"}};
    }
}

}  // namespace

class ControlServer::Visitor final : public LineEngine {
public:
    explicit Visitor(ControlServer& owner) : owner_(owner) {}

    bool finished() const override { return has_line() || overlong(); }
    void closed(std::optional<Error>) override {
        owner_.world_.defer([this, &owner = owner_, alive = owner_.alive_] {
            if (*alive) owner.visitors_.remove_if([this](auto& each) { return &each == this; });
        });
    }

    std::unique_ptr<Stream> stream;

private:
    void line_came(const std::string& line) override { say(answer_to(owner_.answer_, line)); }

    ControlServer& owner_;
};

ControlServer::ControlServer(World& world, const std::string& path, Answer answer)
    : world_(world), answer_(std::move(answer)) {
    auto listener =
        world.listen(Address::unix_socket(path),
                     [this](std::unique_ptr<Stream> stream) { accepted(std::move(stream)); });
    if (!listener)
        throw Refusal{
            fmt::format("cannot listen on {}: {}", show_foreign(path), to_text(listener.error()))};
    listener_ = std::move(*listener);
}

ControlServer::~ControlServer() {
    *alive_ = false;
}

void ControlServer::accepted(std::unique_ptr<Stream> stream) {
    if (visitors_.size() >= visitors_max) return;
    auto& visitor = visitors_.emplace_back(*this);
    visitor.stream = std::move(stream);
    visitor.stream->drive(visitor);
}

namespace {

class Asker final : public LineEngine {
public:
    explicit Asker(const json& request) { say(request); }

    bool finished() const override { return has_line(); }
    void closed(std::optional<Error> why) override {
        over = true;
        fault = why;
    }

    std::string answer;
    std::optional<Error> fault;
    bool over = false;

private:
    void line_came(const std::string& line) override { answer = line; }
};

}  // namespace

json ask_control(const std::string& path, const json& request) {
    auto world = make_world({.files = FileEngine::none});
    Asker asker(request);
    auto refused = [&](const std::string& why) {
        return Refusal{fmt::format("{}: {}", show_foreign(path), why)};
    };
    auto stream = world->connect(Address::unix_socket(path), asker);
    if (!stream) throw refused(to_text(stream.error()));
    world->run_until([&] { return asker.over; });
    auto answer = json::parse(asker.answer, nullptr, false);
    if (asker.answer.empty() && asker.fault) throw refused(to_text(*asker.fault));
    if (answer.is_discarded()) throw refused("it gave no answer");
    if (answer.is_object() && answer.contains("refused"))
        throw Refusal{answer["refused"].get<std::string>()};
    return answer;
}

}  // namespace weft::cli
