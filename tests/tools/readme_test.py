"""The C++ programs in README.md compile as they stand."""

import pathlib
import re
import subprocess
import sys
import unittest

README = pathlib.Path(__file__).parents[2] / "README.md"
COMMAND = sys.argv[1:]


class Readme(unittest.TestCase):
    def test_programs_compile(self):
        programs = re.findall(r"```cpp\n(.*?)```", README.read_text(), re.DOTALL)
        self.assertTrue(programs)
        for program in programs:
            ran = subprocess.run([*COMMAND, "-x", "c++", "-"], input=program, text=True, stderr=subprocess.PIPE)
            self.assertEqual(ran.returncode, 0, ran.stderr)

    def test_code_comes_early(self):
        self.assertLessEqual(README.read_text().split("\n").index("```cpp"), 24)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
