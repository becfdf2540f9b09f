# SPDX-License-Identifier: BSD-3-Clause
"""The text of a declaration and of the comment that belongs to it, from a header's lines.

Doxygen provides the names and their lines. The text is read from the header itself, so that equations, shapes and spacing
stay as written.
"""

import functools
import re
from pathlib import Path


@functools.lru_cache(maxsize=None)
def lines_of(path: Path) -> tuple[str, ...]:
    return tuple(path.read_text(encoding="utf-8").split("\n"))


def without_comment(line: str) -> str:
    """The line without its trailing // comment; // in quotation marks is kept."""
    match = re.match(r'(?:[^"/]|"(?:[^"\\]|\\.)*"|/(?!/))*', line)
    return match.group(0).rstrip() if match else line


def trailing_comment(line: str) -> str:
    return line[len(without_comment(line)):].strip().lstrip("/").strip()


def is_comment(line: str) -> bool:
    return line.strip().startswith("//")


def first_line(lines, line: int) -> int:
    """The index of the first line of the declaration whose name is in `lines[line]`."""
    while line > 0:
        before = lines[line - 1]
        code = without_comment(before).strip()
        if not code or code.startswith("#") or code.endswith((";", "{", "}", ":", "\\")):
            break
        if code.endswith(",") and not open_bracket_before(lines, line):
            break  # an enumerator
        line -= 1
    return line


def open_bracket_before(lines, line: int) -> bool:
    """Is a round or angle bracket open at the end of `lines[line - 1]`, within ten lines?"""
    depth = 0
    for i in range(line - 1, max(-1, line - 11), -1):
        code = without_comment(lines[i])
        if code.strip().endswith((";", "{", "}")):
            return depth > 0
        depth += code.count("(") + code.count("<") - code.count(")") - code.count(">") + 2 * code.count("->")
        if depth > 0:
            return True
    return False


def comment_above(lines, first: int, only_docstring: bool = False) -> str:
    """The comment that ends on the line before `first`, without its slashes; '' if there is none."""
    text = []
    i = first - 1
    while i >= 0 and is_comment(lines[i]):
        line = lines[i].strip()
        if line.startswith(("// clang-format", "// SPDX", "// NOLINT", "// ----", "// section:", "// end")):
            break
        if only_docstring and not line.startswith("///"):
            break
        text.append(re.sub(r"^///?<? ?", "", line))
        i -= 1
    return "\n".join(reversed(text)).rstrip()


def declaration(lines, first: int, name_line: int) -> tuple[str, list[str]]:
    """The declaration from line `first` on, without body or initializer list, and its trailing comments."""
    kept, comments = [], []
    depth = 0
    for i in range(first, min(first + 25, len(lines))):
        line = lines[i]
        code, comment = without_comment(line), trailing_comment(line)
        cut = None
        for at, c in enumerate(code):
            if c in "([":
                depth += 1
            elif c in ")]":
                depth -= 1
            elif depth == 0 and i >= name_line:
                if c in "{;" or (c == ":" and code[at - 1] != ":" and code[at + 1:at + 2] != ":"):
                    cut = at
                    break
        if comment:
            comments.append(comment)
        kept.append(code if cut is None else code[:cut].rstrip())
        if cut is not None:
            break
    text = "\n".join(k for k in kept if k.strip())
    # Remove the indentation of the first line from all lines.
    indent = re.match(r" *", text).group(0)
    return "\n".join(l[len(indent):] if l.startswith(indent) else l.lstrip() for l in text.split("\n")), comments


def whole(lines, first: int) -> str:
    """A declaration with its body: to the first line that ends at the indentation of its first one, in ; or }."""
    indent = re.match(r" *", lines[first]).group(0)
    kept = []
    for line in lines[first:first + 40]:
        kept.append(line.removeprefix(indent))
        if re.search(r"[;}]$", without_comment(line)) and not line.startswith(indent + " "):
            break
    return "\n".join(kept)
