# SPDX-License-Identifier: BSD-3-Clause
"""Converts mathematics in Unicode, found by equations.py, to LaTeX: `α_{t,j} = b_{t,j} / Σ_i b_{t,i}`.

- Scripts: e_j, W_{t-1,j}, x^{2m/d}, γ^(n-1), xᵀ, g², λ_init (a word is upright), c', h̃, →h.
- Fractions: `a / b` between spaces, of the products on both sides, without parentheses around them; `a/b` stays inline.
- Sums and products: Σ_k, Σ_{k<t}, Σ_{k=1}^n, Σ_{k=1..n}. They include the text that follows.
- A name before a parenthesis is a function; √ takes the factor after it; |x| and ‖x‖ are norms.
"""

import re
import unicodedata
from dataclasses import dataclass, field, replace

GREEK = dict(zip("αβγδεζηθικλμνξπρστυφχψωΓΔΘΛΞΦΨΩϕϵ", """alpha beta gamma delta varepsilon zeta eta theta iota kappa lambda mu nu
xi pi rho sigma tau upsilon varphi chi psi omega Gamma Delta Theta Lambda Xi Phi Psi Omega phi epsilon""".split()))
SIGNS = {"∂": r"\partial", "∇": r"\nabla", "ℓ": r"\ell", "∞": r"\infty", "…": r"\ldots", "⋯": r"\cdots",
         "½": r"\tfrac12", "¼": r"\tfrac14", "∅": r"\emptyset"}
RELATIONS = {"=": "=", "≈": r"\approx", "∝": r"\propto", "←": r"\leftarrow", "→": r"\to", "~": r"\sim", "≤": r"\le", "≥": r"\ge",
             "≠": r"\ne", "<": "<", ">": ">", "∈": r"\in", "+=": r"\mathrel{+}=", "-=": r"\mathrel{-}=", "−=": r"\mathrel{-}=",
             "->": r"\to", "≡": r"\equiv", "<=": r"\le", ">=": r"\ge"}
SUMS = {"+": "+", "-": "-", "−": "-", "±": r"\pm", "⊕": r"\oplus"}
PRODUCTS = {"·": r"\cdot", "×": r"\times", "⊙": r"\odot", "∗": "*", "*": "*", "∘": r"\circ", "⊗": r"\otimes", "∩": r"\cap",
            "∪": r"\cup"}
LARGE = {"Σ": r"\sum", "∑": r"\sum", "Π": r"\prod", "∏": r"\prod", "∫": r"\int"}
OF_LATEX = {"exp", "log", "tanh", "max", "min", "sin", "cos", "ln"}
FUNCTIONS = OF_LATEX | {"softmax", "argmax", "argmin", "logaddexp", "sigmoid", "relu"}  # needs no parenthesis to be one
ABOVE = dict(zip("ᵀ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱᵈ", [r"\top", *"0123456789+-nid"]))
BELOW = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₖₜₙ", "0123456789+-ijktn"))
MARKS = {"\u0303": r"\tilde", "\u0302": r"\hat", "\u0304": r"\bar", "\u0305": r"\bar"}
PAIRS = {"(": ")", "[": "]", "⌈": "⌉", "⌊": "⌋", "|": "|", "‖": "‖"}
DELIMITERS = {"⌈": r"\lceil", "⌉": r"\rceil", "⌊": r"\lfloor", "⌋": r"\rfloor", "‖": r"\Vert", "|": r"\vert"}

TOKEN = re.compile(r"""
    (?P<space>\ +)
  | (?P<quote>"[^"]*" | `[^`]*` | §[\d.]*\d | (?<=\ )&(?=\ ))
  | (?P<code>[a-z]\w*(?:::\w+)+ | \w+(?:/\w+)*\.hpp)
  | (?P<name>[A-Za-z]{2,}(?:_[A-Za-z]{2,})+(?!\w))                 # warm_up
  | (?P<range>\d+[-–]\d+(?![\w^]) | [A-Z](?:\.\d+)+)              # equations 6-8, appendix A.1
  | (?P<number>\d+(?:\.\d+)?)
  | (?P<word>(?:[α-ω]-|[a-z]-(?=[a-z]{4}))?                        # α-entmax, n-grams
        [A-Za-zÀ-ž]{2,}(?:\d[A-Z](?!\w))?                          # AttY2D
        (?:[-'’][A-Za-zÀ-ž][A-Za-z0-9]+ | ['’]s\b | -[A-Z]{1,2}\d?\b | -\d+\b | ['’](?=\ [a-z]{3}))*)  # DeepSeek-V2, word's
  | (?P<indexed>[A-Z]\d+(?![A-Za-z0-9_.]))                         # Q1
  | (?P<letter>(?:(?<=[ (\[])[←→](?=[A-Za-z]))?                    # →h
        [A-Za-zα-ωΑ-ΟΡΤ-Ωϕϵ∂∇ℓ∞½¼∅…⋯][\u0302-\u0305]?)
  | (?P<op>\+= | [-−]= | -> | <= | >= | [=≈∝←→~≤≥≠<>∈≡+\-−±⊕·×⊙∗*∘⊗∩∪/])
  | (?P<large>[Σ∑Π∏∫]) | (?P<root>√) | (?P<script>[_^]) | (?P<prime>['′]+)
  | (?P<above>[ᵀ⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿⁱᵈ]+) | (?P<below>[₀₁₂₃₄₅₆₇₈₉₊₋ᵢⱼₖₜₙ]+)
  | (?P<open>[(\[⌈⌊]) | (?P<close>[)\]⌉⌋]) | (?P<bar>[|‖]) | (?P<point>[,;:.?!{}])
""", re.X)


class NotUnderstood(Exception):
    pass


@dataclass
class Node:
    """A part of a line: a token, or a group in parentheses, with its scripts as LaTeX and its position in the text."""
    kind: str
    text: str
    inside: list = field(default_factory=list)  # of a group
    below: str = ""
    above: str = ""
    primes: str = ""
    begin: int = 0
    end: int = 0

    @property
    def has_script(self) -> bool:
        return bool(self.below or self.above or self.primes)


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
        # Split a letter with a diacritic into two characters.
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
        """Within bars, another bar closes them unless it comes first or follows an operation."""
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
        """The script after _ or ^: {…}, (…), a word, a letter or a number."""
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
        if self.place() > match.end():  # the last token continues, as in W_a's
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
        if small and not called and re.fullmatch("[a-z]{2}", text) and not node.has_script:
            return text  # two indices
        if text in OF_LATEX:
            return scripted(node, "\\" + text) + " "
        name = text if re.fullmatch(r"\w+", text) else rf"\text{{{text}}}"
        if text[0] in GREEK and text[1] == "-":
            name = rf"\text{{$\{GREEK[text[0]]}${text[1:]}}}"
        return scripted(node, rf"\operatorname{{{name}}}" if called or text in FUNCTIONS else rf"\mathrm{{{name}}}")
    if kind == "indexed":
        return scripted(replace(node, below=text[1:] + (r"\," + node.below if node.below else "")), text[0])
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


def is_group(nodes: list[Node], at: int, opening: str = "([|‖⌈⌊") -> bool:
    return at < len(nodes) and nodes[at].kind == "group" and nodes[at].text in opening


def is_op(node: Node, *which) -> bool:
    return node.kind == "op" and any(node.text in each for each in which)


def without_parentheses(nodes: list[Node]) -> list[Node]:
    real = [n for n in nodes if n.kind != "space"]
    if len(real) == 1 and real[0].kind == "group" and real[0].text == "(" and not real[0].has_script:
        return real[0].inside
    return real


def factor_at(nodes: list[Node], at: int) -> int:
    """The end of the factor that begins there: the text up to a space, and everything after a sum."""
    end = at
    while end < len(nodes) and nodes[end].kind == "space":
        end += 1
    sums = False
    while end < len(nodes):
        node = nodes[end]
        if is_op(node, RELATIONS, SUMS, "/") or node.kind == "point" or (node.kind == "space" and not sums):
            break
        sums = sums or node.kind == "large" or node.kind == "word" and node.text in OF_LATEX
        end += 1
    return end


def gap(last: Node | None, node: Node, before: Node) -> str:
    """The space between two norms, or between two factors if one is a word."""
    if last and last.kind == node.kind == "group" and last.text in "|‖" and node.text in "|‖":
        return r"\,"
    if last and last.kind in ("word", "name") and before.kind == "space" and last.text not in FUNCTIONS:
        return r"\ " if node.kind in ("word", "name") else r"\," if node.kind in ("letter", "indexed", "large") else ""
    return ""


def latex(nodes: list[Node], small: bool = False) -> str:
    """`small`: in a script, where fractions stay inline and words are short."""
    out: list[tuple[str, Node | None]] = []  # the parts since the last delimiter are the numerator
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
            if below and below[-1].kind == "word" and behind and behind[0].kind == "word" and behind[0].text not in OF_LATEX:
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
        elif node.kind == "root" or node.text == "sqrt" and is_group(nodes, at + 1) and not nodes[at + 1].has_script:
            end = factor_at(nodes, at + 1)
            group = nodes[at + 1:at + 2] if is_group(nodes, at + 1) else nodes[at + 1:end]
            if not group:
                raise NotUnderstood("a root of nothing")
            root = rf"\sqrt{{{latex(without_parentheses(group), small)}}}"
            out.append((root, Node("done", root)))
            at += 1 + len(group)
            continue
        else:
            last = next((n for _, n in reversed(out) if n.kind != "space"), None)
            out.append((gap(last, node, nodes[at - 1]) + one(node, small, is_group(nodes, at + 1, "(|")), node))
            if is_op(node, RELATIONS, SUMS) or node.kind == "point":
                start = len(out)
        at += 1
    text = "".join(part for part, _ in out)
    return re.sub(r" +", " ", text).strip()
