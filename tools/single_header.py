#!/usr/bin/env python3
"""Makes single_include/ of include/: rill in one file, and one more for each library that it can be used with.

usage: single_header.py [--check] [INCLUDE_DIR SINGLE_INCLUDE_DIR]      (default: those next to this script's folder)

FILES lists them. rill/rill.hpp holds what needs the standard library alone, threads among it; the others include it and
hold the rest. With --check nothing is written: one line per file that is not what would be written, and exit 1 when there
is one.
"""

import pathlib
import re
import sys

UMBRELLA = "rill/rill.hpp"
CONFIG = "rill/core/config.hpp"
# The files: for each the headers whose closure it holds, and the files of this list that it includes and so leaves out.
FILES = {
    UMBRELLA: ([UMBRELLA, "rill/session.hpp", "rill/mixing.hpp", "rill/topology/any.hpp", "rill/protocol.hpp",
                "rill/gradient_code.hpp", "rill/cost.hpp", "rill/transport.hpp", "rill/compiled.hpp"], []),
    "rill/transport/simulated.hpp": (["rill/transport/simulated.hpp"], [UMBRELLA]),
    "rill/transport/mpi.hpp": (["rill/transport/mpi.hpp"], [UMBRELLA]),
    "rill/train.hpp": (["rill/train.hpp", "rill/train/automatic.hpp", "rill/system.hpp", "rill/adapt/eigen.hpp"], [UMBRELLA]),
    "rill/testing.hpp": (["rill/testing.hpp"], [UMBRELLA, "rill/transport/simulated.hpp"]),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OPENS = re.compile(r"^\s*#\s*if")
CLOSES = re.compile(r"^\s*#\s*endif")
ONCE = re.compile(r"^\s*#\s*pragma\s+once\b")
VERSION = re.compile(r"^#define RILL_VERSION_(MAJOR|MINOR|PATCH) (\d+)$", re.MULTILINE)
SECTION = re.compile(r"^// ===== (\S+)$", re.MULTILINE)


class Header:
    """One header of the tree: its includes outside and inside #if, and its text without those outside. Includes inside
    #if of what the umbrella's file holds anyway are dropped."""

    def __init__(self, include, name):
        self.name = name
        self.rill, self.standard, self.conditional = [], [], []
        kept, depth = [], 0
        for line in (include / name).read_text().splitlines():
            depth += bool(OPENS.match(line)) - bool(CLOSES.match(line))
            found = INCLUDE.match(line)
            if found and depth and found[2] in FILES[UMBRELLA][0]:
                continue
            if found and found[2].startswith("rill/"):
                (self.conditional if depth else self.rill).append(found[2])
                kept += [f"#include <{found[2]}>"] * bool(depth)
            elif found and not depth and not re.search(r"[/.]", found[2]):
                self.standard.append(found[2])
            elif not ONCE.match(line):
                kept.append(line)
        self.text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip("\n")


class Tree:
    """The headers below `include`, read when they are asked for."""

    def __init__(self, include):
        self.include = include
        self.headers = {}

    def header(self, name):
        if name not in self.headers:
            self.headers[name] = Header(self.include, name)
        return self.headers[name]

    def closure(self, *roots):
        """`roots` and all headers that they include, directly or not; each header after those that it includes."""
        ordered, seen = [], set()

        def visit(name):
            if name not in seen:
                seen.add(name)
                for included in self.header(name).rill:
                    visit(included)
                ordered.append(name)

        for root in roots:
            visit(root)
        return ordered

    def conditional(self, names):
        """The headers that `names` include inside #if, and all that these include."""
        found = set()
        for name in names:
            for root in self.header(name).conditional:
                more = set(self.closure(root)) - found
                found |= more | self.conditional(more)
        return found

    def version(self):
        return ".".join(number for _, number in VERSION.findall((self.include / CONFIG).read_text()))


def guard_of(name):
    return "RILL_SINGLE_" + re.sub(r"\W", "_", name.removeprefix("rill/")).upper()


def guarded(name, text):
    return f"#ifndef {guard_of(name)}\n#define {guard_of(name)}\n\n{text}\n\n#endif  // {guard_of(name)}"


def head(tree, root):
    return (f"// rill {tree.version()}: <{root}> in one file. Gradient aggregation for distributed learning, C++20.\n"
            "// SPDX-License-Identifier: Apache-2.0\n"
            "// Made of the headers below include/ by tools/single_header.py: change those and make it anew.\n")


def standard_includes(tree, names):
    return "\n".join(f"#include <{name}>"
                     for name in sorted({each for name in names for each in tree.header(name).standard}))


def section(tree, name, shared, above):
    """The text of a header, guarded if other places hold it too. Each #include inside #if is replaced by what it
    includes, except the headers `above`."""
    text = tree.header(name).text
    for included in tree.header(name).conditional:
        names = [each for each in tree.closure(included) if each not in above]
        pieces = [standard_includes(tree, names), *(section(tree, each, shared, above) for each in names)]
        text = text.replace(f"#include <{included}>", "\n\n".join(piece for piece in pieces if piece))
    if not text:
        return ""
    text = f"// ===== {name}\n\n{text}"
    return guarded(name, text) if name in shared else text


def refuse(condition, message):
    return f'#if {condition}\n#error "rill: {message}"\n#endif'


def checks(tree, root, below):
    """The first lines of a file: its includes of the files `below` it, and the checks that they fit."""
    if root == UMBRELLA:
        return [refuse("defined(RILL_VERSION_MAJOR)",
                       "a header of include/ stands before rill.hpp of single_include/; use one of the two folders")]
    major, minor, patch = tree.version().split(".")
    other = f"RILL_VERSION_MAJOR != {major} || RILL_VERSION_MINOR != {minor} || RILL_VERSION_PATCH != {patch}"
    return ["\n".join(f"#include <{name}>" for name in below),
            refuse("!defined(RILL_SINGLE_HEADER)", f"{root} of single_include/ needs rill.hpp of that folder"),
            refuse(other, f"{root} is of version {tree.version()}, rill.hpp of another")]


def one_file(tree, root, names, below, shared, above):
    pieces = [*checks(tree, root, below), standard_includes(tree, names),
              *(section(tree, name, shared, above) for name in names),
              "#define RILL_SINGLE_HEADER" * (root == UMBRELLA)]
    return head(tree, root) + guarded(root, "\n\n".join(piece for piece in pieces if piece)) + "\n"


def generate(include):
    """Every file of single_include/: its path there and its text."""
    tree = Tree(include)
    held, reached = {}, {}
    for root, (headers, below) in FILES.items():
        reached[root] = {name for file in below for name in reached[file] | set(held[file])}
        held[root] = [name for name in tree.closure(*headers) if name not in reached[root]]
    # A header that stands in several places: in two files, or once more inside an #if.
    places = [name for names in held.values() for name in names]
    shared = {name for name in places if places.count(name) > 1} | tree.conditional(places)
    # The guard of a file is that of its root.
    return {root: one_file(tree, root, names, FILES[root][1], shared - {root}, reached[root])
            for root, names in held.items()}


def by_section(text):
    pieces = SECTION.split(text)
    return dict([("its head", pieces[0]), *zip(pieces[1::2], pieces[2::2])])


def differences(files, single):
    """One line for each file that is missing, left over, or other than it would be written."""
    there = {path.relative_to(single).as_posix(): path.read_text() for path in single.rglob("*") if path.is_file()}
    for name in sorted(files.keys() | there.keys()):
        if name not in there:
            yield f"{single.name}/{name}: missing"
        elif name not in files:
            yield f"{single.name}/{name}: made of no header that is there"
        elif files[name] != there[name]:
            new, old = by_section(files[name]), by_section(there[name])
            changed = sorted(section for section in new.keys() | old.keys() if new.get(section) != old.get(section))
            more = f" and {len(changed) - 3} more" if len(changed) > 3 else ""
            yield f"{single.name}/{name}: stale in {', '.join(changed[:3])}{more}"


def write(files, single):
    for path in [path for path in single.rglob("*.hpp") if path.relative_to(single).as_posix() not in files]:
        path.unlink()
    for name, text in files.items():
        path = single / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main(arguments):
    check = arguments[:1] == ["--check"]
    folders = arguments[check:]
    if len(folders) not in (0, 2):
        print(__doc__, file=sys.stderr)
        return 2
    root = pathlib.Path(__file__).resolve().parent.parent
    include, single = map(pathlib.Path, folders) if folders else (root / "include", root / "single_include")
    try:
        files = generate(include)
    except FileNotFoundError as trouble:
        print(f"single_header.py: {trouble}", file=sys.stderr)
        return 1
    if not check:
        write(files, single)
        return 0
    found = list(differences(files, single))
    for line in found:
        print(line)
    if found:
        print("single_include/ is not what include/ makes; run `./dev single` and commit it")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
