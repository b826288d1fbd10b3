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
        return check.trouble_alone(str(sample), COMMAND, [])


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


def verdict(*texts, fixed=False):
    """The result and the output of a check of samples with these texts."""
    with tempfile.TemporaryDirectory() as folder:
        samples = [pathlib.Path(folder, f"sample_{i}.cpp") for i in range(len(texts))]
        for sample, text in zip(samples, texts):
            sample.write_text(text)
        with contextlib.redirect_stdout(io.StringIO()) as said:
            return check.main([*(["--fixed"] if fixed else []), *map(str, samples), "--", *COMMAND]), said.getvalue()


class Together(unittest.TestCase):
    narrow = "// expect: too narrow\n" + MISTAKE.replace("too wide", "too narrow").replace("== 1", "== 8")
    wide = "// expect: too wide\n" + MISTAKE

    def test_good_samples(self):
        self.assertEqual(verdict(self.wide, self.narrow), (0, "2 samples, 0 of them compiled alone, 0 wrong\n"))

    def test_each_is_judged_by_its_own_errors(self):
        result, said = verdict(self.wide, self.narrow.replace("too narrow", "too wide", 1), self.narrow)
        self.assertEqual(result, 1)
        self.assertIn("3 samples, 1 of them compiled alone, 1 wrong", said)
        self.assertRegex(said, "sample_1.cpp: the line of the first error lacks `too wide`")

    def test_sample_that_compiles(self):
        result, said = verdict(self.wide, "// expect: too wide\nint value = 1;\n")
        self.assertEqual(result, 1)
        self.assertRegex(said, "sample_1.cpp: must not compile, but does")

    def test_lines_of_all_errors_count(self):
        more = "static_assert(sizeof(int) == 1, \"too wide\");\n" * check.MOST_LINES
        result, said = verdict(self.narrow, self.wide.replace("#endif", more + "#endif"))
        self.assertEqual(result, 1)
        self.assertRegex(said, "sample_1.cpp: the compiler says [0-9]+ lines, more than")

    def test_more_errors_than_a_compiler_tells_by_itself(self):
        self.assertEqual(verdict(*[self.wide] * 30), (0, "30 samples, 0 of them compiled alone, 0 wrong\n"))

    def test_mistake_that_another_sample_repairs(self):
        without = "// expect: std\ninline void work(int* a) { std::sort(a, a + 1); }\n"
        self.assertEqual(verdict(self.wide.replace("\n", "\n#include <algorithm>\n", 1), without),
                         (0, "2 samples, 1 of them compiled alone, 0 wrong\n"))

    def test_mistake_in_what_two_samples_instantiate(self):
        use = "// expect: static assertion\n#include <ratio>\nconst auto one = sizeof(std::ratio<1, 0>::num);\n"
        self.assertEqual(verdict(use, use), (0, "2 samples, 1 of them compiled alone, 0 wrong\n"))

    def test_sample_with_flags(self):
        flags = "// expect: old\n// broken by: -DOLD\n#ifdef OLD\n#error \"old\"\n#endif\n"
        self.assertEqual(verdict(self.wide, flags), (0, "2 samples, 1 of them compiled alone, 0 wrong\n"))


class Fixed(unittest.TestCase):
    def verdict(self, *texts):
        return verdict(*texts, fixed=True)

    def test_equal_names(self):
        self.assertEqual(self.verdict("#include <vector>\n" + MISTAKE, "#include <vector>\n" + MISTAKE), (0, ""))

    def test_typo_outside_the_mistake(self):
        result, said = self.verdict(MISTAKE, "imt value;\n" + MISTAKE)
        self.assertEqual(result, 1)
        self.assertRegex(said, "must compile with -DRILL_FIXED(.|\n)*sample_1")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
