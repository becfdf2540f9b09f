# SPDX-License-Identifier: BSD-3-Clause
"""Pages that show the files and folders of the repository that other pages link.

They are written without Sphinx: there are hundreds, and they need neither search nor navigation.
"""

import html
import posixpath

import highlight
from site_map import SiteMap

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{path} - heed</title><link rel="stylesheet" href="{static}/source.css"></head>
<body><script>document.body.dataset.theme = localStorage.getItem("theme") || "auto";</script>
<header><a href="{home}">heed</a> {way}{note}</header>
{body}
</body></html>
"""


def write_all(site: SiteMap) -> int:
    done = 0
    while done < len(site.sources):  # a folder's page adds its files
        path = site.sources[done]
        done += 1
        if (site.root / path).is_dir():
            body = folder(site, path)
        else:
            text = (site.root / path).read_text(encoding="utf-8", errors="replace")
            body = f'<pre class="source">{highlight.to_html(text, highlight.language_of(path))}</pre>'
        put(site, path, body)
    return done


def put(site: SiteMap, path: str, body: str) -> None:
    page = f"source/{path}"
    up = posixpath.relpath(".", posixpath.dirname(page))
    note = ""
    if path.removeprefix("include/") in site.headers:
        note = f' · <a href="{site.url(page, site.headers[path.removeprefix("include/")])}">in the reference</a>'
    elif path in site.steps:
        note = f' · <a href="{site.url(page, site.steps[path])}">in the course</a>'
    to = site.extra / f"{page}.html"
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(PAGE.format(path=html.escape(path), static=f"{up}/_static", home=f"{up}/index.html", way=html.escape(path),
                              note=note, body=body), encoding="utf-8")


def folder(site: SiteMap, path: str) -> str:
    page = f"source/{path}"
    rows = []
    for entry in sorted((site.root / path).iterdir(), key=lambda p: (p.is_file(), p.name)):
        inside = f"{path}/{entry.name}"
        to = inside.removesuffix(".md") if inside in site.pages else site.source(inside)
        rows.append(f'<li><a href="{site.url(page, to)}">{html.escape(entry.name)}{"/" * entry.is_dir()}</a></li>')
    return "<ul>" + "".join(rows) + "</ul>"
