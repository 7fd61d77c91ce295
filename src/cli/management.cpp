// SPDX-License-Identifier: Apache-2.0
#include "cli/management.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error_text.hpp"
#include "cli/command.hpp"
#include "cli/outside.hpp"
#include "cli/secret_file.hpp"
#include "cli/text.hpp"
#include "node/array_proof.hpp"
#include "node/first_octets.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

constexpr std::size_t line_bytes_max = 1u << 20;
constexpr std::size_t visitors_max = 64;
constexpr std::size_t requests_max = 64;  ///< of one visitor, a line each
constexpr std::size_t key_min = 16;
constexpr std::size_t key_max = 4096;
constexpr Duration patience = std::chrono::seconds(60);

/// Lines both ways on a stream, one request at a time.
class LineStream : public StreamEngine {
public:
    Buffer want() override {
        return busy_ || incoming_.size() > line_bytes_max ? Buffer{} : Buffer(scratch_);
    }
    void filled(std::size_t count) override {
        incoming_.append(reinterpret_cast<const char*>(scratch_.data()), count);
        next_line();
    }
    std::size_t pending(std::span<ConstBuffer> pieces) override {
        if (gone_ == outgoing_.size()) return 0;
        pieces[0] = std::as_bytes(std::span(outgoing_)).subspan(gone_);
        return 1;
    }
    void sent(std::size_t count) override {
        gone_ += count;
        next_line();
    }
    bool finished() const override { return ended_ || incoming_.size() > line_bytes_max; }

protected:
    ~LineStream() = default;
    virtual void line_came(const std::string& line) = 0;

    void say(const json& document) {
        outgoing_ = show_json(document) + "\n";
        gone_ = 0;
        busy_ = false;
    }
    void end() { ended_ = true; }
    /// Not before the last answer has gone: what was lent to the world must not move.
    void next_line() {
        auto end_of_line = incoming_.find('\n');
        if (busy_ || gone_ < outgoing_.size() || end_of_line == std::string::npos) return;
        busy_ = true;
        const auto line = incoming_.substr(0, end_of_line);
        incoming_.erase(0, end_of_line + 1);
        line_came(line);
    }

private:
    std::array<std::byte, 4096> scratch_{};
    std::string incoming_, outgoing_;
    std::size_t gone_ = 0;
    bool busy_ = false;
    bool ended_ = false;
};

std::string hex_of(std::span<const std::uint8_t> octets) {
    std::string text;
    for (auto octet : octets) text += fmt::format("{:02x}", octet);
    return text;
}

std::string proof_of(const std::string& key, const std::string& challenge, const json& request) {
    const auto words = show_json(request);
    const std::array<ConstBuffer, 2> pieces{std::as_bytes(std::span(challenge)),
                                            std::as_bytes(std::span(words))};
    return hex_of(node::hmac_sha256(std::as_bytes(std::span(key)), pieces));
}

/// Requests are flat; what is nested deep is meant to hurt whoever copies it.
bool is_nested_deep(const std::string& line) {
    constexpr std::size_t depth_max = 16;
    std::size_t depth = 0;
    bool in_text = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (in_text && line[i] == '\\')
            ++i;
        else if (line[i] == '"')
            in_text = !in_text;
        else if (!in_text && (line[i] == '[' || line[i] == '{'))
            ++depth;
        else if (!in_text && (line[i] == ']' || line[i] == '}') && depth > 0)
            --depth;
        if (depth > depth_max) return true;
    }
    return false;
}

bool is_here(const Address& remote) {
    return remote.host.starts_with("127.") || remote.host == "::1" ||
           remote.host.starts_with("::ffff:127.");
}

/// Takes as long whatever the first difference is.
bool is_same(const std::string& one, const std::string& other) {
    if (one.size() != other.size()) return false;
    unsigned difference = 0;
    for (std::size_t i = 0; i < one.size(); ++i)
        difference |= static_cast<unsigned char>(one[i] ^ other[i]);
    return difference == 0;
}

}  // namespace

std::string read_key(const std::string& path) {
    if (path.empty()) return {};
    std::ifstream file(path, std::ios::binary);
    std::error_code none;
    if (!file || std::filesystem::is_directory(path, none))
        throw Refusal{fmt::format("{}: it cannot be read", show_foreign(path))};
    require_private(path);
    // Some files have no end.
    std::string key(key_max + 1, '\0');
    file.read(key.data(), static_cast<std::streamsize>(key.size()));
    key.resize(static_cast<std::size_t>(file.gcount()));
    if (key.size() > key_max)
        throw Refusal{fmt::format("{}: a key has at most {} octets", show_foreign(path), key_max)};
    while (key.ends_with('\n') || key.ends_with('\r')) key.pop_back();
    if (key.size() < key_min)
        throw Refusal{fmt::format("{}: a key has at least {} octets", show_foreign(path), key_min)};
    return key;
}

class ManagementServer::Visitor final : public LineStream {
public:
    enum class Standing : std::uint8_t {
        none,             ///< each of its requests must prove that it knows the key
        knows_key,        ///< as before; and one did
        of_this_machine,  ///< which is enough where there is no key
    };

    Visitor(ManagementServer& owner, Standing standing) : owner_(owner), standing_(standing) {}
    ~Visitor() { *alive_ = false; }

    void closed(std::optional<Error>) override {
        owner_.world_.defer([this, &owner = owner_, alive = owner_.alive_] {
            if (*alive) owner.visitors_.remove_if([this](auto& each) { return &each == this; });
        });
    }
    std::optional<Instant> deadline() const override { return until; }
    void tick(Instant now) override {
        if (now >= until) end();
    }

    bool has_standing() const { return standing_ != Standing::none; }

    std::unique_ptr<Stream> stream;
    Instant until{};

private:
    void line_came(const std::string& line) override {
        until = owner_.world_.now() + patience;
        if (++requests_ > requests_max) return end();
        if (is_nested_deep(line)) return reply({{"refused", "that is no request"}});
        auto request = json::parse(line, nullptr, false);
        if (request.is_discarded() || !request.is_object())
            return reply({{"refused", "that is no request"}});
        if (request.value("do", json()) == "challenge") {
            std::array<std::uint8_t, 16> octets{};
            for (auto& octet : octets)
                octet = static_cast<std::uint8_t>(owner_.world_.random() >> 8);
            challenge_ = hex_of(octets);
            return reply({{"challenge", challenge_}});
        }
        if (const auto* why_not = refusal_of(request)) return reply({{"refused", why_not}});
        request.erase("proof");
        answer(request);
    }
    /// Why it may not ask this; none if it may.
    const char* refusal_of(json request) {
        if (standing_ == Standing::of_this_machine) return nullptr;
        if (owner_.key_.empty())
            return "the controller does not know you: without a key it obeys only its own machine; "
                   "ask there, or start it and its boxes with --key FILE";
        auto proof = request.value("proof", json());
        request.erase("proof");
        const auto challenge = std::exchange(challenge_, {});  // good for one request
        if (challenge.empty() || !proof.is_string())
            return "the controller does not know you: it has a key; say --key FILE with the same";
        if (!is_same(proof.get<std::string>(), proof_of(owner_.key_, challenge, request)))
            return "the controller does not know you: it has another key than yours";
        standing_ = Standing::knows_key;
        return nullptr;
    }
    void answer(const json& request) {
        try {
            owner_.answer_(request, [this, alive = alive_](const json& document) {
                if (*alive) reply(document);
            });
        } catch (const Refusal& refusal) {
            reply({{"refused", refusal.sentence}});
        } catch (const Misuse& misuse) {
            reply({{"refused", misuse.sentence}});
        } catch (const json::exception&) {
            reply({{"refused", "a value in it is missing or of the wrong kind"}});
        }
    }
    void reply(const json& document) {
        say(document);
        // The next line may be here already; not from inside, however soon this was answered.
        owner_.world_.defer([this, alive = alive_] {
            if (!*alive) return;
            next_line();
            if (stream) stream->wake();
        });
    }

    ManagementServer& owner_;
    Standing standing_;
    std::string challenge_;
    std::size_t requests_ = 0;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

ManagementServer::ManagementServer(World& world, std::string key, Answer answer)
    : world_(world), key_(std::move(key)), answer_(std::move(answer)) {}

ManagementServer::~ManagementServer() {
    *alive_ = false;
}

void ManagementServer::take(std::unique_ptr<Stream> stream, ConstBuffer read_already) {
    // Strangers who say nothing must not keep everybody out.
    if (visitors_.size() >= visitors_max) {
        auto oldest =
            std::ranges::find_if(visitors_, [](auto& each) { return !each.has_standing(); });
        visitors_.erase(oldest == visitors_.end() ? visitors_.begin() : oldest);
    }
    // Any user of this machine can come from it, and anybody through a tunnel that ends here. Where
    // there is a key, it is asked for all the same.
    const bool is_trusted = key_.empty() && is_here(stream->remote());
    auto& visitor = visitors_.emplace_back(
        *this, is_trusted ? Visitor::Standing::of_this_machine : Visitor::Standing::none);
    visitor.until = world_.now() + patience;
    visitor.stream = std::move(stream);
    (void)node::feed(visitor, read_already);
    visitor.stream->drive(visitor);
}

// ------------------------------------------------------------------------------------ who asks

namespace {

class Asker final : public LineStream {
public:
    Asker(const std::string& key, json request) : key_(key), request_(std::move(request)) {
        say(key.empty() ? request_ : json{{"do", "challenge"}});
    }
    void ask(World& world, const Address& address, Duration how_long) {
        until_ = world.now() + how_long;
        auto connected = world.connect(address, *this);
        if (!connected) return closed(connected.error());
        stream_ = std::move(*connected);
    }
    void closed(std::optional<Error> why) override {
        over_ = true;
        fault_ = why;
    }
    std::optional<Instant> deadline() const override { return until_; }
    void tick(Instant now) override {
        if (now >= until_) closed(Error{.code = Code::timed_out});
    }

    bool over() const { return over_ || answer_; }
    /// None: it has answered, though perhaps with a refusal.
    std::optional<std::string> trouble() const {
        if (!answer_ && fault_) return to_text(*fault_);
        if (!answer_ || answer_->is_discarded()) return "it gave no answer";
        return std::nullopt;
    }
    const json& answer() const { return *answer_; }

private:
    void line_came(const std::string& line) override {
        auto document = json::parse(line, nullptr, false);
        if (!key_.empty() && !proved_ && document.is_object() &&
            document.value("challenge", json()).is_string()) {
            proved_ = true;
            request_["proof"] = proof_of(key_, document["challenge"], request_);
            say(request_);
            return stream_->wake();
        }
        answer_ = std::move(document);
        end();
    }

    std::string key_;
    json request_;
    std::unique_ptr<Stream> stream_;
    Instant until_{};
    std::optional<json> answer_;
    std::optional<Error> fault_;
    bool over_ = false;
    bool proved_ = false;
};

OfficeAnswer office_answer(const Asker& asker) {
    OfficeAnswer found{.trouble = asker.trouble(), .state = {}, .document = {}};
    if (found.trouble) return found;
    const auto& said = asker.answer();
    auto word = [&](const char* name) {
        const auto value = said.is_object() ? said.value(name, json()) : json();
        return value.is_string() ? value.get<std::string>() : std::string();
    };
    found.state = word("state");
    found.document = show_json(said);
    if (found.state.empty()) found.trouble = "it says nothing of its office";
    if (const auto refusal = word("refused"); !refusal.empty()) found.trouble = refusal;
    return found;
}

/// The place of the one that is in office.
std::size_t find_in_office(const AtController& controller) {
    const auto answers = ask_for_office(controller, true);
    std::string sentence = "no controller is in office";
    for (std::size_t i = 0; i < answers.size(); ++i) {
        if (answers[i].in_office()) return i;
        sentence +=
            fmt::format("{} {}: {}", i == 0 ? ":" : ";", show_address(controller.addresses[i]),
                        show_foreign(answers[i].trouble.value_or(answers[i].state)));
    }
    throw Refusal{sentence};
}

}  // namespace

std::vector<OfficeAnswer> ask_for_office(const AtController& controller, bool one_will_do) {
    // Who is paused is connected to, and says nothing.
    constexpr Duration how_long = std::chrono::seconds(3);
    auto world = make_world({.files = FileEngine::none});
    std::list<Asker> askers;
    for (const auto& address : controller.addresses)
        askers.emplace_back(controller.key, json{{"do", "controller status"}})
            .ask(*world, address, how_long);
    world->run_until([&] {
        const bool all = std::ranges::all_of(askers, [](auto& each) { return each.over(); });
        return all || (one_will_do && std::ranges::any_of(askers, [](auto& each) {
                           return each.over() && office_answer(each).in_office();
                       }));
    });
    std::vector<OfficeAnswer> answers;
    for (const auto& each : askers) answers.push_back(office_answer(each));
    return answers;
}

json ask_controller(const AtController& controller, const json& request) {
    const bool several = controller.addresses.size() > 1;
    const auto& address = controller.addresses[several ? find_in_office(controller) : 0];
    auto world = make_world({.files = FileEngine::none});
    Asker asker(controller.key, request);
    asker.ask(*world, address, 2 * patience);
    world->run_until([&] { return asker.over(); });
    if (auto trouble = asker.trouble())
        throw Refusal{fmt::format("the controller at {}: {}", show_address(address), *trouble)};
    const auto& answer = asker.answer();
    if (answer.is_object() && answer.contains("refused"))
        throw Refusal{show_foreign(answer["refused"].get<std::string>())};
    return answer;
}

}  // namespace weft::cli
