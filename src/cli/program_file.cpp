// SPDX-License-Identifier: Apache-2.0
#include "cli/program_file.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "cli/command.hpp"
#include "cli/text.hpp"
#include "linux/descriptor.hpp"

namespace weft::cli {
namespace {

Refusal cannot_run(const std::string& path, const std::string& why) {
    return Refusal{fmt::format("{}: {}", show_foreign(path), why), cannot_be_run};
}

/// Nothing: it can be started. Otherwise why not, as errno.
int obstacle(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return errno;
    if (S_ISDIR(facts.st_mode)) return EISDIR;
    return ::access(path.c_str(), X_OK) == 0 ? 0 : errno;
}

/// Whether the kernel gives the program rights that who starts it lacks. The loader then trusts no
/// variable of ours.
bool gains_rights(const std::string& path) {
    struct stat facts {};
    if (::stat(path.c_str(), &facts) != 0) return false;
    if (::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1) return false;
    if ((facts.st_mode & S_ISUID) && facts.st_uid != ::getuid()) return true;
    constexpr auto set_group = S_ISGID | S_IXGRP;  // without the second it means file locks
    if ((facts.st_mode & set_group) == set_group && facts.st_gid != ::getgid()) return true;
    return ::getuid() != 0 && ::getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

template <class Header>
bool read_at(int descriptor, std::uint64_t offset, Header& header) {
    return ::pread(descriptor, &header, sizeof header, static_cast<off_t>(offset)) ==
           static_cast<ssize_t>(sizeof header);
}

/// Whether the program asks for a loader, which is who finds libraries. Nothing: it cannot be seen.
std::optional<bool> asks_for_loader(int descriptor, const Elf64_Ehdr& header) {
    for (unsigned index = 0; index < header.e_phnum; ++index) {
        Elf64_Phdr part{};
        if (!read_at(descriptor, header.e_phoff + index * sizeof part, part)) return {};
        if (part.p_type == PT_INTERP) return true;
    }
    return false;
}

/// Our libraries are of the kind this very program is.
bool is_of_our_kind(const Elf64_Ehdr& header) {
    linux::Descriptor self(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
    Elf64_Ehdr ours{};
    if (!self.is_open() || !read_at(self.number(), 0, ours)) return true;
    return header.e_ident[EI_CLASS] == ours.e_ident[EI_CLASS] && header.e_machine == ours.e_machine;
}

}  // namespace

std::string find_program(const std::string& name) {
    if (name.find('/') != std::string::npos) {
        int why = obstacle(name);
        if (why == ENOENT || why == ENOTDIR)
            throw Refusal{fmt::format("{}: {}", show_foreign(name), std::strerror(why)), not_found};
        if (why != 0) throw cannot_run(name, std::strerror(why));
        return name;
    }
    const char* variable = std::getenv("PATH");
    std::string_view folders = variable ? variable : "/usr/local/bin:/usr/bin:/bin";
    std::optional<Refusal> blocked;
    while (!name.empty()) {
        auto colon = folders.find(':');
        std::string folder(folders.substr(0, colon));
        auto path = (folder.empty() ? "." : folder) + "/" + name;
        int why = obstacle(path);
        if (why == 0) return path;
        if (why == EACCES && !blocked) blocked = cannot_run(path, std::strerror(why));
        if (colon == std::string_view::npos) break;
        folders.remove_prefix(colon + 1);
    }
    if (blocked) throw *blocked;
    throw Refusal{fmt::format("there is no program '{}' in PATH", show_foreign(name)), not_found};
}

void expect_library_path_is_used(const std::string& path) {
    if (gains_rights(path))
        throw cannot_run(path,
                         "it runs with more rights than yours (setuid, setgid or capabilities), "
                         "and such programs ignore the library path; run a plain copy of it");
    linux::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    Elf64_Ehdr header{};
    // What may be run and not be read, or is a script, speaks for itself.
    if (!file.is_open() || !read_at(file.number(), 0, header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    if (!is_of_our_kind(header))
        throw cannot_run(path, "it is for another kind of machine than Weft's libraries are");
    if (asks_for_loader(file.number(), header) == false)
        throw cannot_run(path,
                         "it is statically linked, so it loads no libraries, and none of Weft's");
}

}  // namespace weft::cli
