# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: KaTeX typesets $…$, $$…$$ and the output of equations.py, with the files of Debian's libjs-katex and
fonts-katex, which are copied into the site. Pages without equations load no files.
"""

import shutil
from pathlib import Path

from docutils import nodes

KATEX = Path("/usr/share/javascript/katex")
START = ("for (const e of document.querySelectorAll('.katex-source')) katex.render(e.dataset.tex ?? e.textContent, e, "
         "{displayMode: e.tagName === 'DIV', throwOnError: false});")


def inline(self, node):
    self.body.append(self.starttag(node, "span", "", CLASS="katex-source") + self.encode(node.astext()) + "</span>")
    raise nodes.SkipNode


def display(self, node):
    self.body.append(self.starttag(node, "div", "", CLASS="katex-source") + self.encode(node.astext()) + "</div>\n")
    raise nodes.SkipNode


def add_files(app, pagename, templatename, context, doctree):
    if doctree is not None and (doctree.next_node(nodes.math) or doctree.next_node(nodes.math_block)
                                or any("katex-source" in raw.astext() for raw in doctree.findall(nodes.raw))):
        app.add_css_file("katex/katex.min.css")
        app.add_js_file("katex/katex.min.js", defer="defer")
        app.add_js_file(None, body=f"document.addEventListener('DOMContentLoaded', () => {{ {START} }});")


def copy_files(app, exception):
    if exception is None and app.builder.format == "html" and KATEX.is_dir():
        to = Path(app.outdir) / "_static/katex"
        (to / "fonts").mkdir(parents=True, exist_ok=True)
        for name in ("katex.min.css", "katex.min.js"):
            shutil.copyfile(KATEX / name, to / name)
        for font in (KATEX / "fonts").resolve().glob("*.woff2"):
            shutil.copyfile(font, to / "fonts" / font.name)


def setup(app):
    app.add_html_math_renderer("katex", (inline, None), (display, None))
    app.config.html_math_renderer = "katex"
    app.connect("html-page-context", add_files)
    app.connect("build-finished", copy_files)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
