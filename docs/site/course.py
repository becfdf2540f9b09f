# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the course, from its programs: prose, code, then the output and the plots of the program.

Prose is a block of // comments that begins in column 0, with an empty line (or an end of the file) on both sides.
"""

import re
import shlex
import subprocess
from pathlib import Path

import markdown
import pages
from site_map import SiteMap

ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def steps(root: Path) -> list[str]:
    return sorted(str(p.relative_to(root)) for p in (root / "examples/course").glob("[0-9][0-9]_*.cpp"))


def blocks(text: str) -> list[tuple[str, str]]:
    """[('prose' or 'code', text)], in turn."""
    lines = [line for line in text.split("\n")
             if not re.match(r"// (SPDX-|clang-format |test(, optimized)?:)", line)]
    found: list[tuple[str, list[str]]] = []
    i = 0
    while i < len(lines):
        end = i
        while end < len(lines) and lines[end].startswith("//") and not lines[end].startswith("///"):
            end += 1
        alone = end > i and (end == len(lines) or not lines[end].strip()) and (i == 0 or not lines[i - 1].strip())
        if alone:
            prose = [re.sub(r"^// ?", "", line) for line in lines[i:end]]
            if found and found[-1][0] == "prose":
                found[-1][1].extend(["", *prose])
            else:
                found.append(("prose", prose))
            i = end
        else:
            if not found or found[-1][0] != "code":
                found.append(("code", []))
            found[-1][1].append(lines[i])
            i += 1
    result = [(kind, "\n".join(part).strip("\n")) for kind, part in found]
    return [(kind, part) for kind, part in result if part.strip()]


def arguments(text: str) -> list[str]:
    match = re.search(r"^// test(?:, optimized)?:(.*)$", text, flags=re.M)
    return shlex.split(match.group(1)) if match else []


def run(program: Path, given: list[str], work: Path) -> tuple[str, list[Path]]:
    """The output of the program, and the pictures that it writes, in order."""
    out = work / "out"
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("*"):
        old.unlink()
    if "--out" in given:
        at = given.index("--out")
        given = given[:at] + given[at + 2:]
    command = [str(program), *given, "--out", str(out)]
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=600, check=False)
    if done.returncode:
        raise SystemExit(f"{program.name} {' '.join(given)} ended with status {done.returncode}:\n{done.stdout}{done.stderr}")
    return ESCAPES.sub("", done.stdout).rstrip(), sorted(
        (p for p in out.iterdir() if p.suffix in (".svg", ".png")), key=lambda p: (p.stat().st_mtime_ns, p.name))


def write(site: SiteMap, programs: Path | None) -> list[str]:
    """Writes the pages. `programs`: the folder of the built programs; None omits their output."""
    names = []
    for path in steps(site.root):
        number = Path(path).stem[:2]
        text = (site.root / path).read_text(encoding="utf-8")
        output, pictures = "", []
        if programs is not None:
            program = programs / f"course_{number}"
            if not program.exists():
                raise SystemExit(f"{program} is not built")
            output, pictures = run(program, arguments(text), site.out.parent / "runs" / number)
        write_step(site, path, number, text, output, pictures)
        names.append(Path(path).stem)
    return names


def write_step(site: SiteMap, path: str, number: str, text: str, output: str, pictures: list[Path]) -> None:
    page = site.steps[path]
    drawn = {p.name: p for p in pictures}
    shown: set[str] = set()
    for name, picture in drawn.items():
        to = site.extra / Path(path).parent / number / name
        to.parent.mkdir(parents=True, exist_ok=True)
        to.write_bytes(picture.read_bytes())

    def own_pictures(prose: str) -> str:
        """![caption](weights.svg): a picture that the program draws; omitted if it did not run."""
        def place(match):
            name = match.group(2)
            if "/" in name or (site.root / Path(path).parent / name).exists():
                return match.group(0)
            shown.add(name)
            return pages.wide_image(f"{number}/{name}", match.group(1), drawn[name]) if name in drawn else ""
        return re.sub(r"!\[([^\]]*)\]\(([^)\s]+\.(?:svg|png))\)", place, prose)

    parts = []
    for kind, part in blocks(text):
        if kind == "prose":
            ready = own_pictures(part)
            ready = markdown.fence_commands(ready)
            parts.append(markdown.on_prose(ready, lambda prose: prose_with_links(site, path, page, prose)))
        else:
            parts.append(f"```cpp\n{part}\n```")
    prints = []
    if output:
        prints += ["## Output", "", '```{code-block} text\n:class: output\n', output, "```", ""]
    left = [name for name in drawn if name not in shown]
    if left:
        prints += ["## Plots", ""]
        prints += [figure(number, drawn[name]) for name in left]
    at = next((i for i, part in enumerate(parts) if re.search(r"^## Exercises", part, flags=re.M)), len(parts))
    if at < len(parts) and prints:
        before, exercises = re.split(r"(?=^## Exercises)", parts[at], maxsplit=1, flags=re.M)
        parts[at:at + 1] = [before, "\n".join(prints), exercises]
    else:
        parts.append("\n".join(prints))
    parts.append(files(site, page, path, number))
    pages.put(site, page, "\n\n".join(parts) + "\n")


def figure(number: str, picture: Path) -> str:
    """A picture with a caption from its name: 06_copy_before.svg is "copy before"."""
    caption = re.sub(r"^\d\d ", "", picture.stem.replace("_", " ").replace("-", " "))
    return f"<figure>{pages.wide_image(f'{number}/{picture.name}', caption, picture)}<figcaption>{caption}</figcaption></figure>\n"


def prose_with_links(site: SiteMap, path: str, page: str, prose: str) -> str:
    """As on all pages, except that pictures of the program are already in place."""
    kept: list[str] = []

    def hide(match) -> str:
        kept.append(match.group(0))
        return f"\1{len(kept) - 1}\1"

    prose = re.sub(r'<img src="\d\d/[^>]*>', hide, prose)
    prose = pages.linked(site, path, page, prose)
    return re.sub("\1(\\d+)\1", lambda m: kept[int(m.group(1))], prose)


def files(site: SiteMap, page: str, path: str, number: str) -> str:
    folder = Path(path).parent
    links = [site.link(page, site.source(path), "this step as a file")]
    for kind, words in (("exercises", "exercises"), ("checks", "their check"), ("solutions", "solutions")):
        for suffix in (".hpp", ".cpp"):
            file = folder / kind / f"{number}{suffix}"
            if (site.root / file).exists():
                links.append(site.link(page, site.source(str(file)), words))
    return '<p class="files">' + " · ".join(links) + "</p>"
