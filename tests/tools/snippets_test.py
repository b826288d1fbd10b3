"""The C++ in README.md and docs/*.md compiles as it stands, one translation unit per document. Functions `test_...` without
parameters are run too.

A block ```cpp is code at namespace scope. One whose fence follows a line `<!-- in: CODE -->` is the inside of a function that has
CODE before it, and one rank's end of a transport as `net`. Includes of all blocks stand at the head of the unit."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?:<!-- in: (?P<prelude>[^\n]*) -->\n)?```cpp\n(?P<code>.*?)```", re.DOTALL)
TEST = re.compile(r"^void (test_\w+)\(\)", re.MULTILINE)
ENDPOINT = "rill/transport/in_process.hpp"
FIRST = [f"#include <{ENDPOINT}>", "#include <rill/rill.hpp>"]


def snippets(text):
    """(line, prelude or None, code) of each block."""
    for block in BLOCK.finditer(text):
        yield text.count("\n", 0, block.start("code")) + 1, block["prelude"], block["code"]


def unit(document, text):
    """One translation unit with all blocks of a document; compiler messages have the document's line numbers."""
    includes, bodies = list(FIRST), []
    for number, (line, prelude, code) in enumerate(snippets(text)):
        includes += re.findall(r"^#include .*$", code, re.MULTILINE)
        rest = re.sub(r"^#include .*$", "", code, flags=re.MULTILINE)
        place = f'#line {line} "{document}"\n'
        if prelude is None:
            bodies.append(f"namespace snippet_{number} {{\n{place}{rest}}}\n")
        else:
            head = f"[[maybe_unused]] void snippet_{number}([[maybe_unused]] rill::in_process::endpoint& net) {{"
            bodies.append(f"{head} {prelude}\n{place}{rest}}}\n")
    return "\n".join(dict.fromkeys(includes)) + "\n" + "".join(bodies)


def calls(text):
    """A call of each function that tests something, in the namespace that `unit` gives it."""
    return [f"snippet_{number}::{name}();" for number, (_, _, code) in enumerate(snippets(text)) for name in TEST.findall(code)]


class Snippets(unittest.TestCase):
    command = []

    def compile(self, source, *flags):
        return subprocess.run([*self.command, *flags, "-x", "c++", "-"], input=source, text=True, stderr=subprocess.PIPE)

    def run_program(self, build, source, first):
        program = first.with_name("program")
        ran = subprocess.run([*build, "-include", first, "-x", "c++", "-", "-o", program, "-lboost_context"], input=source,
                             text=True, stderr=subprocess.PIPE)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        ran = subprocess.run([program], text=True, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_documents(self):
        with tempfile.TemporaryDirectory() as folder:
            # What each unit begins with is read once, and by clang also instantiated once.
            first = pathlib.Path(folder, "first.hpp")
            build = [word for word in self.command if word != "-fsyntax-only"]
            first.write_text("\n".join(FIRST) + "\n")
            once = ["-Xclang", "-fpch-instantiate-templates"] if "clang" in build[0] else []
            subprocess.run([*build, *once, "-x", "c++-header", first, "-o", f"{first}.gch"], check=True)
            for document in DOCUMENTS:
                text = document.read_text()
                if not list(snippets(text)):
                    continue
                with self.subTest(document=document.name):
                    source = unit(document.relative_to(ROOT), text)
                    if calls(text):
                        self.run_program(build, source + "int main() {\n" + "\n".join(calls(text)) + "\n}\n", first)
                    else:
                        ran = self.compile(source, "-include", first)
                        self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_every_block_is_found(self):
        for document in DOCUMENTS:
            text = document.read_text()
            self.assertEqual(len(list(snippets(text))), text.count("```cpp"), document.name)

    def test_every_test_is_called(self):
        for document in DOCUMENTS:
            text = document.read_text()
            self.assertEqual(len(calls(text)), text.count("void test_"), document.name)

    def test_code_comes_early(self):
        self.assertLessEqual((ROOT / "README.md").read_text().split("\n").index("```cpp"), 24)

    def test_the_first_program_is_an_example(self):
        code, printed = re.search(r"```cpp\n(.*?)```\n```\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL).groups()
        example = ROOT / "examples" / "first.cpp"
        self.assertEqual(code, example.read_text().partition("\n")[2])
        self.assertEqual(printed, example.with_suffix(".output").read_text())

    def test_a_mistake_is_found_where_it_stands(self):
        text = "# A\n\n<!-- in: int right = 0; -->\n```cpp\nright = 1;\nwrong = 1;\n```\n"
        self.assertIn('"a.md"', unit("a.md", text))
        ran = self.compile(unit("a.md", text).replace(f"#include <{ENDPOINT}>", "").replace("#include <rill/rill.hpp>", "")
                           .replace("rill::in_process::endpoint", "int"))
        self.assertNotEqual(ran.returncode, 0)
        self.assertIn("a.md:6", ran.stderr)
        self.assertNotIn("a.md:5", ran.stderr)


if __name__ == "__main__":
    Snippets.command = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
