# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx extension: fixes files of Debian 12's furo, which ships them in their state before upstream's bundling.

- scripts/furo.js imports a module, which a plain script must not: none of it would run, including the button for light and
  dark. The imported file is inserted before it.
- styles/furo.css has dark colors only if the reader chose them, not if the system's setting is dark.
- styles/furo.css imports normalize.css from the root of a web server, which is not the site's root: its text is inserted.
"""

import re
from pathlib import Path

NORMALIZE = "@import url(/javascript/normalize.css/normalize.css);"
IMPORT = re.compile(r'^import Gumshoe from "\./(gumshoe-patched\.js)";\n')


def mend(app, exception):
    if exception is not None or app.builder.format != "html":
        return
    static = Path(app.outdir) / "_static"
    script = static / "scripts/furo.js"
    text = script.read_text(encoding="utf-8")
    match = IMPORT.match(text)
    if match:
        module = (script.parent / match.group(1)).read_text(encoding="utf-8")
        script.write_text(module + "\n(() => {\n" + text[match.end():] + "\n})();\n", encoding="utf-8")
    style = static / "styles/furo.css"
    text = style.read_text(encoding="utf-8")
    if NORMALIZE in text:
        normalize = Path("/usr/share/javascript/normalize.css/normalize.css")  # of node-normalize.css, on which furo depends
        text = text.replace(NORMALIZE, normalize.read_text(encoding="utf-8") if normalize.exists() else "")
        style.write_text(text, encoding="utf-8")
    dark = re.search(r'body\[data-theme="dark"\] \{([^}]*)\}', text)
    if dark and "prefers-color-scheme" not in text:
        style.write_text(text + "\n@media not print { @media (prefers-color-scheme: dark) { "
                         'body:not([data-theme="light"]) {' + dark.group(1) + "} } }\n", encoding="utf-8")


def setup(app):
    app.connect("build-finished", mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
