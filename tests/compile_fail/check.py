#!/usr/bin/env python3
"""Checks that samples do not compile, and that the compiler's first error says why, in few lines.

usage: check.py [--precompiled HEADER] SAMPLE COMMAND...
       check.py --fixed [--precompiled HEADER] SAMPLE... -- COMMAND...

COMMAND compiles a file without output, e.g. g++ -std=c++20 -Iinclude -fsyntax-only. HEADER has been compiled in advance, for
the same command; it saves the time to read what most samples include. A sample begins with lines `// key: value`:

    expect     a regular expression that is found in the line of the first error
    mentions   one that is found anywhere in what the compiler says (if there is such a line)
    broken by  flags that belong to the mistake (if there is such a line)

With -DRILL_FIXED, which repairs the one mistake, and without those flags, each sample must compile, so that no typo passes:
--fixed checks that of all samples together, each in a namespace of its own.
"""

import argparse
import pathlib
import re
import subprocess
import sys

MOST_LINES = 50  # with notes: in a longer output users do not find the message


def compiled(command, unit, text=None):
    ran = subprocess.run([*command, unit], input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
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


def trouble(sample, command, precompiled):
    """What is wrong with the sample, or nothing."""
    head = head_of(sample)
    if "expect" not in head:
        return "the first line must be `// expect: <regular expression>`"
    flags = head.get("broken by", "").split()
    if precompiled and not flags:
        flags = ["-include", precompiled]
    succeeded, said = compiled([*command, *flags], sample)
    if succeeded:
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


def fixed_together(samples):
    """One unit of all samples. What they include comes first, so that nothing is included inside of a namespace."""
    texts = [pathlib.Path(sample).read_text() for sample in samples]
    lines = sorted({line for text in texts for line in text.splitlines() if line.startswith("#include <")})
    lines += [f'namespace sample_{i} {{\n#include "{sample}"\n}}' for i, sample in enumerate(samples)]
    return "\n".join(lines) + "\n"


def fixed(arguments):
    split = arguments.index("--")
    samples, command = arguments[:split], arguments[split + 1 :]
    if samples[0] == "--precompiled":
        command += ["-include", samples[1]]
        samples = samples[2:]
    succeeded, said = compiled([*command, "-DRILL_FIXED", "-x", "c++"], "-", fixed_together(samples))
    if not succeeded:
        print(f"must compile with -DRILL_FIXED, but the compiler says\n{said}")
    return 0 if succeeded else 1


def main(arguments):
    if arguments[:1] == ["--fixed"] and "--" in arguments:
        return fixed(arguments[1:])
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--precompiled")
    parser.add_argument("sample")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    found = trouble(given.sample, given.command, given.precompiled)
    if found:
        print(f"{given.sample}: {found}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
