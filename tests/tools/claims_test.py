"""The verdicts of ./dev claims, on tables made for the purpose."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import claims  # noqa: E402

HEADER = "# Claims\n\n| id | family | claim | bound | command | figure |\n|---|---|---|---|---|---|\n"


def run(rows, *family, files=None):
    """Exit code and printed lines for a table of these rows."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "claims.md").write_text(HEADER + "".join(f"| {row} |\n" for row in rows))
        for name, text in (files or {}).items():
            (root / name).write_text(text)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            code = claims.main(["claims.md", *family], root)
        runs = root / "runs"
        return code, printed.getvalue(), runs.read_text() if runs.exists() else ""


class Claims(unittest.TestCase):
    def verdict(self, row, expected, **options):
        code, printed, _ = run([row], **options)
        self.assertEqual(code, 0 if expected == "holds" else 1)
        self.assertRegex(printed, f": {expected}")

    def test_bounds(self):
        self.verdict("a | f | small | `<= 1.0 s` | `echo noise; echo 0.5` | `output`", "holds")
        self.verdict("a | f | small | `<= 1.0 s` | `echo 1.5` | `output`", "falls short\n")
        self.verdict("a | f | fast | `>= 12` | `echo 12` | `output`", "holds")
        self.verdict("a | f | fast | `>= 12` | `echo 11.9` | `output`", "falls short\n")
        self.verdict("a | f | exact | `== 0` | `echo 0` | `output`", "holds")

    def test_json(self):
        files = {"x.json": '{"dense": [{"ratio": 3}, {"ratio": 1}]}'}
        self.verdict("a | f | fast | `> 2` | `true` | `x.json:dense.0.ratio`", "holds", files=files)
        self.verdict("a | f | fast | `> 2` | `true` | `x.json:dense.1.ratio`", "falls short\n", files=files)
        self.verdict("a | f | fast | `> 2` | `true` | `x.json:sparse`", "falls short: no number", files=files)

    def test_no_number(self):
        self.verdict("a | f | c | `> 2` | `echo 3; false` | `output`", "falls short: the command failed")
        self.verdict("a | f | c | `> 2` | `echo three` | `output`", "falls short: no number")
        self.verdict("a | f | c | `> 2` | `true` | `output`", "falls short: no number")
        self.verdict("a | f | c | `> 2` | `echo nan` | `output`", "falls short\n")

    def test_shared_command_runs_once(self):
        row = "f | c | `> 2` | `echo run >> runs; echo 3` | `output`"
        self.assertEqual(run([f"a | {row}", f"b | {row}"])[2], "run\n")

    def test_family(self):
        rows = ["a | f | c | `> 2` | `echo 3` | `output`", "b | g | c | `> 2` | `echo 1` | `output`"]
        self.assertEqual([run(rows, "f")[0], run(rows, "g")[0], run(rows)[0]], [0, 1, 1])
        with self.assertRaisesRegex(SystemExit, "no family h; there are: f, g"):
            run(rows, "h")

    def test_bad_tables(self):
        for rows, message in [(["a | f | c | about 2 | `true` | `output`"], "is no bound"),
                              (["a | f | c | `> 2` | `true`"], "5 columns instead of 6"),
                              (2 * ["a | f | c | `> 2` | `true` | `output`"], "two claims of one id")]:
            with self.assertRaisesRegex(SystemExit, message):
                run(rows)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
