# SPDX-License-Identifier: BSD-3-Clause
"""Markdown for the site: finds prose, resolves references, converts docstrings, and separates commands from equations."""

import re

import equations

FENCE = re.compile(r"^\s{0,3}(```+|~~~+)")
COMMANDS = re.compile(r"^\s*(\$ |scripts/|bench/|build|cmake |ctest |apt |apt-get |git |export |step |echo |translate |evaluate |"
                      r"[A-Z_]+=\S* *(scripts|bench|translate|\\)|g\+\+|clang|composition_products|OPENBLAS|HEED_|head |cat |for |"
                      r"paste |shuf |python3|characters|read_digits|sentence_pairs|course_|exercise_)")


def lines_with_kind(text: str):
    """Yields (line, kind), kind being 'prose', 'fence' (its marks included) or 'block' (indented by four)."""
    fence, before, in_block, in_list = None, "", False, False
    for line in text.split("\n"):
        mark = FENCE.match(line)
        if fence:
            yield line, "fence"
            if mark and line.strip().startswith(fence) and line.strip() == line.strip()[0] * len(line.strip()):
                fence = None
        elif mark:
            fence = mark.group(1)
            yield line, "fence"
        else:
            if re.match(r"\s{0,3}([-*+]|\d+\.) ", line):
                in_list = True
            elif line and not line.startswith(" "):
                in_list = False
            indented = line.startswith("    ") and not in_list
            in_block = indented and (in_block or not before.strip()) or (in_block and not line.strip())
            yield line, "block" if in_block else "prose"
        before = line


def on_prose(text: str, change) -> str:
    """The text with `change` applied to each run of prose lines (headings, paragraphs, lists, tables)."""
    result, run = [], []
    for line, kind in lines_with_kind(text):
        if kind == "prose":
            run.append(line)
        else:
            if run:
                result.append(change("\n".join(run)))
                run = []
            result.append(line)
    if run:
        result.append(change("\n".join(run)))
    return "\n".join(result)


def on_spans(text: str, change_code, change_rest) -> str:
    """Applies `change_code` to text in backticks (inclusive), `change_rest` to the rest."""
    parts = re.split(r"((?<!`)(?:``(?!`)(?s:.+?)(?<!`)``|`[^`]+`)(?!`))", text)
    return "".join(change_code(p) if p.startswith("`") else change_rest(p) for p in parts)


def inline_links(text: str) -> str:
    """Reference links, `[text][label]` and `[label]`, as inline links. Their definitions, `[label]: target`, are removed."""
    definition = re.compile(r"^\[([^\]\n]+)\]: (\S+)\n?", re.M)
    targets: dict[str, str] = {}

    def define(prose: str) -> str:
        targets.update(definition.findall(prose))
        return definition.sub("", prose)

    def inline(match) -> str:
        shown, label = match.groups()
        target = targets.get(label or shown)  # code has no group
        return f"[{shown}]({target})" if target else match.group(0)

    text = on_prose(text, define)
    link = r"`+[^`]+?`+|\[((?:[^\[\]`]|`[^`]*`)+)\](?:\[([^\[\]]+)\])?(?!\()"
    return on_prose(text, lambda prose: re.sub(link, inline, prose)) if targets else text


def fence_commands(text: str) -> str:
    """Converts indented blocks to fences: shell commands to bash, with colors and a copy button; equations to HTML for KaTeX;
    other blocks to text."""
    result, block = [], []

    def flush():
        while block and not block[-1].strip():
            trailing.append(block.pop())
        if block and COMMANDS.match(block[0]):
            result.extend(["```bash", *[line[4:] for line in block], "```"])
        elif block:
            lines = [line[4:] for line in block]
            set_ = equations.of_block(lines)
            result.extend(["```{raw} html", set_, "```"] if set_ else ["```text", *lines, "```"])
        result.extend(trailing)
        block.clear()
        trailing.clear()

    trailing: list[str] = []
    for line, kind in lines_with_kind(text):
        if kind == "block":
            block.append(line)
        else:
            flush()
            result.append(line)
    flush()
    return "\n".join(result)


def escaped(text: str) -> str:
    """Plain text with **bold**, *emphasis* of one word, and `code` as its only markup."""
    text = re.sub(r"(?<![\w*])\*[a-z]{2,}\*(?![\w*])|(?<!\*)\*(?!\*)", lambda m: m.group(0) if len(m.group(0)) > 1 else r"\*", text)
    return re.sub(r"([<>$_\[\]|])", r"\\\1", text)


def of_docstring(doc: str, link=lambda code: code, plain=escaped) -> str:
    """A docstring as Markdown. Equations keep their layout: indented lines, and lines with a note far to the right. `link`
    converts `code` to a reference, `plain` the text between to Markdown."""
    result: list[str] = []
    block: list[str] = []
    paragraph: list[str] = []
    languages: list[str] = []
    in_list = False

    def flush_paragraph():
        if paragraph:
            result.append(on_spans("\n".join(paragraph), link, plain))
            result.append("")
            paragraph.clear()

    def flush_block():
        while block and not block[-1].strip():
            block.pop()
        if block:
            indent = min(len(l) - len(l.lstrip()) for l in block if l.strip())
            for part in "\n".join(l[indent:] for l in block).split("\n\n"):
                language = "cpp" if looks_like_code(part.split("\n")) else "text"
                set_ = equations.of_block(part.split("\n")) if language == "text" else None
                if set_:
                    result.extend(["```{raw} html", set_, "```", ""])
                    languages.append("html")
                    continue
                if result and result[-2:] == ["```", ""] and languages[-1:] == [language]:
                    result[-2:] = ["", *part.split("\n"), "```", ""]  # an empty line within one text
                else:
                    result.extend([f"```{language}", *part.split("\n"), "```", ""])
                languages.append(language)
            block.clear()
        languages.clear()

    for line in doc.split("\n"):
        item = re.match(r"\s{0,3}([-*]|\d+\.) ", line) is not None
        if item:
            in_list = True
        elif line.strip() and not line.startswith(" "):
            in_list = False
        set_apart = re.match(r" {2,}\S", line) and not in_list or re.search(r"\S {3,}\S", line)
        if set_apart or (block and not line.strip()):
            flush_paragraph()
            block.append(line)
        elif not line.strip():
            flush_paragraph()
        else:
            flush_block()
            paragraph.append(line)
    flush_block()
    flush_paragraph()
    return "\n".join(result).strip() + "\n"


def looks_like_code(block: list[str]) -> bool:
    return sum(bool(re.search(r";\s*(//.*)?$|[{}]\s*(//.*)?$|^\s*#include|^\s*//", line)) for line in block) * 2 > len(block)


def first_sentence(doc: str) -> str:
    """For tables of names: the first sentence of the first paragraph, as plain Markdown."""
    paragraph = re.split(r"\n\s*\n|\n {2,}", doc.strip())[0].replace("\n", " ")
    paragraph = re.sub(r" {3,}.*", "", paragraph)
    match = re.match(r"(.+?[.:!?])(?= [A-Z]|$)", paragraph)
    sentence = (match.group(1) if match else paragraph).rstrip(":")
    return on_spans(sentence, lambda c: c, escaped)
