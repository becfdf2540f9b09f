# SPDX-License-Identifier: BSD-3-Clause
"""Appends a finished run of scripts/papers.sh to the records."""

import csv
import datetime
import fcntl
import gzip
import json
import os
import platform
import re
from pathlib import Path

from results import Problem
from results.runs import COLUMNS, SAMPLE, SENTENCES, TEXTS, Runs, bleu


def processor():
    """The name of the processor, with family, model and stepping, since names of virtual ones are not specific."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or "unknown"
    fields = {}
    for key in ("model name", "cpu family", "model", "stepping"):
        found = re.search(rf"^{key}\s*: (.*)$", text, re.M)
        fields[key] = found.group(1).strip() if found else "?"
    return f"{fields['model name']} ({fields['cpu family']}-{fields['model']}-{fields['stepping']})"


def record(table, run, out, program, text, source, parameters):
    """Appends a finished run, with files in the folder `out`, to the records."""
    runs = Runs(Path(table))
    system, seed = run.rsplit(".", 1)
    base = Path(out) / run
    if any(row["seed"] == seed for row in runs.of(system)):
        raise Problem(f"{run} is in {runs.name}.tsv already")
    row = dict.fromkeys(COLUMNS, "-") | {
        "system": system, "seed": seed, "commit": program, "date": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "processor": processor(), "text": text, "options": runs.options[system],
        "parameters": parameters or "-"}

    def read(name):
        path = Path(f"{base}.{name}")
        return path.read_text(encoding="utf-8") if path.is_file() else ""

    def scored(name):
        return json.loads(read(name + ".json") or "null")

    if seed != "+":
        log = list(csv.DictReader(read("csv").splitlines()))
        best = max(log, key=lambda each: (float(each["validation_bleu"]), -float(each["validation_loss"])))
        row |= {"minutes": f"{float(log[-1]['minutes']):.2f}", "epochs": log[-1]["epoch"], "best_epoch": best["epoch"],
                "val": f"{float(best['validation_bleu']):.2f}"}
    score = read("score")
    perplexity = re.search(r"^perplexity = ([0-9.e+]+)(?: per subword, ([0-9.e+]+) per word)?", score, re.M)
    row["perplexity"], row["word_perplexity"] = perplexity.group(1), perplexity.group(2) or perplexity.group(1)
    row["greedy"] = re.search(r"^BLEU = ([0-9.]+)", score, re.M).group(1)
    [of_bleu], [of_ter], [of_ribes], [of_chrf] = (scored(name)["systems"] for name in ("bleu", "ter", "ribes", "chrf"))
    [repeated] = scored("repetition")["texts"]
    row |= {"beam": f"{of_bleu['score']:.2f}", "length_ratio": f"{of_bleu['hypothesis_length'] / of_bleu['reference_length']:.4f}",
            "ter": f"{of_ter['score']:.2f}", "tb": f"{of_ter['tb']['score']:.2f}", "ribes": f"{of_ribes['score']:.4f}",
            "chrf": f"{of_chrf['score']:.2f}", **{name: str(repeated[name]) for name in ("repetitions", "affected", "adjacent", "most")}}
    if replaced := scored("replaced"):
        row["replaced"] = f"{replaced['systems'][0]['score']:.2f}"
    if adequacy := scored("adequacy"):
        row |= {"overlooked": f"{adequacy['systems'][0]['score']:.2f}", "entropy": f"{adequacy['systems'][0]['entropy']:.3f}"}
    if links := scored("align"):
        row |= {name: f"{100 * links['systems'][0][name]:.2f}" for name in ("precision", "recall", "f1", "aer")}
    for search in ("greedy", "beam"):
        row[f"{search}_speed"] = (read(f"{search}.speed").split() or ["-"])[0]

    greedy, beam = (scored(f"{search}.sentences")["sentences"] for search in ("greedy", "beam"))
    lines = ["\t".join(SENTENCES + TEXTS)]
    texts = [Path(source), Path(source).with_suffix("." + runs.target), Path(f"{base}.beam")]
    everything = zip(greedy, beam, *(path.read_text(encoding="utf-8").split("\n") for path in texts))
    for number, (one, other, *here) in enumerate(everything, 1):
        cells = [len(here[0].split()), one["reference"], one["words"], *one["matches"], other["words"], *other["matches"], other["edits"],
                 f"{other['ribes']:.4f}", other["repetitions"], *(text.replace("\t", " ") if number % SAMPLE == 0 else "" for text in here)]
        lines.append("\t".join(map(str, cells)))
    runs.folder.mkdir(exist_ok=True)
    write_whole(runs.folder / f"{run}.sentences.gz", gzip.compress("".join(line + "\n" for line in lines).encode(), mtime=0))
    if seed != "+":
        write_whole(runs.folder / f"{run}.csv", read("csv").encode())
    for metric in ("greedy", "beam"):  # the statistics are those of the program
        counts = [sum(column) for column in zip(*runs.counts(system, seed, metric))]
        if abs(bleu(counts) - float(row[metric])) > 0.0051:
            raise Problem(f"{run}: BLEU of the sentences is {bleu(counts):.2f}, not {row[metric]} ({metric})")
    for name, value in row.items():
        if "\t" in value or "\n" in value or not value:
            raise Problem(f"{run}: {name} is {value!r}")
    append_whole(runs.table.with_suffix(".tsv"), "\t".join(COLUMNS), "\t".join(row[name] for name in COLUMNS))


def write_all(path: Path, file, data: bytes):
    """Writes all bytes to an unbuffered file and makes them durable."""
    try:
        while data:
            data = data[file.write(data):]
        os.fsync(file.fileno())
    except OSError as problem:
        raise Problem(f"{path}: cannot write: {problem.strerror}; the previous file is unchanged") from problem


def append_whole(path: Path, head: str, line: str):
    """Appends a line as a whole or not at all. `head` is the first line of an empty file."""
    with open(path, "ab", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = os.fstat(file.fileno()).st_size
        try:
            write_all(path, file, (("" if before else head + "\n") + line + "\n").encode())
        except BaseException:
            os.ftruncate(file.fileno(), before)
            raise


def write_whole(path: Path, data: bytes):
    """Replaces a file as a whole or not at all."""
    part = path.with_name(f".{path.name}.tmp")
    try:
        with open(part, "wb", buffering=0) as file:
            write_all(path, file, data)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
