#!/usr/bin/env python3
"""Prints what the library costs a translation unit in CPU seconds, and as ratios to programs that do without it.

usage: compile_seconds.py HEADER               seconds of including a header with g++ -O0: the median of five compilations
       compile_seconds.py --headers [FILE]     every public header alone, costly ones last, with g++ -O0
       compile_seconds.py --ratios [FILE]      what calls cost with g++ -O2

With --headers a header is compiled once; then rill.hpp, the costliest header and tcp.hpp five times, in turns with the
headers of the standard library that a program with threads includes. Left out are the folders that bring third parties
or are for tests: adapt, system, testing, train, and what needs MPI; tcp.hpp, which brings OpenSSL, has a ratio of its
own. FILE is build/bench/compile_headers.json unless another is named.

With --ratios the programs are compiled in turns; a ratio is that of the medians of user CPU seconds. One ratio is to a
program that computes the same with the standard library alone (tools/by_hand), dense or sparse, the other to including
the headers of rill. They are written to FILE (default: build/bench/compile.json), with the bytes of code.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
LEFT_OUT = ("adapt", "detail", "system", "testing", "train")
WITH_TLS = "rill/transport/tcp.hpp"
# What a program with threads includes that does not use rill.
STANDARD = ("algorithm", "atomic", "chrono", "condition_variable", "functional", "future", "iostream", "map", "memory",
            "mutex", "random", "ranges", "span", "string", "thread", "unordered_map", "vector")
TURNS = 5
BY_HAND = ROOT / "tools" / "by_hand"
FIGURES = ROOT / "build" / "bench"

# A program whose ranks are threads. They make the group `workers`, on the topology `ring` unless another is named, and
# then run a body.
PROGRAM = """#include <rill/rill.hpp>
#include <rill/transport/in_process.hpp>
#include <vector>
int main() {{
{body}
}}
"""
RANKS = """    rill::in_process::run(4, [](auto& net) {{
        rill::group workers{{net, rill::topology::{topology}{{}}}};
        std::vector<float> in(1000), out(1000);
{calls}
    }});"""
CODECS = {"first": "top_k{.density = 0.01}",
          "second": "encoded{bucket_top_k{}, qsgd{}}",
          "third": "encoded{threshold{}, raw{}, packed_gaps{}}"}


def codec(name):
    return f"using namespace rill::compress; auto {name} = error_feedback{{{CODECS[name]}}}.bind(in.size());"


def sum_and_mean(name):
    return f"rill::all_reduce(workers, in, out, {name}); rill::all_reduce(workers, in, out, {name}, rill::aggregate::mean{{}});"


def ranks(*calls, topology="ring"):
    return PROGRAM.format(body=RANKS.format(topology=topology, calls="\n".join(calls)))


PROGRAMS = {
    "by_hand_dense": (BY_HAND / "dense.cpp").read_text(),
    "by_hand_sparse": (BY_HAND / "sparse.cpp").read_text(),
    "include": PROGRAM.format(body=""),
    "dense": ranks("rill::all_reduce(workers, in, out);"),
    "dense_fused": ranks("rill::all_reduce(workers, in, out);", topology="split_allgather"),
    "error_feedback": ranks(codec("first"), "rill::all_reduce(workers, in, out, first, rill::aggregate::mean{});"),
    "codecs": ranks(*(codec(name) for name in CODECS), *(sum_and_mean(name) for name in CODECS)),
}
# What calls rill, and which program computes the same by hand. That for `codecs` chooses and sums once, not six times.
COMPARED = {"dense": "by_hand_dense", "dense_fused": "by_hand_dense",
            "error_feedback": "by_hand_sparse", "codecs": "by_hand_sparse"}
# The programs as units of one that links rill::compiled.
PROGRAMS |= {f"compiled_{name}": f"#define RILL_COMPILED\n{PROGRAMS[name]}" for name in COMPARED}
COMPARED |= {f"compiled_{name}": by_hand for name, by_hand in COMPARED.items()}
# The source of rill::compiled.
PROGRAMS["compiled"] = (INCLUDE / "rill/compiled.cpp").read_text()


def cpu_seconds(source, *options, output=os.devnull):
    """User and system seconds."""
    command = ["g++", "-std=c++20", *options, f"-I{INCLUDE}", "-x", "c++", "-", "-c", "-o", str(output)]
    before = os.times()
    if subprocess.run(command, input=source, text=True).returncode != 0:
        sys.exit(f"{' '.join(command)}: failed")
    after = os.times()
    return after.children_user - before.children_user, after.children_system - before.children_system


def seconds_of_headers(*headers):
    return sum(cpu_seconds("".join(f"#include <{header}>\n" for header in headers), "-O0"))


def public_headers():
    for path in sorted(INCLUDE.rglob("*.hpp")):
        header = path.relative_to(INCLUDE)
        if not set(header.with_suffix("").parts) & set(LEFT_OUT) and "mpi" not in header.name:
            yield str(header)


def write(found, file):
    file = pathlib.Path(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(found, indent=1) + "\n")


def headers(file=FIGURES / "compile_headers.json"):
    once = {header: seconds_of_headers(header) for header in public_headers()}
    for header in sorted(once, key=once.get):
        print(f"{header:<44} {once[header]:.2f}")
    costliest = max(once.keys() - {WITH_TLS}, key=once.get)
    compared = {"standard": STANDARD, "umbrella": ["rill/rill.hpp"], "costliest": [costliest], "tcp": [WITH_TLS]}
    seconds = {name: [] for name in compared}
    for _ in range(TURNS):
        for name, of in compared.items():
            seconds[name].append(seconds_of_headers(*of))
    median = {name: statistics.median(each) for name, each in seconds.items()}
    found = {name: {"seconds": round(median[name], 2), "ratio_standard": round(median[name] / median["standard"], 2)}
             for name in compared}
    found["costliest"]["header"] = costliest
    print(f"\n{'':<44} seconds  x standard headers")
    for name, what in found.items():
        print(f"{what.get('header', name):<44} {what['seconds']:7.2f} {what['ratio_standard']:19.2f}")
    write(found, file)


def code_bytes(program):
    with tempfile.NamedTemporaryFile(suffix=".o") as made:
        cpu_seconds(PROGRAMS[program], "-O2", output=made.name)
        return int(subprocess.run(["size", made.name], capture_output=True, text=True, check=True).stdout.split()[6])


def ratios(file=FIGURES / "compile.json"):
    seconds = {name: [] for name in PROGRAMS}
    for _ in range(TURNS):
        for name in PROGRAMS:
            seconds[name].append(cpu_seconds(PROGRAMS[name], "-O2")[0])
    median = {name: statistics.median(each) for name, each in seconds.items()}
    found = {}
    for name in PROGRAMS:
        found[name] = {"seconds": round(median[name], 2), "ratio_include": round(median[name] / median["include"], 2),
                       "code_bytes": code_bytes(name)}
        if name in COMPARED:
            found[name]["ratio_by_hand"] = round(median[name] / median[COMPARED[name]], 2)
    print(f"{'':<24} seconds  x by hand  x include  bytes of code")
    for name, what in found.items():
        print(f"{name:<24} {what['seconds']:7.2f} {what.get('ratio_by_hand', '-'):>10} {what['ratio_include']:10.2f}"
              f" {what['code_bytes']:14}")
    write(found, file)


def main(*arguments):
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(__doc__)
    first, *file = arguments
    if first == "--headers":
        headers(*file)
    elif first == "--ratios":
        ratios(*file)
    else:
        print(round(statistics.median(seconds_of_headers(first) for _ in range(TURNS)), 3))


if __name__ == "__main__":
    main(*sys.argv[1:])
