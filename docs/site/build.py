#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""build.py --root ROOT --xml DIR --to DIR [--site DIR] [--programs DIR] [--live]: writes Sphinx's source directory, --to/source.

--xml: Doxygen's output; --programs: the built steps of the course, which are run for their output; --site: an earlier
site, from which obsolete pages are removed; --live: heed as WebAssembly is in --to/extra/live.
Called by scripts/docs.sh.
"""

import argparse
import posixpath
import re
from pathlib import Path

import course
import hooks
import live
import messages
import names
import pages
import reference
import rules
import sources
from site_map import SiteMap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--root", "--xml", "--to"):
        parser.add_argument(option, type=Path, required=True)
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--site", type=Path)
    parser.add_argument("--live", action="store_true")
    given = parser.parse_args()
    root = given.root.resolve()
    site = SiteMap(root, given.to.resolve() / "source")
    site.live = given.live
    public = rules.public(names.read(given.xml, root / "include"))

    site.pages = set(pages.names_of_pages(root))
    site.steps = {path: path.removesuffix(".cpp") for path in course.steps(root)}
    reference.register(site, public)

    steps = course.write(site, given.programs)
    write_course_index(site, steps)
    for path in sorted(site.pages - {"examples/course/README.md"}):
        pages.write(site, path, after=children(site, path))
    reference.write(site, public, root / "include")
    hooks.write(site)
    pages.put(site, "reference/messages", messages.page(site.root))
    for path in sorted((root / "docs/site/own").glob("*.md")):
        pages.put(site, f"own/{path.stem}", own_page(site, path))
    pages.put(site, "index", start_page(site))
    count = sources.write_all(site)
    remove_what_is_old(site)
    if given.site and (given.site / ".buildinfo").exists():  # Sphinx made it
        remove_old_pages(site, given.site)
    print(f"{len(site.pages)} pages, {len(steps)} steps, {len(site.names)} names, {count} sources")


def children(site: SiteMap, path: str) -> str:
    """The toctree of a folder's README: the other pages of the folder."""
    if path not in ("docs/mechanisms/README.md", "docs/results/README.md"):
        return ""
    folder = path.removesuffix("README.md")
    linked = re.findall(r"\]\(([a-z0-9-]+)\.md\)", (site.root / path).read_text(encoding="utf-8"))
    elsewhere = ("docs/results/speed.md",)  # in the toctree of the start page
    files = [p.removeprefix(folder).removesuffix(".md") for p in sorted(site.pages) if p.startswith(folder) and p != path and p not in elsewhere]
    return pages.toctree(sorted(files, key=lambda f: linked.index(f) if f in linked else len(linked)), depth=1)


def write_course_index(site: SiteMap, steps: list[str]) -> None:
    page, readme = "examples/course/README", "examples/course/README.md"
    if (site.root / readme).exists():
        text = pages.converted(site, readme, (site.root / readme).read_text(encoding="utf-8"))
    else:
        lines = ["# The course", "", "Attention from the first product to a translator, one program a step.", ""]
        for step in steps:
            title = re.search(r"^// # (.*)$", (site.root / f"examples/course/{step}.cpp").read_text(encoding="utf-8"), flags=re.M)
            lines.append(f"1. [{title.group(1) if title else step}]({step}.md)")
        text = "\n".join(lines)
    pages.put(site, page, text + pages.toctree(steps, depth=1) if steps else text)


def start_page(site: SiteMap) -> str:
    """docs/site/index.md, with {{code}} and {{picture}} taken from README.md, which is tested."""
    readme = (site.root / "README.md").read_text(encoding="utf-8")
    text = (site.root / "docs/site/index.md").read_text(encoding="utf-8")
    text = text.replace("{{code}}", re.search(r"```cpp\n.*?```", readme, re.S).group(0))
    text = text.replace("{{picture}}", re.search(r"<img src=\"docs/pictures/number-words.*?>", readme).group(0))
    return pages.converted(site, "index.md", text)


def own_page(site: SiteMap, path: Path) -> str:
    """{{section FILE Title}}: a section of another page, without its title; {{program FILE}}: the code of a file;
    {{live PAGE PICTURE text}}: a page of live/, or the picture if the site has no live/."""
    page = f"own/{path.stem}"
    text = path.read_text(encoding="utf-8")
    # Links in quoted text are relative to its file, so each part is converted separately.
    result = []
    for part in re.split(r"^(\{\{.*\}\})$", text, flags=re.M):
        quote = re.match(r"\{\{(\w+) (\S+)(?: (.*))?\}\}$", part)
        if not quote:
            result.append(moved(site, f"docs/site/own/{path.name}", page, part))
        elif quote.group(1) == "section":
            file = quote.group(2)
            found = re.search(rf"^## {re.escape(quote.group(3))}\n(.*?)(?=^## |\Z)", (site.root / file).read_text(encoding="utf-8"),
                              flags=re.M | re.S)
            if not found:
                raise SystemExit(f"{path.name} quotes a missing section of {file}: {quote.group(3)}")
            result.append(moved(site, file, page, found.group(1)))
        elif quote.group(1) == "live":
            picture, _, says = quote.group(3).partition(" ")
            result.append(live.of_page(site, page, quote.group(2), picture, says))
        else:
            code = (site.root / quote.group(2)).read_text(encoding="utf-8")
            code = re.sub(r"^// SPDX.*\n(//\n)?|^(//\n)?// test:.*\n|^// (section: .*|end)\n", "", code, flags=re.M)  # without marks of tests
            result.append("```cpp\n" + code.strip() + "\n```")
    return "\n".join(result)


def moved(site: SiteMap, file: str, page: str, text: str) -> str:
    """Adapts links to other Markdown pages, which Sphinx resolves, from the text's file to the page."""
    text = pages.converted(site, file, text, page)

    def link(match):
        to, _, anchor = match.group(2).partition("#")
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(file), to or posixpath.basename(file)))
        return f"[{match.group(1)}]({posixpath.relpath(inside, posixpath.dirname(page))}{'#' + anchor if anchor else ''})"

    return re.sub(r"\[([^\]]*)\]\(((?:[^()\s:]+\.md)?(?:#[^()\s]+)?)\)", lambda m: link(m) if m.group(2) else m.group(0), text)


def remove_what_is_old(site: SiteMap) -> None:
    for file in site.out.rglob("*"):
        if file.is_file() and file.relative_to(site.out).as_posix() not in site.write_again:
            file.unlink()


def remove_old_pages(site: SiteMap, built: Path) -> None:
    for page in built.rglob("*.html"):
        path = page.relative_to(built)
        known = (site.out / path.with_suffix(".md")).exists() or (site.extra / path).exists() or path.name in ("search.html",
                                                                                                             "genindex.html")
        if not known:
            page.unlink()


if __name__ == "__main__":
    main()
