#!/usr/bin/env python3
"""Tests of tools/group_units.py and tools/thread_cases.py."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "group_units.py"
COMPILER = sys.argv[1:]


class GroupUnits(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def unit(self, name, text):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return path

    def grouped(self, *units, options=()):
        output = self.folder / "out" / "group.cpp"
        subprocess.run([sys.executable, TOOL, *options, output, *units], check=True, cwd=self.folder)
        return output

    def assert_compiles(self, output):
        result = subprocess.run([*COMPILER, "-Wall", "-Wextra", "-Werror", output], capture_output=True, text=True)
        self.assertEqual(result.stderr, "")

    def test_one_name_for_two_things(self):
        self.unit("shared.hpp", "#pragma once\n#include <vector>\n")
        one = self.unit("a/one.cpp", '#include "../shared.hpp"\nnamespace { std::vector<int> x() { return {}; } }\nauto y = x();\n')
        two = self.unit("a/two.cpp", '#include "../shared.hpp"\n#include <string>\nnamespace { std::string x() { return {}; } }\nauto y = x();\n')
        self.assert_compiles(self.grouped(one, two))

    def test_includes_under_a_condition(self):
        one = self.unit("one.cpp", "#define ON\n#ifdef OFF\n#include <no/such/header>\n#else\n#include <string>\n#endif\nstd::string s;\n")
        two = self.unit("two.cpp", "#ifndef OFF\nint i = 0;\n#endif\n")
        output = self.grouped(one, two)
        self.assert_compiles(output)
        self.assertNotIn("ifndef", output.read_text().split("namespace")[0])

    def test_a_specialisation_stands_in_no_namespace(self):
        self.unit("shared.hpp", "#pragma once\nnamespace n { template <class> struct t; template <class T> void f(T) {} }\n")
        one = self.unit("one.cpp", '#include "shared.hpp"\ntemplate <>\nstruct n::t<int> {};\n')
        two = self.unit("two.cpp", '#include "shared.hpp"\ntemplate void n::f(int);\n')
        self.assert_compiles(self.grouped(one, two))

    def test_programs(self):
        self.unit("shared.hpp", '#pragma once\ninline const char* ending = "\\n";\n')
        self.unit("a/ends.cpp", '#include <cstdio>\nconst char* said = "ends";\nint main() { std::puts(said);\n}\n')
        self.unit("b/says.cpp", '#include <cstdio>\n\n#include "../shared.hpp"\nconst char* said = "says";\n'
                                'int main(int, char** arguments) {\n    if (arguments[1][0] == \'f\') return 3;\n'
                                '    std::printf("%s %s %d%s", said, arguments[1], __LINE__, ending);\n}\n')
        self.unit("b/tries.cpp", "int main() try {\n    throw 4;\n} catch (int thrown) {\n    return thrown;\n}\n")
        output = self.grouped("a/ends.cpp", "b/says.cpp", "b/tries.cpp", options=["--programs", "my_"])
        self.assert_compiles(output)
        compiler = [argument for argument in COMPILER if argument != "-fsyntax-only"]
        subprocess.run([*compiler, output, "-o", self.folder / "my_a_ends"], check=True)
        for name in "my_b_says", "my_b_tries":
            (self.folder / name).symlink_to("my_a_ends")
        for name, argument, returned, said in (("my_a_ends", "", 0, "ends\n"), ("my_b_says", "this", 0, "says this 7\n"),
                                               ("my_b_says", "fails", 3, ""), ("my_b_tries", "", 4, "")):
            ran = subprocess.run([self.folder / name, argument], capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout), (returned, said))

    def test_a_program_without_main_is_refused(self):
        self.unit("none.cpp", "int i = 0;\n")
        with self.assertRaises(subprocess.CalledProcessError):
            self.grouped("none.cpp", options=["--programs", "my_"])

    def test_cases_that_may_start_threads(self):
        self.unit("shared.hpp", """#pragma once
namespace shared {

struct scene {
    void play() { std::thread([] {}).join(); }
};

}  // namespace shared
""")
        one = self.unit("a/one.cpp", """#include "../shared.hpp"
// in_process is only mentioned here
#define ON_THREADS rill::in_process::run
constexpr int three = 3;

template <class Body>
void on_every_transport(Body body) {
    body(shared::scene{});
}

TEST_CASE("by itself") {
    in_process::run(three, [] {});
}

TEST_CASE("by no means") {
    simulated::run(three, [] {});  // not in_process
}

TEST_CASE("by a declaration that names a type") { on_every_transport([] {}); }
TEST_CASE("by a macro") { ON_THREADS(); }
""")
        two = self.unit("a/two.cpp", '#include <rill/transport/in_process.hpp>\nTEST_CASE("none") { CHECK(true); }\n')
        units = subprocess.run([sys.executable, TOOL.with_name("thread_cases.py"), one, two], check=True, capture_output=True, text=True)
        self.assertEqual(units.stdout, f"{one}\n")
        text = self.grouped(one, options=["--thread-cases"]).read_text()
        self.assertEqual(re.findall('"by .*"', text), ['"by itself"', '"by a declaration that names a type"', '"by a macro"'])
        self.assertIn("void on_every_transport", text)
        self.assertEqual(text.count("\n"), self.grouped(one).read_text().count("\n"))

    def test_is_written_only_when_it_changes(self):
        one = self.unit("one.cpp", "int i = 0;\n")
        written = self.grouped(one).stat().st_mtime_ns
        self.assertEqual(self.grouped(one).stat().st_mtime_ns, written)
        one.write_text("#include <string>\nint i = 1;\n")
        self.assertIn("<string>", self.grouped(one).read_text())

    def test_warnings_of_the_main_file(self):
        """Compilers give some for no included file, as clang those of unused constants."""
        one = self.unit("one.cpp", "int i = 0;\n")
        two = self.unit("two.cpp", "#include <string>\n\n#pragma once\n")
        result = subprocess.run([*COMPILER, self.grouped(one, two)], capture_output=True, text=True)
        self.assertRegex(result.stderr, r"two\.cpp:3:.*pragma once in main file")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
