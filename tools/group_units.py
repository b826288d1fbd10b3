#!/usr/bin/env python3
"""Writes a translation unit that compiles several others together.

usage: group_units.py OUTPUT UNIT...

Each unit stands in a namespace of its own, so units may use one name for different things. A unit that specialises or
instantiates a template of another namespace has to stand in none. What the units include comes first, outside of these
namespaces. OUTPUT is left as it is when it would not change.
"""

import pathlib
import re
import sys

DIRECTIVE = re.compile(r"\s*#\s*(include|ifdef|ifndef|if|elif|else|endif)\b")
GLOBAL = re.compile(r"^(template( ?<>| [^<])|namespace rill\b)", re.MULTILINE)
QUOTED = re.compile(r'(\s*#\s*include\s*)"([^"]+)"')


def includes(unit):
    """The #include lines of a unit with the conditions that they stand under; paths relative to the unit become absolute."""
    kept = []
    for line in unit.read_text().splitlines():
        directive = DIRECTIVE.match(line)
        if directive is None:
            continue
        quoted = QUOTED.match(line)
        if quoted and (unit.parent / quoted[2]).exists():
            line = f'{quoted[1]}"{(unit.parent / quoted[2]).resolve()}"'
        if directive[1] == "endif":
            # The conditions around no include at all say nothing.
            begin = max(i for i, (kind, _) in enumerate(kept) if kind.startswith("if"))
            block = kept[begin:]
            del kept[begin:]
            if any(kind in ("include", "block") for kind, _ in block):
                kept.append(("block", "\n".join([text for _, text in block] + [line])))
        else:
            kept.append((directive[1], line))
    return [text for _, text in kept]


def grouped(units):
    lines = dict.fromkeys(line for unit in units for line in includes(unit))
    text = list(lines)
    for unit in units:
        include = f'#include "{unit}"'
        text.append(include if GLOBAL.search(unit.read_text()) else f"namespace unit_{unit.stem} {{\n{include}\n}}")
    return "\n".join(text) + "\n"


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    output, *units = [pathlib.Path(argument).absolute() for argument in arguments]
    text = grouped(units)
    if not output.exists() or output.read_text() != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
