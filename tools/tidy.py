#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what reviewers should never have to: layers, purity, lengths, leftovers.

    tools/tidy.py [TOP_FOLDER]

Each fault is one line, "file:line: what is wrong; what to do". The order of the layers is read
from tools/layers.txt and the list of pure layers from CMakeLists.txt, the files the build itself
reads. tests/tidy_test.py holds a wrong tree for every rule below.
"""
import pathlib
import re
import sys

LINE_MAX = 100
FILE_MAX = 500
CODE_FOLDERS = ("include", "src", "tests", "bench")
CXX = {".cpp", ".hpp", ".c", ".h"}
MEASURED = CXX | {".py", ".sh"}
READ = MEASURED | {".md", ".txt", ".cmake", ".json", ""}

# Spelled in halves, so that this file may be checked too.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK|TB" r"D)\b")

# What a pure layer may not name, and where to get the same thing instead.
IMPURE = [
    (r"\bstd::(j?thread|this_thread|async|future|promise|packaged_task)\b|\bthread_local\b",
     "a pure layer has no threads; threads live in linux/ and abi/"),
    (r"\bstd::(\w*mutex|lock_guard|unique_lock|scoped_lock|shared_lock|condition_variable\w*"
     r"|atomic\w*|counting_semaphore|binary_semaphore|barrier|latch|once_flag|call_once)\b",
     "a pure layer has one driver at a time and needs no lock; threads live in linux/ and abi/"),
    (r"\b(steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday)\b"
     r"|(?<![\w.>])(std)?::time\s*\(",
     "a pure layer is told the time; take an Instant, or ask the World"),
    (r"\brandom_device\b|(?<![\w.>])s?rand\s*\(|\b[dlm]rand48\s*\(",
     "a pure layer has no chance of its own; ask World::random()"),
    (r"\b(secure_)?getenv\b",
     "a pure layer reads no environment; pass an option in"),
    (r"(?<![\w>])::(socket|bind|listen|accept4?|connect|p?readv?|p?writev?|open(at)?|close|send"
     r"(to|msg)?|recv(from|msg)?|poll|epoll_\w+|mmap|munmap|ioctl|fcntl|fsync|sleep|usleep)\s*\(",
     "a pure layer makes no system call; go through World or BlockDevice"),
    (r"\bstd::(cout|cerr|clog|cin|[io]?fstream|filesystem)\b|\bprintf\s*\(|\bfopen\s*\(",
     "a pure layer prints and reads nothing; return a value, or take a function to call"),
    (r"\b(throw|catch)\b|\btry\s*\{",
     "a pure layer throws nothing; return a Result"),
]
IMPURE = [(re.compile(pattern), advice) for pattern, advice in IMPURE]
IMPURE_HEADERS = {
    "atomic", "barrier", "condition_variable", "csignal", "ctime", "filesystem", "fstream",
    "future", "iostream", "latch", "mutex", "random", "semaphore", "shared_mutex", "stop_token",
    "thread",
}
COMPUTES_ONLY = ("isa-l/", "openssl/")  # libraries a pure layer may use: parity, hashes

INCLUDE = re.compile(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"'
                   r"|(?<![0-9a-fA-F])'(?:\\.|[^'\\\n])+'", re.DOTALL)


def without(source, strings):
    """The source with comments, and strings if asked, blanked out; lines keep their numbers."""
    def blank(match):
        token = match[0]
        if not strings and not token.startswith(("//", "/*")):
            return token
        return re.sub(r"[^\n]", " ", token)
    return TOKEN.sub(blank, source)


class Tidy:
    def __init__(self, top):
        self.top = top
        self.faults = []
        self.may_use = self.read_layers()
        self.pure = self.read_pure_layers()

    def fault(self, path, line, text):
        self.faults.append((path.relative_to(self.top).as_posix(), line, text))

    # --- the two lists the build reads as well

    def read_layers(self):
        path = self.top / "tools/layers.txt"
        may_use = {}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            folder, _, allowed = line.partition(":")
            for used in allowed.split():
                if used not in may_use:
                    self.fault(path, number, f"{folder} uses {used} before it is named; "
                               "move it up, so that the list has no cycle")
            may_use[folder.strip()] = {folder.strip(), *allowed.split()}
        return may_use

    def read_pure_layers(self):
        path = self.top / "CMakeLists.txt"
        found = re.search(r"set\(pure_layers ([a-z ]+)\)", path.read_text())
        if not found:
            self.fault(path, 1, "no line set(pure_layers ...); name the pure layers there")
            return set()
        return set(found[1].split())

    # --- the rules

    def check_all(self):
        for folder in CODE_FOLDERS + ("tools", "cmake", "docs"):
            for path in sorted((self.top / folder).rglob("*")):
                if path.is_file() and path.suffix in READ and "corpus" not in path.parts:
                    self.check_file(path)
        for path in sorted(self.top.iterdir()):
            if path.is_file() and path.suffix in READ:
                self.check_file(path)
        for folder in sorted(p for p in (self.top / "src").iterdir() if p.is_dir()):
            self.check_folder(folder)
        return sorted(self.faults)

    def check_file(self, path):
        try:
            source = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            if path.suffix:  # a file without one may well be data
                self.fault(path, 1, "not UTF-8; save it as UTF-8")
            return
        lines = source.splitlines()
        self.check_marks(path, lines)
        if path.suffix in MEASURED:
            self.check_lengths(path, lines)
        if path.suffix in CXX:
            self.check_cxx(path, source, lines)

    def check_marks(self, path, lines):
        for number, line in enumerate(lines, 1):
            if mark := UNFINISHED.search(line):
                self.fault(path, number, f"{mark[0]} marks unfinished work; finish it, or open an "
                           "issue and leave no mark here")

    def check_lengths(self, path, lines):
        if len(lines) > FILE_MAX:
            self.fault(path, FILE_MAX + 1, f"{len(lines)} lines, {FILE_MAX} are allowed; split it "
                       "where it changes its subject")
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                self.fault(path, number, f"{len(line)} columns, {LINE_MAX} are allowed; break it")

    def check_cxx(self, path, source, lines):
        if not lines or lines[0] != "// SPDX-License-Identifier: Apache-2.0":
            self.fault(path, 1, "the first line is not the licence; begin with "
                       "// SPDX-License-Identifier: Apache-2.0")
        if path.suffix == ".hpp" and "#pragma once" not in lines:
            self.fault(path, 1, "a header without #pragma once; add it")
        parts = path.relative_to(self.top).parts
        uncommented = without(source, strings=False).splitlines()
        layer = parts[1] if parts[0] == "src" and len(parts) > 2 else None
        is_test = path.stem.endswith("_test")
        if parts[0] == "include":
            self.check_public_includes(path, uncommented)
        if layer:
            self.check_layer_includes(path, layer, is_test, uncommented)
        if parts[0] in ("src", "include") and layer != "abi":
            for number, line in enumerate(uncommented, 1):
                if re.search(r'\bextern\s+"C"', line):
                    self.fault(path, number, 'extern "C" belongs in src/abi only; move it there')
        if (layer in self.pure or parts[0] == "include") and not is_test:
            self.check_purity(path, uncommented, without(source, strings=True).splitlines())

    def check_public_includes(self, path, lines):
        for number, ours, theirs in includes(lines):
            if ours and not ours.startswith("weft/"):
                self.fault(path, number, f'include/weft may not use "{ours}"; a public header '
                           "includes weft/ and the standard library")
            if theirs and (theirs.endswith(".h") or "/" in theirs):
                self.fault(path, number, f"include/weft may not use <{theirs}>; a public header "
                           "includes weft/ and the standard library")

    def check_layer_includes(self, path, layer, is_test, lines):
        for number, ours, _ in includes(lines):
            if not ours:
                continue
            used, slash, _ = ours.partition("/")
            if not slash:
                self.fault(path, number, f'"{ours}" names no folder; write "{layer}/{ours}"')
            elif used == "support" and not is_test:
                self.fault(path, number, "tests/support is for tests; production code may not "
                           "use it")
            elif used not in self.may_use.get(layer, set()) | {"weft", "support"}:
                self.fault(path, number, f"{layer} may not use {used} (tools/layers.txt); move "
                           "the code to the layer that may, or pass in what is needed")

    def check_purity(self, path, uncommented, code):
        for number, _, theirs in includes(uncommented):
            if theirs and (theirs in IMPURE_HEADERS or (
                    (theirs.endswith(".h") or "/" in theirs)
                    and not theirs.startswith(COMPUTES_ONLY))):
                self.fault(path, number, f"<{theirs}> is the outside world and this layer is pure; "
                           "go through weft/world.hpp or weft/block_device.hpp")
        for number, line in enumerate(code, 1):
            for pattern, advice in IMPURE:
                if found := pattern.search(line):
                    self.fault(path, number, f"'{found[0].strip()}': {advice}")

    def check_folder(self, folder):
        if folder.name not in self.may_use:
            self.fault(folder, 0, "not in tools/layers.txt; say there what it may use")
        readme = folder / "README.md"
        if not readme.exists():
            self.fault(readme, 0, f"missing; begin it with '# {folder.name}: what it is'")
        elif not re.match(rf"# {folder.name}: \S+ \S+", readme.read_text()):
            self.fault(readme, 1, f"the first line must be '# {folder.name}: what it is'")
        elsewhere = self.tested_elsewhere(folder, readme)
        tests = [without(test.read_text(), strings=False) for test in folder.glob("*_test.cpp")]
        tested = {ours for test in tests for _, ours, _ in includes(test.splitlines())}
        for source in sorted(folder.glob("*.cpp")):
            header = f"{folder.name}/{source.stem}.hpp"
            if source.stem.endswith(("_test", "_main")) or header in tested:
                continue
            if source.stem in elsewhere:
                continue
            if not source.with_name(source.stem + "_test.cpp").exists():
                self.fault(source, 1, f"no test; write {source.stem}_test.cpp, or include "
                           f'"{header}" in another test of {folder.name}/, or say in its '
                           f"README.md 'Tested by <path>: `{source.stem}`'")

    def tested_elsewhere(self, folder, readme):
        """The stems that the README says another test covers: "Tested by tests/x: `a`, `b`"."""
        stems = set()
        lines = readme.read_text().splitlines() if readme.exists() else []
        for number, line in enumerate(lines, 1):
            if not (said := re.match(r"Tested by (\S+): (.*)", line)):
                continue
            if not (self.top / said[1]).exists():
                self.fault(readme, number, f"there is no {said[1]}; name a test that is there")
            for stem in re.findall(r"`(\w+)`", said[2]):
                stems.add(stem)
                if not (folder / f"{stem}.cpp").exists():
                    self.fault(readme, number, f"there is no {stem}.cpp here; take it out")
        return stems


def includes(lines):
    """(line number, path if in quotes, path if in angle brackets) of every #include."""
    for number, line in enumerate(lines, 1):
        if found := INCLUDE.match(line):
            yield number, found[1], found[2]


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
    faults = Tidy(top if len(sys.argv) > 1 else top.parent.parent).check_all()
    for path, line, text in faults:
        print(f"{path}:{line}: {text}")
    print(f"{len(faults)} faults" if faults else "tidy")
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
