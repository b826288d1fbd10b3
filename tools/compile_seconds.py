#!/usr/bin/env python3
"""Prints the CPU seconds that a header costs a translation unit: the median of five compilations with -O0.

usage: compile_seconds.py [HEADER [COMPILER]]      (default: rill/rill.hpp g++)
       compile_seconds.py --each [COMPILER]        every public header alone, costly ones last; then the costliest

With --each a header is compiled once, and the costliest ones five times. Left out are the folders that bring third
parties or are for tests: adapt, system, testing, train, and what needs MPI.
"""

import os
import pathlib
import statistics
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"
LEFT_OUT = ("adapt", "detail", "system", "testing", "train")
COSTLIEST = 5


def cpu_seconds(compiler, header):
    command = [compiler, "-std=c++20", "-O0", f"-I{INCLUDE}", "-x", "c++", "-", "-c", "-o", os.devnull]
    before = os.times()
    if subprocess.run(command, input=f"#include <{header}>\n", text=True).returncode != 0:
        sys.exit(f"{' '.join(command)}: failed")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def median_seconds(compiler, header):
    return round(statistics.median(cpu_seconds(compiler, header) for _ in range(5)), 3)


def public_headers():
    for path in sorted(INCLUDE.rglob("*.hpp")):
        header = path.relative_to(INCLUDE)
        if not set(header.parts) & set(LEFT_OUT) and "mpi" not in header.name:
            yield str(header)


def each(compiler="g++"):
    seconds = {header: cpu_seconds(compiler, header) for header in public_headers()}
    for header in sorted(seconds, key=seconds.get)[-COSTLIEST:]:
        seconds[header] = median_seconds(compiler, header)
    for header in sorted(seconds, key=seconds.get):
        print(f"{header:<44} {seconds[header]:.2f}")
    print(max(seconds.values()))


def main(header="rill/rill.hpp", compiler="g++"):
    if header == "--each":
        return each(compiler)
    print(median_seconds(compiler, header))


if __name__ == "__main__":
    main(*sys.argv[1:])
