"""README and docs cite claims by id: every cited row exists, and every row is cited.

A citation is a word in backticks that begins as ids of the table do (`mpi-…`, `coded-…`); `*` stands for anything.
"""

import fnmatch
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import claims  # noqa: E402

WORD = re.compile(r"`([a-z0-9]+(?:-[a-z0-9*]+)+)`")


def citations(text, ids):
    beginnings = {each.split("-")[0] for each in ids}
    return [word for word in WORD.findall(text) if word.split("-")[0] in beginnings]


def faults(texts, ids):
    """Citations of no row, by file, and rows that nothing cites. `texts` are by the name of their file."""
    cited = {name: citations(text, ids) for name, text in texts.items()}
    missing = [f"{name}: no claim `{word}`" for name, words in cited.items() for word in words
               if not fnmatch.filter(ids, word)]
    patterns = [word for words in cited.values() for word in words]
    uncited = [f"`{each}` is cited nowhere" for each in ids if not any(fnmatch.fnmatch(each, p) for p in patterns)]
    return missing + uncited


class Cited(unittest.TestCase):
    def test_faults(self):
        ids = ["mpi-small", "mpi-large", "step-share"]
        self.assertEqual(faults({"a.md": "`mpi-*` and `step-share`; `libmpi-dev`, mpi-none"}, ids), [])
        self.assertEqual(faults({"a.md": "`mpi-*`", "b.md": "`step-share`, `step-none`"}, ids),
                         ["b.md: no claim `step-none`"])
        self.assertEqual(faults({"a.md": "`mpi-small`, `step-*`"}, ids), ["`mpi-large` is cited nowhere"])
        self.assertEqual(faults({"a.md": "`mpi-*`, `step-*`, `mpi-huge-*`"}, ids), ["a.md: no claim `mpi-huge-*`"])

    def test_readme_and_docs(self):
        files = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
        texts = {str(file.relative_to(ROOT)): file.read_text() for file in files}
        ids = [claim.id for claim in claims.read_table((ROOT / "bench/claims.md").read_text())]
        self.assertEqual(faults(texts, ids), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
