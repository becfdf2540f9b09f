#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""check_names.py --root ROOT --xml DIR [--members] [--pages]: every public name has a complete comment.

The rules are in rules.py and, for the parts of a comment, in parts.py; the pages are in subjects.py.
"""

import argparse
import sys
from pathlib import Path

import names
import operations
import parts
import rules
import subjects


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, required=True)
    parser.add_argument("--xml", type=Path, required=True)
    parser.add_argument("--members", action="store_true", help="also list members without a comment")
    parser.add_argument("--least", type=int, default=500, help="the minimum number of names")
    parser.add_argument("--pages", action="store_true", help="also check that a page of the reference contains each header")
    given = parser.parse_args()
    public = rules.public(names.read(given.xml, given.root / "include"))
    if len(public) < given.least:
        print(f"only {len(public)} public names were found: did Doxygen read the headers?", file=sys.stderr)
        return 1
    if given.pages:
        subjects.by_subject(public)
    at_namespace_scope = {name.full for name in public}
    found = rules.undocumented(public)
    faults = [name for name in found if rules.is_fault(name, at_namespace_scope)]
    for name in found if given.members else faults:
        print(f"include/{name.header}:{name.first}: {name.kind} {name.full} has no comment", file=sys.stderr)
    for name in operations.incomplete(public):
        faults.append(name)
        print(f"include/{name.header}:{name.first}: the comment of {name.full} lacks an equation, shapes (`y = …: x [B,T] -> "
              "[B]`) or, indented, a derivative (`∂x += …`)", file=sys.stderr)
    incomplete = parts.faults(public, given.root / "include")
    for fault in incomplete:
        print(fault, file=sys.stderr)
    members = sum(len(name.members) for name in public)
    print(f"{len(public)} public names, {len(faults) + len(incomplete)} without a comment or with an incomplete one; {members} "
          f"members, {len(found) - len([each for each in found if each in faults])} are data explained by their type")
    return 1 if faults or incomplete else 0


if __name__ == "__main__":
    sys.exit(main())
