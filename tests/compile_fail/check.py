#!/usr/bin/env python3
"""Checks that a sample does not compile, and that the compiler's first error says why, in few lines.

usage: check.py SAMPLE COMMAND...      (COMMAND compiles a file without output, e.g. g++ -std=c++20 -Iinclude -fsyntax-only)

A sample begins with lines `// key: value`:

    expect     a regular expression that is found in the line of the first error
    mentions   one that is found anywhere in what the compiler says (if there is such a line)
    broken by  flags that belong to the mistake (if there is such a line)

With -DRILL_FIXED, which repairs the one mistake, and without those flags, the sample must compile, so that no typo passes.
"""

import pathlib
import re
import subprocess
import sys

MOST_LINES = 50  # notes included: who must search for the message has none


def compile_sample(command, sample):
    ran = subprocess.run([*command, sample], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return ran.returncode == 0, ran.stdout


def head_of(sample):
    """The keys and values at the beginning of a sample."""
    found = {}
    for line in pathlib.Path(sample).read_text().splitlines():
        entry = re.fullmatch(r"// (expect|mentions|broken by): (.+)", line)
        if not entry:
            return found
        found[entry[1]] = entry[2]
    return found


def trouble(sample, command):
    """What is wrong with the sample, or nothing."""
    head = head_of(sample)
    if "expect" not in head:
        return "the first line must be `// expect: <regular expression>`"
    compiled, said = compile_sample([*command, "-DRILL_FIXED"], sample)
    if not compiled:
        return f"must compile with -DRILL_FIXED, but the compiler says\n{said}"
    compiled, said = compile_sample([*command, *head.get("broken by", "").split()], sample)
    if compiled:
        return "must not compile, but does"
    lines = said.splitlines()
    first = next((line for line in lines if "error:" in line), "")
    if not re.search(head["expect"], first):
        return f"the line of the first error lacks `{head['expect']}`; the compiler says\n{said}"
    if not re.search(head.get("mentions", ""), said):
        return f"the compiler's message lacks `{head['mentions']}`; it says\n{said}"
    if len(lines) > MOST_LINES:
        return f"the compiler says {len(lines)} lines, more than {MOST_LINES}\n{said}"
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
