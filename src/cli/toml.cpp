// SPDX-License-Identifier: Apache-2.0
#include "cli/toml.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/command.hpp"
#include "cli/text.hpp"

namespace weft::cli {
namespace {

using nlohmann::json;

class Parser {
public:
    Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

    json parse() {
        json whole = json::object();
        json* table = &whole;
        while (next_line()) {
            skip_blanks();
            if (line_.empty()) continue;
            if (line_.starts_with("["))
                table = &enter(whole);
            else
                read_pair(*table);
            skip_blanks();
            if (!line_.empty()) fail("there is more than one thing in it");
        }
        return whole;
    }

private:
    [[noreturn]] void fail(const std::string& what) {
        throw Refusal{fmt::format("{}: line {}: {}", show_foreign(file_), number_, what)};
    }
    bool next_line() {
        if (text_.empty()) return false;
        auto end = std::min(text_.find('\n'), text_.size());
        line_ = text_.substr(0, end);
        text_.remove_prefix(std::min(end + 1, text_.size()));
        ++number_;
        return true;
    }
    /// Blanks, and a comment up to the end.
    void skip_blanks() {
        while (!line_.empty() && (line_[0] == ' ' || line_[0] == '\t' || line_[0] == '\r'))
            line_.remove_prefix(1);
        if (line_.starts_with('#')) line_ = {};
    }
    bool take(std::string_view what) {
        skip_blanks();
        if (!line_.starts_with(what)) return false;
        line_.remove_prefix(what.size());
        return true;
    }
    std::string name() {
        skip_blanks();
        auto end = std::find_if(line_.begin(), line_.end(), [](char letter) {
            return !(std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' ||
                     letter == '-');
        });
        std::string found(line_.begin(), end);
        if (found.empty()) fail("a name was expected");
        line_.remove_prefix(found.size());
        return found;
    }
    /// The table that [a.b] or [[a.b]] names; the latter adds one to the array.
    json& enter(json& whole) {
        const bool adds = take("[[");
        if (!adds) take("[");
        std::vector<std::string> path{name()};
        while (take(".")) path.push_back(name());
        if (!take(adds ? "]]" : "]")) fail("a bracket is not closed");
        json* at = &whole;
        for (std::size_t i = 0; i < path.size(); ++i) {
            json& child = (*at)[path[i]];
            if (adds && i + 1 == path.size()) {
                if (child.is_null()) child = json::array();
                if (!child.is_array()) fail(fmt::format("'{}' is no array of tables", path[i]));
                child.push_back(json::object());
            }
            if (child.is_null()) child = json::object();
            at = child.is_array() && !child.empty() ? &child.back() : &child;
            if (!at->is_object()) fail(fmt::format("'{}' is no table", path[i]));
        }
        return *at;
    }
    void read_pair(json& table) {
        auto key = name();
        if (!take("=")) fail(fmt::format("'=' was expected after '{}'", key));
        if (table.contains(key)) fail(fmt::format("'{}' is said twice", key));
        table[key] = value();
    }
    json value() {
        if (take("\"")) return string('"');
        if (take("'")) return string('\'');
        if (take("true")) return true;
        if (take("false")) return false;
        if (take("[")) return array();
        skip_blanks();
        std::uint64_t number = 0;
        auto [end, error] = std::from_chars(line_.data(), line_.data() + line_.size(), number);
        if (error != std::errc{}) fail("a string, a number, true, false or an array was expected");
        line_.remove_prefix(static_cast<std::size_t>(end - line_.data()));
        return number;
    }
    json string(char mark) {
        std::string found;
        for (;;) {
            if (line_.empty()) fail("a string is not closed");
            char letter = line_[0];
            line_.remove_prefix(1);
            if (letter == mark) return found;
            if (letter == '\\' && mark == '"') {
                if (line_.empty()) fail("a string is not closed");
                letter = line_[0];
                line_.remove_prefix(1);
                if (letter == 'n') letter = '\n';
                if (letter == 't') letter = '\t';
            }
            found += letter;
        }
    }
    json array() {
        auto found = json::array();
        for (bool after_value = false;;) {
            skip_blanks();
            while (line_.empty()) {
                if (!next_line()) fail("an array is not closed");
                skip_blanks();
            }
            if (take("]")) return found;
            if (after_value && !take(",")) fail("',' was expected");
            if (!after_value) found.push_back(value());
            after_value = !after_value;
        }
    }

    std::string_view text_, line_;
    const std::string& file_;
    unsigned number_ = 0;
};

}  // namespace

json parse_toml(std::string_view text, const std::string& file) {
    return Parser(text, file).parse();
}

}  // namespace weft::cli
