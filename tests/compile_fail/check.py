#!/usr/bin/env python3
"""Checks that a sample does not compile, for the reason that its first line gives.

usage: check.py SAMPLE COMMAND...      (COMMAND compiles a file without output, e.g. g++ -std=c++20 -Iinclude -fsyntax-only)

The first line of a sample is `// expect: <regular expression>`. It must be found in what the compiler says about the
sample; and with -DRILL_FIXED, which repairs the one mistake, the sample must compile, so that no typo passes.
"""

import pathlib
import re
import subprocess
import sys


def compile_sample(command, sample):
    ran = subprocess.run([*command, sample], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ran.returncode == 0, ran.stdout


def trouble(sample, command):
    """What is wrong with the sample, or nothing."""
    first_line = pathlib.Path(sample).read_text().partition("\n")[0]
    expected = re.fullmatch(r"// expect: (.+)", first_line)
    if not expected:
        return f"first line must be `// expect: <regular expression>`, is `{first_line}`"
    compiled, said = compile_sample([*command, "-DRILL_FIXED"], sample)
    if not compiled:
        return f"must compile with -DRILL_FIXED, but the compiler says\n{said}"
    compiled, said = compile_sample(command, sample)
    if compiled:
        return "must not compile, but does"
    if not re.search(expected[1], said):
        return f"the compiler's message lacks `{expected[1]}`; it says\n{said}"
    return None


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    found = trouble(arguments[0], arguments[1:])
    if found:
        print(f"{arguments[0]}: {found}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
