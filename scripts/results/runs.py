# SPDX-License-Identifier: BSD-3-Clause
"""Tables of runs, their records, and scores over sentences."""

import csv
import functools
import gzip
import math
import random
import statistics
from pathlib import Path

from results import Problem

ROOT = Path(__file__).resolve().parents[2]
RESAMPLES = 1000

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


def require_metric(name):
    """Throws unless there is such a metric."""
    if name not in METRICS:
        raise Problem(f"unknown metric \"{name}\"; metrics are {' '.join(METRICS)}")


class Runs:
    """A table of runs and its records."""

    def __init__(self, table: Path):
        self.table, self.name, self.folder = table, table.stem, table.with_suffix("")
        if not table.is_file():
            raise Problem(f"{table}: no such table of runs")
        self.source = self.target = self.common = ""
        self.seeds, own = {}, {}
        for line in table.read_text(encoding="utf-8").splitlines():
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            if words[0] == "languages":
                self.source, self.target = words[1:]
            elif words[0] == "common":
                self.common = " ".join(words[1:])
            else:
                self.seeds[words[0]] = words[1].split(",")
                own[words[0]] = words[2:]
        self.systems = list(self.seeds)
        self.options = {system: " ".join(more if self.seeds[system] == ["+"] else [*self.common.split(), *more])
                        for system, more in own.items()}
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
        """The rows of a system, in the order of the seeds."""
        if system not in self.systems:
            raise Problem(f"{self.table.name} has no row \"{system}\"; rows are {' '.join(self.systems)}")
        return sorted((row for row in self.rows if row["system"] == system), key=lambda row: row["seed"])

    def complete(self, system):
        """Whether all seeds of a system are recorded."""
        return len(self.of(system)) == len(self.seeds[system])

    def values(self, system, metric):
        """The numbers of a metric, seed by seed."""
        require_metric(metric)
        return [float(row[metric]) for row in self.of(system) if row[metric] != "-"]

    def log(self, row):
        """The training log of a run: a list of numbers by column; NaN for an empty cell, such as the speed if only the
        validation of an epoch was resumed."""
        path = self.folder / f"{row['system']}.{row['seed']}.csv"
        if not path.is_file():
            raise Problem(f"{path}: is missing")
        with open(path, encoding="utf-8", newline="") as file:
            epochs = list(csv.DictReader(file))
        return {name: [float(epoch[name] or "nan") for epoch in epochs] for name in epochs[0]}

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
    def counts(self, system, seed, search):
        """Summable integers of each sentence from which SCORES follow."""
        of = self.sentences(system, seed)
        words = of[f"{search}_words"]
        columns = [of["reference"], words, of["repetitions"], of["edits"], [round(10000 * each) for each in of["ribes"]], [1] * len(words)]
        for n in range(1, 5):
            columns += [of[f"{search}_{n}"], [max(0, each - n + 1) for each in words]]
        return [[int(each) for each in row] for row in zip(*columns)]

    @functools.lru_cache(maxsize=None)
    def sums(self, search):
        """The sums of the counts of each run over the same resamples of the sentences."""
        runs = [(row["system"], row["seed"]) for row in self.rows]
        bits = 32
        all_counts = [self.counts(*run, search) for run in runs]
        lengths = {len(each) for each in all_counts}
        if len(lengths) != 1:
            raise Problem(f"{self.folder}: the runs have different numbers of sentences")
        fields = len(all_counts[0][0])
        # All counts of a sentence in one integer: a resample is then a single sum.
        packed = []
        for together in zip(*all_counts):
            data = b"".join(value.to_bytes(bits // 8, "little") for counts in together for value in counts)
            packed.append(int.from_bytes(data, "little"))
        source = random.Random(1)
        sums = {run: [] for run in runs}
        for _ in range(RESAMPLES):
            data = sum(source.choices(packed, k=len(packed))).to_bytes(len(runs) * fields * bits // 8, "little")
            numbers = memoryview(data).cast("I").tolist()
            for i, run in enumerate(runs):
                sums[run].append(numbers[i * fields:(i + 1) * fields])
        return sums

    @functools.lru_cache(maxsize=None)
    def resampled(self, system, metric):
        """The mean score of the runs of a system in each resample."""
        sums = self.sums(search_of(metric))
        of_runs = [map(SCORES[metric], sums[system, row["seed"]]) for row in self.of(system)]
        return [statistics.fmean(scores) for scores in zip(*of_runs)]


@functools.lru_cache(maxsize=None)
def read_runs(table: Path):
    """The runs of a table, read once."""
    return Runs(table)


def search_of(metric):
    """The search whose translations a metric scores."""
    return "greedy" if metric == "greedy" else "beam"


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
