# SPDX-License-Identifier: BSD-3-Clause
"""Index entries of the mechanisms' pages, so that the site's search knows each mechanism by its name in code.

A page's names are that of its file and those of the headers that it lists; a header on several pages belongs to that of its
name, else to the first in the order of docs/mechanisms/README.md. search.js puts a page before others when one of its entries, or
its title, is the search text.
"""

import re
from pathlib import Path

HEADER = re.compile(r"include/heed/((?:(?:score|normalize|combine|penalty|heads|pairs)/)?\w+)\.hpp")
# The namespace of a header's names: usually its folder.
SCOPES = {"heads": "", "pairs": "", **{f"heads/{name}": "per_head" for name in ("differential", "gated")}}


def of_mechanisms(folder: Path) -> dict[str, list[str]]:
    """The names of each page of this folder, by the stem of its file."""
    stems = [path.stem for path in sorted(folder.glob("*.md")) if path.name != "README.md"]
    linked = re.findall(r"\]\(([a-z0-9-]+)\.md\)", (folder / "README.md").read_text(encoding="utf-8"))
    stems.sort(key=lambda stem: linked.index(stem) if stem in linked else len(linked))
    names = {stem: list(dict.fromkeys([stem.replace("-", "_"), stem.replace("-", " "), stem])) for stem in stems}
    taken = {name for own in names.values() for name in own}
    for lines in (r"^Headers?: .*(?:\n.+)*", r"^.*$"):  # a page's own list, before mentions on other pages
        for stem in stems:
            for line in re.findall(lines, (folder / f"{stem}.md").read_text(encoding="utf-8"), flags=re.M):
                for header in HEADER.findall(line):
                    folder_name, _, name = header.rpartition("/")
                    scope = SCOPES.get(header, SCOPES.get(folder_name, folder_name))
                    entries = [name] if name not in taken else []
                    if scope and (entries or name == stem.replace("-", "_")):
                        entries.append(f"{scope}::{name}")
                    names[stem] += [entry for entry in entries if entry not in names[stem]]
                    taken.add(name)
    return names


def with_entries(text: str, names: list[str]) -> str:
    """The text of a page with its entries below its title."""
    entries = "```{index} " + ", ".join(names) + "\n```"
    return re.sub(r"^(# .*)$", lambda title: f"{title.group(1)}\n\n{entries}", text, count=1, flags=re.M)
