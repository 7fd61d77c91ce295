// SPDX-License-Identifier: Apache-2.0
#include "iscsi/iser_message.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::iscsi::iser {
namespace {

void set_data_length(Buffer basic_header, std::size_t length) {
    store_big_endian<3>(length, basic_header.data() + wire::data_length_at);
}

}  // namespace

Result<Message> read_message(Buffer octets) {
    if (octets.size() < headers_size) return Error{.code = Code::truncated};
    Message message;
    WEFT_TRY(message.advertised, decode<wire::IserControlHeader>(octets));
    Buffer header = octets.subspan(wire::iser_header_size, wire::basic_header_size);
    WEFT_TRY(auto basic, decode<wire::BasicHeader>(header));
    auto rest = octets.subspan(headers_size);
    auto additional = basic.additional_header_size();
    if (rest.size() < additional) return Error{.code = Code::truncated};
    bool lacks_its_data = rest.size() == additional && basic.data_length > 0;
    if (lacks_its_data && basic.opcode == wire::IscsiOpcode::scsi_command &&
        message.advertised.write_buffer_valid) {
        basic.data_length = 0;
        set_data_length(header, 0);
    }
    if (rest.size() - additional < basic.data_length) return Error{.code = Code::truncated};
    message.pdu = {.basic = basic,
                   .header = header,
                   .additional_headers = rest.first(additional),
                   .data = rest.subspan(additional, basic.data_length)};
    return message;
}

std::size_t write_headers(const wire::IserControlHeader& advertised, ConstBuffer basic_header,
                          std::size_t data_length, Buffer to) {
    WEFT_CHECK(basic_header.size() == wire::basic_header_size && to.size() >= headers_size);
    encode(advertised, to);
    std::copy(basic_header.begin(), basic_header.end(), to.begin() + wire::iser_header_size);
    set_data_length(to.subspan(wire::iser_header_size), data_length);
    return headers_size;
}

void stamp(const wire::TargetNumbers& numbers, Buffer basic_header) {
    encode(numbers, basic_header.subspan(wire::target_numbers_at));
}

wire::TargetNumbers target_numbers(ConstBuffer basic_header) {
    return *decode<wire::TargetNumbers>(basic_header.subspan(wire::target_numbers_at));
}

}  // namespace weft::iscsi::iser
