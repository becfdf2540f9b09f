#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tables, tests and checks of the result pages, from the runs that scripts/papers.sh records.

usage: scripts/results.py write [PAGE.md...]                     fill the blocks of pages, and draw their curves;
                                                                 default: all of docs/results
       scripts/results.py draw PAGE.md DATA OUT                  write a page, and draw its attention weights
       scripts/results.py check [PAGE.md...]                     fail if a page and its runs disagree
       scripts/results.py compare TABLE.runs SYSTEM SYSTEM [METRIC]  the paired test of two systems

A block of a page is generated, from its first line to `<!-- end -->`:

    <!-- table TABLE: METRIC... -->              a row per system: mean and standard deviation over the seeds
    <!-- table TABLE: METRIC... | SYSTEM... -->  only these systems, in this order
                                                 local-*: those that begin with local-
    <!-- compare TABLE: METRIC... | BASE: SYSTEM...; BASE: SYSTEM... -->  sentences that compare systems with a base
    <!-- tests TABLE -->                         the paired test of each claim of the page
    <!-- lengths TABLE: METRIC 10 20 30 | SYSTEM... -->  a metric by words of the source, mean over the seeds, and its picture
    <!-- times TABLE: 5 10 20 | SYSTEM... -->    the best BLEU on val within these minutes of training
    <!-- curves TABLE: NAME Y X | SYSTEM... -->  the picture TABLE-NAME.svg of the first seeds; Y: bleu or loss, on val;
                                                 X: epochs, updates or minutes
    <!-- weights TABLE: LINE | SYSTEM... -->     the picture of the weights for a line of the test set, forced through the
                                                 reference; or `gold`, a pair of the gold alignments
    <!-- samples TABLE | SYSTEM... -->           every 250th sentence of the test set and its translations
    <!-- source TABLE -->                        options, commit, date, processor, text

A block covers the runs that are recorded so far, and its text names the missing ones.

`draw` uses models: DATA and OUT are those of scripts/papers.sh, PROGRAMS is the folder of `translate` and `evaluate`, and
GOLD that of the gold alignments. `gold` is the first pair with the fewest words that are unknown to the training text,
of those with 6 to 12 words on each side.

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

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))

from results import Problem  # noqa: E402
from results.blocks import PAGES, filled  # noqa: E402
from results.draw import draw  # noqa: E402
from results.paired import Comparison  # noqa: E402
from results.prose import check  # noqa: E402
from results.record import record, write_whole  # noqa: E402
from results.runs import Runs  # noqa: E402


def write(page):
    """Generates the blocks and pictures of a page."""
    text = page.read_text(encoding="utf-8")
    new, pictures = filled(page, text)
    for path, content in {page: new, **pictures}.items():
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            write_whole(path, content.encode())
            print(f"{path} is written")


def main(arguments):
    """Runs a command; returns the exit status."""
    command, *rest = arguments or ["--help"]
    if command in ("-h", "--help"):
        print(__doc__.strip())
    elif command == "record" and len(rest) == 7:
        record(*rest)
    elif command == "finished" and len(rest) == 1:
        print(*(f"{row['system']}.{row['seed']}" for row in Runs(Path(rest[0])).rows), sep="\n")
    elif command == "compare" and len(rest) in (3, 4):
        table, first, second = rest[:3]
        result = Comparison(Runs(Path(table)), first, second, rest[3] if len(rest) > 3 else "beam")
        print(f"{first} {result.verdict} {second}: {', '.join(result.cells())}")
    elif command == "draw" and len(rest) == 3:
        for path in draw(Path(rest[0]), *rest[1:]):
            print(f"{path} is drawn")
        write(Path(rest[0]))
    elif command in ("write", "check"):
        pages = [Path(each) for each in rest] or sorted(PAGES.glob("*.md"))
        checked, faults = 0, []
        for page in pages:
            if not page.is_file():
                raise Problem(f"{page}: no such page")
            if command == "write":
                write(page)
                continue
            found = check(page)
            checked += found is not None
            faults += found or []
        if command == "check":
            print(*faults, sep="\n", end="\n" if faults else "")
            print(f"{checked} of {len(pages)} pages have blocks of runs, {len(faults)} faults")
        return 1 if faults else 0
    else:
        print(__doc__.strip(), file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Problem as problem:
        sys.exit(f"results.py: {problem}")
    except BrokenPipeError:
        sys.exit(1)
    except OSError as problem:
        sys.exit(f"results.py: {problem.filename or 'standard output'}: {problem.strerror}")
