# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: lines may break within long names, after ::, a slash, a bracket, an underscore and the like.

Headings use these breaks at every width, and code in text on narrow screens (heed.css).
"""

import re

CODE = re.compile(r'(<span class="pre">)([^<]*)(?=</span>)')
HEADING = re.compile(r"(<h[1-4]>)(.*?)(?=<a class=\"headerlink\"|</h[1-4]>)", re.S)
HEADER = re.compile(r'(<div class="header-line"><code>)([^<]*)(?=</code>)')
TEXT = re.compile(r"(^|>)([^<]+)")
IN_CODE = re.compile(r"(::|&lt;|[/_{(.=|]|(?<=\w)-)(?=\w\w|&)")
IN_TEXT = re.compile(r"(::|[/_]|(?<=\w)\.)(?=\w\w)")
SHORT = 12  # characters, which stay together


def within(text: str, after: re.Pattern = IN_CODE) -> str:
    return text if len(text) <= SHORT else after.sub(r"\1<wbr>", text)


def in_html(body: str) -> str:
    body = CODE.sub(lambda m: m.group(1) + within(m.group(2)), body)
    body = HEADING.sub(lambda m: m.group(1) + TEXT.sub(lambda t: t.group(1) + within(t.group(2), IN_TEXT), m.group(2)), body)
    return HEADER.sub(lambda m: m.group(1) + within(m.group(2)), body)


def add(app, pagename, templatename, context, doctree):
    if "body" in context:
        context["body"] = in_html(context["body"])


def setup(app):
    app.connect("html-page-context", add)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
