#!/usr/bin/env python3
"""Tests of tools/module_map.py: a header that lacks an include does not compile, whatever comes before it."""

import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools" / "module_map.py"
CLANG = "clang++-16"
SKIPPED = 77


class ModuleMap(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="two words ")))
        self.header("first", "#include <vector>\ninline std::vector<int> first() { return {}; }\n")

    def header(self, name, text):
        (self.folder / f"{name}.hpp").write_text(f"#pragma once\n{text}")

    def said(self, *headers):
        """What clang says about a unit that includes the headers."""
        tool = [sys.executable, TOOL, self.folder / "all.modulemap", CLANG, self.folder]
        options = shlex.split(subprocess.run(tool, capture_output=True, text=True, check=True).stdout)
        command = [CLANG, "-std=c++20", *options, f"-fmodules-cache-path={self.folder}/modules", "-I", self.folder]
        text = "".join(f"#include <{header}.hpp>\n" for header in headers)
        done = subprocess.run([*command, "-fsyntax-only", "-x", "c++", "-"], input=text, capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    def test_complete(self):
        self.header("second", "#include <first.hpp>\ninline std::vector<int> second() { return first(); }\n")
        self.assertEqual(self.said("first", "second"), "")

    def test_lacks_a_standard_header(self):
        self.header("second", "inline std::vector<int> second() { return {}; }\n")
        self.assertIn("second.hpp:2", self.said("first", "second"))

    def test_lacks_another_header(self):
        self.header("second", "#include <vector>\ninline auto second() { return first(); }\n")
        self.assertIn("second.hpp:3", self.said("first", "second"))


if __name__ == "__main__":
    if not shutil.which(CLANG):
        print(f"skipped: there is no {CLANG}")
        sys.exit(SKIPPED)
    unittest.main(argv=sys.argv[:1])
