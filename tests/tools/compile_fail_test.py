"""The check of samples that must not compile has to refuse samples that prove nothing."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "compile_fail"))
import check  # noqa: E402

COMMAND = sys.argv[1:]
MISTAKE = "#ifdef RILL_FIXED\nint value = 1;\n#else\nstatic_assert(sizeof(int) == 1, \"too wide\");\n#endif\n"


def trouble(text):
    with tempfile.TemporaryDirectory() as folder:
        sample = pathlib.Path(folder, "sample.cpp")
        sample.write_text(text)
        return check.trouble(str(sample), COMMAND, None)


class CompileFail(unittest.TestCase):
    def test_good_sample(self):
        self.assertIsNone(trouble("// expect: too wide\n" + MISTAKE))

    def test_no_expectation(self):
        self.assertRegex(trouble(MISTAKE), "first line must be")

    def test_other_message(self):
        self.assertRegex(trouble("// expect: too narrow\n" + MISTAKE), "lacks `too narrow`")

    def test_message_behind_another_error(self):
        self.assertRegex(trouble("// expect: too wide\n" + MISTAKE.replace("static_assert", "imt a;\nstatic_assert")), "first error lacks")

    def test_long_message(self):
        more = "static_assert(sizeof(int) == 1, \"too wide\");\n" * check.MOST_LINES
        self.assertRegex(trouble("// expect: too wide\n" + MISTAKE.replace("#endif", more + "#endif")), "lines, more than")

    def test_mention(self):
        self.assertIsNone(trouble("// expect: too wide\n// mentions: sizeof\n" + MISTAKE))
        self.assertRegex(trouble("// expect: too wide\n// mentions: a name\n" + MISTAKE), "lacks `a name`")

    def test_flags_that_are_the_mistake(self):
        sample = "// expect: old\n// broken by: -DOLD\n#ifdef OLD\n#error \"old\"\n#endif\n"
        self.assertIsNone(trouble(sample))

    def test_sample_that_compiles(self):
        self.assertEqual(trouble("// expect: too wide\nint value = 1;\n"), "must not compile, but does")


class Fixed(unittest.TestCase):
    def verdict(self, *texts):
        with tempfile.TemporaryDirectory() as folder:
            samples = [pathlib.Path(folder, f"sample_{i}.cpp") for i in range(len(texts))]
            for sample, text in zip(samples, texts):
                sample.write_text(text)
            with contextlib.redirect_stdout(io.StringIO()) as said:
                return check.main(["--fixed", *map(str, samples), "--", *COMMAND]), said.getvalue()

    def test_equal_names(self):
        self.assertEqual(self.verdict("#include <vector>\n" + MISTAKE, "#include <vector>\n" + MISTAKE), (0, ""))

    def test_typo_outside_the_mistake(self):
        result, said = self.verdict(MISTAKE, "imt value;\n" + MISTAKE)
        self.assertEqual(result, 1)
        self.assertRegex(said, "must compile with -DRILL_FIXED(.|\n)*sample_1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
