# SPDX-License-Identifier: BSD-3-Clause
"""The declaration of a name for readers: without inline, attributes and bodies; a type with its public members."""

import re

from names import Name


def simplified(text: str) -> str:
    text = re.sub(r"\b(inline|HEED_SIMD_INLINE) ", "", text)
    text = re.sub(r"\[\[nodiscard[^\]]*\]\] ?", "", text)
    text = re.sub(r"^friend ", "", text)
    return re.sub(r"\n +", lambda m: m.group(0), text).rstrip(" =")


def of(name: Name) -> str:
    if name.kind == "concept":
        return name.text.rstrip(";") + ";"
    if name.kind == "enum":
        return enum(name)
    if name.kind in ("struct", "class") and name.members:
        return type_with_members(name)
    return ended(name)


def ended(name: Name, indent: str = "") -> str:
    text = indent + simplified(name.text).replace("\n", "\n" + indent) + ";"
    if name.beside and len(name.beside) == 1 and name.kind != "enumvalue":
        text += f"  // {name.beside[0].lstrip('<').strip()}"
    return text


def enum(name: Name) -> str:
    values = [f"    {v.name}," + (f"  // {v.beside[0].lstrip('<').strip()}" if v.beside else
                                  f"  // {first_line(v.doc)}" if v.doc else "") for v in name.members]
    if not any("//" in v for v in values):
        return f"{simplified(name.text)} {{ {', '.join(v.name for v in name.members)} }};"
    return "\n".join([simplified(name.text) + " {", *values, "};"])


def first_line(doc: str) -> str:
    return re.split(r"(?<=[.!?])\s", doc.replace("\n", " "))[0]


def type_with_members(name: Name) -> str:
    lines, last = [simplified(name.text) + " {"], None
    for member in name.members:
        if member.is_guide:
            continue
        if last is not None and gap(last, member):
            lines.append("")
        if member.kind in ("struct", "class"):
            lines.append(simplified(member.text).replace("\n", "\n    ").join(["    ", ";"]))
        elif member.kind == "enum":
            lines.append("    " + enum(member).replace("\n", "\n    "))
        else:
            declaration = ended(member, "    ")
            if last is not None and last.line == member.line:  # double a, b;
                continue
            lines.append(declaration)
        last = member
    return "\n".join(lines + ["};"])


def gap(a: Name, b: Name) -> bool:
    return (a.kind == "function") != (b.kind == "function")


def call_of(name: Name, type_: Name) -> list[str]:
    """The calls of an operation: linear(x, W) and linear(x, W, b), from its forward functions. An argument that is unnamed in
    one function has its name from another."""
    lists = {function: [arguments_of(m) for m in type_.members if m.name == function]
             for function in ("forward", "shape", "backward", "operator()", "each_move", "piece", "fill")}
    calls: list[str] = []
    for function in ("forward", "shape", "operator()", "each_move", "piece"):
        for arguments in lists[function]:
            filled = [argument or named(i, len(arguments), lists) for i, argument in enumerate(arguments)]
            filled += numbers_of(name)
            call = f"{name.name}({', '.join(filled)})"
            if filled and call not in calls and "..." not in call:
                calls.append(call)
        if calls:
            return calls
    return [name.name]


def numbers_of(name: Name) -> list[str]:
    """p and q of binary<functions::scaled_sum, double, double>: 'with numbers p and q' in its docstring."""
    match = re.match(r"inline constexpr binary<[^>]*?((?:, double)+)>", name.text)
    named = re.search(r"\bnumbers? (\w+)(?: and (\w+))?", name.doc)
    return [named.group(i + 1) if named else "number" for i in range(match.group(1).count("double"))] if match else []


def arguments_of(function: Name) -> list[str]:
    """Names of the caller's arguments; '' if unnamed."""
    match = re.search(re.escape(function.name) + r"\((.*)\)", function.text, re.S)
    names = []
    for part in split(match.group(1)) if match else []:
        if re.search(r"\b(out|adjoint)<", part) or re.match(r"auto&?&? (move|f)$", part):
            break
        if "..." in part:
            continue  # the numbers of a binary function: call_of counts them
        part = part.split("=")[0].strip()
        last = re.search(r"[\s&*>]([A-Za-z_]\w*)$", part)
        known = last.group(1) if last and last.group(1) not in ("double", "auto", "bool", "size_t") else ""
        names.append(known)
    return names


def named(i: int, count: int, lists: dict[str, list[list[str]]]) -> str:
    """The name of the i-th of `count` arguments in a function that has one."""
    for function in ("shape", "forward", "each_move", "piece", "fill", "backward"):
        for arguments in lists[function]:
            if len(arguments) >= count and arguments[i] and (len(arguments) == count or function == "backward"):
                return arguments[i]
    return "…"


def split(arguments: str) -> list[str]:
    parts, depth, part = [], 0, ""
    for c in arguments:
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += c
    return parts + ([part.strip()] if part.strip() else [])
