"""The samples that are made from a small list of paths, and what rill_linear prints, writes and refuses.

usage: linear_test.py ROWS RILL_LINEAR
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as tree

ROWS, LINEAR = sys.argv[1:]
HERE = pathlib.Path(__file__).parent
LISTS = [str(HERE / name) for name in ("contents-all.txt", "contents-amd64.txt")]


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


class Rows(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        self.train, self.held_out = self.directory / "train", self.directory / "held_out"

    def make(self, every, *lists):
        return run(ROWS, str(self.train), str(self.held_out), every, *lists)

    def test_a_row_has_each_sequence_once_and_the_label_of_its_packages(self):
        content = self.directory / "list"
        content.write_text("aaaaaaa x/one\nusr/a b \t libs/two,doc/one\nbcd doc/one\n")
        done = self.make("1", str(content))
        self.assertEqual(done.returncode, 0, done.stderr)
        # aaaa, aaaaa; of "usr/a b": 4 of 4 bytes, 3 of 5 bytes; none.
        self.assertEqual(done.stdout.splitlines()[0], "3 rows, 9 distinct grams, 3.0 per row")
        lines = sorted((self.train.read_text() + self.held_out.read_text()).splitlines())
        self.assertEqual(lines, ["+1", "+1 3 4 5 6 7 8 9", "-1 1 2"])

    def test_packages_are_not_divided(self):
        self.make("1", *LISTS)
        rows = [line for name in LISTS for line in pathlib.Path(name).read_text().splitlines()]
        package = {}
        for line in rows:
            package.setdefault(line.split()[-1].split(",")[0].rsplit("/", 1)[1], []).append(line)
        written = [len(path.read_text().splitlines()) for path in (self.train, self.held_out)]
        self.assertEqual(sum(written), len(rows))
        for lines in package.values():
            if len(lines) > 1:
                one = self.directory / "one"
                one.write_text("".join(line + "\n" for line in lines))
                self.make("1", str(one))
                held = len(self.held_out.read_text().splitlines())
                self.assertIn(held, (0, len(lines)))

    def test_each_third_row(self):
        done = self.make("3", *LISTS)
        self.assertIn("660 rows, 37677 distinct grams, 116.8 per row\n", done.stdout)
        written = [len(path.read_text().splitlines()) for path in (self.train, self.held_out)]
        self.assertEqual(sum(written), 220)

    def test_errors_name_the_place(self):
        content = self.directory / "list"
        content.write_text("usr/a doc/one\nno-packages\n")
        done = self.make("1", str(content))
        self.assertEqual(done.returncode, 1)
        self.assertIn("list, line 2: no path and packages", done.stderr)
        self.assertIn("cannot be opened", self.make("1", str(self.directory / "none")).stderr)
        self.assertEqual(self.make("0", *LISTS).returncode, 2)


class Linear(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.directory = pathlib.Path(scratch.name)
        made = run(ROWS, str(self.directory / "train"), str(self.directory / "held_out"), "1", *LISTS)
        self.assertEqual(made.returncode, 0, made.stderr)

    def fit(self, *more):
        files = []
        for option in ("train", "held-out", "json", "picture"):
            files += ["--" + option, str(self.directory / option.replace("-", "_"))]
        return run(LINEAR, *files, *more)

    def test_prints_and_writes_what_is_expected(self):
        done = self.fit("--runs", "sparse", "late", "dense", "--ranks", "3", "--batch", "16", "--epochs", "6")
        self.assertEqual(done.returncode, 0, done.stderr)
        table = re.sub(r" +\d+\.\d$", " SECONDS", done.stdout[done.stdout.index("\n\n") :], flags=re.M)
        table = table.replace(str(self.directory), "DIRECTORY")
        self.assertEqual(table.strip("\n") + "\n", (HERE / "linear.output").read_text())
        self.assertTrue(done.stdout.startswith("575 rows to train on, 85 held out, 37677 columns, 3 ranks\n"))
        figures = json.loads((self.directory / "json").read_text())
        sparse, dense = figures["runs"]["sparse"], figures["runs"]["dense"]
        for one, other in zip(sparse["curve"], dense["curve"], strict=True):
            for name in ("step", "loss", "accuracy"):
                self.assertEqual(one[name], other[name])
        self.assertLess(10 * sparse["megabytes"], dense["megabytes"])
        self.assertGreater(figures["runs"]["late"]["accuracy"], 1 - figures["held_out_positive"] / figures["held_out"])
        self.assertEqual(figures["held_out"], 85)
        picture = tree.parse(self.directory / "picture")
        lines = picture.findall(".//{http://www.w3.org/2000/svg}polyline")
        self.assertEqual(len(lines), 3)
        self.assertTrue(all(len(line.get("points").split()) == len(sparse["curve"]) for line in lines))

    def test_errors(self):
        self.assertIn("--runs", self.fit("--runs", "denser").stderr)
        (self.directory / "train").write_text("+1 5 4\n")
        done = self.fit("--ranks", "1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("line 1", done.stderr)
        (self.directory / "train").write_text("+1 5\n")
        done = self.fit("--ranks", "1", "--batch", "2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("batch", done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
