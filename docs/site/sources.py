# SPDX-License-Identifier: BSD-3-Clause
"""Pages that show a file or a folder of the repository, for those that some page links."""

import html
import posixpath
from pathlib import Path

import pages
from site_map import SiteMap

LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".sh": "bash", ".bash": "bash", ".cmake": "cmake", ".txt": "cmake", ".py": "python",
             ".json": "json", ".js": "javascript", ".css": "css", ".ini": "ini", ".awk": "awk"}


def write_all(site: SiteMap) -> int:
    done = 0
    while done < len(site.sources):  # a folder's page adds its files
        path = site.sources[done]
        done += 1
        if (site.root / path).is_dir():
            folder(site, path)
        else:
            file(site, path)
    return done


def head(path: str) -> str:
    return f"---\norphan: true\nnosearch: true\n---\n\n# {posixpath.basename(path)}\n\n"


def file(site: SiteMap, path: str) -> None:
    text = (site.root / path).read_text(encoding="utf-8", errors="replace")
    language = LANGUAGES.get(Path(path).suffix, "text")
    marks = "`" * max(3, 1 + max((len(run) for run in _runs(text)), default=0))
    page = f"source/{path}"
    note = f"`{path}`"
    inside = path.removeprefix("include/")
    if inside in site.headers:
        note += " · " + site.link(page, site.headers[inside], "in the reference")
    lines = "{code-block} " + language + "\n:lineno-start: 1\n"
    pages.put(site, page, f"{head(path)}{note}\n\n{marks}{lines}\n{text.rstrip()}\n{marks}\n")


def _runs(text: str):
    run = ""
    for c in text + " ":
        if c == "`":
            run += c
        elif run:
            yield run
            run = ""


def folder(site: SiteMap, path: str) -> None:
    page = f"source/{path}"
    lines = []
    for entry in sorted((site.root / path).iterdir(), key=lambda p: (p.is_file(), p.name)):
        inside = f"{path}/{entry.name}"
        if inside in site.pages:
            lines.append("- " + site.link(page, inside.removesuffix(".md"), html.escape(entry.name)))
        else:
            lines.append("- " + site.link(page, site.place_of(inside), html.escape(entry.name + "/" * entry.is_dir())))
    pages.put(site, page, head(path) + f"`{path}/`\n\n" + "\n".join(lines) + "\n")
