#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# results.sh RESULTS PROJECT: the pages of docs/results agree with their runs; scripts/results.py makes blocks of a page
# from runs, and finds a wrong number, a wrong claim, a comparison without a claim, and a block that is out of date.
set -Eeuo pipefail
export LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
results=$(realpath -- "$1") project=$(realpath -- "$2")

"$results" check

directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cd -- "$directory"
fail() { printf 'FAILED (line %s): %s\n' "${BASH_LINENO[0]}" "$*" >&2 && exit 1; }

# Runs of six systems on 500 sentences, made by formula: `good` matches more than `plain`, `equal` differs from `plain`
# by chance, `noisy` depends on its seed, `single` has one seed, and `later` has no run yet.
cat >few.runs <<'END'
languages en de
common --hidden 128
plain   1,2,3  --attention additive
good    1,2,3  --attention temporal
equal   1,2,3  --attention coverage
noisy   1,2,3  --attention local-m
single  1      --attention gated
later   1,2    --attention grouped
END
python3 - "$results" <<'END'
import gzip, random, sys
from pathlib import Path
sys.path.insert(0, str(Path(sys.argv[1]).parent))
from results import runs as results
Path("few").mkdir()
options = {"plain": "additive", "good": "temporal", "equal": "coverage", "noisy": "local-m", "single": "gated"}
rows = ["\t".join(results.COLUMNS)]
source = random.Random(7)
hard = [source.uniform(-0.2, 0.2) for _ in range(500)]
for system, bonus, seeds, spread in (("plain", 0, 3, 0), ("good", 0.1, 3, 0), ("equal", 0, 3, 0), ("noisy", 0.05, 3, 0.1), ("single", 0, 1, 0)):
    for seed in range(1, seeds + 1):
        lines = ["\t".join(results.SENTENCES + results.TEXTS)]
        for number, each in enumerate(hard, 1):
            p = 0.6 + each + bonus + spread * (seed - 2)
            match = [sum(source.random() < p ** n for _ in range(12 - n)) for n in range(1, 5)]
            lines.append("\t".join(map(str, [10, 11, *([11, *match] * 2), 11 - match[0], f"{p:.4f}", 0, *([f"a | {system}", "b", "c"] if number % 50 == 0 else [""] * 3)])))
        Path(f"few/{system}.{seed}.sentences.gz").write_bytes(gzip.compress("".join(line + "\n" for line in lines).encode()))
        log = "".join(f"{n},{100 * n},{1.5 * n},{3 - n / 10},{20 + n + 10 * bonus}\n" for n in range(1, 4))
        Path(f"few/{system}.{seed}.csv").write_text("epoch,updates,minutes,validation_loss,validation_bleu\n" + log)
        row = dict.fromkeys(results.COLUMNS, "1") | {"system": system, "seed": str(seed), "date": "2026-01-02", "commit": "abc",
                                                   "options": f"--hidden 128 --attention {options[system]}"}
        columns = [list(map(float, line.split("\t")[:-3])) for line in lines[1:]]
        sums = [sum(column) for column in zip(*columns)]
        counts = [sums[1], sums[7], 0, sums[12], 0, 500]
        for n in range(4):
            counts += [sums[8 + n], 500 * (11 - n)]
        row["beam"] = row["greedy"] = f"{results.bleu(counts):.2f}"
        row["perplexity"] = f"{8 + seed / 10 - 20 * bonus:.1f}"
        rows.append("\t".join(row.values()))
Path("few.tsv").write_text("".join(row + "\n" for row in rows))
END

mkdir -p docs/results docs/pictures
cd docs/results
mv ../../few* .
cat >page.md <<'END'
# Six systems 1999

<!-- table few.runs: beam perplexity -->
<!-- end -->

<!-- table few.runs: beam | later single good -->
<!-- end -->

<!-- compare few.runs: beam perplexity | plain: good lat*; good: plain noisy -->
<!-- end -->

<!-- times few.runs: 1 3 | plain good later -->
<!-- end -->

<!-- curves few.runs: two loss updates | plain good -->
<!-- end -->

<!-- samples few.runs | later -->
<!-- end -->

<!-- tests few.runs -->
<!-- end -->

<!-- lengths few.runs: beam 9 10 | plain good -->
<!-- end -->

<!-- samples few.runs | plain good -->
<!-- end -->

<!-- source few.runs -->
<!-- end -->

The size is 128, and `5` seeds of 30 sentences were read by 7 machines. <!-- given: 30 sentences, 7 machines -->
`good` is better than `plain`. <!-- claim few.runs: good > plain; good > plain, perplexity -->
`equal` and `plain` are not told apart. <!-- claim few.runs: equal = plain; noisy = plain -->
END
"$results" write page.md >output || fail "$(cat output)"
grep -q '^page.md is written$' output || fail "the page is not written"
"$results" write page.md | grep -q . && fail "a page is written that has not changed"
"$results" check page.md || fail "the page does not agree with its runs: $(cat page.md)"
grep -q '^| good | 3 | [0-9.]* ± [0-9.]* | 6\.20 ± 0\.10 |$' page.md || fail "the table: $(cat page.md)"
grep -q '^| single | 1 | [0-9.]* |$' page.md || fail "a single run: $(cat page.md)"
[[ $(grep -c '^Not yet trained: later\.$' page.md) == 3 ]] || fail "missing runs: $(cat page.md)"
tr -s ' \n' ' ' <page.md | grep -q -- '- BLEU beam 12: good (+[0-9.]*, p < 0\.001) is better than plain; plain (−[0-9.]*, p < 0\.001) is worse than good; noisy ([^;]*) is not told apart from good\.' ||
    fail "comparisons: $(cat page.md)"
grep -q '^- Not yet compared: later with plain\.$' page.md || fail "a comparison without runs: $(cat page.md)"
grep -q '^| plain | – | 22\.00 | 23\.00 (4) |$' page.md || fail "the times: $(cat page.md)"
grep -q '^13 of 15 runs are recorded\.$' page.md || fail "the number of runs: $(cat page.md)"
for picture in few-two few-beam-lengths; do
    grep -q "(../pictures/$picture.svg)" page.md || fail "the picture $picture: $(cat page.md)"
    python3 -c "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])" ../pictures/$picture.svg || fail "the picture $picture is not XML"
done
grep -q '^| good, plain | BLEU beam 12 | .* | good is better |$' page.md || fail "the tests: $(cat page.md)"
grep -q '^| good, plain | perplexity (seeds only) | 6\.20 | 8\.20 | −2\.00 | \[−2\.23, −1\.77\] | < 0\.001 | good is better |$' page.md ||
    fail "the test over seeds: $(cat page.md)"
grep -q '^| noisy, plain | .* | not told apart |$' page.md || fail "the tests: $(cat page.md)"
(($(grep -c '^| up to 9 | 0 | – | – |$\|^| 10 to 10 | 500 | [0-9]' page.md) == 2)) || fail "the lengths: $(cat page.md)"
[[ $(sed -n '/^<!-- samples few.runs | plain/,/^<!-- end/p' page.md | tail -n +6) == '| 250 | source | a \| plain |
|  | reference | b |
|  | plain | c |
|  | good | c |
| 500 | source | a \| plain |
|  | reference | b |
|  | plain | c |
|  | good | c |
<!-- end -->' ]] || fail "the samples: $(cat page.md)"
grep -q '^Commit abc, ' page.md || fail "the source: $(cat page.md)"
mean=$(awk -F'\t' '$1 == "good" { for (i = 1; i <= NF; ++i) if (head[i] == "beam") sum += $i } NR == 1 { for (i = 1; i <= NF; ++i) head[i] = $i } END { printf "%.2f", sum / 3 }' few.tsv)
printf 'The mean is %.2f, or %.1f.\n' "$mean" "$mean" >right
cat page.md right >good.md
"$results" check good.md || fail "the mean is a number of the table"

# wrong TEXT LINE: a page with this line more must be refused with this message.
wrong()
{
    { cat page.md && printf '%s\n' "$2"; } >wrong.md
    ! "$results" check wrong.md >output 2>&1 || fail "not refused: $2"
    grep -q -- "$1" output || fail "the message has no '$1': $(cat output)"
}
wrong 'wrong.md:[0-9]*: 47.11 is in no table' 'The mean is 47.11.'
wrong '129 is in no table' 'Models of size 129.'
wrong '"higher" compares without a claim' '`good` has a higher score.'
wrong 'equal > plain, beam: the paired test has equal = plain' '`equal` is better. <!-- claim few.runs: equal > plain -->'
wrong 'plain > good, beam: the paired test has plain < good' '`plain` is better. <!-- claim few.runs: plain > good -->'
wrong 'good = plain, beam: the paired test has good > plain' 'They are not told apart. <!-- claim few.runs: good = plain -->'
wrong 'requires the words "not told apart"' '`equal` is like `plain`. <!-- claim few.runs: equal = plain -->'
wrong 'without a claim "="' 'The two are not told apart. <!-- claim few.runs: good > plain -->'
wrong 'single has 1 run(s) with beam: at least two seeds' '`good` is better. <!-- claim few.runs: good > single -->'
wrong 'few.runs has no row "best"' '`good` is better. <!-- claim few.runs: good > best -->'
wrong 'unknown metric "blue"' '`good` is better. <!-- claim few.runs: good > plain, blue -->'
wrong 'is not a claim such as' '`good` is better. <!-- claim few.runs: good is better -->'
wrong 'other.runs: no such table' '`good` is better. <!-- claim other.runs: good > plain -->'
wrong 'a generated block differs' '`noisy` and `good` are not told apart. <!-- claim few.runs: noisy = good -->'
wrong 'expected numbers such as 10 20 30, not "few"' $'<!-- lengths few.runs: ter few -->\n<!-- end -->'
wrong 'perplexity has no statistics of sentences' $'<!-- lengths few.runs: perplexity 10 -->\n<!-- end -->'
wrong 'a second picture few-two.svg' $'<!-- curves few.runs: two bleu epochs -->\n<!-- end -->'
wrong 'expected a name, y and x' $'<!-- curves few.runs: bleu epochs -->\n<!-- end -->'
wrong 'expected "BASE: SYSTEM..."' $'<!-- compare few.runs: beam | plain good -->\n<!-- end -->'
wrong 'unknown metric "blue"' $'<!-- table few.runs: blue -->\n<!-- end -->'
wrong 'few.runs has no row "worst"' $'<!-- table few.runs: beam | worst -->\n<!-- end -->'
wrong 'the block has no <!-- end -->' '<!-- table few.runs: beam -->'
wrong 'not the first line of a block' '<!-- table few.runs beam, -->'
{ cat page.md && echo 'Their system gains more, as in 2018. <!-- not tested: the result of the paper --> <!-- given: 2018 -->'; } >untested.md
"$results" check untested.md || fail "a comparison that is not tested"

sed -i 's/stroke-width="2"/stroke-width="3"/' ../pictures/few-two.svg
! "$results" check page.md >output || fail "a changed picture"
grep -q 'few-two.svg: differs from its runs' output || fail "$(cat output)"

# A changed, damaged or missing record.
sed 's/^plain\t2\t/plain\t1\t/' few.tsv >twice.tsv && cp few.runs twice.runs && cp -r few twice
! "$results" compare twice.runs good plain 2>output || fail "a run twice"
grep -q 'two rows of plain.1' output || fail "$(cat output)"
cp few.tsv twice.tsv && echo 'plain	4' >>twice.tsv
! "$results" compare twice.runs good plain 2>output || fail "half a row"
grep -q "twice.tsv:15: " output || fail "$(cat output)"
cp few.tsv twice.tsv && rm twice/good.2.sentences.gz
! "$results" compare twice.runs good plain 2>output || fail "a missing file"
grep -q 'good.2.sentences.gz: is missing' output || fail "$(cat output)"
[[ $("$results" compare few.runs good plain) == 'good > plain: '* ]] || fail "compare"
cp few.tsv before.tsv
sed 's/^good\t1\(.*\)\t6\.1\t/good\t1\1\t6.3\t/' before.tsv >few.tsv
cmp -s before.tsv few.tsv && fail "nothing was changed"
! "$results" check page.md >output || fail "a changed record"
grep -q 'a generated block differs' output || fail "$(cat output)"

cp before.tsv twice.tsv && sed 's/--attention gated/--attention entmax/' few.runs >twice.runs
! "$results" compare twice.runs good plain 2>output || fail "other options"
grep -q 'twice.tsv:14: was run with other options than twice.runs has now: --hidden 128 --attention gated' output || fail "$(cat output)"

# The tables of runs can be read.
for table in "$project"/docs/results/runs/*.runs; do
    "$project/scripts/papers.sh" --list "$table" >output || fail "$table"
    grep -q . output || fail "$table is empty"
done
# mistaken TEXT LINE: a table of runs with this line must be refused with this message.
mistaken()
{
    printf 'languages en de\na 1 --attention additive\n%s\n' "$2" >mistaken.runs
    ! "$project/scripts/papers.sh" --list mistaken.runs >output 2>&1 || fail "not refused: $2"
    grep -q -- "mistaken.runs.*$1" output || fail "the message has no '$1': $(cat output)"
}
mistaken ':3: "one" is not a list of seeds' 'b one --attention additive'
mistaken ':3: a second row "a"' 'a 2 --attention additive'
mistaken ':3: "B.1" is not a name' 'B.1 1 --attention additive'
mistaken 'seed 1 twice' 'b 1,1 --attention additive'
mistaken ':3: the seeds are in the second column' 'b 1 --seed 2'
mistaken ':3: expected "languages' 'languages en'
mistaken 'there is no run "b.1"' 'both + a.1 b.1'
mistaken ':3: an ensemble without members' 'both +'
echo 'a 1 --attention additive' >mistaken.runs
! "$project/scripts/papers.sh" --list mistaken.runs 2>output || fail "no languages"
grep -q '"languages SOURCE TARGET" is missing' output || fail "$(cat output)"
! "$project/scripts/papers.sh" --list nowhere 2>output || fail "no table"
grep -q 'no such table of runs; tables are .*choi2018' output || fail "$(cat output)"
echo passed
