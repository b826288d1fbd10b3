#!/usr/bin/env python3
"""Finds the test cases that may start threads: only these can have a data race.

usage: thread_cases.py UNIT...

Prints the units that have such a case. A case may start threads where it names what starts threads, itself or through
declarations of its unit and of the tests' headers. Declarations are recognised by the formatter's layout: each begins at the
beginning of a line. A name is one word, whatever its scope, so that too many cases are found, but none too few.
"""

import pathlib
import re
import sys

# The standard library's ways, and rill's headers that use them.
STARTS = re.compile(r"\bstd::(j?thread|async)\b|in_process|executor_laws|mail_|\btcp\b")
INCLUDED = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
CASE = re.compile(r"^TEST_CASE(?:.*\}$|.*\n(?:(?!\}).*\n)*\})", re.MULTILINE)
WORD = re.compile(r"\w+")
NOT_CODE = re.compile(r'//[^"\n]*$|^\s*#(?!define).*$|^using [^=\n]*;$', re.MULTILINE)
# Not behind a list of template parameters.
BEGIN = re.compile(r"(?<!>\n)^(?=[^\s})])", re.MULTILINE)
# Of the lines at whose beginning a declaration stands: types, and what comes before parameters or a value.
HEAD = re.compile(r"^(?!template)[^\s})].*", re.MULTILINE)
DECLARED = re.compile(r"\b(?:struct|class|concept|define) (\w+)|\b(?!static_assert|namespace|decltype)(\w+)(?:<[^<>]*>)?\s*[(=\[{;]")


def with_headers(unit, texts):
    """Adds the texts of a unit and of the tests' headers that it includes."""
    if unit not in texts:
        texts[unit] = unit.read_text()
        for name in INCLUDED.findall(texts[unit]):
            if (unit.parent / name).exists():
                with_headers((unit.parent / name).resolve(), texts)


class Declaration:
    def __init__(self, text):
        self.starts = STARTS.search(text) is not None
        self.words = set(WORD.findall(text))
        self.names = {one or other for head in HEAD.findall(text) for one, other in DECLARED.findall(head)}


def names_that_start(unit):
    """The names of declarations that may start threads."""
    texts = {}
    with_headers(unit.resolve(), texts)
    declarations = [Declaration(piece) for text in texts.values() for piece in BEGIN.split(NOT_CODE.sub("", CASE.sub("", text)))]
    found, more = set(), set().union(*(one.names for one in declarations if one.starts))
    while more - found:
        found |= more
        more = set().union(*(one.names for one in declarations if one.words & found))
    return found


def with_threads(unit):
    """The text of a unit without the cases that start no thread; its lines keep their numbers."""
    names = names_that_start(unit)

    def kept(case):
        text = NOT_CODE.sub("", case[0])
        starts = STARTS.search(text) or names & set(WORD.findall(text))
        return case[0] if starts else "\n" * case[0].count("\n")

    return CASE.sub(kept, unit.read_text())


def main():
    for name in sys.argv[1:]:
        if CASE.search(with_threads(pathlib.Path(name))):
            print(name)


if __name__ == "__main__":
    main()
