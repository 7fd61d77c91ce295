// SPDX-License-Identifier: Apache-2.0
#include "support/tshark.hpp"

#include <gtest/gtest.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

namespace weft::test {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t severity_warning = 0x600000;  // Wireshark's PI_WARN; PI_ERROR is larger

/// A directory of our own: tests run beside each other, and a user's Wireshark settings must not
/// decide what a dissector does.
class Workplace {
public:
    Workplace() {
        std::string pattern = std::filesystem::temp_directory_path() / "weft-tshark-XXXXXX";
        if (!::mkdtemp(pattern.data())) throw std::runtime_error("cannot make " + pattern);
        path_ = pattern;
    }
    ~Workplace() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    Workplace(const Workplace&) = delete;
    Workplace& operator=(const Workplace&) = delete;

    std::string file(const char* name) const { return path_ / name; }
    std::string folder() const { return path_; }

private:
    std::filesystem::path path_;
};

std::string quoted(const std::string& word) {
    std::string text = "'";
    for (char letter : word) {
        if (letter == '\'') {
            text += "'\\''";
        } else {
            text += letter;
        }
    }
    return text + "'";
}

std::string run(const std::string& command, const std::string& complaint_file) {
    FILE* pipe = ::popen((command + " 2>" + quoted(complaint_file)).c_str(), "r");
    if (!pipe) throw std::runtime_error("cannot run " + command);
    std::string output;
    char part[65'536];
    while (auto count = ::fread(part, 1, sizeof part, pipe)) output.append(part, count);
    int status = ::pclose(pipe);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
        throw std::runtime_error(
            "tshark is not installed, and this test needs it: apt install tshark");
    if (status != 0) {
        std::ifstream file(complaint_file);
        std::string complaint{std::istreambuf_iterator<char>(file), {}};
        throw std::runtime_error("failed: " + command + "\n" + complaint);
    }
    return output;
}

std::string run_tshark(const char* what, const std::string& path, const TsharkOptions& options) {
    Workplace workplace;
    auto command = "WIRESHARK_CONFIG_DIR=" + quoted(workplace.folder()) + " tshark -n " + what +
                   " -o ip.check_checksum:TRUE -o tcp.check_checksum:TRUE"
                   " -o udp.check_checksum:TRUE";
    for (const auto& rule : options.decode_as) command += " -d " + quoted(rule);
    for (const auto& preference : options.preferences) command += " -o " + quoted(preference);
    for (const auto& name : options.heuristics) command += " --enable-heuristic " + quoted(name);
    for (const auto& name : options.no_heuristics)
        command += " --disable-heuristic " + quoted(name);
    return run(command + " -r " + quoted(path), workplace.file("complaints"));
}

/// The rows of the summary's tables: those that begin with a number, without it.
std::vector<std::string> summary_lines(const std::string& summary) {
    std::vector<std::string> rows;
    std::istringstream lines(summary);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::size_t frequency = 0;
        std::string row, word;
        if (!(words >> frequency)) continue;
        while (words >> word) row += row.empty() ? word : " " + word;
        rows.push_back(row);
    }
    return rows;
}

void flatten(const std::string& name, const Json& value, DissectedFrame& into) {
    if (value.is_array()) {
        for (const auto& element : value) flatten(name, element, into);
    } else if (value.is_object()) {
        into.add(name, "");
        for (const auto& item : value.items()) flatten(item.key(), item.value(), into);
    } else {
        into.add(name, value.is_string() ? value.get<std::string>() : value.dump());
    }
}

std::uint64_t as_number(const std::string& name, const std::string& text) {
    if (text == "True" || text == "true") return 1;
    if (text == "False" || text == "false") return 0;
    char* end = nullptr;
    auto value = ::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end != 0) ADD_FAILURE() << name << " is not a number: '" << text << "'";
    return value;
}

}  // namespace

bool DissectedFrame::has(const std::string& name) const {
    return std::any_of(fields_.begin(), fields_.end(),
                       [&](const auto& field) { return field.first == name; });
}

std::vector<std::string> DissectedFrame::all(const std::string& name) const {
    std::vector<std::string> values;
    for (const auto& field : fields_)
        if (field.first == name) values.push_back(field.second);
    return values;
}

std::string DissectedFrame::text(const std::string& name) const {
    auto values = all(name);
    if (values.size() == 1) return values[0];
    ADD_FAILURE() << values.size() << " fields " << name << " in a frame of\n" << dump();
    return values.empty() ? "" : values[0];
}

std::uint64_t DissectedFrame::number(const std::string& name) const {
    auto value = text(name);
    return value.empty() ? 0 : as_number(name, value);
}

std::vector<std::uint64_t> DissectedFrame::numbers(const std::string& name) const {
    std::vector<std::uint64_t> values;
    for (const auto& value : all(name)) values.push_back(as_number(name, value));
    return values;
}

std::string DissectedFrame::dump() const {
    std::string lines;
    for (const auto& field : fields_) lines += field.first + " = " + field.second + "\n";
    return lines;
}

DissectedFrames dissect_file(const std::string& path, const TsharkOptions& options) {
    auto output = run_tshark("-T json --no-duplicate-keys -z expert,warn", path, options);
    // The frames are one JSON array, closed in a line's first column; the summary follows it.
    auto end = output.find("\n]");
    if (end == std::string::npos) throw std::runtime_error("no frames: tshark said " + output);
    end += 2;

    DissectedFrames dissected;
    for (const auto& packet : Json::parse(output.substr(0, end))) {
        DissectedFrame frame;
        for (const auto& layer : packet.at("_source").at("layers").items())
            flatten(layer.key(), layer.value(), frame);
        dissected.frames.push_back(std::move(frame));
    }
    dissected.remarks = summary_lines(output.substr(end));
    return dissected;
}

std::string dissect_in_words(const Capture& capture, const TsharkOptions& options) {
    Workplace workplace;
    auto path = workplace.file("capture.pcap");
    capture.save(path);
    return run_tshark("-V", path, options);
}

DissectedFrames dissect(const Capture& capture, const TsharkOptions& options) {
    Workplace workplace;
    auto path = workplace.file("capture.pcap");
    capture.save(path);
    auto frames = dissect_file(path, options);
    if (frames.size() != capture.packets().size())
        throw std::runtime_error("tshark saw another number of frames than were written");
    return frames;
}

const DissectedFrame& frame(const DissectedFrames& frames, std::size_t number) {
    if (number == 0 || number > frames.size())
        throw std::out_of_range("no frame " + std::to_string(number));
    return frames[number - 1];
}

std::vector<std::string> complaints(const DissectedFrames& frames) {
    std::vector<std::string> found, messages;
    for (std::size_t index = 0; index < frames.size(); ++index) {
        auto say = [&](const std::string& what) {
            found.push_back("frame " + std::to_string(index + 1) + ": " + what);
        };
        std::string message;
        for (const auto& [name, value] : frames[index].fields()) {
            if (name == "_ws.malformed" || name == "_ws.short") say(name + " " + value);
            if (name == "_ws.expert.message") message = value;
            if (name == "_ws.expert.severity" && as_number(name, value) >= severity_warning) {
                say(message);
                messages.push_back(message);
            }
        }
    }
    for (const auto& remark : frames.remarks) {
        bool said = std::any_of(messages.begin(), messages.end(),
                                [&](const auto& text) { return remark.ends_with(text); });
        if (!said) found.push_back("some frame: " + remark);
    }
    return found;
}

}  // namespace weft::test
