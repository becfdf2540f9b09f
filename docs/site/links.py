# SPDX-License-Identifier: BSD-3-Clause
"""links.py DIR: checks that every link of the built site leads to an existing file and anchor.

External links are not followed, but written to DIR/external-links.txt, each with a page that contains it.
"""

import posixpath
import sys
import urllib.parse
from html.parser import HTMLParser
from pathlib import Path


class Page(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.places: set[str] = set()

    def handle_starttag(self, tag, attributes):
        for key, value in attributes:
            if value is None:
                continue
            if key == "id" or (key == "name" and tag == "a"):
                self.places.add(value)
            elif key in ("href", "src", "srcset") or (key == "data" and tag == "object"):
                self.links.append(value)


def check(site: Path) -> tuple[list[str], int, dict[str, str]]:
    pages: dict[str, Page] = {}
    for path in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        pages[path.relative_to(site).as_posix()] = page
    faults, count, external = [], 0, {}
    for name, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme in ("data", "mailto", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                external.setdefault(link, name)
                continue
            count += 1
            path = urllib.parse.unquote(parts.path)
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            if not (site / target).is_file():
                faults.append(f"{name}: {link}: no such file")
                continue
            place = urllib.parse.unquote(parts.fragment)
            if place and target in pages and place not in pages[target].places:
                faults.append(f"{name}: {link}: {target} has no anchor '{place}'")
    return faults, count, external


def main() -> int:
    site = Path(sys.argv[1])
    faults, count, external = check(site)
    (site / "external-links.txt").write_text("".join(f"{link}  {page}\n" for link, page in sorted(external.items())),
                                             encoding="utf-8")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{count} links inside the site are valid, {len(external)} are external (external-links.txt)" if not faults
          else f"{len(faults)} of {count} links are broken")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
