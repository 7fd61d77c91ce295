// SPDX-License-Identifier: Apache-2.0
// Text requests in the full feature phase, of one connection (RFC 7143 sections 11.10 and 11.11):
// SendTargets, and the few keys that may still be negotiated. Text may come and go in several PDUs.
#pragma once

#include <functional>

#include "iscsi/negotiation.hpp"
#include "wire/iscsi_login.hpp"

namespace weft::iscsi {

class TextExchange {
public:
    /// Writes the records SendTargets asks for with this value. False: the value is not allowed.
    using SendTargets = std::function<bool(std::string_view value, TextQueue& out)>;

    TextExchange(const Wishes& wishes, const Terms& terms, SendTargets send_targets);

    struct Answer {
        wire::TextResponsePdu pdu{};
        ConstBuffer data{};  ///< until the next call
    };
    /// One request; its answer has at most `segment_max` octets of text. An error: to be rejected,
    /// and the exchange has begun anew.
    Result<Answer> take(const wire::TextRequestPdu& request, ConstBuffer data,
                        std::size_t segment_max);
    /// What holds now.
    const Terms& terms() const { return terms_; }

private:
    Result<void> read_pairs();
    void reset();

    Wishes wishes_;
    Terms terms_;
    SendTargets send_targets_;
    TextAssembly incoming_;
    TextQueue outgoing_;
    bool running_ = false;  ///< the initiator was given a tag to go on with
    wire::InitiatorTaskTag task_tag_{};
    std::uint32_t next_tag_ = 1;
    wire::TargetTransferTag tag_{};
};

}  // namespace weft::iscsi
