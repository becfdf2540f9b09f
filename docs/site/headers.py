# SPDX-License-Identifier: BSD-3-Clause
"""The docstring of a header: the one above its first namespace, or alone at its head."""

from pathlib import Path

import declarations


def opening(path: Path) -> str:
    lines = declarations.lines_of(path)
    for i, line in enumerate(lines):
        if line.startswith("namespace heed"):
            doc = declarations.comment_above(lines, i, only_docstring=True)
            if doc:
                return doc
    for i, line in enumerate(lines):
        if line.startswith("///"):
            end = i
            while end < len(lines) and lines[end].startswith("///"):
                end += 1
            # a docstring directly above a declaration belongs to that declaration
            return declarations.comment_above(lines, end) if not lines[end].strip() else ""
    return ""
