# SPDX-License-Identifier: BSD-3-Clause
"""One table of all operations: call, equation, shapes and derivative, from the docstrings."""

import re

import markdown
import pages
import synopsis
from names import Name
from site_map import SiteMap

SHAPE = re.compile(r"\[[^\]]*\]")


def object_of(type_: Name, names: list[Name]) -> Name | None:
    """`linear` for linear_op, if declared after it."""
    if type_.kind != "struct":
        return None
    for name in names:
        if name.kind == "variable" and name.scope == type_.scope and re.match(rf"inline constexpr {type_.name}(<>)? \w+$", name.text):
            return name
    return None


def type_of(name: Name) -> str | None:
    """heed::ops::linear_op of `linear`."""
    match = re.match(r"inline constexpr (\w+)(<.*>)? \w+$", name.text, re.S)
    return f"{name.scope}::{match.group(1)}" if match and name.kind == "variable" else None


def all_of(public: list[Name]) -> list[tuple[Name, Name | None, str]]:
    """(object, its type, its docstring), in the order of headers."""
    types = {n.full: n for n in public if n.is_type}
    found = []
    for name in public:
        type_ = types.get(type_of(name) or "")
        if name.scope != "heed::ops":
            continue
        if type_ is None or not any(m.name in ("forward", "each_move", "piece", "operator()", "shape") for m in type_.members) \
                and not name.doc and not re.search(r"∂|->", type_.doc):
            continue
        found.append((name, type_, name.doc or type_.doc))
    return found


def parts_of(doc: str) -> tuple[str, str, str]:
    """Equation, shapes and derivative of a docstring."""
    paragraphs, blocks, far = [], [], []
    paragraph: list[str] = []
    for line in doc.split("\n") + [""]:
        beside = re.match(r"(.*\S) {3,}(\S.*)$", line)
        if line.startswith("    "):
            blocks.append(re.sub(r" {3,}(on the tape|nothing for|see).*", "", line.strip()))
        elif beside and not line.startswith(" "):
            paragraph.append(beside.group(1))
            far.append(beside.group(2))
            paragraphs.append(" ".join(paragraph))
            paragraph = []
        elif line.strip():
            paragraph.append(line.strip())
        if not line.strip() and paragraph:
            paragraphs.append(" ".join(paragraph))
            paragraph = []
    derivative = [line for line in blocks + far if "∂" in line or line.startswith(("with ", "where "))]
    equations = [line for line in blocks if "∂" not in line and "=" in line and not line.startswith("with ")]
    first = paragraphs[0] if paragraphs else ""
    equation, shapes = split_shapes(first)
    if not shapes:
        for each in paragraphs:
            for sentence in re.split(r"(?<=\.) ", each):
                if "[" in sentence and ("->" in sentence or re.search(r"\b\w+ \[", sentence)) and sentence not in first:
                    shapes = shapes or sentence.rstrip(".")
    aside = [part for line in equations for part in re.split(r" {3,}", line)[1:] if SHAPE.search(part) and "=" not in part[:4]]
    equations = [part for part in (re.split(r" {3,}", line)[0] for line in equations) if "=" in part]
    if equations:
        equation = "\n".join(equations)
    if aside:
        shapes = " ".join(aside + ([shapes] if shapes.startswith("->") else []))
    return equation, shapes, "\n".join(derivative)


def split_shapes(text: str) -> tuple[str, str]:
    """Splits 'y = x W: x [...,K], W [K,N] -> [...,N]. More.' at the colon before the shapes."""
    for match in re.finditer(r"(?<=\S): (?=\S)", text):
        rest = text[match.end():]
        if SHAPE.search(rest.split(". ")[0]):
            return text[:match.start()], re.split(r"\. |\.$", rest)[0]
    return re.split(r"\. (?=[A-Z])|\.$", text)[0], ""


def cell(text: str) -> str:
    """In a table: lines stay lines, code keeps its backticks."""
    text = re.sub(r", {2,}|;  +", lambda m: m.group(0).strip() + "\n", text)
    return "<br>".join(markdown.on_spans(line, lambda c: c, markdown.escaped) for line in text.split("\n") if line.strip())


def incomplete(public: list[Name]) -> list[Name]:
    """Operations whose docstring lacks an equation, shapes or, unless they are choices, a derivative."""
    found = []
    for name, type_, doc in all_of(public):
        equation, shapes, derivative = parts_of(doc)
        if "=" not in equation or "[" not in shapes or not (derivative or is_choice(type_)):
            found.append(name)
    return found


def is_choice(type_: Name) -> bool:
    return any(member.name == "differentiable" and "false" in member.text for member in type_.members)


def write(site: SiteMap, public: list[Name]) -> None:
    page = "reference/operations"
    text = ["---", "hide-toc: true", "---", "", "# Operations", "",
            "The operations of policies, layers and losses: `ops::linear(x, W)`. Each runs on owning tensors, in a "
            "thread's workspace and on the tape. ∂x is the derivative of the loss with respect to x, and `∂x += …` is added to it "
            "in the backward pass. B is the batch, T source positions, S steps or queries; the other letters are sizes. "
            "Tensors with other shapes: each operation throws heed::shape_error before it writes anything.", "",
            "How to add one: [write an operation](../docs/how_to/write_an_operation.md).", "",
            "```{list-table}", ":class: operations", ":header-rows: 1", ":widths: 20 30 22 28", "",
            "* - call", "  - equation", "  - shapes", "  - derivative"]
    by_header: dict[str, list] = {}
    for each in all_of(public):
        by_header.setdefault(each[0].header, []).append(each)
    for header, operations in sorted(by_header.items(), key=lambda pair: order(pair[0])):
        title = title_of(header)
        text += [f"* - **{site.link(page, site.headers[header], title)}**", "  -", "  -", "  -"]
        for name, type_, doc in operations:
            equation, shapes, derivative = parts_of(doc)
            calls = "<br>".join(site.link(page, site.names[name.short], f"`{call}`") for call in synopsis.call_of(name, type_))
            if is_choice(type_):
                derivative = derivative or "none: a choice"
            text += [f"* - {calls}", f"  - {cell(equation)}", f"  - {cell(shapes)}", f"  - {cell(derivative)}"]
    text += ["```", ""]
    pages.put(site, page, "\n".join(text))


def title_of(header: str) -> str:
    """The name of a header as words, after its folder unless it is ops."""
    words = header.removesuffix(".hpp").removeprefix("heed/").removeprefix("ops/").replace("_", " ").replace("/", ": ")
    return "RMS norm" if words == "rms norm" else words.capitalize()


FIRST = ("elementwise", "products", "all_pairs", "sums", "softmax", "sparse", "masks", "parts", "embedding", "units", "recurrent",
         "layer_norm", "rms_norm", "losses")


def order(header: str) -> tuple[int, str]:
    """The most common operations come first."""
    stem = header.removeprefix("heed/ops/").removesuffix(".hpp")
    return (FIRST.index(stem) if stem in FIRST else len(FIRST), stem)
