# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a comment: errors, shapes, equation and source, units.

Errors. A public function that throws has a comment "Throws heed::error if …", "Throws shape_error unless …" or "Throws
std::… if …": its own, its type's or the header's (above `namespace`). A comment that begins with "As above", and a missing
one, continue those of the overloads, one with "…" the one above, and an override has the comment of the virtual function. A
function throws if its body, or a function of the same header that is not public and that it calls, has `throw` or calls
require…, throw_…, rethrow_…, check_… or refuse. Exempt are `shape` and `piece` of operations if they throw shape_error only:
the page of the operations states it for all.

Shapes. A public function that takes a tensor has a shape, `[B,T]`, in its comment or in a trailing one; for a member, the
comment of its type or of another member suffices. "Any shape" and "any rank" are shapes. So has a function of a paper that
takes parameters.

Equation and source. In the folders FORMULAS, a type with `parameters` (a policy, a layer), a penalty and a function of a paper
have an equation: an indented line or, in the first paragraph, outside backticks. They have a source, author and year, in
their comment or the header's; or "No published source". Exempt are PASSIVE types, which compute nothing, functions that draw
the parameters of such an object, and masks, which are conditions on an index.

Units. A number with a word of QUANTITIES in its name has its unit (UNIT) in its name, its comment or, if that names it, the
comment of its type.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import declarations
from names import Name

CALL = r"(?:<[^()]*>)?\("
# A check without arguments is one of types.
THROWS = re.compile(rf"\bthrow\b|\b(?:require|refuse|(?:require|(?:re)?throw|check)_\w+){CALL}(?!\))")
OTHER_ERROR = re.compile(r"\bthrow (?:heed::)?error\b|\bthrow_error\b")
ERROR = re.compile(r"\b[Tt]hrows? `?(?:\w+::)*(?:\w+_\w+|error|exception|broken)\b")
FUNCTION = re.compile(r" *(?! |(?:return|throw|else|using|if|for|while|requires|static_assert|co_\w+)\b|//|#)"
                      r"(?:(?:[^=(\"]|decltype\(auto\))*[ *&])?(?!decltype|requires|operator|sizeof)(\w*[^\W_])\(")
TENSOR = re.compile(r"\btensor auto\b|\btensor [A-Z]")
PARAMETER = re.compile(r"[(,] ?auto (?!score\b|cell\b|layers\b)\w+")
SHAPE = re.compile(r"\[(?!0, ?1\])(?:\.\.\.|…|[A-Z]\w*'?|\d\w*|[dn]|heads)[,·+ \]]|\b[Aa]ny (?:shape|rank)\b")
FORMULAS = ("score", "normalize", "combine", "penalty", "heads", "nn", "pairs", "papers", "seq2seq")
PASSIVE = re.compile(r"identity|as_given|no_\w+|biases|\w+_start")
EQUATION = re.compile(r"(?<![<>!=])=(?!=)|←|∝| ~ ")
SOURCE = re.compile(r"\b[A-Z][\w'-]+,? (?:et al\.,? |and [A-Z][\w-]+,? )?\(?(?:19|20)\d\d\b|\bNo published source\b")
QUANTITIES = re.compile(r"(?:^|_)(?:time|timeout|interval|period|budget|deadline|duration|latency|delay|patience|capacity|memory|"
                        r"longest|shortest|length|limit|rate|ahead|max|min|most)(?:_(?!penalty)|$)")
UNIT = re.compile(r"\b(?:(?:milli|micro)?seconds?|ms|minutes|hours|bytes|[kMG]i?B|numbers?|bits|steps?|words?|subwords|tokens|"
                  r"positions?|characters|sentences|lines|rows?|tensors|updates?|epochs|links|per \w+|fraction|factor|probability|"
                  r"operations|axes|snapshots|learning rate|candidates|translations|classes|\d+ %|percent|no unit)\b|\[0,1[)\]]", re.I)
NUMBER = r"\b(?:double|float|int|long|T|std::size_t|std::u?int\d+_t)>? (\w+)"


def flat(text: str) -> str:
    return " ".join(text.split())


def comment(name: Name) -> str:
    return flat(" ".join([name.doc, *name.beside]))


def with_owners(names: list[Name], owners: tuple[Name, ...] = ()) -> Iterator[tuple[Name, tuple[Name, ...]]]:
    for name in names:
        yield name, owners
        yield from with_owners(name.members, (*owners, name))


def body(lines, first: int, name: str) -> str:
    """The code after the name: to the first line with the indentation of lines[first] that ends in ; or }, or the next ///."""
    indent = re.match(r" *", lines[first]).group(0)
    kept = []
    for line in lines[first:]:
        kept.append(re.sub(r'"(?:[^"\\]|\\.)*"', '""', declarations.without_comment(line)))
        if kept[-1].endswith((";", "}")) and not kept[-1].startswith(indent + " ") or line.startswith(indent + "///"):
            break
    return "\n".join(kept).split(f"{name}(", 1)[-1]


class Header:
    """The functions of a header that are not public, and the comments above its namespaces."""

    def __init__(self, path: Path, public: set[str]):
        self.lines = declarations.lines_of(path)
        self.about = flat(" ".join(declarations.comment_above(self.lines, i) for i, line in enumerate(self.lines)
                                   if re.match(r"(?:inline )?namespace (?!.*\bdetail\b)", line)))
        self.bodies: dict[str, str] = {}
        for i, line in enumerate(self.lines):
            match = FUNCTION.match(line)
            name = match.group(1) if match else ""
            if match and name not in public:
                self.bodies[name] = self.bodies.get(name, "") + body(self.lines, i, name)

    def code_of(self, name: Name) -> str:
        """The body of a function, and those of the functions that it calls."""
        code, added = body(self.lines, name.first - 1, name.name), set()
        while more := {called for called in re.findall(r"\b(\w+)" + CALL, code) if called in self.bodies} - added:
            added |= more
            code += "".join(self.bodies[called] for called in sorted(more))
        return code


def lacks_error(name: Name, owners: tuple[Name, ...], header: Header, comments: str) -> bool:
    if name.kind != "function" or name.is_guide:
        return False
    code = header.code_of(name)
    if name.scope.startswith("heed::ops::") and name.name in ("shape", "piece") and not OTHER_ERROR.search(code):
        return False
    stated = " ".join([comments, header.about, *(comment(owner) for owner in owners)])
    return THROWS.search(code) is not None and not ERROR.search(stated)


def lacks_shape(name: Name, owners: tuple[Name, ...], comments: str) -> bool:
    of_paper = name.header.startswith("heed/papers/") and PARAMETER.search(name.text)
    if name.kind != "function" or name.is_guide or not (of_paper or TENSOR.search(name.text)):
        return False
    stated = [comments, *(comment(each) for owner in owners for each in (owner, *owner.members))]
    return not any(SHAPE.search(each) for each in stated)


def has_formula(name: Name, owners: tuple[Name, ...]) -> bool:
    folder = name.header.split("/")[1]
    if folder not in FORMULAS or owners or name.scope.startswith("heed::ops"):
        return False
    if name.is_type:
        return any(member.name == "parameters" for member in name.members) and not PASSIVE.fullmatch(name.name)
    if name.kind != "function" or name.is_guide or re.search(r"random_source&|sizes&", name.text):
        return False
    return folder == "papers" or (folder == "penalty" and TENSOR.search(name.text) is not None)


def has_equation(doc: str) -> bool:
    first = re.sub(r"`[^`]*`", "", re.split(r"\n\s*\n", doc)[0])
    return any(EQUATION.search(text) for text in [first, *re.findall(r"^    (.*[^;\n])$", doc, re.M)])


def without_unit(name: Name, owners: tuple[Name, ...], stated: str) -> list[str]:
    """The numbers of a variable or function that lack a unit."""
    numbers = re.findall(NUMBER, flat(name.text)) if name.kind in ("variable", "function") else []
    if name.kind == "variable" and numbers:
        numbers = [name.name]  # not its neighbors in `int a, b;`

    def has_unit(number: str) -> bool:
        of_owners = [comment(owner) for owner in owners if re.search(rf"\b{number}\b", owner.doc)]
        return any(UNIT.search(text) for text in [number.replace("_", " "), stated, *of_owners])

    return [each for each in numbers if QUANTITIES.search(each) and not has_unit(each)]


def faults(public: list[Name], include: Path) -> list[str]:
    """file:line: the fault and its cure, of every public name."""
    every = list(with_owners(public))
    comments: dict[str, str] = {}
    virtual: dict[str, str] = {}
    for name, _ in every:
        comments[name.full] = comments.get(name.full, "") + " " + comment(name)
        if re.search(r"\bvirtual\b", name.text):
            virtual[name.name] = virtual.get(name.name, "") + " " + comment(name)
    in_header: dict[str, set[str]] = {}
    for name, _ in every:
        in_header.setdefault(name.header, set()).add(name.name)
    headers = {header: Header(include / header, names) for header, names in in_header.items()}
    found = []
    above = ""

    def fault(name: Name, text: str) -> None:
        found.append(f"include/{name.header}:{name.first}: {name.kind} {name.full} {text}")

    for name, owners in every:
        header, stated = headers[name.header], comment(name)
        if not name.doc or name.doc.startswith("As above"):
            stated = comments[name.full]
        if name.doc.startswith("…"):
            stated += above
        above = stated
        if re.search(r"\boverride\b", name.text):
            stated += virtual.get(name.name, "")
        if lacks_error(name, owners, header, stated):
            fault(name, "throws without documentation: add “Throws heed::error if …” or “Throws shape_error unless …” to its "
                  "comment or to that of its type")
        if lacks_shape(name, owners, stated):
            fault(name, "takes a tensor of unknown shape: add `// [B,T] -> [B,D]`, or the shape in words (“any shape”)")
        if has_formula(name, owners):
            if not name.doc.startswith("…") and not any(has_equation(each.doc) for each, _ in every if each.full == name.full):
                fault(name, "lacks an equation: add an indented line `    y = …`")
            if not SOURCE.search(stated + " " + header.about):
                fault(name, "lacks a source: add the author and the year, or “No published source”")
        for number in without_unit(name, owners, stated):
            fault(name, f"lacks the unit of {number}: add it to its comment, such as “in words”")
    return found
