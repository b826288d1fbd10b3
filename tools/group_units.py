#!/usr/bin/env python3
"""Writes a translation unit that compiles several others together.

usage: group_units.py [--thread-cases | --programs PREFIX] OUTPUT UNIT...

Each unit stands in a namespace of its own, so units may use one name for different things. A unit that specialises or
instantiates a template of another namespace has to stand in none. What the units include comes first, outside of these
namespaces. OUTPUT has the text of the units: clang warns of unused functions and constants only in the file that it is given. It is
left as it is when it would not change.

With --thread-cases OUTPUT has only the test cases that may start threads.

With --programs each unit has a function main at its end, and OUTPUT is one program of all: started by the name PREFIX and a
unit's path without `.cpp`, with `_` for `/`, it runs the unit's main.
"""

import pathlib
import re
import sys

import thread_cases

DIRECTIVE = re.compile(r"\s*#\s*(include|ifdef|ifndef|if|elif|else|endif)\b")
GLOBAL = re.compile(r"^(template( ?<>| [^<])|namespace rill\b)", re.MULTILINE)
INCLUDE_LINE = re.compile(r"^[ \t]*#\s*include\b.*$", re.MULTILINE)
# Unlike main, another function does not return 0 by itself.
MAIN = re.compile(r"^int main(\(.*?^)\}", re.MULTILINE | re.DOTALL)
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


def text_of(unit, text):
    """Without its includes; its lines keep their numbers."""
    return f'#line 1 "{unit}"\n{INCLUDE_LINE.sub("", text)}'


def in_namespace(unit, text):
    if GLOBAL.search(text):
        return text_of(unit, text)
    return f"namespace unit_{unit.stem} {{\n{text_of(unit, text)}}}"


def grouped(units, read):
    text = [in_namespace(unit, read(unit)) for unit in units]
    return "\n".join([*included(units), *text]) + "\n"


PROGRAMS = """\
{includes}
{units}

template <class Program>
int run(Program program, [[maybe_unused]] int count, [[maybe_unused]] char** arguments) {{
    if constexpr (std::is_invocable_v<Program>) return program();
    else return program(count, arguments);
}}

int main(int count, char** arguments) {{
    const std::string_view name = arguments[0];
{choices}
    return 127;
}}
"""


def program(name, unit):
    """The text of a unit whose main has become unit_NAME::program; its lines keep their numbers."""
    text, found = MAIN.subn(r"int program\1return 0; }", text_of(unit, unit.read_text()))
    if found != 1:
        sys.exit(f"{unit}: no function main that begins with `int main(` and ends with a brace at the beginning of a line")
    return f"namespace unit_{name} {{\n{text}}}"


def programs(prefix, units):
    choices = [f'    if (name.ends_with("{prefix}{name}")) return run(unit_{name}::program, count, arguments);' for name in units]
    includes = dict.fromkeys(["#include <string_view>", "#include <type_traits>", *included(units.values())])
    return PROGRAMS.format(includes="\n".join(includes),
                           units="\n".join(program(name, unit) for name, unit in units.items()), choices="\n".join(choices))


def main(arguments):
    prefix = None
    read = pathlib.Path.read_text
    if arguments[:1] == ["--programs"]:
        prefix, arguments = arguments[1], arguments[2:]
    elif arguments[:1] == ["--thread-cases"]:
        read, arguments = thread_cases.with_threads, arguments[1:]
    if len(arguments) < 2:
        sys.exit(__doc__.split("\n\n")[1])
    output, *units = [pathlib.Path(argument).absolute() for argument in arguments]
    if prefix is None:
        text = grouped(units, read)
    else:
        names = ["_".join(pathlib.Path(argument).with_suffix("").parts) for argument in arguments[1:]]
        text = programs(prefix, dict(zip(names, units)))
    if not output.exists() or output.read_text() != text:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
