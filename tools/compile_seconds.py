#!/usr/bin/env python3
"""Prints the CPU seconds that one header costs a translation unit: the median of five compilations with -O0.

usage: compile_seconds.py [HEADER [COMPILER]]      (default: rill/rill.hpp g++)
"""

import os
import pathlib
import statistics
import subprocess
import sys

INCLUDE = pathlib.Path(__file__).resolve().parent.parent / "include"


def cpu_seconds(compiler, source):
    command = [compiler, "-std=c++20", "-O0", f"-I{INCLUDE}", "-x", "c++", "-", "-c", "-o", os.devnull]
    before = os.times()
    if subprocess.run(command, input=source, text=True).returncode != 0:
        sys.exit(f"{' '.join(command)}: failed")
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def main(header="rill/rill.hpp", compiler="g++"):
    source = f"#include <{header}>\n"
    print(round(statistics.median(cpu_seconds(compiler, source) for _ in range(5)), 3))


if __name__ == "__main__":
    main(*sys.argv[1:])
