# SPDX-License-Identifier: BSD-3-Clause
"""The colors of code on light pages: those of static/source.css. Each has a contrast of at least 4.5 to the background."""

from pygments.style import Style
from pygments.token import Comment, Keyword, Name, Number, Operator, String


class Light(Style):
    background_color = "#f6f8fa"
    styles = {
        Comment: "italic #59636e",
        Comment.Preproc: "noitalic #8250df",
        Comment.PreprocFile: "noitalic #0a6b3d",
        Keyword: "#8250df",
        Operator.Word: "#8250df",
        Name.Tag: "#0550ae",
        Name.Attribute: "#0550ae",
        Name.Variable: "#0550ae",
        Number: "#0550ae",
        String: "#0a6b3d",
    }
