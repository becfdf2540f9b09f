# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: C++ in which "…" marks omissions, and symbols are those of an equation."""

from pygments.lexer import inherit
from pygments.lexers.c_cpp import CppLexer
from pygments.token import String, Text


class CppOfPages(CppLexer):
    name = "C++ in pages of heed"
    aliases = []
    filenames = []
    tokens = {
        "statements": [(r"[uUL]?'(\\.[^']*|[^'\\])'", String.Char), inherit, (r"[^\x00-\x7f§]+|§|@", Text)],
        "root": [inherit, (r"[^\x00-\x7f]+", Text)],
    }


def setup(app):
    app.add_lexer("cpp", CppOfPages)
    app.add_lexer("c++", CppOfPages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
