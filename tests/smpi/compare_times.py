#!/usr/bin/env python3
"""usage: compare_times.py OWN_PROGRAM JUDGE...

Runs OWN_PROGRAM and the command JUDGE, which print "TOPOLOGY FLOATS NANOSECONDS" for the same cases, and fails where the
times are further apart than a factor of 1.1.
"""

import subprocess
import sys

FACTOR = 1.1


def times(command):
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {tuple(line.split()[:2]): int(line.split()[2]) for line in printed.splitlines()}


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    own, judge = times(arguments[:1]), times(arguments[1:])
    if not judge or own.keys() != judge.keys():
        sys.exit(f"not the same cases: {sorted(own)} and {sorted(judge)}")
    apart = []
    for case, due in judge.items():
        ratio = own[case] / due
        print(f"{' '.join(case)}: {own[case]} ns, by SimGrid {due} ns, ratio {ratio:.3f}")
        if not 1 / FACTOR <= ratio <= FACTOR:
            apart.append(" ".join(case))
    if apart:
        sys.exit(f"further apart than {FACTOR}: {', '.join(apart)}")


if __name__ == "__main__":
    main(sys.argv[1:])
