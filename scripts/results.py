#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tables, tests and checks of the result pages, from the runs that scripts/papers.sh records.

usage: scripts/results.py write [--translate PROGRAM] [PAGE.md...]   fill the blocks of pages; default: all of docs/results
       scripts/results.py check [PAGE.md...]                         fail if a page and its runs disagree
       scripts/results.py compare TABLE.runs SYSTEM SYSTEM [METRIC]  the paired test of two systems

A block of a page is generated, from its first line to `<!-- end -->`:

    <!-- table TABLE: METRIC... -->              a row per system: mean and standard deviation over the seeds
    <!-- table TABLE: METRIC... | SYSTEM... -->  only these systems, in this order
    <!-- tests TABLE -->                         the paired test of each claim of the page
    <!-- lengths TABLE: 10 20 30 | SYSTEM... --> BLEU by words of the source, mean over the seeds
    <!-- samples TABLE: 500 1000 | SYSTEM... --> these sentences (multiples of 50) and their translations by the first runs
    <!-- curves TABLE: TITLE -->                 the picture TABLE-curves.svg, BLEU on val by epoch; --translate draws it
    <!-- source TABLE -->                        commit, date, processor, text, command and options

TABLE is docs/results/runs/TABLE.runs, or a path relative to the page. A sentence that compares ends in its claims, on
the same line, in one comment:

    Coverage has a higher BLEU than plain attention. <!-- claim TABLE: coverage > plain; coverage = local-m, ter -->

A > B: A is better in the metric (default: beam) with p < 0.05; A = B: not told apart, and the sentence contains these
words. `<!-- not tested: REASON -->` marks a comparison without a test. Every number of a sentence must be in a cell of a
table on the page, or an option of its runs, or in a comment `<!-- given: 29,000 pairs -->` anywhere on the page.

The test regards sentences and seeds as random. The difference d of the mean scores has the variance

    V = variance of d over 1,000 resamples of the sentences, the same for all models + s²_A / n_A + s²_B / n_B

where s² is the variance over the n seeds of a system; d / sqrt(V) follows Student's t with the degrees of freedom of
Welch and Satterthwaite. Metrics without statistics per sentence are tested over seeds alone.
"""

import csv
import datetime
import fcntl
import functools
import gzip
import json
import math
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "docs" / "results"
RESAMPLES = 1000
LEVEL = 0.05

# name: (heading, digits, whether larger is better; None: neither)
METRICS = {
    "minutes": ("minutes", 1, False), "epochs": ("epochs", 0, None), "best_epoch": ("best epoch", 0, None),
    "parameters": ("parameters", 0, None), "val": ("BLEU on val", 2, True), "perplexity": ("perplexity", 2, False),
    "word_perplexity": ("perplexity per word", 2, False), "greedy": ("BLEU greedy", 2, True), "beam": ("BLEU beam 12", 2, True),
    "replaced": ("unknown words replaced", 2, True), "ter": ("TER", 2, False), "tb": ("TB", 2, False), "ribes": ("RIBES", 4, True),
    "chrf": ("chrF2", 2, True), "repetitions": ("repetitions", 0, False), "affected": ("sentences that repeat", 0, False),
    "adjacent": ("adjacent repetitions", 0, False), "most": ("occurrences of a phrase, at most", 0, False),
    "overlooked": ("overlooked words, %", 1, False), "entropy": ("entropy, bits", 2, False),
    "precision": ("precision", 1, True), "recall": ("recall", 1, True),
    "f1": ("F1", 1, True), "aer": ("AER", 1, False), "length_ratio": ("length ratio", 3, None),
    "greedy_speed": ("words/s greedy", 0, True), "beam_speed": ("words/s beam 12", 0, True),
}
COLUMNS = ["system", "seed", "commit", "date", "processor", "text", *METRICS, "options"]
# Of each sentence. The texts are in every 50th line only: samples chosen by a rule.
SENTENCES = ["source", "reference", *(f"{search}_{each}" for search in ("greedy", "beam") for each in ("words", "1", "2", "3", "4")),
             "edits", "ribes", "repetitions"]
TEXTS = ["source_text", "reference_text", "translation"]
SAMPLE = 50


class Problem(Exception):
    """A message to the user."""


def require_metric(name):
    """Throws unless there is such a metric."""
    if name not in METRICS:
        raise Problem(f"unknown metric \"{name}\"; metrics are {' '.join(METRICS)}")


# ---- files of runs -------------------------------------------------------------------------------------------------------


class Runs:
    """A table of runs and its records."""

    def __init__(self, table: Path):
        self.table, self.name, self.folder = table, table.stem, table.with_suffix("")
        if not table.is_file():
            raise Problem(f"{table}: no such table of runs")
        self.systems, self.common, self.target, options = [], "", "", {}
        for line in table.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == "languages":
                self.target = words[-1]
            elif words[0] == "common":
                self.common = " ".join(words[1:])
            else:
                self.systems.append(words[0])
                options[words[0]] = (words[1], words[2:])
        self.options = {system: " ".join(more if seeds == "+" else [*self.common.split(), *more]) for system, (seeds, more) in options.items()}
        self.rows = []
        if table.with_suffix(".tsv").is_file() and table.with_suffix(".tsv").stat().st_size:
            with open(table.with_suffix(".tsv"), encoding="utf-8", newline="") as file:
                reader = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if reader.fieldnames != COLUMNS:
                    raise Problem(f"{file.name}: has other columns than scripts/results.py records: {reader.fieldnames}")
                for number, row in enumerate(reader, 2):
                    if None in row or None in row.values():
                        raise Problem(f"{file.name}:{number}: {len(COLUMNS)} columns are expected")
                    if row["system"] not in self.systems:
                        raise Problem(f"{file.name}:{number}: {table.name} has no row \"{row['system']}\"")
                    if row["options"] != self.options[row["system"]]:
                        raise Problem(f"{file.name}:{number}: was run with other options than {table.name} has now: {row['options']}")
                    self.rows.append(row)
        names = [(row["system"], row["seed"]) for row in self.rows]
        for twice in {name for name in names if names.count(name) > 1}:
            raise Problem(f"{table.with_suffix('.tsv')}: two rows of {'.'.join(twice)}")

    def of(self, system):
        """The rows of a system."""
        if system not in self.systems:
            raise Problem(f"{self.table.name} has no row \"{system}\"; rows are {' '.join(self.systems)}")
        return [row for row in self.rows if row["system"] == system]

    def finished(self):
        """The systems with at least one row, in the order of the table."""
        return [system for system in self.systems if self.of(system)]

    def values(self, system, metric):
        """The numbers of a metric, seed by seed."""
        require_metric(metric)
        return [float(row[metric]) for row in self.of(system) if row[metric] != "-"]

    @functools.lru_cache(maxsize=None)
    def sentences(self, system, seed):
        """The columns of SENTENCES, as numbers."""
        path = self.folder / f"{system}.{seed}.sentences.gz"
        if not path.is_file():
            raise Problem(f"{path}: is missing")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines = [line.rstrip("\n").split("\t") for line in file]
        if lines[0] != SENTENCES + TEXTS:
            raise Problem(f"{path}: has other columns than scripts/results.py records")
        read = {name: [float(line[i]) for line in lines[1:]] for i, name in enumerate(SENTENCES)}
        return read | {name: [line[i] for line in lines[1:]] for i, name in enumerate(TEXTS, len(SENTENCES))}

    @functools.lru_cache(maxsize=None)
    def counts(self, system, seed, metric):
        """Summable integers of each sentence from which SCORES[metric] follows."""
        of = self.sentences(system, seed)
        search = "greedy" if metric == "greedy" else "beam"
        words = of[f"{search}_words"]
        columns = [of["reference"], words, of["repetitions"], of["edits"], [round(10000 * each) for each in of["ribes"]], [1] * len(words)]
        for n in range(1, 5):
            columns += [of[f"{search}_{n}"], [max(0, each - n + 1) for each in words]]
        return [[int(each) for each in row] for row in zip(*columns)]

    @functools.lru_cache(maxsize=None)
    def resampled(self, metric):
        """The scores of each run on the same resamples of the sentences."""
        runs = [(row["system"], row["seed"]) for row in self.rows]
        bits = 32
        all_counts = [self.counts(*run, metric) for run in runs]
        lengths = {len(each) for each in all_counts}
        if len(lengths) != 1:
            raise Problem(f"{self.folder}: the runs have different numbers of sentences")
        fields = len(all_counts[0][0])
        # All counts of a sentence in one integer: a resample is then a single sum.
        packed = []
        for together in zip(*all_counts):
            number = 0
            for value in reversed([value for counts in together for value in counts]):
                number = number << bits | value
            packed.append(number)
        source = random.Random(1)
        scores = {run: [] for run in runs}
        for _ in range(RESAMPLES):
            data = sum(source.choices(packed, k=len(packed))).to_bytes(len(runs) * fields * bits // 8, "little")
            numbers = [int.from_bytes(data[at:at + bits // 8], "little") for at in range(0, len(data), bits // 8)]
            for i, run in enumerate(runs):
                scores[run].append(SCORES[metric](numbers[i * fields:(i + 1) * fields]))
        return scores


def bleu(sums):
    """BLEU of summed counts (heed_kit/metrics/bleu.hpp), unsmoothed."""
    reference, words = sums[:2]
    matches, totals = sums[6::2], sums[7::2]
    if words == 0 or 0 in matches or 0 in totals:
        return 0.0
    return 100 * math.exp(min(0, 1 - reference / words) + sum(math.log(m / t) for m, t in zip(matches, totals)) / 4)


def ter(sums):
    """TER of summed counts."""
    return 100 * sums[3] / sums[0]


SCORES = {"greedy": bleu, "beam": bleu, "ter": ter, "tb": lambda sums: (ter(sums) - bleu(sums)) / 2,
          "ribes": lambda sums: sums[4] / sums[5] / 10000, "repetitions": lambda sums: sums[2]}


# ---- recording -----------------------------------------------------------------------------------------------------------


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


# ---- the paired test -----------------------------------------------------------------------------------------------------


def beyond(t, freedom):
    """The probability that Student's t is further from 0 than t."""
    if math.isinf(t):
        return 0.0
    # ∫ over [0, t] of the density, by Simpson's rule in the angle: with t = √ν tan θ it is proportional to cos^(ν - 1) θ.
    angle, steps = math.atan(abs(t) / math.sqrt(freedom)), 2000
    density = [math.cos(angle * i / steps) ** (freedom - 1) for i in range(steps + 1)]
    area = (density[0] + density[-1] + 4 * sum(density[1:-1:2]) + 2 * sum(density[2:-1:2])) * angle / steps / 3
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(math.pi)
    return min(1.0, max(0.0, 1 - 2 * scale * area))


def quantile(freedom):
    """The t that LEVEL of the values exceed in size."""
    low, high = 0.0, 1000.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if beyond(middle, freedom) > LEVEL else (low, middle)
    return low


class Comparison:
    """A against B: means, difference (A - B) with its 95% interval, p."""

    def __init__(self, runs, first, second, metric):
        self.metric, values = metric, [runs.values(system, metric) for system in (first, second)]
        for system, each in zip((first, second), values):
            if len(each) < 2:
                raise Problem(f"{system} has {len(each)} run(s) with {metric}: at least two seeds are required for a comparison")
        self.means = [statistics.fmean(each) for each in values]
        self.difference = self.means[0] - self.means[1]
        parts = [(statistics.variance(each) / len(each), len(each) - 1) for each in values]
        if metric in SCORES:
            scores = runs.resampled(metric)
            by_system = [[scores[first_or_second, row["seed"]] for row in runs.of(first_or_second)] for first_or_second in (first, second)]
            differences = [statistics.fmean(a) - statistics.fmean(b) for a, b in zip(zip(*by_system[0]), zip(*by_system[1]))]
            parts.append((statistics.variance(differences), RESAMPLES - 1))
        variance = sum(part for part, _ in parts)
        if variance == 0:
            self.p, self.margin = (1.0 if self.difference == 0 else 0.0), 0.0
            return
        freedom = variance ** 2 / sum(part ** 2 / free for part, free in parts)
        self.p = beyond(abs(self.difference) / math.sqrt(variance), freedom)
        self.margin = quantile(freedom) * math.sqrt(variance)

    @property
    def verdict(self):
        """">" if the first is better, "<" if the second is, "=" if they are not told apart."""
        if self.p >= LEVEL:
            return "="
        larger = METRICS[self.metric][2]
        if larger is None:
            raise Problem(f"{self.metric} is neither better nor worse")
        return ">" if (self.difference > 0) == larger else "<"

    def cells(self):
        """The texts of the means, the difference, its interval, and p."""
        digits = METRICS[self.metric][1] or 1
        show = lambda value: f"{value:.{digits}f}".replace("-", "−")
        return [show(self.means[0]), show(self.means[1]), ("+" if self.difference > 0 else "") + show(self.difference),
                f"[{show(self.difference - self.margin)}, {show(self.difference + self.margin)}]",
                f"{self.p:.3f}" if self.p >= 0.0005 else "< 0.001"]


@functools.lru_cache(maxsize=None)
def read_runs(table: Path):
    """The runs of a table, read once."""
    return Runs(table)


@functools.lru_cache(maxsize=None)
def compared(table: Path, first, second, metric):
    """The comparison, computed once."""
    return Comparison(read_runs(table), first, second, metric)


# ---- pages ---------------------------------------------------------------------------------------------------------------

BLOCK = re.compile(r"<!-- (table|tests|lengths|samples|curves|source) ([^\s:|]+)(?:: ([^|]*?))?(?: \| (.*?))? -->$")
END = "<!-- end -->"
CLAIM = re.compile(r"<!-- claim ([^\s:]+): (.*?) -->")
GIVEN = re.compile(r"<!-- given: (.*?) -->", re.S)
COMMENT = re.compile(r"<!--.*?-->", re.S)
NUMBER = re.compile(r"(?<![\w.,/-])[-−+±]?(\d+(?:,\d{3})*(?:\.\d+)?)(?!\w|[.,]\d|/\d)")
COMPARES = re.compile(r"\b(better|best|worse|worst|ahead|behind|beats?|outperforms?|gains?|gained|loses?|lost|helps?|helped|hurts?|higher|"
                      r"highest|lower|lowest|fewer|fewest|more than|less than|the most|(?<!at )least|faster|slower|times as|twice|exceeds?|improves?|told apart|"
                      r"indistinguishable|makes no difference|as good as|as well as)\b", re.I)


def table_path(page: Path, name):
    """docs/results/runs/NAME.runs, or a path relative to the page."""
    return page.parent / name if name.endswith(".runs") else PAGES / "runs" / f"{name}.runs"


def claims_of(page, line):
    """(table, first, relation, second, metric) of the claims in a line."""
    for comment in CLAIM.finditer(line):
        for claim in comment.group(2).split(";"):
            found = re.fullmatch(r"\s*(\S+) ([>=]) (\S+?)(?:, (\w+))?\s*", claim)
            if not found:
                raise Problem(f"\"{claim.strip()}\" is not a claim such as \"a > b\" or \"a = b, ter\"")
            first, relation, second, metric = found.groups()
            yield table_path(page, comment.group(1)), first, relation, second, metric or "beam"


def shown(runs, system, metric):
    """"mean ± deviation" of a metric, or the value of a single run."""
    values, digits = runs.values(system, metric), METRICS[metric][1]
    if not values:
        return "–"
    show = lambda value: f"{value:,.{digits}f}".replace("-", "−")
    if len(set(values)) == 1 and digits == 0:
        return show(values[0])
    return show(statistics.fmean(values)) + (f" ± {statistics.stdev(values):.{digits or 1}f}" if len(values) > 1 else "")


def markdown(rows):
    """A table; the first row has the headings."""
    return ["| " + " | ".join(row) + " |" for row in [rows[0], ["---"] * len(rows[0]), *rows[1:]]]


def whole_numbers(text):
    """The numbers of a block."""
    if not text or not re.fullmatch(r"\d+( \d+)*", text):
        raise Problem(f"expected numbers such as 10 20 30, not \"{text or ''}\"")
    return [int(each) for each in text.split()]


def block(page, lines, kind, table, what, systems):
    """The lines of a block."""
    path = table_path(page, table)
    runs = read_runs(path)
    chosen = systems.split() if systems else runs.finished()
    for system in chosen:
        if not runs.of(system):
            raise Problem(f"{system} has no run in {runs.name}.tsv")
    if kind == "table":
        metrics = (what or "").split()
        for metric in metrics:
            require_metric(metric)
        rows = [[runs.name, "seeds", *(METRICS[metric][0] for metric in metrics)]]
        rows += [[system, str(len(runs.of(system))), *(shown(runs, system, metric) for metric in metrics)] for system in chosen]
        return markdown(rows)
    if kind == "tests":
        pairs = dict.fromkeys((first, second, metric) for line in lines for at, first, _, second, metric in claims_of(page, line) if at == path)
        rows = [[runs.name, "metric", "first", "second", "difference", "95%", "p", "verdict"]]
        for first, second, metric in pairs:
            result = compared(path, first, second, metric)
            verdict = {">": f"{first} is better", "<": f"{second} is better", "=": "not told apart"}[result.verdict]
            rows.append([f"{first}, {second}", METRICS[metric][0] + ("" if metric in SCORES else " (seeds only)"), *result.cells(), verdict])
        return markdown(rows)
    if kind == "lengths":
        bounds = whole_numbers(what)
        rows = [["words of the source", "sentences", *chosen]]
        for low, high in zip([0, *(each + 1 for each in bounds)], [*bounds, math.inf]):
            row = [f"more than {low - 1}" if high == math.inf else f"{low} to {high}" if low else f"up to {high}"]
            for system in chosen:
                scores, here = [], 0
                for each in runs.of(system):
                    picked = [counts for counts, words in zip(runs.counts(system, each["seed"], "beam"),
                                                              runs.sentences(system, each["seed"])["source"]) if low <= words <= high]
                    here = len(picked)
                    scores.append(bleu([sum(column) for column in zip(*picked)]) if picked else 0)
                row += [str(here)] * (len(row) == 1) + [f"{statistics.fmean(scores):.2f}" if here else "–"]
            rows.append(row)
        return markdown(rows)
    if kind == "samples":
        rows = [["sentence", "", "text"]]
        for number in whole_numbers(what):
            if number % SAMPLE or number == 0:
                raise Problem(f"{number} is not a multiple of {SAMPLE}: other sentences are not recorded")
            for i, system in enumerate(chosen):
                of = runs.sentences(system, runs.of(system)[0]["seed"])
                if number > len(of["source"]):
                    raise Problem(f"there is no sentence {number}")
                texts = [re.sub(r"([|*_<`\\])", r"\\\1", of[name][number - 1]) for name in TEXTS]
                rows += [[str(number), "source", texts[0]], ["", "reference", texts[1]]] * (i == 0) + [["", system, texts[2]]]
        return markdown(rows)
    if kind == "curves":
        return [f"![{what}](../pictures/{runs.name}-curves.svg)"]
    of = lambda column: ", ".join(sorted({row[column] for row in runs.rows}))
    days = sorted({row["date"] for row in runs.rows})
    return [f"`scripts/papers.sh {runs.name} DATA OUT`, with these options of all rows:", "",
            *textwrap.wrap(runs.common, 110, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False), "",
            f"Commit {of('commit')}, {' to '.join(dict.fromkeys([days[0], days[-1]])) if days else '–'}, {of('processor')}, one thread.",
            f"The SHA-256 of the text begins with {of('text')}."]


def filled(page, text, draw=None):
    """The text of a page with its blocks generated again."""
    lines, result, at = text.splitlines(), [], 0
    while at < len(lines):
        result.append(lines[at])
        found = BLOCK.match(lines[at])
        at += 1
        if not found:
            if lines[at - 1].startswith("<!-- ") and re.match(r"<!-- (table|tests|lengths|samples|curves|source)\b", lines[at - 1]):
                raise Problem(f"{page}:{at}: not the first line of a block: {lines[at - 1]}")
            continue
        if END not in lines[at:]:
            raise Problem(f"{page}:{at}: the block has no {END}")
        try:
            result += block(page, lines, *found.groups())
        except Problem as problem:
            raise Problem(f"{page}:{at}: {problem}") from None
        if draw and found.group(1) == "curves":
            draw_curves(draw, page, read_runs(table_path(page, found.group(2))), found.group(3))
        at = lines.index(END, at)
    return "\n".join(result) + "\n"


def draw_curves(translate, page, runs, title):
    """Draws the validation BLEU of the first run of each system."""
    first = [runs.of(system)[0] for system in runs.finished() if runs.of(system)[0]["seed"] != "+"]
    if not first:
        return
    picture = page.parent.parent / "pictures" / f"{runs.name}-curves.svg"
    subprocess.run([translate, "curves", *(str(runs.folder / f"{row['system']}.{row['seed']}.csv") for row in first),
                    *(part for row in first for part in ("--name", row["system"])), "--title", title, "--output", str(picture)], check=True)


def prose(text):
    """(line number, line) of sentences: without code, tables, headings and generated blocks."""
    fenced = generated = False
    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*```", line):
            fenced = not fenced
        elif BLOCK.match(line):
            generated = True
        elif line == END:
            generated = False
        elif not (fenced or generated or re.match(r"    |#|\s*\||!\[", line)):
            yield number, line


def plain(line):
    """A line without comments, code, targets of links and the numbers of papers, tables and seeds."""
    line = re.sub(r"`[^`]*`|\]\([^)]*\)", " ", COMMENT.sub(" ", line))
    line = re.sub(r"(?:\bal\.|\b[A-Z]\w+),? \(?(?:19|20)\d\d\b", " ", line)
    return re.sub(r"(?:\b(?:tables?|figures?|sections?|seeds?|equations?|appendix)|§) ?\d+(?:(?:, | and | to )\d+)*", " ", line, flags=re.I)


def numbers_in(text):
    """The numbers of a text, as written, without signs."""
    return [found.group(1) for found in NUMBER.finditer(text)]


def is_in(number, cells):
    """Whether a number is a cell, or a cell rounded to at least one decimal."""
    value, digits = number.replace(",", ""), len(number.partition(".")[2])
    return any(float(value) == cell or (digits and value == f"{cell:.{digits}f}") for cell in cells)


def check(page):
    """The faults of a page, as texts; None if it has no block."""
    text = page.read_text(encoding="utf-8")
    if not any(BLOCK.match(line) for line in text.splitlines()):
        return None
    faults = []
    if filled(page, text) != text:
        faults.append(f"{page}: a generated block differs from its runs; run scripts/results.py write {page}")
    tables = {table_path(page, found.group(2)) for line in text.splitlines() if (found := BLOCK.match(line))}
    known = [number for line in text.splitlines() if re.match(r"\s*\|", line) for number in numbers_in(line)]
    known += [number for each in GIVEN.findall(text) for number in numbers_in(each)]
    known += [number for table in tables for number in re.findall(r"(?<=[\s:])\d+(?:\.\d+)?(?=[\s:]|$)", table.read_text(encoding="utf-8"))]
    cells = {float(number.replace(",", "")) for number in known}
    for at, line in prose(text):
        where, sentence = f"{page}:{at}", plain(line)
        for number in numbers_in(sentence):
            if not is_in(number, cells):
                faults.append(f"{where}: {number} is in no table of this page and not given: {sentence.strip()}")
        try:
            claims = list(claims_of(page, line))
            if COMPARES.search(sentence) and not claims and "<!-- not tested: " not in line:
                faults.append(f"{where}: \"{COMPARES.search(sentence).group()}\" compares without a claim: {sentence.strip()}")
            for table, first, relation, second, metric in claims:
                verdict = compared(table, first, second, metric).verdict
                if verdict != relation:
                    faults.append(f"{where}: {first} {relation} {second}, {metric}: the paired test has {first} {verdict} {second} "
                                  f"({', '.join(compared(table, first, second, metric).cells())})")
            if any(claim[2] == "=" for claim in claims) and "not told apart" not in sentence:
                faults.append(f"{where}: a claim \"=\" requires the words \"not told apart\": {sentence.strip()}")
            if claims and all(claim[2] == ">" for claim in claims) and "told apart" in sentence:
                faults.append(f"{where}: \"told apart\" without a claim \"=\": {sentence.strip()}")
        except Problem as problem:
            faults.append(f"{where}: {problem}")
    return faults


def main(arguments):
    """Runs a command; returns the exit status."""
    command, *rest = arguments or ["--help"]
    if command in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if command == "record" and len(rest) == 7:
        record(*rest)
        return 0
    if command == "finished" and len(rest) == 1:
        print(*(f"{row['system']}.{row['seed']}" for row in Runs(Path(rest[0])).rows), sep="\n")
        return 0
    if command == "compare" and len(rest) in (3, 4):
        table, first, second = rest[:3]
        result = Comparison(Runs(Path(table)), first, second, rest[3] if len(rest) > 3 else "beam")
        print(f"{first} {result.verdict} {second}: {', '.join(result.cells())}")
        return 0
    if command in ("write", "check"):
        translate = None
        if command == "write" and rest[:1] == ["--translate"]:
            translate, rest = rest[1] if len(rest) > 1 else None, rest[2:]
        pages = [Path(each) for each in rest] or sorted(PAGES.glob("*.md"))
        checked, faults = 0, []
        for page in pages:
            if not page.is_file():
                raise Problem(f"{page}: no such page")
            if command == "write":
                text = page.read_text(encoding="utf-8")
                new = filled(page, text, translate)
                if new != text:
                    write_whole(page, new.encode())
                    print(f"{page} is written")
            else:
                found = check(page)
                checked += found is not None
                faults += found or []
        if command == "check":
            print(*faults, sep="\n", end="\n" if faults else "")
            print(f"{checked} of {len(pages)} pages have blocks of runs, {len(faults)} faults")
        return 1 if faults else 0
    print(__doc__.strip(), file=sys.stderr)
    return 2


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"results.py: {problem}")
    except BrokenPipeError:
        sys.exit(1)
    except OSError as problem:
        sys.exit(f"results.py: {problem.filename or 'standard output'}: {problem.strerror}")
