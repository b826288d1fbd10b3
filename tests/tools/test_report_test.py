"""The report on a run of tests counts what was not built as failed, and gives the reason for what was skipped."""

import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import test_report  # noqa: E402

RUN = """<?xml version="1.0"?>
<testsuite name="all" tests="4" failures="1" disabled="0" skipped="2">
  <testcase name="good" status="run"><system-out>fine</system-out></testcase>
  <testcase name="bad" status="fail"><failure message=""/><system-out>wrong</system-out></testcase>
  <testcase name="not_built" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="not_permitted" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
    <system-out>first
skipped: no namespaces here</system-out></testcase>
</testsuite>
"""


def read(text):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "junit.xml")
        path.write_text(text)
        return test_report.read(path)


class Report(unittest.TestCase):
    def test_counts(self):
        passed, failed, skipped = read(RUN)
        self.assertEqual(passed, ["good"])
        self.assertEqual(failed, ["bad", "not_built"])
        self.assertEqual(skipped, [("not_permitted", "no namespaces here")])

    def test_silent_skip(self):
        self.assertEqual(read(RUN.replace("skipped: no", "no"))[2], [("not_permitted", "it does not say why")])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
