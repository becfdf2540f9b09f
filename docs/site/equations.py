# SPDX-License-Identifier: BSD-3-Clause
"""Converts equations in Unicode, as in the repository's Markdown and comments, to HTML for KaTeX.

    α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, eq. 6-8

A block is a grid of rows: a label before the equation, its left side, the rest, and a note after three spaces (a source).
Words between are text. Each formula is a span with its LaTeX, from maths.py, in data-tex. Its text stays as written, for
readers without scripts and for the search. A block that cannot be parsed is None, and stays as it is.
"""

import html
import re

from maths import FUNCTIONS, OF_LATEX, RELATIONS, Node, NotUnderstood, Parser, is_group, is_op, latex

PROSE, MATHS = "prose", "maths"

# ---- mathematics and words ----------------------------------------------------------------------------------------------------


class Line:
    """The nodes of a line, and for each whether it is PROSE or MATHS: letters, operations and their neighbors are mathematics,
    a word alone is prose."""

    def __init__(self, nodes: list[Node]):
        self.nodes, self.kinds = nodes, [""] * len(nodes)
        for i, node in enumerate(nodes):
            self.kinds[i] = self.kind_of(i, node)
        for i, node in enumerate(nodes):
            if node.kind == "point":
                self.kinds[i] = MATHS if self.separates(i, node) else PROSE
        for i, node in enumerate(nodes):
            if node.kind == "space":
                within = self.is_maths(i - 1) and i + 1 < len(nodes) and self.is_maths(i + 1)
                self.kinds[i] = MATHS if within and len(node.text) < 2 else PROSE

    def near(self, i: int, step: int) -> int:
        """The index of the previous or next node, without spaces; -1 if none."""
        j = i + step
        while 0 <= j < len(self.nodes) and self.nodes[j].kind == "space":
            j += step
        return j if 0 <= j < len(self.nodes) else -1

    def is_maths(self, j: int) -> bool:
        return j >= 0 and self.kinds[j] == MATHS

    def is_kind(self, j: int, *kinds: str) -> bool:
        return j >= 0 and self.nodes[j].kind in kinds

    def is_sign(self, j: int) -> bool:
        """A minus as in `from -1 to 1`."""
        spaced = j + 1 == len(self.nodes) or self.is_kind(j + 1, "space")
        return is_op(self.nodes[j], "-−") and self.is_kind(j - 1, "space") and not spaced

    def is_plain_word(self, j: int) -> bool:
        return self.is_kind(j, "word") and self.nodes[j].text not in FUNCTIONS and not (self.nodes[j].below or self.nodes[j].above)

    def beside_op(self, i: int, node: Node) -> bool:
        before, after = self.near(i, -1), self.near(i, 1)
        op_before, op_after = self.is_kind(before, "op"), self.is_kind(after, "op") and not self.is_sign(after)
        if node.kind == "word" and op_before and not op_after:  # not in `= the pixels`
            return not self.is_plain_word(after) or is_group(self.nodes, after + 1)
        if node.kind == "word" and op_after and not op_before:
            return not self.is_plain_word(before)
        return op_before or op_after

    def kind_of(self, i: int, node: Node) -> str:
        before, after = self.near(i, -1), self.near(i, 1)
        beside_op = self.beside_op(i, node)
        if node.kind in ("quote", "code", "range"):
            return PROSE
        if i > 0 and self.nodes[i - 1].text in ("∂", "∇"):
            return MATHS
        if node.kind in ("word", "name"):
            applied = node.text in FUNCTIONS and self.is_kind(after, "letter", "large", "group", "root", "indexed")
            return MATHS if node.has_script or is_group(self.nodes, i + 1, "([") or beside_op or applied else PROSE
        if node.kind == "letter":
            if node.text == "…":
                return MATHS if beside_op or self.is_maths(before) else PROSE
            article = node.text in "aAI" and not (node.has_script or beside_op) and self.is_kind(after, "word")
            return PROSE if article and not self.nodes[after].below and not is_group(self.nodes, after + 1) else MATHS
        if node.kind == "group":
            words = any(n.kind in ("word", "range", "quote") and n.text not in OF_LATEX for n in node.inside)
            words = words and not any(n.kind == "op" for n in node.inside) and not self.is_maths(i - 1)
            alone = node.text == "(" and [n.kind for n in node.inside] in (["indexed"], ["letter"])  # (T5)
            alone = alone and before >= 0 and self.kinds[before] == PROSE
            return PROSE if (words or alone) and not node.has_script else MATHS
        if node.kind == "indexed":  # a name, as T5
            alone = not (beside_op or node.has_script or self.is_maths(before))
            return PROSE if alone and (after < 0 or self.is_kind(after, "point", "word")) else MATHS
        if node.kind == "number":
            factor = self.is_maths(before) or self.is_kind(after, "letter", "root", "large", "indexed")
            return MATHS if beside_op or node.has_script or factor else PROSE
        return MATHS if node.kind in ("op", "large", "root") else ""

    def separates(self, i: int, node: Node) -> bool:
        """A comma between two adjacent formulas."""
        apart = i + 1 < len(self.nodes) and self.is_kind(i + 1, "space") and len(self.nodes[i + 1].text) > 1
        return node.text == "," and not apart and self.is_maths(self.near(i, -1)) and self.is_maths(self.near(i, 1))


def span(tex: str, text: str) -> str:
    return f'<span class="katex-source" data-tex="{html.escape(tex)}">{html.escape(text.strip(), quote=False)}</span>'


def prose(node: Node, text: str) -> str:
    if node.kind == "space":
        return "\u2002 " if len(node.text) > 1 else " "  # wider, and a possible line break
    if node.kind == "group":
        inner = text[node.begin + 1:node.end].rstrip()
        return html.escape(text[node.begin]) + mixed(inner[:-1]) + html.escape(inner[-1])
    written = html.escape(text[node.begin:node.end], quote=False)
    return f"<code>{written.strip('`')}</code>" if node.kind in ("code", "name") or written[:1] == "`" else written


def mixed(text: str, before: str = "") -> str:
    """A line as HTML: words unchanged, mathematics in spans. `before`: LaTeX to prepend to the first formula."""
    parser = Parser(text)
    nodes, text = parser.nodes(), parser.text
    kinds = Line(nodes).kinds
    out, i = [], 0
    while i < len(nodes):
        j = i
        while j < len(nodes) and kinds[j] == kinds[i]:
            j += 1
        if kinds[i] == MATHS:
            out.append(span(before + r"\displaystyle " + latex(nodes[i:j]), text[nodes[i].begin:nodes[j - 1].end]))
        else:
            out += [prose(node, text) for node in nodes[i:j]]
        before = ""
        i = j
    return "".join(out)


def whole(text: str) -> str:
    """All of it as one formula."""
    return span(r"\displaystyle " + latex(Parser(text).nodes()), text)


def sides(text: str) -> tuple[str, str] | None:
    """An equation at its first relation: `b = c` is ("b", "= c")."""
    parser = Parser(text)
    nodes, text = parser.nodes(), parser.text
    kinds = Line(nodes).kinds
    for i, node in enumerate(nodes):
        if is_op(node, RELATIONS):
            return (text[:node.begin].strip(), text[node.begin:]) if i and all(k == MATHS for k in kinds[:i]) else None
        if kinds[i] == PROSE and node.kind != "space":
            return None
    return None


# ---- blocks -------------------------------------------------------------------------------------------------------------------

RELATION = re.compile(r"(?<=[^\s=]) (?:=|≈|∝|←|~|[-−+]=|≤|≥|∈|≡) (?=\S)")
REFUSED = re.compile(r"""
    [\\$&\#@%{]\s*$ | ^(?!.*\S\ {3,}\S).*;\s*$ | \{\} | // | ="  # code
  | \b(?:auto|const|template|return|using|struct)\b | \b0x
  | (?<![/\w])[\w:]*[A-Za-z]\.(?!hpp\b)[a-z]{2,}               # state.score
  | -- | \w/\w+/ | https?: | </                                  # commands, paths, HTML
  | [─-╿█▓▒░◆]                                                   # pictures of text
""", re.X)


def segments(line: str) -> list[tuple[int, str]]:
    """The parts of a line that three spaces separate, with their columns. Spaces that align a relation do not count, nor do
    those after a comma or a colon if more mathematics follows."""
    line = re.sub(r" {2,}(?=(?:=|≈|∝|←|~|[-−+]=) )", lambda m: " " + "\0" * (len(m.group(0)) - 1), line)
    found: list[tuple[int, str]] = []
    for match in re.finditer(r"\S+(?: {1,2}\S+)*", line):
        text = match.group(0).replace("\0", "")
        if found and re.search(r"[,:]$", found[-1][1]) and (RELATION.search(text) or re.search(r"[\^_]\S*", text)):
            found[-1] = (found[-1][0], f"{found[-1][1]}  {text}")
        else:
            found.append((match.start(), text))
    return found


def rows_of(lines: list[str]) -> list[list]:
    """[label, equation, note] of each row."""
    parts = [segments(line) for line in lines if line.strip()]
    columns = {next((column for column, text in row if RELATION.search(text)), -1) for row in parts}
    rows, note_at = [], -1
    for row in parts:
        at = next((i for i, (_, text) in enumerate(row) if RELATION.search(text)), None)
        if len(row) == 1 and rows:  # does the note of the previous row continue?
            column, text = row[0]
            below_note = note_at > 0 and abs(column - note_at) <= (2 if at is None else 0)
            if below_note or at is None and not rows[-1][2] and column >= 24:
                rows[-1][2] = f"{rows[-1][2]}\n{text}".strip()
                continue
            if at is None and re.search(r"(?:,|\beq\.|\band|\bof)$", rows[-1][2]):
                rows[-1][2] += f" {text}"
                continue
        if at is None:
            at = next((i for i, (column, _) in enumerate(row) if column in columns and column > 0), 0)
        label, note = [t for _, t in row[:at]], [t for _, t in row[at + 1:]]
        note_at = row[at + 1][0] if note else -1
        rows.append([label[0] if label else "", row[at][1], "\n".join([*label[1:], *note])])
    return rows


def label_of(text: str) -> str:
    escaped = html.escape(text, quote=False)
    return f"<code>{escaped}</code>" if re.search(r"\w_\w{2,}|::", text) and " " not in text else escaped


def of_block(lines: list[str]) -> str | None:
    """A block of lines as HTML, in one line; None if it is not an equation, or cannot be parsed."""
    text = "\n".join(lines)
    if not RELATION.search(text) or any(REFUSED.search(line) for line in lines):
        return None
    try:
        cells = []
        for label, equation, note in rows_of(lines):
            parts = sides(equation)
            if parts:
                middle = f'<span class="left">{whole(parts[0])}</span><span class="right">{mixed(parts[1], "{}")}</span>'
            else:
                middle = f'<span class="both">{mixed(equation)}</span>'
            shown = "<br>".join(mixed(line) for line in note.split("\n") if line)
            cells.append(f'<span class="label">{label_of(label)}</span>{middle}<span class="note">{shown}</span>')
    except NotUnderstood:
        return None
    kind = "equations" if any(label for label, _, _ in rows_of(lines)) else "equations plain"
    return f'<div class="{kind}">' + "".join(cells) + "</div>"
