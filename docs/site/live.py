# SPDX-License-Identifier: BSD-3-Clause
"""Live pages: heed as WebAssembly in live/, which scripts/docs.sh builds if emscripten is installed.

Each page of docs/mechanisms gets its product of the playground, in a figure around its picture. On request,
examples/browser/pages/embed.js inserts the playground below it; without scripts or WebAssembly, only the picture is shown.
"""

import html
import posixpath
import re

FOLDER = "live"


def script(page: str) -> str:
    return f'<script src="{posixpath.relpath(f"{FOLDER}/embed.js", posixpath.dirname(page) or ".")}" defer></script>'


def figure(inner: str, data: str) -> str:
    return f'<figure class="heed-play" {data}>\n{inner}\n</figure>'


def of_mechanism(page: str, text: str) -> str:
    """The text of docs/mechanisms/<name>, with the figure of its product around its first picture."""
    name = posixpath.basename(page)
    data = f'data-page="{html.escape(name)}"'
    found, count = re.subn(r"^(?:<picture>.*</picture>|<img [^>]*>)$", lambda m: figure(m.group(0), data) + f"\n{script(page)}",
                           text, count=1, flags=re.M)
    if count != 1:
        raise SystemExit(f"{page}.md has no picture on a separate line for its live figure")
    return found


def of_page(site, page: str, live: str, picture: str, caption: str) -> str:
    """A page of live/ in a page of the site, or the picture alone."""
    import pages
    pages.copy(site, picture, site.extra)
    inner = f'<img src="{posixpath.relpath(picture, posixpath.dirname(page))}" alt="{html.escape(caption)}">'
    if not site.live:
        return f"{inner}\n\nThis site was built without emscripten; with it, `scripts/docs.sh` inserts the live page here."
    return figure(inner, f'data-live="{live}"') + "\n" + script(page)


def links(site, page: str) -> str:
    """A line with links to the pages of live/, if any."""
    if not site.live:
        return ""
    to = posixpath.relpath(FOLDER, posixpath.dirname(page) or ".")
    return (f'<p class="live-links">The pages alone: <a href="{to}/index.html">number words</a>, '
            f'<a href="{to}/playground.html">the playground</a>, <a href="{to}/captions.html">captions</a>.</p>')
