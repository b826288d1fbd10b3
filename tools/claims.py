#!/usr/bin/env python3
"""Measures what a table of claims promises, and says of each claim whether it holds.

usage: claims.py TABLE [FAMILY] [--since COMMIT] [--record]
       claims.py TABLE --smoke FOLDER

The table is the one of the Markdown file TABLE whose header row is

    | id | family | claim | bound | seen | command | figure |

`bound` is a comparison with a number, such as `>= 12` or `<= 1.0 s`. `seen` is the best figure that was measured so far,
or `-`. `command` runs at the root of the repository, once for all claims that share it. `figure` is where the number is: `output` (the last line that the command prints), or
`FILE:KEY.KEY...` in a JSON file that it writes. Exits 1 when a claim falls short, a command fails or a number is missing.

--since COMMIT leaves out the claims whose row and whose command's files are as they were in that commit. --record writes
figures that are better than what was seen into the table. --smoke measures nothing: it says which figures are missing in
the JSON files of FOLDER, as `./dev bench --smoke` writes them.
"""

import argparse
import json
import operator
import pathlib
import re
import subprocess
import sys
import typing

import claim_sources

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ["id", "family", "claim", "bound", "seen", "command", "figure"]
COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "==": operator.eq}
FIGURE = re.compile(r"(-?[\d.]+(?:e[-+]?\d+)?)\s*(\S*)")
BOUND = re.compile(rf"(<=|>=|==|<|>)\s*{FIGURE.pattern}")


class Claim(typing.NamedTuple):
    id: str
    family: str
    claim: str
    bound: str
    seen: str
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
        if claim.seen != "-" and not FIGURE.fullmatch(claim.seen):
            raise BadTable(f"{claim.id}: `{claim.seen}` is no figure such as `0.8 s`, nor `-`")
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


def holds(claim, figure):
    comparison, limit, _ = BOUND.fullmatch(claim.bound).groups()
    return COMPARISONS[comparison](figure, float(limit))


def as_text(claim, figure):
    return f"{figure:.4g} {BOUND.fullmatch(claim.bound)[3]}".strip()


def measure(claim, output, root):
    """The number, or None, and the verdict."""
    if output is None:
        return None, "falls short: the command failed"
    try:
        figure = read_figure(claim, output, root)
    except (LookupError, OSError, StopIteration, TypeError, ValueError) as error:
        return None, f"falls short: no number at `{claim.figure}` ({type(error).__name__}: {error})"
    return figure, "holds" if holds(claim, figure) else "falls short"


def check(claims, root):
    """Prints one line per claim; returns the measured numbers by id, and how many claims fall short."""
    outputs, figures = {}, {}
    short = 0
    for claim in claims:
        if claim.command not in outputs:
            outputs[claim.command] = run(claim.command, root)
        figure, verdict = measure(claim, outputs[claim.command], root)
        short += verdict != "holds"
        if figure is not None:
            figures[claim.id] = figure
        text = "-" if figure is None else as_text(claim, figure)
        print(f"{claim.id}: {claim.claim}\n    bound {claim.bound}, best seen {claim.seen}, measured {text}: {verdict}",
              flush=True)
    print(f"{len(claims) - short} hold, {short} fall short")
    return figures, short


def is_better(claim, figure):
    """Whether the claim holds with this figure, and the figure is better than the one that the row says was seen."""
    if not holds(claim, figure):
        return False
    if claim.seen == "-":
        return True
    seen = float(FIGURE.fullmatch(claim.seen)[1])
    return figure < seen if claim.bound.startswith("<") else figure > seen


def record(claims, figures, table):
    """Writes what is better than what was seen into the file."""
    by_id = {claim.id: claim for claim in claims}
    lines = table.read_text().split("\n")
    for i, line in enumerate(lines):
        claim = by_id.get(cells(line)[0]) if line.startswith("|") else None
        if claim is not None and claim.id in figures and is_better(claim, figures[claim.id]):
            columns = line.split("|")
            columns[1 + HEADER.index("seen")] = f" {as_text(claim, figures[claim.id])} "
            lines[i] = "|".join(columns)
    table.write_text("\n".join(lines))


def missing_figures(claims, folder):
    """Prints and counts the claims of benchmarks whose figures are missing from the JSON files of a folder."""
    missing = 0
    for claim in claims:
        file, _, path = claim.figure.partition(":")
        inside = folder / pathlib.Path(file).name
        if not claim.command.startswith("./dev bench "):
            continue
        try:
            read_figure(claim._replace(figure=f"{inside.name}:{path}"), "", folder)
        except (LookupError, OSError, TypeError, ValueError) as error:
            print(f"{claim.id}: no number at `{path}` of {inside} ({type(error).__name__}: {error})")
            missing += 1
    return missing


def touched_since(commit, claims, table, root):
    """The claims whose row, or whose command's files, changed since a commit."""
    changed = claim_sources.changed_since(commit, root)
    ran = subprocess.run(["git", "-C", str(root), "show", f"{commit}:{table}"], capture_output=True, text=True)
    try:
        before = read_table(ran.stdout)
    except BadTable:
        before = []
    def measured(claim):
        return claim.id, claim.bound, claim.command, claim.figure

    known = {measured(claim) for claim in before}
    commands = {claim.command for claim in claims}
    touched = {command for command in commands if claim_sources.is_touched(command, changed, root)}
    return [claim for claim in claims if claim.command in touched or measured(claim) not in known]


def arguments_of(given):
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n\n")[0])
    parser.add_argument("table")
    parser.add_argument("family", nargs="?")
    parser.add_argument("--since", metavar="COMMIT")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--smoke", metavar="FOLDER", type=pathlib.Path)
    return parser.parse_args(given)


def main(given, root=ROOT):
    chosen = arguments_of(given)
    try:
        claims = read_table((root / chosen.table).read_text())
    except (BadTable, OSError) as error:
        sys.exit(f"{chosen.table}: {error}")
    if chosen.smoke is not None:
        return 1 if missing_figures(claims, root / chosen.smoke) else 0
    families = sorted({claim.family for claim in claims})
    if chosen.family is not None and chosen.family not in families:
        sys.exit(f"{chosen.table}: no family {chosen.family}; there are: {', '.join(families)}")
    wanted = [claim for claim in claims if chosen.family in (None, claim.family)]
    if chosen.since is not None:
        try:
            touched = touched_since(chosen.since, wanted, chosen.table, root)
        except LookupError as error:
            sys.exit(f"--since {chosen.since}: {error}")
        print(f"{len(wanted) - len(touched)} of {len(wanted)} claims are untouched since {chosen.since}")
        wanted = touched
    figures, short = check(wanted, root)
    if chosen.record:
        record(wanted, figures, root / chosen.table)
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
