#!/usr/bin/env python3
"""Writes the module map by which clang compiles each header once, as a module.

usage: module_map.py OUTPUT COMPILER INCLUDE_DIR SOURCE_DIR...

Each header of INCLUDE_DIR is a module, and so has to compile by itself. The module `std` has a submodule for each file of the
standard library, with libc's below it, that the headers or the sources of SOURCE_DIR... reach. A file that is included
several times, or only from certain others, stays text. OUTPUT is left as it is when it would not change. Prints clang's
options for the map, as words of a shell.
"""

import pathlib
import re
import subprocess
import sys

STANDARD = re.compile(r"^#include <([a-z_]+)>", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
GUARD = r"#\s*ifndef\s+(?P<guard>\w+)\s*\n\s*#\s*define\s+(?P=guard)\b"
ONCE = re.compile(rf"\s*(#\s*pragma\s+once\b|{GUARD})")
# libstdc++ may have includes before its guards.
ONCE_LATER = re.compile(rf"^{GUARD}", re.MULTILINE)
NOT_DIRECTLY = re.compile(r"#\s*error.*(directly|instead)", re.IGNORECASE)
# Each of these stands for two files, the compiler's and libc's, or is meant to be included again.
TEXT = {"assert.h", "limits.h", "stddef.h", "stdint.h"}


def is_module(path):
    text = COMMENT.sub("", path.read_text(errors="replace"))
    once = ONCE.match(text) or ("/c++/" in str(path) and ONCE_LATER.search(text))
    return once and not NOT_DIRECTLY.search(text) and path.name not in TEXT


def standard_files(compiler, folders):
    """What the standard headers that are used reach: first these headers themselves, then the files below them."""
    used = {name for folder in folders for path in sorted(folder.rglob("*.[ch]pp")) for name in STANDARD.findall(path.read_text())}
    # <cstdint> first: the first submodule that includes the text <stdint.h> gets its macros.
    names = sorted(used, key=lambda name: (name != "cstdint", name))
    includes = "".join(f"#include <{name}>\n" for name in names)
    said = subprocess.run([compiler, "-std=c++20", "-M", "-x", "c++", "-"], input=includes, capture_output=True, text=True, check=True)
    files = [pathlib.Path(word).resolve() for word in said.stdout.split() if word.startswith("/")]
    # -M also names what a header has only asked for by __has_include.
    files = [path for path in dict.fromkeys(files) if path.parent.name != "tbb"]
    return sorted(files, key=lambda path: not (path.name in used and path.parent.parent.name == "c++"))


def module(name, path):
    return f'module "{name}" {{ header "{path}" export * }}\n'


def main():
    output, compiler, include = pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3])
    files = standard_files(compiler, [include, *map(pathlib.Path, sys.argv[4:])])
    text = "module std [system] {\n"
    text += "".join(f"  {module(path, path)}" if is_module(path) else f'  textual header "{path}"\n'
                    for path in files if is_module(path) or path.name in TEXT)
    text += "}\n"
    text += "".join(module(path.relative_to(include).as_posix(), path) for path in sorted(include.rglob("*.hpp")))
    if not output.exists() or output.read_text() != text:
        output.write_text(text)
    # In C++20 mode clang hides what one submodule includes from the next, which libstdc++ does not stand.
    print(f'-fmodules -Xclang -fno-cxx-modules "-fmodule-map-file={output}"')


if __name__ == "__main__":
    main()
