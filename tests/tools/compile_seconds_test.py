"""What tools/compile_seconds.py compares: programs written by hand that compute what they say, and the rows of claims."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import claims  # noqa: E402
import compile_seconds  # noqa: E402


class Compared(unittest.TestCase):
    @unittest.skipUnless(shutil.which("g++"), "no g++")
    def test_by_hand(self):
        for source in compile_seconds.BY_HAND.glob("*.cpp"):
            with self.subTest(source=source.name), tempfile.TemporaryDirectory() as folder:
                program = pathlib.Path(folder) / "program"
                subprocess.run(["g++", "-std=c++20", "-pthread", str(source), "-o", str(program)], check=True)
                self.assertEqual(subprocess.run([str(program)], timeout=60).returncode, 0)

    def test_rows(self):
        for claim in claims.read_table((ROOT / "bench/claims.md").read_text()):
            if claim.command.endswith("--ratios"):
                program, figure = claim.figure.removeprefix("build/bench/compile.json:").split(".")
                self.assertIn(program, compile_seconds.COMPARED, claim.id)
                self.assertIn(figure, ("ratio_by_hand", "ratio_include"), claim.id)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
