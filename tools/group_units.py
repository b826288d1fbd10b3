#!/usr/bin/env python3
"""Writes a translation unit that compiles several others together.

usage: group_units.py [--programs PREFIX] OUTPUT UNIT...

Each unit stands in a namespace of its own, so units may use one name for different things. A unit that specialises or
instantiates a template of another namespace has to stand in none. What the units include comes first, outside of these
namespaces. OUTPUT is left as it is when it would not change.

With --programs each unit has a function main, and OUTPUT is one program of all: started by the name PREFIX and a unit's name
it runs the unit's main. Either each path of a main returns a value, or none does.
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


def included(units):
    return dict.fromkeys(line for unit in units for line in includes(unit))


def in_namespace(unit):
    return f'namespace unit_{unit.stem} {{\n#include "{unit}"\n}}'


def grouped(units):
    text = [f'#include "{unit}"' if GLOBAL.search(unit.read_text()) else in_namespace(unit) for unit in units]
    return "\n".join([*included(units), *text]) + "\n"


# A function that is not named main does not return 0 by itself: by `auto` one that only ends returns nothing.
PROGRAMS = """\
#include <string_view>
#include <type_traits>
{includes}
#define main(...) unused; auto program(__VA_ARGS__)
{units}
#undef main

template <class Program>
int run(Program program, [[maybe_unused]] int count, [[maybe_unused]] char** arguments) {{
    const auto ends = [&] {{
        if constexpr (std::is_invocable_v<Program>) return program();
        else return program(count, arguments);
    }};
    if constexpr (std::is_void_v<decltype(ends())>) return ends(), 0;
    else return ends();
}}

int main(int count, char** arguments) {{
    const std::string_view name = arguments[0];
{choices}
    return 127;
}}
"""


def programs(prefix, units):
    choices = [f'    if (name.ends_with("{prefix}{unit.stem}")) return run(unit_{unit.stem}::program, count, arguments);'
               for unit in units]
    return PROGRAMS.format(includes="\n".join(included(units)), units="\n".join(map(in_namespace, units)),
                           choices="\n".join(choices))


def main(arguments):
    prefix = None
    if arguments[:1] == ["--programs"]:
        prefix, arguments = arguments[1], arguments[2:]
    if len(arguments) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    output, *units = [pathlib.Path(argument).absolute() for argument in arguments]
    text = grouped(units) if prefix is None else programs(prefix, units)
    if not output.exists() or output.read_text() != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
