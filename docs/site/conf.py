# SPDX-License-Identifier: BSD-3-Clause
"""Sphinx's settings. scripts/docs.sh passes the folders: the output of build.py, and the files to copy unchanged."""

import os
import re
import sys
from pathlib import Path

here = Path(__file__).resolve().parent
sys.path.insert(0, str(here))

project = "heed"
author = "the authors of heed"
release = re.search(r'HEED_VERSION_STRING "([^"]+)"', (here.parents[1] / "include/heed/version.hpp").read_text()).group(1)
version = release
language = "en"
extensions = ["myst_parser", "sphinx_copybutton", "katex", "furo_debian", "lexer", "breaks"]
source_suffix = {".md": "markdown"}
root_doc = "index"
highlight_language = "text"  # indented blocks are equations
smartquotes = False
nitpicky = False

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
myst_dmath_allow_labels = False
suppress_warnings = ["myst.header"]  # a page may begin with a second-level heading, as parts of docstrings do

html_theme = "furo"
html_title = f"heed {release}"
html_static_path = [str(here / "static")]
html_extra_path = [os.environ["HEED_SITE_EXTRA"]] if "HEED_SITE_EXTRA" in os.environ else []
html_css_files = ["heed.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False
html_search_scorer = str(here / "search.js")
html_use_index = False
html_domain_indices = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1864ab", "color-brand-content": "#1864ab"},
    "dark_css_variables": {"color-brand-primary": "#74c0fc", "color-brand-content": "#74c0fc"},
}
pygments_style = "light.Light"
pygments_dark_style = "github-dark"

copybutton_selector = "div:not(.highlight-text):not(.output) > div.highlight > pre"
