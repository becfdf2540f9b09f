# SPDX-License-Identifier: BSD-3-Clause
"""The names of the public headers, from Doxygen's XML."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

import declarations


@dataclass
class Name:
    kind: str  # namespace, struct, class, concept, function, variable, typedef, enum, enumvalue, define
    name: str  # additive
    scope: str  # heed::score
    header: str  # heed/score/additive.hpp
    line: int  # of the name, from 1
    text: str = ""  # the declaration as it is written, without its body
    doc: str = ""  # the comment above it
    beside: list[str] = field(default_factory=list)  # trailing comments: shapes
    members: list[Name] = field(default_factory=list)
    plain: bool = False  # doc is a // comment, not a docstring
    first: int = 0  # the line, from 1, on which its declaration begins
    generated: bool = False  # declared by a macro

    @property
    def full(self) -> str:
        return f"{self.scope}::{self.name}" if self.scope else self.name

    @property
    def short(self) -> str:
        return re.sub(r"^heed::", "", self.full)

    @property
    def is_type(self) -> bool:
        return self.kind in ("struct", "class", "enum", "concept")

    @property
    def is_guide(self) -> bool:
        return self.kind == "function" and re.search(r"\)\s*->\s*" + re.escape(self.name) + r"\s*(<|$)", self.text) is not None \
            and not re.search(r"\bauto\b[^(]*\(", self.text)


def described(include: Path, kind: str, name: str, scope: str, location) -> Name | None:
    header = location.get("file")
    path = include / header
    if not header.endswith(".hpp") or not path.exists():
        return None
    lines = declarations.lines_of(path)
    line = int(location.get("line")) - 1
    # For a concept, Doxygen gives the line of `template`; otherwise that of the name.
    while kind == "concept" and line + 1 < len(lines) and not re.search(rf"\bconcept {re.escape(name)}\b", lines[line]):
        if lines[line].lstrip().startswith("HEED_"):
            break
        line += 1
    found = Name(kind, name, scope, header, line + 1)
    found.generated = bool(re.match(r"\s*HEED_[A-Z_]+\(", lines[line]))
    first = declarations.first_line(lines, line)
    found.first = first + 1
    found.text, found.beside = declarations.declaration(lines, first, line)
    if kind == "concept" and not found.generated:
        found.text = declarations.whole(lines, first)
    found.doc = declarations.comment_above(lines, first)
    found.plain = bool(found.doc) and not lines[first - 1].strip().startswith("///")
    return found


def read(xml: Path, include: Path) -> list[Name]:
    """All compounds and members of namespaces, and types with their public members, in no order."""
    result: list[Name] = []
    types: dict[str, Name] = {}
    inner: list[tuple[str, str, str]] = []
    for entry in ElementTree.parse(xml / "index.xml").getroot():
        kind = entry.get("kind")
        if kind not in ("struct", "class", "namespace", "concept", "file", "union"):
            continue
        compound = ElementTree.parse(xml / f"{entry.get('refid')}.xml").getroot().find("compounddef")
        full = compound.findtext("compoundname")
        specialized = "<" in full or " " in full
        if specialized or not (kind == "file" or full == "heed" or full.startswith("heed::")):
            continue
        scope, _, name = full.rpartition("::")
        owner = None
        if kind in ("struct", "class", "union", "concept"):
            owner = described(include, kind, name, scope, compound.find("location"))
            if owner is None:
                continue
            types[full] = owner
            inner += [(full, each.text, each.get("prot")) for each in compound.findall("innerclass")]
        for member in compound.iter("memberdef"):
            if member.get("prot") != "public" or member.get("kind") == "friend":
                continue
            if (kind == "file") != (member.get("kind") == "define"):
                continue
            found = described(include, member.get("kind"), member.findtext("name"), full if kind != "file" else "",
                              member.find("location"))
            if found is None or not found.name or found.name.startswith("@") or "<" in found.name:
                continue
            if found.kind == "enum":
                found.members = [enumerator(include, found, value) for value in member.findall("enumvalue")]
            (owner.members if owner else result).append(found)
    inside = set()
    for outer, name, protection in inner:
        if name in types:
            inside.add(name)
            if protection == "public":
                types[outer].members.append(types[name])
    result += [each for full, each in types.items() if full not in inside]
    for each in result:
        each.members.sort(key=lambda m: m.line)
    return sorted(result, key=lambda n: (n.header, n.line))


def enumerator(include: Path, of: Name, value) -> Name:
    name = value.findtext("name")
    lines = declarations.lines_of(include / of.header)
    for i in range(of.line - 1, min(of.line + 40, len(lines))):
        if re.search(rf"(^\s*|[{{,]\s*){re.escape(name)}\b", declarations.without_comment(lines[i])):
            alone = re.match(rf"\s*{re.escape(name)}\b", lines[i]) is not None
            return Name("enumvalue", name, of.full, of.header, i + 1, text=name,
                        doc=declarations.comment_above(lines, i) if alone else "",
                        beside=[c for c in [declarations.trailing_comment(lines[i])] if c and alone])
    return Name("enumvalue", name, of.full, of.header, of.line, text=name)
