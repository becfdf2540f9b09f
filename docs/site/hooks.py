# SPDX-License-Identifier: BSD-3-Clause
"""The page of hooks, from the table in policy/hooks.hpp."""

import re

import headers
import markdown
import pages
from reference import writers
from site_map import SiteMap


TITLES = (("Of scores.", "Scores"), ("Of scores that wrap another", "Scores that wrap another"), ("Of normalizers.", "Normalizers"),
          ("Of combiners.", "Combiners"), ("Of states", "States, and queries of several parts"))


def write(site: SiteMap) -> None:
    page = "reference/hooks"
    include = site.root / "include"
    link, plain = writers(site, page)
    text = ["# Hooks of policies", "",
            markdown.of_docstring(headers.opening(include / "heed/policy/hooks.hpp"), link, plain),
            markdown.of_docstring(headers.opening(include / "heed/policy/concepts.hpp"), link, plain)]
    for title, rows in tables((include / "heed/policy/hooks.hpp").read_text()):
        text += [f"## {title}", "", "```{list-table}", ":class: hooks", ":header-rows: 1", ":widths: 50 30 20", "",
                 "* - hook", "  - returns", "  - without it"]
        for signature, returns, otherwise in rows:
            text += [f"* - `{signature}`", f"  - {returns}", f"  - {otherwise}"]
        text += ["```", ""]
    for title, header in (("Operations", "heed/ops/operation.hpp"), ("Parameters", "heed/core/parameters.hpp")):
        text += [f"## {title}", "", markdown.of_docstring(headers.opening(include / header), link, plain)]
    text += [f"If your policy lacks a requirement, the compiler reports it in one sentence: "
             f"{site.link(page, site.names['check_score_policy'], '`check_score_policy`')} and related checks.", ""]
    pages.put(site, page, "\n".join(text))


def tables(source: str) -> list:
    """[(title, [(signature, returns, without it)])], from the rows `#define HEED_HOOK_x(X) X(x, "…", "…", "…")`."""
    found: list[tuple[str, list]] = []
    for line in re.sub(r"\\\n *", "", source).split("\n"):
        for begins, title in TITLES:
            if line.startswith("// " + begins):
                found.append((title, []))
        row = re.match(r'#define HEED_HOOK_\w+\(X\) X\(\w+, "(.*?)", "(.*?)", "(.*?)"\)$', line)
        if row:
            found[-1][1].append(row.groups())
    return found
