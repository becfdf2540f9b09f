# SPDX-License-Identifier: BSD-3-Clause
"""The page of the hooks, from the table at the head of attention/concepts.hpp."""

import re

import headers
import markdown
import pages
from reference import writers
from site_map import SiteMap


def write(site: SiteMap) -> None:
    page = "reference/hooks"
    include = site.root / "include"
    link, plain = writers(site, page)
    doc = headers.opening(include / "heed/attention/concepts.hpp")
    before, tables, after = cut(doc)
    text = ["# Hooks of policies", "", markdown.of_docstring(before, link, plain)]
    for title, rows in tables:
        short, more = re.match(r"([^;,]*)(?:[;,] (?=`|score::)(.*))?", title).groups()
        text += [f"## {short if more else title}", "", *([(more if more.startswith(("`", "score::")) else more[0].upper() + more[1:]) + ".", ""] if more else []), "```{list-table}", ":class: hooks", ":header-rows: 1", ":widths: 44 28 28", "", "* - member",
                 "  - default", "  - asked by"]
        for row in rows:
            for i, column in enumerate(row):
                shown = "<br>".join(markdown.on_spans(code(line, i == 0), link, str) for line in column if line)
                text.append(("* - " if i == 0 else "  - ") + shown)
        text += ["```", ""]
    text += [markdown.of_docstring(after, link, plain)]
    for title, header in (("Operations", "heed/ops/operation.hpp"), ("Parameters", "heed/core/parameters.hpp")):
        text += [f"## {title}", "", markdown.of_docstring(headers.opening(include / header), link, plain)]
    text += [f"What is missing in a policy of yours, the compiler says in one sentence: "
             f"{site.link(page, site.names['check_score_policy'], '`check_score_policy`')} and its siblings.", ""]
    pages.put(site, page, "\n".join(text))


def code(line: str, always: bool) -> str:
    if line == "-":
        return "–"
    if line.startswith("or ("):
        return "or `" + line[3:] + "`"
    if always:
        return f"`{line}`"
    return re.sub(r"\b([a-z0-9]+(?:_[a-z_]+|::[a-z_:]+)|operator\(\))(?![\w])", r"`\1`", line).replace("``", "`")


def cut(doc: str):
    """The text before the tables; [(title, [[member lines], [default lines], [asked by lines]])]; the text after."""
    lines = doc.split("\n")
    start = next(i for i, line in enumerate(lines) if re.match(r"Score {4,}default", line))
    end = next(i for i in range(start, len(lines)) if not lines[i].strip())
    at = [lines[start].index("default"), lines[start].index("asked by")]
    tables: list[tuple[str, list]] = []
    for line in lines[start:end]:
        cells = [line[:at[0]].strip(), line[at[0]:at[1]].strip(), line[at[1]:].strip()]
        if not line.startswith(" "):
            title = re.sub(r" {3,}.*", "", line)
            tables.append((title, []))
        else:
            continues = line.startswith("    ") and tables[-1][1]
            if not line[at[0] - 2:at[0]].isspace() and len(line) > at[0]:
                cells = [line.strip(), "", ""]  # too long for its column
            if continues:
                for column, text in zip(tables[-1][1][-1], cells):
                    column.append(text)
            else:
                tables[-1][1].append([[text] for text in cells])
    # "as above" stands on a line of its own
    return "\n".join(lines[:start]), tables, "\n".join(lines[end:])
