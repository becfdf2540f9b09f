# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of attention weights, from the models that scripts/papers.sh leaves in its folder."""

import collections
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

from results import Problem
from results.blocks import BLOCK, pictures_of, table_path
from results.record import write_whole
from results.runs import read_runs

LENGTHS = range(6, 13)  # words of a gold pair, on each side
WIDEST = 1200  # of a row of panels, in pixels: on a telephone, text must stay readable


def lines_of(path):
    """The lines of a text."""
    return Path(path).read_text(encoding="utf-8").splitlines()


def gold_pair(data, gold, languages):
    """(source, target, links) of the first pair with the fewest unknown words, among those with LENGTHS."""
    if not gold:
        raise Problem("set GOLD to the folder of the gold alignments")
    files = {"de": "src", "en": "tgt"}  # German is the source of the gold links
    texts = [lines_of(Path(gold, files[language])) for language in languages]
    links = lines_of(Path(gold, "gold"))
    if languages[0] != "de":
        links = [re.sub(r"(\d+)([-p])(\d+)", r"\3\2\1", line) for line in links]
    known = []
    for language in languages:
        counts = collections.Counter(word for line in lines_of(Path(data, f"train.{language}")) for word in line.split())
        known.append({word for word, count in counts.items() if count > 1})
    pairs = [pair for pair in zip(*texts, links) if all(len(line.split()) in LENGTHS for line in pair[:2])]
    return min(pairs, key=lambda pair: sum(word not in words for line, words in zip(pair, known) for word in line.split()))


def panel(programs, model, pair, folder):
    """(entropy, width, height, SVG) of the weights of a model that is forced through a pair."""
    names = [folder / name for name in ("source", "target", "gold")]
    for name, line in zip(names, pair):
        name.write_text(line + "\n", encoding="utf-8")
    run = lambda *command: subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout
    gold = ["--gold", names[2]] if len(pair) == 3 else []
    run(programs / "translate", "align", "--threads", "1", "--model", model, "--source", names[0], "--target", names[1], *gold,
        "--weights", folder / "weights", "--picture", folder / "svg", "--output", folder / "links")
    entropy = json.loads(run(programs / "evaluate", "adequacy", "--json", "--resamples", "0", folder / "weights"))["systems"][0]["entropy"]
    svg = (folder / "svg").read_text(encoding="utf-8")
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', svg).groups())
    return entropy, width, height, svg


def draw(page, data, out):
    """Draws each block of weights for which all models are in `out`; returns the paths."""
    drawn, programs = [], Path(os.environ.get("PROGRAMS", ""))
    for line in page.read_text(encoding="utf-8").splitlines():
        found = BLOCK.match(line)
        if not found or found.group(1) != "weights":
            continue
        _, table, sentence, systems = found.groups()
        runs = read_runs(table_path(page, table))
        models = {system: Path(out, f"{system}.{runs.seeds[system][0]}.safetensors") for system in systems.split()}
        if not all(model.with_name(model.name + ".done").is_file() for model in models.values()):
            continue
        languages = (runs.source, runs.target)
        if sentence == "gold":
            pair = gold_pair(data, os.environ.get("GOLD"), languages)
        else:
            pair = tuple(lines_of(Path(data, f"test2016.{language}"))[int(sentence) - 1] for language in languages)
        with tempfile.TemporaryDirectory() as folder:
            panels = {system: panel(programs, model, pair, Path(folder)) for system, model in models.items()}
        left, top, right, bottom, inner = 0, 0, 0, 0, ""
        for system, (entropy, width, height, svg) in panels.items():
            if left and left + width > WIDEST:
                left, top = 0, bottom
            inner += f'<text x="{left + 24}" y="{top + 26}" style="font: 600 15px sans-serif" fill="#868e96">{system}, {entropy:.2f} bits</text>\n'
            inner += svg.replace("<svg ", f'<svg x="{left}" y="{top + 30}" ', 1)
            left += width
            right, bottom = max(right, left), max(bottom, top + 30 + height)
        path = pictures_of(page) / f"{runs.name}-weights-{sentence}.svg"
        text = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{right}" height="{bottom}" viewBox="0 0 {right} {bottom}" role="img" '
                f'aria-label="Attention weights">\n{inner}</svg>\n')
        write_whole(path, text.encode())
        drawn.append(path)
    return drawn
