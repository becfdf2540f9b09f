#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""messages.py [ROOT]: prints every error message of the headers, the sources and the tools, with its place.

An expression within a message is shown as …. The site has the same list as a page.
"""

import re
import sys
from pathlib import Path

FOLDERS = ("include/heed", "include/heed_kit", "include/heed_mpi", "include/heed_translator", "src", "tools")
# The start of a message: an exception, a function that throws one, a check of shapes, an assertion of the compiler.
CALL = re.compile(r"\bthrow (?:\w+::)*\w*error\s*\(|\bthrow_(?:shape_)?error\(|\brefuse\(|\brequire_shape\(|\bstatic_assert\(|^#error|"
                  r"\bfail\(|\busage_error\(|#define HEED_SAYS\w+")
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"')


def messages(root: Path):
    """(path, line, message) in the order of files and lines."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.[ch]pp")):
            text = path.read_text(encoding="utf-8")
            for call in CALL.finditer(text):
                message = of_call(text, call)
                if re.search(r"[a-z]{2,} ", message):
                    yield path.relative_to(root), text.count("\n", 0, call.start()) + 1, message


def page(root: Path) -> str:
    """The list as Markdown, a section for each folder."""
    lines, last = ["# Error messages", "",
                   "Every message of an exception, a compile-time check and the tools, generated from the sources; … is a value.", ""], None
    for path, line, message in messages(root):
        folder = str(path.parent)
        if folder != last:
            lines += ["", f"## {folder}", ""]
            last = folder
        lines.append(f"- `{message.replace('`', chr(39))}` ({path.name}, {line})")
    return "\n".join(lines) + "\n"


def of_call(text: str, call) -> str:
    """The strings of a call, adjacent ones joined, with … for any expression between two strings."""
    if text.startswith("#", call.start()):
        end = re.compile(r"(?<!\\)\n").search(text, call.end())
        inside = text[call.end(): end.start() if end else len(text)]
    else:
        inside = text[call.end(): end_of_call(text, call.end())]
    shown, last = "", None
    for string in STRING.finditer(inside):
        if last is not None and inside[last: string.start()].strip(" \n\\"):
            shown += "…"
        shown += string.group(1)
        last = string.end()
    return re.sub(r"\\(.)", lambda m: " " if m.group(1) == "n" else m.group(1), shown).strip()


def end_of_call(text: str, at: int) -> int:
    """Behind `(` up to its `)`, past strings and characters."""
    depth = 1
    for token in re.finditer(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)\'|[()]', text[at:]):
        depth += {"(": 1, ")": -1}.get(token.group(), 0)
        if depth == 0:
            return at + token.start()
    return len(text)


if __name__ == "__main__":
    for path, line, message in messages(Path(sys.argv[1] if len(sys.argv) > 1 else ".")):
        print(f"{path}:{line}: {message}")
