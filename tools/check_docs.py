#!/usr/bin/env python3
"""Lists the public entities without a documentation comment; fails when there are any.

Reads the XML that doxygen makes (build/docs/xml). An entity is public when no namespace around it is called `detail`; it
has to be documented when it is a class, a concept, or a member of a namespace. Members of a class are left to its author:
`rank()` needs no comment. Neither do operators, nor overloads of a function that is documented once in the same header."""

import pathlib
import sys
import xml.etree.ElementTree as tree

ROOT = pathlib.Path(__file__).resolve().parents[1]


def is_documented(entity):
    return any("".join(entity.find(part).itertext()).strip() for part in ("briefdescription", "detaileddescription"))


def is_public(name):
    return "detail" not in name.split("::")


def is_deduction_guide(member):
    return "->" in member.findtext("argsstring", "") and not member.findtext("type", "").strip()


def place(entity):
    at = entity.find("location")
    return at.get("file"), int(at.get("line"))


def entities(folder):
    """(file, line, name, documented) of everything that has to be documented."""
    compounds = [c for file in sorted(folder.glob("*.xml")) for c in tree.parse(file).getroot().iter("compounddef")]
    classes = [c for c in compounds if c.get("kind") in ("class", "struct", "union", "concept")]
    names = {c.findtext("compoundname") for c in classes}
    inner = {c.get("refid") for outer in classes for c in outer.iter("innerclass")}
    for compound in compounds:
        kind, name = compound.get("kind"), compound.findtext("compoundname")
        if compound in classes and is_public(name):
            # A class in a class is a member of it; a specialisation has the comment of its template.
            if compound.get("id") not in inner and "<" not in name:
                yield *place(compound), name, is_documented(compound)
        elif kind == "namespace" and is_public(name):
            for member in compound.iter("memberdef"):
                own = f"{name}::{member.findtext('name')}"
                if not own.startswith(f"{name}::operator") and not is_deduction_guide(member):
                    yield *place(member), own, is_documented(member)


def missing(folder):
    found = list(entities(folder))
    documented = {(file, name) for file, _, name, is_done in found if is_done}
    return len(found), sorted({e[:3] for e in found if not e[3] and (e[0], e[2]) not in documented})


def main():
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build/docs/xml"
    count, undocumented = missing(folder)
    for file, line, name in undocumented:
        print(f"{file}:{line}: {name} has no documentation comment")
    if count == 0:
        print(f"{folder}: nothing to check")
    else:
        print(f"{count} public entities, {len(undocumented)} without documentation")
    return 1 if undocumented or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
