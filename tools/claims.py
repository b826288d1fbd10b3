#!/usr/bin/env python3
"""Measures what a table of claims promises, and says of each claim whether it holds.

usage: claims.py TABLE [FAMILY]

The table is the one of the Markdown file TABLE whose header row is

    | id | family | claim | bound | command | figure |

`bound` is a comparison with a number, such as `>= 12` or `<= 1.0 s`. `command` runs at the root of the repository, once
for all claims that share it. `figure` is where the number is: `output` (the last line that the command prints), or
`FILE:KEY.KEY...` in a JSON file that it writes. Exits 1 when a claim falls short, a command fails or a number is missing.
"""

import json
import operator
import pathlib
import re
import subprocess
import sys
import typing

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ["id", "family", "claim", "bound", "command", "figure"]
COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq}
BOUND = re.compile(r"(<=|>=|==|<|>)\s*(-?[\d.]+(?:e-?\d+)?)\s*(\S*)")


class Claim(typing.NamedTuple):
    id: str
    family: str
    claim: str
    bound: str
    command: str
    figure: str


class BadTable(Exception):
    pass


def cells(line):
    return [cell.strip().strip("`") for cell in line.strip().strip("|").split("|")]


def read_table(text):
    """The claims below the header row; ids are unique, bounds well-formed."""
    rows = [cells(line) for line in text.splitlines() if line.startswith("|")]
    if HEADER not in rows:
        raise BadTable(f"no table with the columns {', '.join(HEADER)}")
    claims = []
    for row in rows[rows.index(HEADER) + 2:]:
        if len(row) != len(HEADER):
            raise BadTable(f"{row[0]}: {len(row)} columns instead of {len(HEADER)}")
        claim = Claim(*row)
        if claim.id in [other.id for other in claims]:
            raise BadTable(f"{claim.id}: two claims of one id")
        if not BOUND.fullmatch(claim.bound):
            raise BadTable(f"{claim.id}: `{claim.bound}` is no bound such as `>= 12` or `<= 1.0 s`")
        claims.append(claim)
    return claims


def run(command, root):
    """What the command printed, or nothing when it failed; its messages go to our own error stream."""
    print(f"claims: {command}", file=sys.stderr, flush=True)
    ran = subprocess.run(command, shell=True, cwd=root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    return ran.stdout if ran.returncode == 0 else None


def read_figure(claim, output, root):
    """The measured number, or a LookupError, OSError or ValueError that says why there is none."""
    if claim.figure == "output":
        lines = output.split("\n")
        return float(next(line for line in reversed(lines) if line.strip()))
    file, _, path = claim.figure.partition(":")
    value = json.loads((root / file).read_text())
    for key in path.split("."):
        value = value[int(key)] if isinstance(value, list) else value[key]
    return float(value)


def measure(claim, output, root):
    """The number as text, and the verdict."""
    if output is None:
        return "-", "falls short: the command failed"
    try:
        figure = read_figure(claim, output, root)
    except (LookupError, OSError, StopIteration, TypeError, ValueError) as error:
        return "-", f"falls short: no number at `{claim.figure}` ({type(error).__name__}: {error})"
    comparison, limit, unit = BOUND.fullmatch(claim.bound).groups()
    holds = COMPARISONS[comparison](figure, float(limit))
    return f"{figure:.4g} {unit}".strip(), "holds" if holds else "falls short"


def check(claims, root):
    """Prints one line per claim; returns how many fall short."""
    outputs = {}
    short = 0
    for claim in claims:
        if claim.command not in outputs:
            outputs[claim.command] = run(claim.command, root)
        figure, verdict = measure(claim, outputs[claim.command], root)
        short += verdict != "holds"
        print(f"{claim.id}: {claim.claim}\n    bound {claim.bound}, measured {figure}: {verdict}", flush=True)
    print(f"{len(claims) - short} hold, {short} fall short")
    return short


def main(arguments, root=ROOT):
    if not 1 <= len(arguments) <= 2:
        sys.exit(__doc__)
    try:
        claims = read_table((root / arguments[0]).read_text())
    except (BadTable, OSError) as error:
        sys.exit(f"{arguments[0]}: {error}")
    families = sorted({claim.family for claim in claims})
    if len(arguments) == 2:
        claims = [claim for claim in claims if claim.family == arguments[1]]
        if not claims:
            sys.exit(f"{arguments[0]}: no family {arguments[1]}; there are: {', '.join(families)}")
    return 1 if check(claims, root) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
