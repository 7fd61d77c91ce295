#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that tools/tidy.py finds each fault it claims to find, and finds none in a good tree."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = pathlib.Path(__file__).resolve().parent.parent / "tools/tidy.py"
LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"

GOOD = {
    "CMakeLists.txt": "set(pure_layers base wire)\n",
    "tools/layers.txt": "# folder: what it may use\nbase:\nwire: base\nlinux: base\nabi: linux\n",
    "include/weft/shape.hpp": LICENCE + '#pragma once\n#include <span>\n#include "weft/a.hpp"\n',
    "src/base/README.md": "# base: the words all else is written in\n",
    "src/base/sum.hpp": LICENCE + "#pragma once\nint sum(int);  // no throw, no std::mutex\n",
    "src/base/sum.cpp": LICENCE + '#include "base/sum.hpp"\n#include <isa-l/crc.h>\n',
    "src/base/base_test.cpp": LICENCE + '#include "base/sum.hpp"\n#include <fstream>\n',
    "src/wire/README.md": "# wire: every byte layout\n",
    "src/wire/tag.hpp": LICENCE + '#pragma once\n#include "base/sum.hpp"\n'
                        'const char* said = "throw ::read(";  int big = 1\'000\'000;\n',
    "src/linux/README.md": "# linux: the world outside\n",
    "src/linux/loop_main.cpp": LICENCE + "#include <unistd.h>\nstd::mutex lock;\n",
    "src/abi/README.md": "# abi: the C faces\n",
    "src/abi/face_main.cpp": LICENCE + 'extern "C" int face();\n',
}


def faults_of(changes):
    """What tidy says about the good tree with some files changed; None removes one."""
    with tempfile.TemporaryDirectory() as top:
        for name, text in {**GOOD, **changes}.items():
            if text is None:
                continue
            path = pathlib.Path(top, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, TIDY, top], capture_output=True, text=True,
                              check=False)
        said = done.stdout.splitlines()
        assert done.returncode == (said != ["tidy"]), done
        return said[:-1]


class Tidy(unittest.TestCase):
    def expect(self, name, text, line, words):
        """The file alone is at fault, at this line, and the message says these words."""
        said = faults_of({name: text})
        self.assertEqual(len(said), 1, said)
        self.assertTrue(said[0].startswith(f"{name}:{line}: "), said)
        self.assertIn(words, said[0])

    def expect_impure(self, code, words):
        self.expect("src/wire/tag.hpp", LICENCE + "#pragma once\n\n" + code + "\n", 4, words)

    def test_finds_nothing_in_a_good_tree(self):
        self.assertEqual(faults_of({}), [])

    def test_finds_a_layer_that_looks_up(self):
        self.expect("src/base/sum.hpp", LICENCE + '#pragma once\n#include "wire/tag.hpp"\n', 3,
                    "base may not use wire")
        self.expect("src/linux/loop_main.cpp", LICENCE + '#include "wire/tag.hpp"\n', 2,
                    "linux may not use wire")

    def test_finds_an_include_without_a_folder(self):
        self.expect("src/wire/tag.hpp", LICENCE + '#pragma once\n#include "other.hpp"\n', 3,
                    'write "wire/other.hpp"')

    def test_finds_a_cycle_of_layers(self):
        self.expect("tools/layers.txt", "base: wire\nwire: base\nlinux:\nabi:\n", 1,
                    "before it is named")

    def test_finds_a_folder_outside_the_list(self):
        said = faults_of({"src/extra/README.md": "# extra: not a layer\n"})
        self.assertEqual(len(said), 1, said)
        self.assertIn("src/extra:0: not in tools/layers.txt", said[0])

    def test_finds_private_headers_in_public_ones(self):
        public = "include/weft/shape.hpp"
        self.expect(public, LICENCE + '#pragma once\n#include "base/sum.hpp"\n', 3, "may not use")
        said = faults_of({public: LICENCE + "#pragma once\n#include <sys/uio.h>\n"})
        self.assertTrue(any("include/weft may not use <sys/uio.h>" in s for s in said), said)

    def test_finds_test_support_in_production_code(self):
        self.expect("src/wire/tag.hpp", LICENCE + '#pragma once\n#include "support/golden.hpp"\n',
                    3, "tests/support is for tests")

    def test_finds_the_outside_world_in_a_pure_layer(self):
        for code in ("std::thread t;", "thread_local int x;", "std::async(f);"):
            self.expect_impure(code, "no threads")
        for code in ("std::mutex m;", "std::atomic<int> a;", "std::condition_variable c;",
                     "std::scoped_lock l(m);"):
            self.expect_impure(code, "needs no lock")
        for code in ("auto t = std::chrono::steady_clock::now();", "system_clock c;",
                     "long t = ::time(nullptr);"):
            self.expect_impure(code, "told the time")
        for code in ("std::random_device d;", "int r = rand();"):
            self.expect_impure(code, "World::random()")
        self.expect_impure('auto* home = std::getenv("HOME");', "no environment")
        for code in ("int s = ::socket(1, 2, 3);", "::read(1, b, 2);", "::write(1, b, 2);",
                     "int f = ::open(p, 0);"):
            self.expect_impure(code, "no system call")
        self.expect_impure("std::cout << 1;", "prints and reads nothing")
        for header in ("unistd.h", "sys/socket.h", "iostream", "thread", "mutex"):
            self.expect_impure(f"#include <{header}>", "this layer is pure")

    def test_leaves_innocent_names_alone(self):
        innocent = ("auto x = file.read(1); node::write(2); v->open(3); world.random();\n"
                    "int time(int); Disk::read(1); int operand(2); bool retry{};\n")
        self.assertEqual(faults_of({"src/wire/tag.hpp": LICENCE + "#pragma once\n" + innocent}), [])

    def test_finds_exceptions_in_a_pure_layer(self):
        for code in ("throw 1;", "try {", "catch (...) {"):
            self.expect_impure(code, "return a Result")

    def test_finds_c_linkage_outside_abi(self):
        self.expect("src/linux/loop_main.cpp", LICENCE + '\nextern "C" int f();\n', 3,
                    "belongs in src/abi")

    def test_finds_long_lines_and_long_files(self):
        self.expect("src/linux/loop_main.cpp", LICENCE + "/" * 101 + "\n", 2, "101 columns")
        self.expect("src/linux/loop_main.cpp", LICENCE + "\n" * 500, 501, "501 lines")

    def test_finds_marks_of_unfinished_work(self):
        for mark in ("TO" "DO", "FIX" "ME", "XX" "X"):
            self.expect("src/linux/loop_main.cpp", LICENCE + f"// {mark}: later\n", 2, mark)
            self.expect("src/wire/README.md", f"# wire: a b\n{mark}\n", 2, mark)

    def test_finds_a_missing_licence_and_a_missing_guard(self):
        self.expect("src/linux/loop_main.cpp", "int main() {}\n", 1, "licence")
        self.expect("src/wire/tag.hpp", LICENCE, 1, "#pragma once")

    def test_finds_code_without_a_test(self):
        self.expect("src/wire/tag.cpp", LICENCE, 1, "write tag_test.cpp")
        self.assertEqual(faults_of({"src/wire/tag.cpp": LICENCE, "src/wire/tag_test.cpp": LICENCE}),
                         [])

    def test_believes_a_folder_that_names_the_test_elsewhere(self):
        readme = "# wire: a b\n\nTested by tests/interop/tag_test.py: `tag`\n"
        tested = {"src/wire/tag.cpp": LICENCE, "tests/interop/tag_test.py": "pass\n",
                  "src/wire/README.md": readme}
        self.assertEqual(faults_of(tested), [])
        said = faults_of({**tested, "tests/interop/tag_test.py": None})
        self.assertEqual(len(said), 1, said)
        self.assertIn("src/wire/README.md:3: there is no tests/interop/tag_test.py", said[0])
        said = faults_of({**tested, "src/wire/tag.cpp": None})
        self.assertEqual(len(said), 1, said)
        self.assertIn("src/wire/README.md:3: there is no tag.cpp", said[0])

    def test_finds_a_folder_without_its_sentence(self):
        self.expect("src/wire/README.md", None, 0, "missing")
        self.expect("src/wire/README.md", "# Wire\n", 1, "first line must be")


if __name__ == "__main__":
    unittest.main()
