# SPDX-License-Identifier: BSD-3-Clause
"""Paths in the site, and links.

Pages keep the paths of their files in the repository (docs/how_to/train.md is docs/how_to/train.html), so that links between
Markdown files work in both. In addition, the site has reference/, and source/ with the text of linked files.
"""

import html
import posixpath
import re
from pathlib import Path

import markdown
from names import Name

# The folders of include, whose names docstrings may omit.
PRODUCTS = ("heed", "heed_kit", "heed_mpi", "heed_translator")


class SiteMap:
    def __init__(self, root: Path, out: Path):
        self.root = root
        self.out = out  # Sphinx's source directory
        self.extra = out.parent / "extra"  # files copied into the site unchanged
        self.pages: set[str] = set()  # Markdown files of the repository that are pages
        self.steps: dict[str, str] = {}  # examples/course/01_by_hand.cpp -> its page, without suffix
        self.headers: dict[str, str] = {}  # heed/score/additive.hpp -> reference page#anchor
        self.names: dict[str, str] = {}  # score::additive -> reference page#anchor
        self.last: dict[str, list[str]] = {}  # additive -> [score::additive, ...]
        self.sources: list[str] = []  # to be rendered: files and folders
        self.live = False  # is heed as WebAssembly in extra/live?
        self.write_again: set[str] = set()  # files that this run wrote; the others are from an earlier run

    def add_name(self, name: Name, where: str) -> None:
        if name.short not in self.names:
            self.names[name.short] = where
            self.last.setdefault(name.name, []).append(name.short)

    # ---- links ------------------------------------------------------------------------------------------------------

    def url(self, page: str, to: str) -> str:
        """From a page (its path without suffix) to another one, `path` or `path#anchor`."""
        path, _, anchor = to.partition("#")
        relative = posixpath.relpath(path + ".html", posixpath.dirname(page) or ".")
        return relative + (f"#{anchor}" if anchor else "")

    def link(self, page: str, to: str, text: str) -> str:
        return f'<a class="reference internal" href="{html.escape(self.url(page, to))}">{text}</a>'

    def source(self, path: str) -> str:
        """The page that shows this file or folder of the repository."""
        if path not in self.sources:
            self.sources.append(path)
        return f"source/{path}"

    def diagonal_of(self, path: str) -> str | None:
        """The page of a file or folder of the repository that is not Markdown; None if it does not exist."""
        full = self.root / path
        if not full.exists():
            return None
        if path in self.steps:
            return self.steps[path]
        if path.startswith("include/") and path[len("include/"):] in self.headers:
            return self.headers[path[len("include/"):]]
        return self.source(path)

    def name_of(self, code: str) -> str | None:
        """The anchor of the name in `code`, if unambiguous: score::additive{W, U, v}, heed::verify, beam_options."""
        match = re.match(r"^(?:heed::)?([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*(?:[<({].*)?$", code, re.S)
        if not match:
            return None
        name = match.group(1)
        if name in self.names and ("::" in name or "_" in name or code.startswith("heed::")):
            return self.names[name]
        if f"papers::{name}" in self.names and "::" in name:
            return self.names[f"papers::{name}"]  # bahdanau2015::additive
        if "::" not in name and "_" in name and len(self.last.get(name, [])) == 1:
            only = self.last[name][0]
            if only.rpartition("::")[0] in ("", "score", "normalize", "combine"):
                return self.names[only]  # elsewhere such a word may have a different meaning
        return None

    def header_of(self, text: str) -> str | None:
        """The anchor of a header: heed/score/additive.hpp, score/additive.hpp, score/additive."""
        path = text.removesuffix(".hpp") + ".hpp"
        for known in (path, *(f"{product}/{path}" for product in PRODUCTS)):
            if known in self.headers and "/" in text:
                return self.headers[known]
        return None

    def prose(self, page: str, text: str) -> str:
        """Plain text of a docstring as Markdown, with links for names, headers and pages."""
        parts = re.split(r"((?<![\w/])(?:[a-z0-9_]+/)+[a-z0-9_]+\.hpp|docs/[a-z0-9/_-]+\.md|(?<![\w:])(?:[a-z0-9_]+::)+[a-z0-9_]+)", text)
        result = []
        for part in parts:
            shown = markdown.escaped(part)
            place = self.header_of(part) if part.endswith(".hpp") else None
            if re.fullmatch(r"(?:\w+::)+\w+", part):
                place = self.name_of(part)
            if part in self.pages:
                place = part.removesuffix(".md")
            elif place is None and part.endswith(".hpp"):
                found = [path for path in (f"include/{product}/{part}" for product in PRODUCTS) if (self.root / path).exists()]
                place = self.source(found[0]) if found else None
            result.append(self.link(page, place, shown) if place else shown)
        return "".join(result)

    def code(self, page: str, span: str) -> str:
        """`code` as a link to the reference, if the reference has the name."""
        code = span.strip("`").strip()
        place = self.name_of(code) or self.header_of(code)
        return self.link(page, place, span) if place and span.count("`") == 2 else span
