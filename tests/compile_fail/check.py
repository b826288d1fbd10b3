#!/usr/bin/env python3
"""Checks that samples do not compile, and that the compiler's first error of each says why, in few lines.

usage: check.py [--fixed] [--precompiled HEADER] SAMPLE... -- COMMAND...

COMMAND compiles a file without output, e.g. g++ -std=c++20 -Iinclude -fsyntax-only. HEADER has been compiled in advance, for
the same command; it saves the time to read what most samples include. A sample begins with lines `// key: value`:

    expect     a regular expression that is found in the line of the first error
    mentions   one that is found anywhere in what the compiler says (if there is such a line)
    broken by  flags that belong to the mistake (if there is such a line)

The samples are compiled as one unit, each in a namespace of its own. A sample is compiled alone where that unit does not show
what is expected of it: it has flags, another sample's include repairs it, or its error is told of another sample.

With --fixed, -DRILL_FIXED repairs the one mistake of each sample; without their flags all must compile, so that no typo passes.
"""

import argparse
import pathlib
import re
import subprocess
import sys

MOST_LINES = 50  # with notes: in a longer output users do not find the message

ERROR = re.compile(r": (fatal )?error: ")
# What stands before the line of an error or of a note, and tells how the compiler came to it.
CONTEXT = re.compile(r"In file included from |\s+from .*[:,]$|.*: (In|At) [a-z ]+|.*:   (recursively )?required from ")


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


def trouble_in(said, head):
    """What is wrong with what the compiler says of a sample, or nothing."""
    lines = said.splitlines()
    first = next((line for line in lines if ERROR.search(line)), "")
    if not re.search(head["expect"], first):
        return f"the line of the first error lacks `{head['expect']}`; the compiler says\n{said}"
    if not re.search(head.get("mentions", ""), said):
        return f"the compiler's message lacks `{head['mentions']}`; it says\n{said}"
    if len(lines) > MOST_LINES:
        return f"the compiler says {len(lines)} lines, more than {MOST_LINES}\n{said}"
    return None


def trouble_alone(sample, command, precompiled):
    """What is wrong with the sample, or nothing."""
    head = head_of(sample)
    if "expect" not in head:
        return "the first line must be `// expect: <regular expression>`"
    flags = head.get("broken by", "").split()
    succeeded, said = compiled([*command, *(flags or precompiled)], sample)
    return "must not compile, but does" if succeeded else trouble_in(said, head)


def together(samples):
    """One unit of all samples. What they include comes first, so that nothing is included inside of a namespace."""
    texts = [pathlib.Path(sample).read_text() for sample in samples]
    lines = sorted({line for text in texts for line in text.splitlines() if line.startswith("#include <")})
    lines += [f'namespace sample_{i} {{\n#include "{sample}"\n}}' for i, sample in enumerate(samples)]
    return "\n".join(lines) + "\n"


def errors_of_each(said, samples):
    """What a compiler says of a unit of several samples: the errors that name a sample first, for each of them."""
    errors, context = [], []
    for line in said.splitlines():
        if CONTEXT.match(line):
            context.append(line)
            continue
        if ERROR.search(line):
            errors.append([])
        if errors:
            errors[-1] += [*context, line]
        context = []
    name = re.compile("|".join(re.escape(f"{sample}:") for sample in samples))
    found = {}
    for error in errors:
        text = "\n".join(error) + "\n"
        named = name.search(text)
        if named:
            sample = named[0][:-1]
            found[sample] = found.get(sample, "") + text
    return found


def check(samples, command, precompiled):
    """Prints what is wrong; the number of samples that are wrong."""
    without_flags = [sample for sample in samples if {"expect"} <= head_of(sample).keys() <= {"expect", "mentions"}]
    all_errors = ["-ferror-limit=0"] if "clang" in pathlib.Path(command[0]).name else []
    _, said = compiled([*command, *all_errors, *precompiled, "-x", "c++"], "-", together(without_flags))
    as_expected = {sample for sample, errors in errors_of_each(said, without_flags).items() if not trouble_in(errors, head_of(sample))}
    alone = [sample for sample in samples if sample not in as_expected]
    troubles = {sample: trouble_alone(sample, command, precompiled) for sample in alone}
    wrong = {sample: trouble for sample, trouble in troubles.items() if trouble}
    for sample, trouble in wrong.items():
        print(f"{sample}: {trouble}")
    print(f"{len(samples)} samples, {len(alone)} of them compiled alone, {len(wrong)} wrong")
    return len(wrong)


def check_fixed(samples, command, precompiled):
    succeeded, said = compiled([*command, *precompiled, "-DRILL_FIXED", "-x", "c++"], "-", together(samples))
    if not succeeded:
        print(f"must compile with -DRILL_FIXED, but the compiler says\n{said}")
    return 0 if succeeded else 1


def main(arguments):
    if "--" not in arguments:
        sys.exit(__doc__)
    split = arguments.index("--")
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--fixed", action="store_true")
    parser.add_argument("--precompiled")
    parser.add_argument("samples", nargs="+")
    given = parser.parse_args(arguments[:split])
    precompiled = ["-include", given.precompiled] if given.precompiled else []
    wrong = (check_fixed if given.fixed else check)(given.samples, arguments[split + 1 :], precompiled)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
