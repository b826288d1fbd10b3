"""tools/check_docs.py finds what has no documentation comment, and nothing else."""

import contextlib
import importlib.util
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("check_docs", ROOT / "tools/check_docs.py")
check_docs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(check_docs)

BRIEF = "<briefdescription><para>What it is.</para></briefdescription><detaileddescription/>"
NONE = "<briefdescription/><detaileddescription/>"
AT = '<location file="rill/x.hpp" line="7"/>'


def compound(kind, name, docs, inside=""):
    return f'<compounddef id="{name}" kind="{kind}"><compoundname>{name}</compoundname>{inside}{docs}{AT}</compounddef>'


def member(name, docs):
    return f'<memberdef kind="function"><name>{name}</name>{docs}{AT}</memberdef>'


class CheckDocs(unittest.TestCase):
    def missing(self, *compounds):
        with tempfile.TemporaryDirectory() as folder:
            for i, text in enumerate(compounds):
                (pathlib.Path(folder) / f"{i}.xml").write_text(f"<doxygen>{text}</doxygen>")
            return [name for _, _, name in check_docs.missing(pathlib.Path(folder))[1]]

    def test_documented(self):
        self.assertEqual(self.missing(compound("struct", "rill::a", BRIEF), compound("concept", "rill::B", BRIEF),
                                      compound("namespace", "rill", NONE, member("f", BRIEF))), [])

    def test_undocumented(self):
        self.assertEqual(self.missing(compound("struct", "rill::a", NONE)), ["rill::a"])
        self.assertEqual(self.missing(compound("concept", "rill::B", NONE)), ["rill::B"])
        self.assertEqual(self.missing(compound("namespace", "rill", NONE, member("f", NONE))), ["rill::f"])

    def test_one_overload_is_enough(self):
        self.assertEqual(self.missing(compound("namespace", "rill", NONE, member("f", BRIEF) + member("f", NONE))), [])

    def test_what_is_not_looked_at(self):
        self.assertEqual(self.missing(compound("struct", "rill::detail::a", NONE)), [])
        self.assertEqual(self.missing(compound("namespace", "rill::detail", NONE, member("f", NONE))), [])
        self.assertEqual(self.missing(compound("namespace", "rill", NONE, member("operator==", NONE))), [])
        self.assertEqual(self.missing(compound("struct", "rill::a&lt; float &gt;", NONE)), [])
        self.assertEqual(self.missing(compound("class", "rill::a", BRIEF, "<innerclass refid=\"rill::a::b\"/>"),
                                      compound("class", "rill::a::b", NONE)), [])
        self.assertEqual(self.missing(compound("class", "rill::a", BRIEF),
                                      compound("namespace", "rill", NONE, member("a", NONE))), [])

    def test_nothing_at_all_is_a_failure(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            sys.argv = ["check_docs.py", folder]
            self.assertEqual(check_docs.main(), 1)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
