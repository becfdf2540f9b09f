# SPDX-License-Identifier: BSD-3-Clause
"""The repository's Markdown as pages of the site: the same text, with links to files replaced by links to pages."""

import html
import posixpath
import re
from pathlib import Path

import live
import markdown
import pictures
import search_names
from site_map import SiteMap


def names_of_pages(root: Path) -> list[str]:
    """The Markdown files that are pages, by their paths in the repository."""
    found = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "bench/README.md", "examples/course/README.md"]
    found += sorted(str(p.relative_to(root)) for p in (root / "docs").rglob("*.md")
                    if (root / "docs/site") not in p.parents)
    return [path for path in found if (root / path).exists()]


def write(site: SiteMap, path: str, after: str = "") -> None:
    text, page = (site.root / path).read_text(encoding="utf-8"), path.removesuffix(".md")
    text = converted(site, path, text)
    if page.startswith("docs/mechanisms/") and not page.endswith("README"):
        text = search_names.with_entries(text, search_names.of_mechanisms((site.root / path).parent)[page.rpartition("/")[2]])
    if site.live and re.fullmatch(r"docs/mechanisms/(?!README$)[^/]+", page):
        text = live.of_mechanism(page, text)
    if path == "docs/how_to/browser.md":
        text += "\n\n" + live.links(site, page)
    put(site, page, text + after)


def write_file(to: Path, text: str) -> None:
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists() or to.read_text(encoding="utf-8") != text:  # Sphinx reads only changed files
        to.write_text(text, encoding="utf-8")


def put(site: SiteMap, page: str, text: str) -> None:
    write_file(site.out / f"{page}.md", text)
    site.write_again.add(f"{page}.md")


def converted(site: SiteMap, path: str, text: str, page: str | None = None) -> str:
    """The text of the Markdown file `path` of the repository, as the page `page`."""
    page = page or path.removesuffix(".md")
    text = re.sub(r"^(<!--.*?-->\s*)+", "", text, flags=re.S)
    text = markdown.fence_commands(markdown.inline_links(text))
    return markdown.on_prose(text, lambda prose: linked(site, path, page, prose))


def linked(site: SiteMap, path: str, page: str, prose: str) -> str:
    def target(to: str) -> str | None:
        """None: leave it to Sphinx, or an external link; else the page."""
        file, _, anchor = to.partition("#")
        if re.match(r"[a-z]+:", to) or not file:
            return None
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(path), file))
        if inside.endswith(".md") and (inside in site.pages or (site.out / inside).exists()):
            return None
        place = site.diagonal_of(inside)
        if place is None:
            raise SystemExit(f"{path} links {to}, which does not exist")
        return place

    def outside_code(text: str) -> str:
        return re.sub(r"<img [^>]*src=\"([^\"]+)\"[^>]*>", lambda m: image(site, path, page, m), text)

    # A link's text may contain code, so links come first and are hidden from the later steps.
    kept: list[str] = []

    def hide(text: str) -> str:
        kept.append(text)
        return f"\0{len(kept) - 1}\0"

    def link(match) -> str:
        if match.group(0).startswith("!"):
            return hide(shown(site, path, *match.groups()))
        if re.search(r"^[^:]*\.(svg|png)$", match.group(2)):
            return hide(f'<a href="{beside(site, path, match.group(2))}">{match.group(1)}</a>')
        place = target(match.group(2))
        return hide(match.group(0) if place is None else site.link(page, place, match.group(1)))

    prose = re.sub(r"!?\[((?:[^\[\]`]|`[^`]*`|\[[^\]]*\])*)\]\(([^()\s]+)\)", link, prose)
    prose = re.sub(r"^#+ .*$", lambda m: hide(m.group(0)), prose, flags=re.M)  # headings stay plain
    prose = markdown.on_spans(prose, lambda c: site.code(page, c), outside_code)
    while "\0" in prose:
        prose = re.sub("\0(\\d+)\0", lambda m: kept[int(m.group(1))], prose)
    return prose


def image(site: SiteMap, path: str, page: str, match) -> str:
    """Kept as HTML, so that it keeps its width. Sphinx does not copy the picture, so it is copied next to the page. If it shows
    several panels side by side, narrow screens get a version with one panel below another."""
    picture = beside(site, path, match.group(1))
    file = posixpath.normpath(posixpath.join(posixpath.dirname(path), picture))
    svg = (site.root / file).read_text(encoding="utf-8") if file.endswith(".svg") else ""
    narrow = pictures.stacked(svg)
    if narrow is None:
        return match.group(0)
    other = picture.removesuffix(".svg") + "-narrow.svg"
    write_file(site.extra / (file.removesuffix(".svg") + "-narrow.svg"), narrow)
    return (f'<picture><source media="(max-width: {pictures.width_of(svg) + 40}px)" srcset="{other}">{match.group(0)}</picture>')


def shown(site: SiteMap, path: str, says: str, picture: str) -> str:
    """![says](picture) as HTML."""
    beside(site, path, picture)
    return wide_image(picture, html.escape(says), site.root / posixpath.normpath(posixpath.join(posixpath.dirname(path), picture)))


def wide_image(url: str, says: str, file: Path) -> str:
    """An image element. On narrow screens, a wide picture scrolls instead of shrinking until its text is unreadable."""
    img = f'<img src="{url}" alt="{says}">'
    return f'<span class="wide-picture">{img}</span>' if pictures.width_of_file(file) > WIDE else img


WIDE = 600  # pixels


def beside(site: SiteMap, path: str, picture: str) -> str:
    copy(site, posixpath.normpath(posixpath.join(posixpath.dirname(path), picture)), site.extra)
    return picture


def copy(site: SiteMap, file: str, folder: Path | None = None) -> None:
    source, to = site.root / file, (folder or site.out) / file
    if not source.exists():
        raise SystemExit(f"a page shows {file}, which does not exist")
    to.parent.mkdir(parents=True, exist_ok=True)
    if not to.exists() or to.read_bytes() != source.read_bytes():
        to.write_bytes(source.read_bytes())
    if folder is None:
        site.write_again.add(file)


def toctree(entries, *, hidden: bool = True, caption: str = "", depth: int = 2) -> str:
    options = ([":hidden:"] if hidden else []) + ([f":caption: {caption}"] if caption else []) + [f":maxdepth: {depth}"]
    return "\n\n```{toctree}\n" + "\n".join(options) + "\n\n" + "\n".join(entries) + "\n```\n"


def title_of(path: Path) -> str:
    match = re.search(r"^# (.*)$", path.read_text(encoding="utf-8"), flags=re.M)
    return html.unescape(match.group(1)) if match else path.stem
