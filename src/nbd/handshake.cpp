// SPDX-License-Identifier: Apache-2.0
#include "nbd/handshake.hpp"

#include <algorithm>

namespace weft::nbd {

using namespace wire::nbd;

namespace {

/// Reads the counted strings of an option's data; the first that does not fit sticks.
class Cursor {
public:
    explicit Cursor(ConstBuffer data) : left_(data) {}

    template <std::size_t Count>
    std::uint32_t number() {
        auto octets = take(Count);
        return octets.empty() ? 0
                              : static_cast<std::uint32_t>(load_big_endian<Count>(octets.data()));
    }
    std::string_view string() {
        auto size = number<4>();
        if (size > string_max) good_ = false;
        return text_of(take(size));
    }
    bool good() const { return good_; }
    bool at_end() const { return good_ && left_.empty(); }
    std::size_t left() const { return left_.size(); }

private:
    ConstBuffer take(std::size_t size) {
        if (!good_ || size > left_.size()) {
            good_ = false;
            return {};
        }
        auto part = left_.first(size);
        left_ = left_.subspan(size);
        return part;
    }

    ConstBuffer left_;
    bool good_ = true;
};

}  // namespace

struct Handshake::Question {
    const ReceivedOption& received;
    Outbox& out;

    void answer(OptionReplyType type, std::size_t length) {
        out.add(OptionReplyHeader{received.option, type, static_cast<std::uint32_t>(length)});
    }
    void acknowledge() { answer(OptionReplyType::ack, 0); }
    /// Errors carry a sentence, which clients show to their users.
    void refuse(OptionReplyType type, std::string_view why) {
        answer(type, why.size());
        out.add_octets(bytes_of(why));
    }
    template <class Info>
    void tell(const Info& info) {
        answer(OptionReplyType::info, wire_size<Info>());
        out.add(info);
    }
    void tell_text(InfoType type, std::string_view text) {
        std::array<std::byte, 2> kind{};
        store_big_endian<2>(static_cast<std::uint64_t>(type), kind.data());
        answer(OptionReplyType::info, kind.size() + text.size());
        out.add_octets(kind);
        out.add_octets(bytes_of(text));
    }
};

void Handshake::greet(Outbox& out) const {
    out.add(Greeting{.no_zeroes = true, .fixed_newstyle = true});
}

Result<void> Handshake::flags(ClientFlags flags) {
    if (flags.unknown != 0) return Error{.code = Code::unsupported};
    no_zeroes_ = flags.no_zeroes;
    fixed_newstyle_ = flags.fixed_newstyle;
    return {};
}

Result<Handshake::Next> Handshake::option(const ReceivedOption& received, Outbox& out) {
    if (++options_seen_ > options_max) return Error{.code = Code::exhausted};
    // Only this option has no way to be answered with an error: the protocol's oldest wart.
    if (received.option == Option::export_name) {
        if (received.too_big) return Error{.code = Code::not_found};
        return export_name(text_of(received.data), out);
    }
    if (!fixed_newstyle_) return Error{.code = Code::malformed};

    Question question{received, out};
    if (received.too_big) {
        question.refuse(OptionReplyType::error_too_big, "the option's data are too long");
        return Next::more_options;
    }
    switch (received.option) {
        case Option::abort:
            question.acknowledge();
            return Next::goodbye;
        case Option::list:
            list(question);
            break;
        case Option::info:
            info(question, false);
            break;
        case Option::go:
            if (info(question, true)) return Next::transmission;
            break;
        case Option::structured_reply:
            structured_reply(question);
            break;
        case Option::list_meta_context:
            meta_context(question, false);
            break;
        case Option::set_meta_context:
            meta_context(question, true);
            break;
        default:
            question.refuse(OptionReplyType::error_unsupported, "this option is not known here");
    }
    return Next::more_options;
}

Result<Handshake::Next> Handshake::export_name(std::string_view name, Outbox& out) {
    chosen_ = exports_.find(name);
    if (chosen_ == nullptr) return Error{.code = Code::not_found};
    dialect_.allocation_status = dialect_.allocation_status && allocation_export_ == chosen_->name;
    out.add(ExportNameReply{chosen_->device->traits().size,
                            chosen_->flags(dialect_.structured_replies)});
    if (!no_zeroes_) out.add_zeroes(export_name_zeroes);
    return Next::transmission;
}

void Handshake::list(Question& question) {
    if (!question.received.data.empty())
        return question.refuse(OptionReplyType::error_invalid, "LIST carries no data");
    for (const auto& offered : exports_.all()) {
        std::array<std::byte, 4> name_size{};
        store_big_endian<4>(offered.name.size(), name_size.data());
        question.answer(OptionReplyType::server,
                        4 + offered.name.size() + offered.description.size());
        question.out.add_octets(name_size);
        question.out.add_octets(bytes_of(offered.name));
        question.out.add_octets(bytes_of(offered.description));
    }
    question.acknowledge();
}

bool Handshake::info(Question& question, bool go) {
    Cursor cursor(question.received.data);
    auto name = cursor.string();
    auto count = cursor.number<2>();
    bool wants_name = false, wants_description = false;
    for (std::uint32_t i = 0; i < count && cursor.good(); ++i) {
        auto kind = static_cast<InfoType>(cursor.number<2>());
        wants_name |= kind == InfoType::name;
        wants_description |= kind == InfoType::description;
    }
    if (!cursor.at_end()) {
        question.refuse(OptionReplyType::error_invalid,
                        "the option's data do not fit their counts");
        return false;
    }
    const auto* found = exports_.find(name);
    if (found == nullptr) {
        question.refuse(OptionReplyType::error_unknown, "there is no export of that name");
        return false;
    }
    auto traits = found->device->traits();
    question.tell(InfoExport{traits.size, found->flags(dialect_.structured_replies)});
    question.tell(block_sizes(traits));
    if (wants_name) question.tell_text(InfoType::name, found->name);
    if (wants_description && !found->description.empty())
        question.tell_text(InfoType::description, found->description);
    question.acknowledge();
    if (go) {
        chosen_ = found;
        dialect_.allocation_status =
            dialect_.allocation_status && allocation_export_ == found->name;
    }
    return go;
}

void Handshake::structured_reply(Question& question) {
    if (!question.received.data.empty())
        return question.refuse(OptionReplyType::error_invalid, "STRUCTURED_REPLY carries no data");
    dialect_.structured_replies = true;
    question.acknowledge();
}

void Handshake::meta_context(Question& question, bool set) {
    if (set) dialect_.allocation_status = false;  // each SET replaces the last, even a failed one
    if (set && !dialect_.structured_replies)
        return question.refuse(OptionReplyType::error_invalid, "ask for structured replies first");
    Cursor cursor(question.received.data);
    auto name = cursor.string();
    auto count = cursor.number<4>();
    // No query at all means "list every context", and "set none".
    bool matches = !set && count == 0;
    for (std::uint32_t i = 0; i < count && cursor.good(); ++i) {
        auto query = cursor.string();
        matches |= query == allocation_context || (!set && query == "base:");
    }
    if (!cursor.at_end())
        return question.refuse(OptionReplyType::error_invalid,
                               "the option's data do not fit their counts");
    const auto* found = exports_.find(name);
    if (found == nullptr)
        return question.refuse(OptionReplyType::error_unknown, "there is no export of that name");
    if (matches && found->device->traits().can_report_status) {
        auto text = bytes_of(allocation_context);
        question.answer(OptionReplyType::meta_context, wire_size<MetaContextId>() + text.size());
        question.out.add(MetaContextId{set ? allocation_context_id : 0});
        question.out.add_octets(text);
        if (set) {
            dialect_.allocation_status = true;
            allocation_export_ = found->name;
        }
    }
    question.acknowledge();
}

}  // namespace weft::nbd
