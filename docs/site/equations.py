# SPDX-License-Identifier: BSD-3-Clause
"""Equations as the repository's Markdown writes them, in Unicode and indented, as HTML that KaTeX sets.

    α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, eq. 6-8

A block is a grid of rows: what stands before the equation (a name), its left side, the rest, and what stands behind three
spaces (a source). Words between are text. Each piece of mathematics is a span with the LaTeX in data-tex; its own text stays
as it was written, for readers without scripts and for the search. A block that is not understood is None, and stays as it is.

Fractions: `a / b` between spaces, of the products on both sides; `a/b` stays in the line. A function is a name before a
parenthesis. Limits: Σ_{k=1..n}, Σ_{k=1}^n, Σ_k.
"""

import html
import re
import unicodedata
from dataclasses import dataclass, field

GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΦΨΩϕϵ", """alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu
xi pi rho sigma tau upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Phi Psi Omega phi epsilon""".split()))
SIGNS = {"∂": r"\partial", "∇": r"\nabla", "ℓ": r"\ell", "∞": r"\infty", "…": r"\ldots", "⋯": r"\cdots", "½": r"\tfrac12", "¼": r"\tfrac14", "∅": r"\emptyset"}
RELATIONS = {"=": "=", "≈": r"\approx", "∝": r"\propto", "←": r"\leftarrow", "→": r"\to", "~": r"\sim", "≤": r"\le", "≥": r"\ge", "≠": r"\ne",
             "<": "<", ">": ">", "∈": r"\in", "+=": r"\mathrel{+}=", "-=": r"\mathrel{-}=", "−=": r"\mathrel{-}=", "->": r"\to", "≡": r"\equiv", "<=": r"\le", ">=": r"\ge"}
SUMS = {"+": "+", "-": "-", "−": "-", "±": r"\pm", "⊕": r"\oplus"}
PRODUCTS = {"·": r"\cdot", "×": r"\times", "⊙": r"\odot", "∗": "*", "*": "*", "∘": r"\circ", "⊗": r"\otimes", "∩": r"\cap", "∪": r"\cup"}
LARGE = {"Σ": r"\sum", "∑": r"\sum", "Π": r"\prod", "∏": r"\prod", "∫": r"\int"}
FUNCTIONS = {"exp", "log", "tanh", "max", "min", "sin", "cos", "ln"}
OTHER_FUNCTIONS = {"softmax", "argmax", "argmin", "logaddexp", "sigmoid", "relu"}
ABOVE = dict(zip("ᵀ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱᵈ", [r"\top", *"0123456789+-nid"]))
BELOW = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₖₜₙ", "0123456789+-ijktn"))
MARKS = {"\u0303": r"\tilde", "\u0302": r"\hat", "\u0304": r"\bar", "\u0305": r"\bar"}
PAIRS = {"(": ")", "[": "]", "⌈": "⌉", "⌊": "⌋", "|": "|", "‖": "‖"}
DELIMITERS = {"⌈": r"\lceil", "⌉": r"\rceil", "⌊": r"\lfloor", "⌋": r"\rfloor", "‖": r"\Vert", "|": r"\vert"}

TOKEN = re.compile(r"""
    (?P<space>\ +) | (?P<quote>"[^"]*"|§[\d.]*\d|(?<=\ )&(?=\ )|`[^`]*`) | (?P<code>[a-z]\w*(?:::\w+)+|\w+(?:/\w+)*\.hpp) | (?P<name>[A-Za-z]{2,}(?:_[A-Za-z]{2,})+(?!\w)) | (?P<range>\d+[-–]\d+(?![\w^])|[A-Z](?:\.\d+)+)
  | (?P<number>\d+(?:\.\d+)?) | (?P<word>(?:[α-ω]-|[a-z]-(?=[a-z]{4}))?[A-Za-zÀ-ž]{2,}(?:\d[A-Z](?!\w))?(?:[-'’][A-Za-zÀ-ž][A-Za-z0-9]+|['’]s\b|-[A-Z]{1,2}\d?\b|-\d+\b|['’](?=\ [a-z]{3}))*)
  | (?P<indexed>[A-Z]\d+(?![A-Za-z0-9_.])) | (?P<letter>(?:(?<=[ (\[])[←→](?=[A-Za-z]))?[A-Za-zα-ωΑ-ΟΡΤ-Ωϕϵ∂∇ℓ∞½¼∅…⋯][\u0302-\u0305]?)
  | (?P<op>\+=|[-−]=|->|<=|>=|[=≈∝←→~≤≥≠<>∈≡+\-−±⊕·×⊙∗*∘⊗∩∪/]) | (?P<large>[Σ∑Π∏∫]) | (?P<root>√) | (?P<script>[_^]) | (?P<prime>['′]+)
  | (?P<above>[ᵀ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱᵈ]+) | (?P<below>[₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₖₜₙ]+) | (?P<open>[(\[⌈⌊]) | (?P<close>[)\]⌉⌋]) | (?P<bar>[|‖])
  | (?P<point>[,;:.?!{}])
""", re.X)
PROSE, MATHS = "prose", "maths"


class NotUnderstood(Exception):
    pass


@dataclass
class Node:
    kind: str
    text: str
    inside: list = field(default_factory=list)  # of a group
    below: str = ""
    above: str = ""
    primes: str = ""
    begin: int = 0
    end: int = 0


# ---- from text to nodes ---------------------------------------------------------------------------------------------------


def tokens(text: str) -> list:
    found, at = [], 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if not match:
            raise NotUnderstood(text[at:at + 10])
        found.append((match.lastgroup, match.group(0), at))
        at = match.end()
    return found


class Parser:
    def __init__(self, text: str):
        self.text, self.at = re.sub(r"-inf\b", "-∞", text.replace("...", "…")), 0
        # A letter with its mark in one character, as two.
        self.text = re.sub(r"(?<![^\W\d_])[^\W\d_](?![^\W\d_])", lambda m: unicodedata.normalize("NFD", m.group(0)), self.text)
        self.tokens = tokens(self.text)

    def nodes(self, close: str = "") -> list[Node]:
        found: list[Node] = []
        while self.at < len(self.tokens):
            kind, text, begin = self.tokens[self.at]
            self.at += 1
            if text == close and (kind == "close" or kind == "bar" and not self.opens_bar(found)):
                return found
            node = Node(kind, text, begin=begin)
            if kind in ("script", "above", "below", "prime"):
                if not found or found[-1].kind in ("space", "op", "point", "quote", "range"):
                    raise NotUnderstood("a script of nothing")
                self.put_script(found[-1], kind, text)
                found[-1].end = self.place()
                continue
            if kind in ("open", "bar"):
                node.kind = "group"
                node.inside = self.nodes(PAIRS[text])
            elif kind == "close" or text in ("{", "}"):
                raise NotUnderstood(text)
            node.end = self.place()
            found.append(node)
        if close:
            raise NotUnderstood(f"no {close}")
        return found

    def place(self) -> int:
        return self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text)

    def opens_bar(self, before: list[Node]) -> bool:
        """Within bars, another bar closes them unless nothing, or an operation, stands before it."""
        real = [n for n in before if n.kind != "space"]
        return not real or real[-1].kind in ("op", "large")

    def put_script(self, node: Node, kind: str, text: str) -> None:
        if kind == "prime":
            node.primes += "'" * len(text)
        elif kind == "above":
            node.above += " ".join(ABOVE[c] for c in text)
        elif kind == "below":
            node.below += "".join(BELOW[c] for c in text)
        elif text == "_":
            node.below += (r"\," if node.below else "") + self.argument(node)
        else:
            node.above += (r"\," if node.above else "") + self.argument(node)

    def argument(self, node: Node) -> str:
        """What stands behind _ or ^: {…}, (…), a word, a letter or a number."""
        if self.at >= len(self.tokens):
            raise NotUnderstood("nothing behind _ or ^")
        kind, text, begin = self.tokens[self.at]
        if text in ("{", "("):
            depth, end = 0, begin
            for end in range(begin, len(self.text)):
                depth += (self.text[end] == text) - (self.text[end] == {"{": "}", "(": ")"}[text])
                if depth == 0:
                    break
            else:
                raise NotUnderstood("a script does not end")
            inner = self.text[begin + 1:end]
            while self.at < len(self.tokens) and self.tokens[self.at][2] <= end:
                self.at += 1
            limits = re.fullmatch(r"(\w+ ?= ?.+?)\.\.(.+)", inner)
            if limits and node.kind == "large":
                node.above += latex(Parser(limits.group(2)).nodes(), True)
                inner = limits.group(1)
            return latex(Parser(inner.replace("..", "…")).nodes(), True)
        match = re.compile(r"[A-Za-z0-9α-ωΑ-Ω¼½]+" + ("['′]*" if node.kind == "large" else "") + "|∗").match(self.text, begin)
        if not match:
            raise NotUnderstood(self.text[begin:begin + 5])
        while self.at < len(self.tokens) and self.tokens[self.at][2] < match.end():
            self.at += 1
        if self.place() > match.end():  # the last token goes on, as in W_a's
            raise NotUnderstood(self.text[begin:begin + 10])
        index = match.group(0)
        if re.fullmatch(r"(?![ijkstdbn]{3}$)[A-Za-z]{3,}|[A-Z]{2,}|in|up|to", index):
            return rf"\mathrm{{{index}}}"
        index = index.replace("½", "1/2").replace("¼", "1/4")
        return "".join(rf"\{GREEK[c]} " if c in GREEK else SIGNS.get(c, "*" if c == "∗" else c) for c in index)


# ---- from nodes to LaTeX -----------------------------------------------------------------------------------------------------


def scripted(node: Node, base: str) -> str:
    below = f"_{{{node.below}}}" if node.below else ""
    if node.above:
        return base + below + "^{" + r"\prime " * len(node.primes) + node.above + "}"
    return base + node.primes + below


def one(node: Node, small: bool, called: bool = False) -> str:
    """LaTeX of a node without its neighbors. `called`: a parenthesis follows it."""
    kind, text = node.kind, node.text
    if kind == "group":
        inner = latex(node.inside, small)
        first, last = DELIMITERS.get(text, text), DELIMITERS.get(PAIRS[text], PAIRS[text])
        if re.search(r"\\frac|\\sum|\\prod", inner) and not small:
            return scripted(node, rf"\left{first} {inner} \right{last}")
        if text in "|‖":
            return scripted(node, f"\\l{first[1:]} {inner}\\r{first[1:]} ")
        return scripted(node, f"{first} {inner}{last} " if first[0] == "\\" else f"{first}{inner}{last}")
    if kind == "name":
        return scripted(node, rf"\mathrm{{{text}}}".replace("_", r"\_"))
    if kind == "word":
        if small and text in ("in", "of", "or", "to"):
            return rf"\ \text{{{text}}}\ "
        if small and not called and re.fullmatch("[a-z]{2}", text) and not (node.below or node.above):
            return text  # two indices
        if text in FUNCTIONS:
            return scripted(node, "\\" + text) + " "
        name = text if re.fullmatch(r"\w+", text) else rf"\text{{{text}}}"
        if text[0] in GREEK and text[1] == "-":
            name = rf"\{GREEK[text[0]]}\text{{{text[1:]}}}"
        return scripted(node, rf"\operatorname{{{name}}}" if called or text in OTHER_FUNCTIONS else rf"\mathrm{{{name}}}")
    if kind == "indexed":
        return scripted(Node(kind, text, below=text[1:] + (r"\," + node.below if node.below else ""), above=node.above, primes=node.primes), text[0])
    if kind == "letter":
        if text[0] in "←→":
            return scripted(node, rf"\over{'left' if text[0] == '←' else 'right'}arrow{{{text[1:]}}}")
        letter = rf"\{GREEK[text[0]]} " if text[0] in GREEK else SIGNS[text[0]] + " " if text[0] in SIGNS else text[0]
        return scripted(node, f"{MARKS[text[1]]}{{{letter.strip()}}}" if text[1:] else letter)
    if kind == "number":
        return scripted(node, text)
    if kind == "large":
        return scripted(node, LARGE[text]) + " "
    if kind == "op":
        if text == "/":
            return "/"
        return f" {RELATIONS.get(text) or SUMS.get(text) or PRODUCTS[text]} "
    if kind == "point" and text in ",;:.":
        return {",": ",", ";": r";\,", ":": r"{:}\," if small else "{:}", ".": "."}[text]
    raise NotUnderstood(text)


def is_op(node: Node, *which) -> bool:
    return node.kind == "op" and any(node.text in each for each in which)


def without_parentheses(nodes: list[Node]) -> list[Node]:
    real = [n for n in nodes if n.kind != "space"]
    if len(real) == 1 and real[0].kind == "group" and real[0].text == "(" and not (real[0].below or real[0].above or real[0].primes):
        return real[0].inside
    return real


def factor_at(nodes: list[Node], at: int) -> int:
    """The end of the factor that begins there: what follows without a space, and all behind a sum."""
    end = at
    while end < len(nodes) and nodes[end].kind == "space":
        end += 1
    sums = False
    while end < len(nodes):
        node = nodes[end]
        if is_op(node, RELATIONS, SUMS, "/") or node.kind == "point" or (node.kind == "space" and not sums):
            break
        sums = sums or node.kind == "large" or node.kind == "word" and node.text in FUNCTIONS
        end += 1
    return end


def latex(nodes: list[Node], small: bool = False) -> str:
    """`small`: in a script, where fractions stay in the line and words are short."""
    out: list[tuple[str, Node | None]] = []  # pieces since the last delimiter are the numerator
    start, at = 0, 0
    while at < len(nodes):
        node = nodes[at]
        spaced = 0 < at < len(nodes) - 1 and nodes[at - 1].kind == nodes[at + 1].kind == "space"
        if is_op(node, "/") and spaced and not small:
            above = [n for _, n in out[start:] if n]
            while above and above[0].kind == "space":
                above.pop(0)
            if above and above[0].kind == "large":  # Σ_k a / b is the sum of a / b
                above.pop(0)
            end = factor_at(nodes, at + 1)
            below, behind = nodes[at + 1:end], [n for n in nodes[end:] if n.kind != "space"]
            if below and below[-1].kind == "word" and behind and behind[0].kind == "word" and behind[0].text not in FUNCTIONS:
                raise NotUnderstood("several words below a fraction")
            if not above or not without_parentheses(below):
                raise NotUnderstood("a fraction of nothing")
            del out[len(out) - len(above):]
            fraction = rf"\frac{{{latex(without_parentheses(above))}}}{{{latex(without_parentheses(below))}}}"
            out.append((fraction, Node("done", fraction)))
            at = end
            continue
        if node.kind == "space":
            out.append(("", node))
        elif node.kind == "done":
            out.append((node.text, node))
        elif node.kind == "root" or node.text == "sqrt" and at + 1 < len(nodes) and nodes[at + 1].kind == "group" and not nodes[at + 1].above:
            end = factor_at(nodes, at + 1)
            group = nodes[at + 1:at + 2] if at + 1 < end and nodes[at + 1].kind == "group" else nodes[at + 1:end]
            if not group:
                raise NotUnderstood("a root of nothing")
            root = rf"\sqrt{{{latex(without_parentheses(group), small)}}}"
            out.append((root, Node("done", root)))
            at += 1 + len(group)
            continue
        else:
            called = at + 1 < len(nodes) and nodes[at + 1].kind == "group" and nodes[at + 1].text in "(|"
            last = next((n for _, n in reversed(out) if n.kind != "space"), None)
            gap = ""
            if last and last.kind in ("word", "name") and nodes[at - 1].kind == "space" and last.text not in FUNCTIONS | OTHER_FUNCTIONS:
                gap = r"\ " if node.kind in ("word", "name") else r"\," if node.kind in ("letter", "indexed", "large") else ""
            if last and last.kind == node.kind == "group" and last.text in "|‖" and node.text in "|‖":
                gap = r"\,"
            out.append((gap + one(node, small, called), node))
            if is_op(node, RELATIONS, SUMS) or node.kind == "point":
                start = len(out)
        at += 1
    text = "".join(piece for piece, _ in out)
    return re.sub(r" +", " ", text).strip()


# ---- what is mathematics, and what are words ----------------------------------------------------------------------------------


def marked(nodes: list[Node]) -> list[str]:
    """PROSE or MATHS for each node of a line."""
    kinds = [""] * len(nodes)

    def near(i: int, step: int) -> int:
        j = i + step
        while 0 <= j < len(nodes) and nodes[j].kind == "space":
            j += step
        return j if 0 <= j < len(nodes) else -1

    def is_maths(j: int) -> bool:
        return j >= 0 and kinds[j] == MATHS

    for i, node in enumerate(nodes):
        has_script = bool(node.below or node.above or node.primes)
        before, after = near(i, -1), near(i, 1)
        called = i + 1 < len(nodes) and nodes[i + 1].kind == "group" and nodes[i + 1].text in "(["
        sign = after >= 0 and is_op(nodes[after], "-−") and nodes[after - 1].kind == "space" and nodes[after + 1:after + 2] != [] and (
            nodes[after + 1].kind != "space")  # from -1 to 1
        op_before, op_after = before >= 0 and nodes[before].kind == "op", after >= 0 and nodes[after].kind == "op" and not sign
        beside_op = op_before or op_after
        if node.kind == "word" and op_before != op_after:  # not in `= the pixels`
            other = nodes[after if op_before else before] if (after if op_before else before) >= 0 else None
            beside_op = not (other and other.kind == "word" and other.text not in FUNCTIONS | OTHER_FUNCTIONS and not (other.below or other.above)
                             and not (op_before and after + 1 < len(nodes) and nodes[after + 1].kind == "group"))
        if node.kind in ("quote", "code", "range"):
            kinds[i] = PROSE
        elif i > 0 and nodes[i - 1].text in ("∂", "∇"):
            kinds[i] = MATHS
        elif node.kind in ("word", "name"):
            applied = node.text in FUNCTIONS | OTHER_FUNCTIONS and after >= 0 and (
                nodes[after].kind in ("letter", "large", "group", "root", "indexed"))
            kinds[i] = MATHS if has_script or called or beside_op or applied else PROSE
        elif node.kind == "letter":
            article = node.text in "aAI" and not has_script and after >= 0 and nodes[after].kind == "word" and not (
                after + 1 < len(nodes) and nodes[after + 1].kind == "group") and not nodes[after].below
            kinds[i] = PROSE if article and not beside_op or node.text == "…" and not beside_op and not is_maths(before) else MATHS
        elif node.kind == "group":
            words = any(n.kind in ("word", "range", "quote") and n.text not in FUNCTIONS for n in node.inside) and not any(n.kind == "op" for n in node.inside)
            attached = i > 0 and kinds[i - 1] == MATHS
            alone = [n.kind for n in node.inside] in (["indexed"], ["letter"]) and before >= 0 and kinds[before] == PROSE
            kinds[i] = PROSE if (words and not attached or alone) and not has_script else MATHS
        elif node.kind in ("op", "large", "root"):
            kinds[i] = MATHS
        elif node.kind == "indexed":
            alone = not (beside_op or has_script or is_maths(before)) and (before < 0 or kinds[before] == PROSE or nodes[before].kind == "point")
            kinds[i] = PROSE if alone and (after < 0 or nodes[after].kind in ("point", "word")) else MATHS
        elif node.kind == "number":
            maths = beside_op or has_script or is_maths(before) or after >= 0 and nodes[after].kind in ("letter", "root", "large", "indexed")
            kinds[i] = MATHS if maths else PROSE
        elif node.kind == "point" and node.text in ".?!":
            kinds[i] = PROSE
    for i, node in enumerate(nodes):
        if node.kind == "point" and not kinds[i]:
            both = is_maths(near(i, -1)) and is_maths(near(i, 1))
            kinds[i] = MATHS if both and node.text == "," and not (i + 1 < len(nodes) and len(nodes[i + 1].text) > 1 and nodes[i + 1].kind == "space") else PROSE
    for i, node in enumerate(nodes):
        if node.kind == "space":
            kinds[i] = MATHS if is_maths(i - 1) and i + 1 < len(nodes) and kinds[i + 1] == MATHS and len(node.text) < 2 else PROSE
    return kinds


def span(tex: str, text: str) -> str:
    return f'<span class="katex-source" data-tex="{html.escape(tex)}">{html.escape(text.strip(), quote=False)}</span>'


def prose(node: Node, text: str) -> str:
    if node.kind == "space":
        return "\u2002 " if len(node.text) > 1 else " "  # wider, and a place to break
    if node.kind == "group":
        inner = text[node.begin + 1:node.end].rstrip()
        return html.escape(text[node.begin]) + mixed(inner[:-1]) + html.escape(inner[-1])
    written = html.escape(text[node.begin:node.end], quote=False)
    return f"<code>{written.strip('`')}</code>" if node.kind in ("code", "name") or written[:1] == "`" else written


def mixed(text: str, before: str = "") -> str:
    """A line as HTML: words as they are, mathematics in spans. `before`: LaTeX that begins the first piece."""
    parser = Parser(text)
    nodes, text = parser.nodes(), parser.text
    kinds = marked(nodes)
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
    """All of it as one piece of mathematics."""
    return span(r"\displaystyle " + latex(Parser(text).nodes()), text)


def sides(text: str) -> tuple[str, str] | None:
    """An equation at its first relation: `b = c` is ("b", "= c")."""
    parser = Parser(text)
    nodes, text = parser.nodes(), parser.text
    kinds = marked(nodes)
    for i, node in enumerate(nodes):
        if is_op(node, RELATIONS):
            return (text[:node.begin].strip(), text[node.begin:]) if i and all(k == MATHS for k in kinds[:i]) else None
        if kinds[i] == PROSE and node.kind != "space":
            return None
    return None


# ---- blocks -------------------------------------------------------------------------------------------------------------------

RELATION = re.compile(r"(?<=[^\s=]) (?:=|≈|∝|←|~|[-−+]=|≤|≥|∈|≡) (?=\S)")
REFUSED = re.compile(r"[\\$&#@%{]\s*$|^(?!.*\S {3,}\S).*;\s*$|[─-╿█▓▒░◆]|--|\b(?:auto|const|template|return|using|struct)\b|//|=\"|</|\{\}|\w/\w+/|https?:|->\s*\{|\b0x|(?<![/\w])[\w:]*[A-Za-z]\.(?!hpp\b)[a-z]{2,}")


def segments(line: str) -> list[tuple[int, str]]:
    """The parts of a line that three spaces separate, with their columns; spaces that align a relation do not count, and those
    behind a comma or a colon do not where more mathematics follows."""
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
        if len(row) == 1 and rows:  # does the note of the row before go on?
            column, text = row[0]
            if note_at > 0 and abs(column - note_at) <= (2 if at is None else 0) or at is None and not rows[-1][2] and column >= 24:
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
    """A block of lines as HTML, in one line; None if it is no equation, or one that is not understood."""
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
