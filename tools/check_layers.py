#!/usr/bin/env python3
"""Checks the include graph of a header tree against the layers of the design.

usage: check_layers.py [INCLUDE_DIR]      (default: the include/ next to this script's folder)

Prints one line per violation, `file:line: what`, and exits 1 when there is one.
"""

import pathlib
import re
import sys

# A folder may include itself and every folder of an earlier row; folders of one row never include each other.
ROWS = [
    ["core"],
    ["concept"],
    ["kernel"],
    ["stream"],
    ["transport", "topology", "compress", "aggregate", "gradient_code", "straggler"],
    ["session"],
    ["collective"],
    ["protocol"],
    ["cost"],
    ["train"],
    ["system"],
]
MAY_INCLUDE = {folder: {folder, *(below for row in ROWS[:height] for below in row)}
               for height, row in enumerate(ROWS) for folder in row}
MAY_INCLUDE["adapt"] = {"adapt", "core", "concept"}
MAY_INCLUDE["testing"] = {"testing", *MAY_INCLUDE}

# Each of these costs a translation unit a third of a second or more, or (execution) asks for oneTBB when linking.
FORBIDDEN = {"iostream", "random", "ranges", "regex", "functional", "execution"}
THREADING = {"thread", "mutex", "shared_mutex", "condition_variable", "chrono", "future", "semaphore", "latch", "barrier",
             "stop_token"}
MAY_THREAD = {"transport", "adapt"}
MAY_USE_THIRD_PARTIES = {"transport", "gradient_code", "train", "system", "adapt", "testing"}
INTRINSICS = {"emmintrin.h", "immintrin.h", "arm_neon.h"}

UMBRELLA = "rill.hpp"
# What rill.hpp includes too where RILL_COMPILED is defined.
COMPILED = "rill/compiled.hpp"
# Each folder's umbrella, rill/<folder>.hpp, includes its public headers. These are included by their own names instead:
# those of transport/ bring a third party, or the system's sockets, that their siblings do without; topology/any.hpp would add
# a tenth to what rill.hpp costs, and train/automatic.hpp a quarter to what train.hpp does; steps that are undone are for few.
BY_THEIR_NAMES = {"rill/collective/step_group.hpp", "rill/collective/step_scope.hpp", "rill/topology/any.hpp",
                  "rill/train/automatic.hpp", "rill/transport/mpi.hpp", "rill/transport/simulated.hpp", "rill/transport/tcp.hpp"}
NO_UMBRELLA = {"adapt"}
# The umbrella of topology/ leaves out the mixings and what they are made with, which are the headers there that include one
# of these concepts: only gossip needs them, and they would add an eighth to what rill.hpp costs. They have an umbrella of
# their own.
MIXING_CONCEPTS = {"rill/concept/matcher.hpp", "rill/concept/mixing.hpp"}
MIXINGS = "rill/mixing.hpp"
# What rill.hpp includes: what every program needs, with neither threads nor a third party.
IN_UMBRELLA = {"core", "concept", "kernel", "stream", "topology", "compress", "aggregate", "straggler", "collective"}
# Of a folder that is not there as a whole. CodedReduce needs gradient codes, a third of what all the rest costs.
ALSO_IN_UMBRELLA = {"rill/protocol/rounds.hpp"}

ONCE = re.compile(r"^#pragma once$", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def is_third_party(name):
    if name.startswith("rill/") or name in INTRINSICS:
        return False
    return "/" in name or "." in name


class Tree:
    """The headers below `include`: for each, its includes as (line number, bracket, name), and which lack #pragma once."""

    def __init__(self, include):
        self.include = include
        self.includes = {}
        self.unguarded = set()
        for path in sorted((include / "rill").rglob("*.hpp")):
            name = path.relative_to(include).as_posix()
            text = path.read_text()
            if not ONCE.search(text):
                self.unguarded.add(name)
            matches = ((number, INCLUDE.match(line)) for number, line in enumerate(text.splitlines(), 1))
            self.includes[name] = [(number, match[1], match[2]) for number, match in matches if match]

    def closure(self, header):
        """Everything that including `header` brings in, itself included."""
        seen, waiting = set(), [header]
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += [included for _, _, included in self.includes.get(name, [])]
        return seen


def folder_of(header):
    """`core` for rill/core/x.hpp and rill/core/detail/x.hpp; nothing for umbrellas."""
    parts = header.split("/")
    return parts[1] if len(parts) > 2 else None


def umbrella_of(folder):
    return f"rill/{folder}.hpp"


def is_mixing(tree, header):
    return folder_of(header) == "topology" and any(name in MIXING_CONCEPTS for _, _, name in tree.includes[header])


def check_include(tree, header, bracket, name):
    folder = folder_of(header)
    if bracket == '"':
        return f'write #include <rill/...> instead of "{name}"'
    if name.startswith("rill/"):
        if name not in tree.includes:
            return f"<{name}> does not exist"
        if folder and folder_of(name) not in MAY_INCLUDE[folder]:
            return f"{folder}/ must not include <{name}>"
    elif name in FORBIDDEN:
        return f"<{name}> is too expensive for a library header"
    elif name in THREADING and folder not in MAY_THREAD:
        return f"<{name}> belongs in {', '.join(sorted(MAY_THREAD))} only"
    elif is_third_party(name) and folder not in MAY_USE_THIRD_PARTIES:
        return f"<{name}> is a third party's: {folder or UMBRELLA} needs the standard library alone"
    return None


def find_cycles(tree):
    """One line for each include that closes a cycle."""
    done, path = set(), []

    def visit(header):
        if header in path:
            yield f"{header}: cycle {' -> '.join([*path[path.index(header):], header])}"
            return
        if header in done:
            return
        path.append(header)
        for _, _, name in tree.includes.get(header, []):
            if name in tree.includes:
                yield from visit(name)
        path.pop()
        done.add(header)

    for header in tree.includes:
        yield from visit(header)


def check_includes(umbrella, there, wanted):
    """It includes the headers that it should and nothing else."""
    for name in sorted(wanted - there):
        yield f"{umbrella}: lacks #include <{name}>"
    for name in sorted(there - wanted):
        yield f"{umbrella}: must not include <{name}>"


def check_folder_umbrella(tree, folder):
    """It includes the public headers of its folder and nothing else; that of topology/ not the mixings."""
    umbrella = umbrella_of(folder)
    wanted = {name for name in tree.includes
              if folder_of(name) == folder and "/detail/" not in name and name not in BY_THEIR_NAMES}
    mixings = {name for name in wanted if is_mixing(tree, name)}
    for name, of in [(umbrella, wanted - mixings)] + [(MIXINGS, mixings)] * bool(mixings):
        if name in tree.includes:
            yield from check_includes(name, {included for _, _, included in tree.includes[name]}, of)
        else:
            yield f"{name}: missing, the umbrella of {'mixings' if name == MIXINGS else folder + '/'}"


def check_umbrella(tree, folders):
    """rill.hpp includes the umbrellas that it should, and neither threads nor a third party comes with them."""
    umbrella = f"rill/{UMBRELLA}"
    if umbrella not in tree.includes:
        yield f"{umbrella}: missing"
        return
    there = {name for _, _, name in tree.includes[umbrella]} - {COMPILED}
    wanted = {umbrella_of(folder) for folder in IN_UMBRELLA & folders} | (ALSO_IN_UMBRELLA & tree.includes.keys())
    yield from check_includes(umbrella, there, wanted)
    for header in sorted(set().union(*map(tree.closure, there))):
        for _, _, name in tree.includes.get(header, []):
            if name in THREADING or is_third_party(name):
                yield f"{umbrella}: must not reach <{header}>, which brings <{name}>"


def violations(include):
    tree = Tree(include)
    if not tree.includes:
        yield f"{include}: no header below {include}/rill"
        return
    folders = {folder_of(header) for header in tree.includes} - {None}
    umbrellas = {f"rill/{UMBRELLA}", COMPILED, MIXINGS} | {umbrella_of(folder) for folder in folders - NO_UMBRELLA}
    for header, includes in tree.includes.items():
        folder = folder_of(header)
        if header in tree.unguarded and header != COMPILED:  # which may be read twice in one unit
            yield f"{header}:1: lacks #pragma once"
        if folder is None and header not in umbrellas:
            yield f"{header}:1: only {UMBRELLA} and the folders' umbrellas stand outside the folders"
        if folder and folder not in MAY_INCLUDE:
            yield f"{header}:1: folder {folder}/ has no place in the layers"
            continue
        for number, bracket, name in includes:
            trouble = check_include(tree, header, bracket, name)
            if trouble:
                yield f"{header}:{number}: {trouble}"
    yield from find_cycles(tree)
    for folder in sorted(folders & MAY_INCLUDE.keys() - NO_UMBRELLA):
        yield from check_folder_umbrella(tree, folder)
    yield from check_umbrella(tree, folders)


def main(arguments):
    include = pathlib.Path(arguments[0]) if arguments else pathlib.Path(__file__).parent.parent / "include"
    found = list(violations(include))
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
