"""The verdicts of ./dev claims, on tables made for the purpose; and what the table of claims itself has to be."""

import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import claim_sources  # noqa: E402
import claims  # noqa: E402

HEADER = "# Claims\n\n| id | family | claim | bound | seen | command | figure |\n|---|---|---|---|---|---|---|\n"
ROOT = pathlib.Path(__file__).parents[2]


def with_seen(row, seen="-"):
    columns = row.split(" | ")
    return " | ".join([*columns[:4], seen, *columns[4:]]) if len(columns) == 6 else row


def run(rows, *family, files=None):
    """Exit code and printed lines for a table of these rows."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "claims.md").write_text(HEADER + "".join(f"| {with_seen(row)} |\n" for row in rows))
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
                              (["a | f | c | `> 2` | `true`"], "5 columns instead of 7"),
                              (2 * ["a | f | c | `> 2` | `true` | `output`"], "two claims of one id")]:
            with self.assertRaisesRegex(SystemExit, message):
                run(rows)

    def test_record(self):
        for bound, before, measured, after in [(">= 2 x", "-", 3, "3 x"), (">= 2 x", "4 x", 3, "4 x"),
                                               ("<= 9 s", "4 s", 3, "3 s"), ("<= 2 s", "-", 3, "-")]:
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
                table = pathlib.Path(folder) / "claims.md"
                row = with_seen(f"a | f | c | `{bound}` | `echo {measured}` | `output`", before)
                table.write_text(f"{HEADER}| {row} |\n")
                with contextlib.redirect_stderr(io.StringIO()):
                    claims.main(["claims.md", "--record"], pathlib.Path(folder))
                self.assertEqual(claims.read_table(table.read_text())[0].seen, after)

    def test_smoke(self):
        row = "a | f | c | `> 2` | `./dev bench f` | `build/bench/f.json:ratio`"
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed:
            root = pathlib.Path(folder)
            (root / "claims.md").write_text(f"{HEADER}| {with_seen(row)} |\n")
            for text, code in [('{"ratio": 1}', 0), ('{"ratios": 1}', 1)]:
                (root / "f.json").write_text(text)
                self.assertEqual(claims.main(["claims.md", "--smoke", "."], root), code)
        self.assertIn("a: no number at `ratio`", printed.getvalue())


class Since(unittest.TestCase):
    """A tree with two families, one of which also runs a program of the other."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        rows = [f"{f} | {f} | c | `> 2` | `./dev bench {f}` | `build/bench/{f}.json:x`" for f in ("one", "two")]
        self.write("claims.md", HEADER + "".join(f"| {with_seen(row)} |\n" for row in rows))
        self.write("bench/one/run", 'main(("one_sum",))')
        self.write("bench/two/run", 'main(("two_sum", "one_sum"))')
        self.write("bench/one/sum.cpp", '#include "../shared/turns.hpp"\n#include <rill/a.hpp>\n#include <vector>\n')
        self.write("bench/two/sum.cpp", "# include <rill/c.hpp>\n")
        self.write("bench/shared/turns.hpp", "")
        self.write("include/rill/a.hpp", "#include <rill/b.hpp>\n")
        for name in ("b", "c", "d"):
            self.write(f"include/rill/{name}.hpp", "")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "first")

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *arguments], check=True)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def touched(self, commit="HEAD"):
        claim_sources.includes.cache_clear()
        table = claims.read_table((self.root / "claims.md").read_text())
        return [claim.id for claim in claims.touched_since(commit, table, "claims.md", self.root)]

    def test_nothing(self):
        self.assertEqual(self.touched(), [])
        self.write("include/rill/d.hpp", "changed")
        self.assertEqual(self.touched(), [])

    def test_headers_and_programs(self):
        self.write("include/rill/c.hpp", "changed")
        self.assertEqual(self.touched(), ["two"])
        self.write("include/rill/b.hpp", "changed")
        self.assertEqual(self.touched(), ["one", "two"])

    def test_an_own_script_and_a_new_file(self):
        self.write("bench/two/baseline.hpp", "")
        self.assertEqual(self.touched(), ["two"])
        self.write("bench/one/run", 'main(("one_sum",), 2)')
        self.assertEqual(self.touched(), ["one", "two"])

    def test_what_is_shared_by_all(self):
        self.write("bench/shared/programs.py", "")
        self.assertEqual(self.touched(), ["one", "two"])

    def test_a_row(self):
        table = (self.root / "claims.md").read_text()
        self.write("claims.md", table.replace("| `> 2` | - | `./dev bench two`", "| `> 2` | 5 | `./dev bench two`"))
        self.assertEqual(self.touched(), [])  # what was seen says nothing of the code
        self.write("claims.md", table.replace("| `> 2` | - | `./dev bench two`", "| `> 3` | - | `./dev bench two`"))
        self.assertEqual(self.touched(), ["two"])

    def test_no_such_commit(self):
        with self.assertRaises(LookupError):
            self.touched("elsewhere")


class Table(unittest.TestCase):
    """bench/claims.md."""

    table = claims.read_table((ROOT / "bench/claims.md").read_text())

    def test_commands_are_known(self):
        for command in {claim.command for claim in self.table}:
            files = claim_sources.files_of(command, ROOT)
            self.assertTrue(files, f"tools/claim_sources.py does not know what `{command}` depends on")
            self.assertTrue(any(file.startswith("include") for file in files), command)

    def test_bounds_are_near_what_was_seen(self):
        for claim in self.table:
            if claim.seen == "-":
                continue
            limit, seen = float(claims.BOUND.fullmatch(claim.bound)[2]), float(claims.FIGURE.fullmatch(claim.seen)[1])
            self.assertTrue(claims.holds(claim, seen), f"{claim.id}: {claim.seen} is no {claim.bound}")
            self.assertLessEqual(max(limit, seen), 2 * min(limit, seen), f"{claim.id}: {claim.bound}, seen {claim.seen}")

    def test_units(self):
        for claim in self.table:
            if claim.seen != "-":
                self.assertEqual(claims.BOUND.fullmatch(claim.bound)[3], claims.FIGURE.fullmatch(claim.seen)[2], claim.id)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
