// SPDX-License-Identifier: Apache-2.0
#include "store/http_client.hpp"

#include <algorithm>
#include <charconv>

namespace weft::store {
namespace {

constexpr Error bad{.code = Code::malformed};
constexpr std::size_t line_max = 4096;

std::string lower(std::string_view text) {
    std::string made(text);
    for (auto& letter : made)
        if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
    return made;
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
    return text;
}

Result<std::size_t> number_in(std::string_view text, int base) {
    std::size_t number = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number, base);
    if (fault != std::errc{} || end != text.data() + text.size() || text.empty()) return bad;
    if (number > HttpAnswerReader::body_max) return Error{.code = Code::exhausted};
    return number;
}

}  // namespace

std::string http_post(const std::string& host, const std::string& path, const std::string& body) {
    return "POST " + path + " HTTP/1.1\r\nHost: " + host +
           "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
}

Result<bool> HttpAnswerReader::take(std::string_view octets) {
    incoming_.append(octets);
    for (;;) {
        if (stage_ == Stage::over) {
            if (!incoming_.empty()) return bad;
            return true;
        }
        WEFT_TRY(bool goes_on, step());
        if (!goes_on && stage_ != Stage::over) return false;
    }
}

std::optional<std::string> HttpAnswerReader::take_line() {
    const auto end = incoming_.find("\r\n");
    if (end == std::string::npos) return std::nullopt;
    auto line = incoming_.substr(0, end);
    incoming_.erase(0, end + 2);
    return line;
}

/// False: more must come first.
Result<bool> HttpAnswerReader::step() {
    switch (stage_) {
        case Stage::head: {
            const auto end = incoming_.find("\r\n\r\n");
            if (std::min(end, incoming_.size()) > head_max) return Error{.code = Code::exhausted};
            if (end == std::string::npos) return false;
            const auto head = incoming_.substr(0, end + 2);
            incoming_.erase(0, end + 4);
            if (auto read = read_head(head); !read) return read.error();
            return true;
        }
        case Stage::length:
        case Stage::chunk: {
            const auto count = std::min(left_, incoming_.size());
            body_.append(incoming_, 0, count);
            incoming_.erase(0, count);
            left_ -= count;
            if (left_ > 0) return false;
            stage_ = stage_ == Stage::length ? Stage::over : Stage::chunk_end;
            return true;
        }
        case Stage::chunk_size:
            return begin_chunk();
        case Stage::chunk_end:
        case Stage::trailer: {
            const auto line = take_line();
            if (!line && incoming_.size() > line_max) return bad;
            if (!line) return false;
            if (stage_ == Stage::chunk_end && !line->empty()) return bad;
            if (stage_ == Stage::chunk_end)
                stage_ = Stage::chunk_size;
            else if (line->empty())
                stage_ = Stage::over;
            return true;
        }
        case Stage::rest:
            if (body_.size() + incoming_.size() > body_max) return Error{.code = Code::exhausted};
            body_ += incoming_;
            incoming_.clear();
            return false;
        case Stage::over:
            break;
    }
    return false;
}

Result<void> HttpAnswerReader::read_head(std::string_view head) {
    const auto first_end = head.find("\r\n");
    const auto first = head.substr(0, first_end);
    if (!first.starts_with("HTTP/1.") || first.size() < 12 || first[8] != ' ') return bad;
    WEFT_TRY(auto status, number_in(first.substr(9, 3), 10));
    status_ = static_cast<unsigned>(status);
    stays_open_ = first[7] != '0';
    for (auto rest = head.substr(first_end + 2); !rest.empty();) {
        const auto end = rest.find("\r\n");
        if (auto read = read_field(rest.substr(0, end)); !read) return read;
        rest.remove_prefix(end + 2);
    }
    // What announces more to come, or has no body, is of no use to us.
    if (status_ < 200 || status_ == 204 || status_ == 304) return bad;
    if (chunked_) {
        stage_ = Stage::chunk_size;
    } else if (length_) {
        left_ = *length_;
        stage_ = Stage::length;
    } else {
        stays_open_ = false;
        stage_ = Stage::rest;
    }
    return {};
}

Result<void> HttpAnswerReader::read_field(std::string_view line) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0) return bad;
    const auto name = lower(line.substr(0, colon));
    const auto value = trimmed(line.substr(colon + 1));
    if (name == "content-length") {
        WEFT_TRY(auto length, number_in(value, 10));
        if (length_ && *length_ != length) return bad;
        length_ = length;
    } else if (name == "transfer-encoding") {
        if (lower(value) != "chunked") return Error{.code = Code::unsupported};
        chunked_ = true;
    } else if (name == "connection" && lower(value) == "close") {
        stays_open_ = false;
    }
    return {};
}

Result<bool> HttpAnswerReader::begin_chunk() {
    const auto line = take_line();
    if (!line && incoming_.size() > line_max) return bad;
    if (!line) return false;
    WEFT_TRY(left_, number_in(trimmed(std::string_view(*line).substr(0, line->find(';'))), 16));
    if (body_.size() + left_ > body_max) return Error{.code = Code::exhausted};
    stage_ = left_ == 0 ? Stage::trailer : Stage::chunk;
    return true;
}

}  // namespace weft::store
