# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the reference: a page for each subject, a section for each header, an entry for each name."""

import re

import headers
import markdown
import operations
import pages
import subjects
import synopsis
from names import Name
from site_map import SiteMap


def writers(site: SiteMap, page: str):
    """The functions that link `code` and plain text on this page."""
    return lambda span: site.code(page, span), lambda text: site.prose(page, text)


def anchor(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", f"heed::{name}".lower()).strip("-")


def entries(names: list[Name]) -> list[list[Name]]:
    """Names that are described together: overloads; a type and the object that users call."""
    groups: dict[str, list[Name]] = {}
    for name in names:
        if name.is_guide or name.name.startswith("operator"):
            continue
        of = operations.object_of(name, names)
        groups.setdefault((of or name).full, []).append(name)
    return sorted(groups.values(), key=lambda g: g[0].line)


def main_name(group: list[Name]) -> Name:
    """The object of an operation, else the first."""
    return next((n for n in group if n.kind == "variable" and len(group) > 1), group[0])


def register(site: SiteMap, public: list[Name]) -> None:
    """Determines the page of every name and header, before any page is written."""
    for subject, names in zip(subjects.SUBJECTS, subjects.by_subject(public).values()):
        page = f"reference/{subject.page}"
        for name in names:
            site.headers.setdefault(name.header, f"{page}#{anchor(name.header)}")
        by_header: dict[str, list[Name]] = {}
        for name in names:
            by_header.setdefault(name.header, []).append(name)
        for of_header in by_header.values():
            for group in entries(of_header):
                where = f"{page}#{anchor(main_name(group).short)}"
                for name in sorted(group, key=lambda n: n is not main_name(group)):
                    site.add_name(name, where)
                    for member in name.members:
                        site.names.setdefault(member.short, where)


def write(site: SiteMap, public: list[Name], include) -> None:
    for subject, names in zip(subjects.SUBJECTS, subjects.by_subject(public).values()):
        write_subject(site, subject, names, include)
    write_names(site, public)
    operations.write(site, public)
    write_index(site, public)


def write_subject(site: SiteMap, subject, names: list[Name], include) -> None:
    page = f"reference/{subject.page}"
    link, plain = writers(site, page)
    text = [f"# {subject.title}", "", subject.about[0].upper() + subject.about[1:] + ".", ""]
    if subject.page == "ops":
        text += ["In one table: " + site.link(page, "reference/operations", "all operations") + ".", ""]
    by_header: dict[str, list[Name]] = {}
    for name in names:
        by_header.setdefault(name.header, []).append(name)
    seen: set[str] = set()
    for header in sorted(by_header):
        text += [f"({anchor(header)})=", f"## {title_of(header)}", "",
                 f'<div class="header-line"><code>#include &lt;{header}&gt;</code></div>', ""]
        opening = headers.opening(include / header)
        if opening and header != "heed/policy/concepts.hpp":
            text += [markdown.of_docstring(opening, link, plain)]
        if header == "heed/policy/concepts.hpp":
            text += ["The members that these concepts require, and the hooks: " +
                     site.link(page, "reference/hooks", "hooks of policies") + ".", ""]
        for group in entries(by_header[header]):
            text += entry(site, page, group, seen)
    pages.put(site, page, "\n".join(text))


def title_of(header: str) -> str:
    return header.removeprefix("heed/").removesuffix(".hpp").replace("_", r"\_")


def entry(site: SiteMap, page: str, group: list[Name], seen: set[str]) -> list[str]:
    link, plain = writers(site, page)
    name = main_name(group)
    lines = []
    if anchor(name.short) not in seen and site.names.get(name.short) == f"{page}#{anchor(name.short)}":
        seen.add(anchor(name.short))
        lines += [f"({anchor(name.short)})="]
    lines += [f"### `{name.short}`", ""]
    to_source = site.url(page, site.source(f"include/{name.header}")) + f"#L{group[0].first}"
    lines += [f'<div class="to-source"><a class="reference internal" href="{to_source}">source</a></div>', ""]
    type_ = next((n for n in group if n.is_type), None)
    if name.kind == "variable" and type_:
        lines += ["```cpp", *[f"ops::{call}" if name.scope == "heed::ops" else call for call in synopsis.call_of(name, type_)],
                  "```", ""]
    code = ["```cpp", "\n".join(synopsis.of(each) for each in group), "```", ""]
    docs: list[str] = []
    for each in group:
        if each.doc and each.doc not in docs:
            docs.append(each.doc)
    described = [markdown.of_docstring(doc, link, plain) for doc in docs]
    if name.kind == "variable" and type_:
        lines += described
    elif name.kind in ("struct", "class"):  # the type before its members
        lines += described + code
    else:
        lines += code + described
    if not (name.kind == "variable" and type_):
        lines += members(group, link, plain)
    return lines


def members(group: list[Name], link, plain) -> list[str]:
    """The comments above members, as a list of definitions."""
    lines = []
    for owner in group:
        for member in owner.members:
            if not member.doc or member.kind == "enumvalue" and member.doc == synopsis.first_line(member.doc):
                continue
            shown = member.name
            if member.kind == "function":
                shown += f"({', '.join(a for a in synopsis.arguments_of(member) if a)})"
            body = markdown.of_docstring(member.doc, link, plain).strip().split("\n")
            lines += [f"`{shown}`", ": " + body[0], *["  " + l if l else "" for l in body[1:]], ""]
    return lines


def write_names(site: SiteMap, public: list[Name]) -> None:
    page = "reference/names"
    text = ["# All names", "", "Every public name, in alphabetical order, with its first sentence. Namespaces do not affect the order.", ""]
    letter = ""
    rows: dict[str, tuple[str, str]] = {}
    types = {name.full: name for name in public if name.is_type}
    for name in public:
        if name.is_guide or name.name.startswith("operator") or name.short not in site.names:
            continue
        if operations.object_of(name, public):
            continue  # listed as the object
        of = types.get(operations.type_of(name) or "")
        documented = name.doc or (of.doc if of else "") or rows.get(name.short, ("", ""))[1]
        if name.short not in rows or not rows[name.short][1]:
            rows[name.short] = (name.name, documented)
    for short, (last, doc) in sorted(rows.items(), key=lambda r: (r[1][0].lower(), r[0])):
        if last[0].upper() != letter:
            letter = last[0].upper()
            text += ["", f"## {letter}", "", "| name | description |", "|---|---|"]
        text.append(f"| {site.link(page, site.names[short], f'`{short}`')} | {markdown.first_sentence(doc)} |")
    pages.put(site, page, "\n".join(text) + "\n")


def write_index(site: SiteMap, public: list[Name]) -> None:
    page = "reference/index"
    groups = subjects.by_subject(public)
    text = ["# Reference", "",
            "Every public name of heed, from its headers: computation, shapes, errors. "
            "All names are in the namespace `heed`, which is omitted here.", "",
            "| | |", "|---|---|",
            f"| {site.link(page, 'reference/operations', '**Operations**')} | one table: call, equation, shapes, derivative |",
            f"| {site.link(page, 'reference/hooks', '**Hooks**')} | the members of policies that heed uses if they exist |",
            f"| {site.link(page, 'reference/names', '**All names**')} | in alphabetical order |"]
    for subject in subjects.SUBJECTS:
        count = len({n.short for n in groups[subject.page] if n.short in site.names})
        text.append(f"| {site.link(page, f'reference/{subject.page}', subject.title)} | {subject.about} ({count} names) |")
    text.append(pages.toctree(["operations", "hooks", *[s.page for s in subjects.SUBJECTS], "names"]))
    pages.put(site, page, "\n".join(text))
