# SPDX-License-Identifier: BSD-3-Clause
"""The generated blocks of a page."""

import fnmatch
import math
import re
import statistics
import textwrap
from pathlib import Path

from results import Problem
from results.chart import line_chart
from results.paired import compared
from results.runs import METRICS, ROOT, SAMPLE, SCORES, TEXTS, read_runs, require_metric, search_of

PAGES = ROOT / "docs" / "results"
KINDS = "table|compare|tests|lengths|times|curves|weights|samples|source"
BLOCK = re.compile(rf"<!-- ({KINDS}) ([^\s:|]+)(?:: ([^|]*?))?(?: \| (.*?))? -->$")
END = "<!-- end -->"
CLAIM = re.compile(r"<!-- claim ([^\s:]+): (.*?) -->")
# name: (column of the log, label)
AXES = {"epochs": ("epoch", "epochs"), "updates": ("updates", "updates"), "minutes": ("minutes", "minutes of training"),
        "bleu": ("validation_bleu", "BLEU on val"), "loss": ("validation_loss", "ln perplexity on val")}
EVERY = 250  # the sentences shown as samples
WORDS = {"entropy": ("lower", "higher")}  # where better and worse are not the field's words


def table_path(page: Path, name):
    """docs/results/runs/NAME.runs, or a path relative to the page."""
    return page.parent / name if name.endswith(".runs") else PAGES / "runs" / f"{name}.runs"


def pictures_of(page: Path):
    """The folder of the pictures of a page."""
    return page.resolve().parents[1] / "pictures"


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


def whole_numbers(words):
    """The numbers of a block."""
    if not words or not all(word.isdigit() for word in words):
        raise Problem(f"expected numbers such as 10 20 30, not \"{' '.join(words)}\"")
    return [int(each) for each in words]


def expanded(runs, systems):
    """The systems of a block, in which local-* means all whose name begins with local-."""
    named = [[each for each in runs.systems if fnmatch.fnmatchcase(each, word)] if "*" in word else [word] for word in systems.split()]
    return [system for those in named for system in those]


def listed(words):
    """"a, b and c"."""
    return " and ".join([", ".join(words[:-1])] * (len(words) > 1) + words[-1:])


def wrapped(sentence, indent=""):
    """The lines of a sentence; `indent` begins a list."""
    return textwrap.wrap(sentence, 120, initial_indent=indent, subsequent_indent=" " * len(indent), break_on_hyphens=False)


class Blocks:
    """Makes the blocks of a page, and collects their pictures (SVG by path)."""

    def __init__(self, page, lines):
        self.page, self.all_lines, self.pictures = page, lines, {}

    def lines(self, kind, table, what, systems):
        """The lines of a block."""
        runs = read_runs(table_path(self.page, table))
        if kind in ("compare", "tests", "source"):
            return getattr(self, kind)(runs, what, systems)
        chosen = expanded(runs, systems or "*")
        trained = [system for system in chosen if runs.of(system)]
        if kind == "weights":
            return self.weights(runs, what, chosen)
        made = getattr(self, kind)(runs, what, trained) if trained else []
        missing = [system for system in chosen if system not in trained]
        if missing and (kind == "table" or not made):
            made += [""] * bool(made) + wrapped(f"Not yet trained: {', '.join(missing)}.")
        return made

    def picture(self, runs, name, text, svg):
        """The line that shows a picture, which is written with the page."""
        path = pictures_of(self.page) / f"{runs.name}-{name}.svg"
        if path in self.pictures:
            raise Problem(f"a second picture {path.name}")
        self.pictures[path] = svg
        return [f"![{text}](../pictures/{path.name})"]

    def table(self, runs, what, systems):
        metrics = (what or "").split()
        for metric in metrics:
            require_metric(metric)
        rows = [[runs.name, "seeds", *(METRICS[metric][0] for metric in metrics)]]
        for system in systems:
            seeds = f"{len(runs.of(system))}" + (f" of {len(runs.seeds[system])}" if not runs.complete(system) else "")
            rows.append([system, seeds, *(shown(runs, system, metric) for metric in metrics)])
        return markdown(rows)

    def compare(self, runs, what, systems):
        metrics = (what or "beam").split()
        clauses, later = {metric: [] for metric in metrics}, []
        for group in (systems or "").split(";"):
            base, colon, others = (part.strip() for part in group.partition(":"))
            others = expanded(runs, others)
            if not colon or not others:
                raise Problem(f"expected \"BASE: SYSTEM...\", not \"{group.strip()}\"")
            ready = [system for system in others if runs.complete(base) and runs.complete(system)]
            if missing := [system for system in others if system not in ready]:
                later.append(f"{listed(missing)} with {base}")
            for metric in metrics:
                found = {system: compared(runs.table, system, base, metric) for system in ready}
                better, worse = WORDS.get(metric, ("better", "worse"))
                for verdict, words in ((">", f"{better} than"), ("<", f"{worse} than"), ("=", "not told apart from")):
                    those = [f"{system} ({each.cells()[2]}, p {each.p_text('= ')})" for system, each in found.items() if each.verdict == verdict]
                    if those:
                        clauses[metric].append(f"{listed(those)} {'are' if len(those) > 1 else 'is'} {words} {base}")
        sentences = [f"{METRICS[metric][0].split(',')[0]}: {'; '.join(parts)}." for metric, parts in clauses.items() if parts]
        if later:
            sentences.append(f"Not yet compared: {'; '.join(later)}.")
        return [line for each in sentences for line in wrapped(each, "- ")]

    def tests(self, runs, *_):
        pairs = dict.fromkeys((first, second, metric) for line in self.all_lines
                              for at, first, _, second, metric in claims_of(self.page, line) if at == runs.table)
        rows = [[runs.name, "metric", "first", "second", "difference", "95%", "p", "verdict"]]
        for first, second, metric in pairs:
            result = compared(runs.table, first, second, metric)
            better = WORDS.get(metric, ("better",))[0]
            verdict = {">": f"{first} is {better}", "<": f"{second} is {better}", "=": "not told apart"}[result.verdict]
            rows.append([f"{first}, {second}", METRICS[metric][0] + ("" if metric in SCORES else " (seeds only)"), *result.cells(), verdict])
        return markdown(rows)

    def lengths(self, runs, what, systems):
        metric, *bounds = (what or "").split() or [""]
        require_metric(metric)
        if metric not in SCORES:
            raise Problem(f"{metric} has no statistics of sentences; metrics with them are {' '.join(SCORES)}")
        bounds = whole_numbers(bounds)
        heading, digits = METRICS[metric][0], METRICS[metric][1]
        of = SCORES[metric]
        if metric == "repetitions":
            heading, digits, of = "repetitions per 100 sentences", 1, lambda sums: 100 * sums[2] / sums[5]
        ranges = list(zip([0, *(each + 1 for each in bounds)], [*bounds, math.inf]))
        names = [f"more than {low - 1}" if high == math.inf else f"{low} to {high}" if low else f"up to {high}" for low, high in ranges]
        rows, lines = [[f"{heading}, by words of the source", "sentences", *systems]], {system: [] for system in systems}
        for group, (low, high) in enumerate(ranges):
            row = [names[group]]
            for system in systems:
                scores, here = [], 0
                for each in runs.of(system):
                    picked = [counts for counts, words in zip(runs.counts(system, each["seed"], search_of(metric)),
                                                              runs.sentences(system, each["seed"])["source"]) if low <= words <= high]
                    here = len(picked)
                    scores += [of([sum(column) for column in zip(*picked)])] if picked else []
                row += [str(here)] * (len(row) == 1) + [f"{statistics.fmean(scores):.{digits}f}" if here else "–"]
                lines[system] += [(group, statistics.fmean(scores))] if here else []
            rows.append(row)
        title = f"{heading}, by words of the source"
        return markdown(rows) + [""] + self.picture(runs, f"{metric}-lengths", title, line_chart(title, "words of the source", heading, lines, names))

    def times(self, runs, what, systems):
        minutes = whole_numbers((what or "").split())
        rows = [["BLEU on val after minutes of training", *map(str, minutes), "in total"]]
        for system in systems:
            logs = [runs.log(row) for row in runs.of(system) if row["seed"] != "+"]
            best = [[max((bleu for bleu, at in zip(log["validation_bleu"], log["minutes"]) if at <= limit), default=None) for log in logs]
                    for limit in [*minutes, math.inf]]
            rows.append([system, *("–" if None in each else f"{statistics.fmean(each):.2f}" for each in best)])
            rows[-1][-1] += f" ({statistics.fmean(log['minutes'][-1] for log in logs):.0f})"
        return markdown(rows)

    def curves(self, runs, what, systems):
        name, *axes = (what or "").split() or [""]
        if len(axes) != 2 or not set(axes) <= set(AXES):
            raise Problem(f"expected a name, y and x, such as \"ladder bleu epochs\", not \"{what}\"; axes are {' '.join(AXES)}")
        (y, y_label), (x, x_label) = AXES[axes[0]], AXES[axes[1]]
        first = [row for system in systems if (row := runs.of(system)[0])["seed"] != "+"]
        logs = {row["system"]: runs.log(row) for row in first}
        title = f"{y_label}, seed {listed(sorted({row['seed'] for row in first}))}"
        return self.picture(runs, name, title, line_chart(title, x_label, y_label, {system: list(zip(log[x], log[y])) for system, log in logs.items()}))

    def weights(self, runs, what, systems):
        name = f"{runs.name}-weights-{what}.svg"
        if not (pictures_of(self.page) / name).is_file():
            return wrapped(f"Not yet drawn: {', '.join(systems)}.")
        return [f"![The weights of {listed(systems)}](../pictures/{name})"]

    def samples(self, runs, _, systems):
        rows = [["sentence", "", "text"]]
        of = {system: runs.sentences(system, runs.of(system)[0]["seed"]) for system in systems}
        for number in range(EVERY, len(of[systems[0]]["source"]) + 1, EVERY):
            texts = lambda name: [re.sub(r"([|*_<`\\])", r"\\\1", each[name][number - 1]) for each in of.values()]
            source, reference, translations = map(texts, TEXTS)
            rows += [[str(number), "source", source[0]], ["", "reference", reference[0]], *(["", *each] for each in zip(systems, translations))]
        return [f"Every {EVERY}th sentence of the test set, by the first seed:", "", *markdown(rows)]

    def source(self, runs, *_):
        of = lambda column: ", ".join(sorted({row[column] for row in runs.rows}))
        days = sorted({row["date"] for row in runs.rows})
        total = sum(map(len, runs.seeds.values()))
        lines = [f"`scripts/papers.sh {runs.name} DATA OUT`, with these options of all rows:", "",
                 *textwrap.wrap(runs.common, 110, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False), "",
                 f"{len(runs.rows)} of {total} runs are recorded."]
        if runs.rows:
            lines += [f"Commit {of('commit')}, {' to '.join(dict.fromkeys([days[0], days[-1]]))}, {of('processor')}, one thread.",
                      f"The SHA-256 of the text begins with {of('text')}."]
        return lines


def filled(page, text):
    """The text of a page with its blocks generated again, and their pictures."""
    lines, result, at = text.splitlines(), [], 0
    blocks = Blocks(page, lines)
    while at < len(lines):
        result.append(lines[at])
        found = BLOCK.match(lines[at])
        at += 1
        if not found:
            if re.match(rf"<!-- ({KINDS})\b", lines[at - 1]):
                raise Problem(f"{page}:{at}: not the first line of a block: {lines[at - 1]}")
            continue
        if END not in lines[at:]:
            raise Problem(f"{page}:{at}: the block has no {END}")
        try:
            result += blocks.lines(*found.groups())
        except Problem as problem:
            raise Problem(f"{page}:{at}: {problem}") from None
        at = lines.index(END, at)
    return "\n".join(result) + "\n", blocks.pictures
