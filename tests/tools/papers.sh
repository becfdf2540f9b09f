#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/papers.sh trains the systems of a table and records them; an interrupted run resumes, a recorded one is skipped,
# and files of another run are refused.
evaluate=$(realpath -- "$2")
papers=$(realpath -- "$(dirname "${BASH_SOURCE[0]}")/../../scripts/papers.sh")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
command -v python3 >/dev/null || exit 77
export PYTHONDONTWRITEBYTECODE=1 PROGRAMS=$directory/programs
mkdir programs
ln -s "$translate" programs/translate
ln -s "$evaluate" programs/evaluate
sentences 60 1 train
sentences 20 2 val
sentences 60 3 test2016
cat >tiny.runs <<'END'
# Three systems
languages a b
common    --embedding 8 --hidden 8 --alignment 8 --batch 8
plain     1,2  --attention additive --epochs 2
none      1    --attention none --epochs 2
slow      1    --system luong --attention dot --min-count 2 --epochs 100000 --patience 100000
ensemble  +    plain.1 plain.2
END
# runs ROW...: the rows, with messages in `log`.
runs() { "$papers" tiny.runs . out "$@" >output 2>log; }
# refuses TEXT ARGUMENT...: papers.sh must fail with this message.
refuses()
{
    ! "$papers" "${@:2}" >output 2>log || fail "not refused: ${*:2}"
    grep -q -- "$1" log || fail "the message has no '$1'"
}

refuses 'unknown row "plan"; rows are plain none slow ensemble' tiny.runs . out plan
refuses 'nowhere/train.a: cannot be read' tiny.runs nowhere out
refuses 'unknown option --comit' --comit tiny.runs . out
refuses 'out/plain.1.safetensors is missing; run plain.1 first' tiny.runs . out ensemble
[[ ! -e tiny.tsv ]] || fail "a record without a run"

runs plain none ensemble || fail "training"
[[ $(cut -f 1,2 tiny.tsv | tr '\t\n' '. ') == 'system.seed plain.1 none.1 plain.2 ensemble.+ ' ]] || fail "the records: $(cat tiny.tsv)"
# field RUN NAME: a cell of the records.
field() { awk -F'\t' -v run="$1" -v name="$2" 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i } $1 "." $2 == run { print $at[name] }' tiny.tsv; }
[[ $(field plain.1 commit) == unknown && $(field plain.1 epochs) == 2 && $(field plain.2 options) == *'--batch 8 --attention additive --epochs 2' ]] ||
    fail "the records: $(cat tiny.tsv)"
"$translate" run --beam 12 --model out/plain.2.safetensors --input test2016.a 2>/dev/null |
    "$evaluate" bleu --json --reference test2016.b - | grep -q "\"score\": $(field plain.2 beam | sed 's/\.*0*$//')" || fail "BLEU: $(cat tiny.tsv)"
[[ $(field plain.1 overlooked) == [0-9]* && $(field none.1 overlooked) == - && $(field plain.1 replaced) == [0-9]* ]] || fail "the records: $(cat tiny.tsv)"
[[ $(zcat tiny/plain.1.sentences.gz | wc -l) == 61 && $(wc -l <tiny/plain.1.csv) == 3 ]] || fail "the files of a run"

cp tiny.tsv before.tsv
runs plain none ensemble || fail "the same command again"
cmp tiny.tsv before.tsv || fail "a run was recorded twice"
if grep -q training log; then fail "a recorded run was trained again"; fi

setsid "$papers" tiny.runs . out slow >output 2>log &
for ((i = 0; i < 600; ++i)); do
    [[ ! -e out/slow.1.safetensors.checkpoint ]] || break
    sleep 0.1
done
group=$!
kill -TERM -- -$group
if wait $group; then fail "an interrupted run succeeds"; fi
while kill -0 -- -$group 2>/dev/null; do sleep 0.1; done  # the program saves
cmp tiny.tsv before.tsv || fail "an interrupted run was recorded"
sed -i 's/--min-count 2/--min-count 1/' tiny.runs
refuses 'out/slow.1.*: was begun with another program, text or other options' tiny.runs . out slow
sed -i 's/--min-count 1/--min-count 2/; s/100000/3/g' tiny.runs
sed -i 's/100000/3/g' out/slow.1.run  # fewer epochs, so that the test ends
runs slow || fail "resuming"
grep -q 'slow.1' output || fail "another run was resumed: $(cat output)"
[[ $(field slow.1 system) == slow ]] || fail "a resumed run is not recorded"
sed -i 's/--attention none/--attention temporal/' tiny.runs
refuses 'tiny.tsv:3: was run with other options than tiny.runs has now' tiny.runs . out

# A page of these runs, with the curves of their logs and the weights of a model. If only the validation of
# an epoch was resumed, it has no speed.
sed -i '2s/,[^,]*$/,/' tiny/slow.1.csv
mkdir -p docs/results docs/pictures
sed -i 's/--attention temporal/--attention none/' tiny.runs
printf '# Tiny\n\n<!-- table ../../tiny.runs: beam minutes -->\n<!-- end -->\n\n<!-- curves ../../tiny.runs: curves bleu epochs -->\n<!-- end -->\n\n<!-- weights ../../tiny.runs: 3 | plain -->\n<!-- end -->\n' >docs/results/tiny.md
"${papers%papers.sh}results.py" draw docs/results/tiny.md . out >output 2>log || fail "the page"
for picture in curves weights-3; do grep -q '<svg' docs/pictures/tiny-$picture.svg || fail "no picture"; done
grep -q 'plain, [0-9.]* bits' docs/pictures/tiny-weights-3.svg || fail "the entropy"
grep -q '^| plain | 2 | [0-9.]* ± [0-9.]* | [0-9.]* ± [0-9.]* |$' docs/results/tiny.md || fail "the table: $(cat docs/results/tiny.md)"
"${papers%papers.sh}results.py" check docs/results/tiny.md >output || fail "the page and its runs disagree: $(cat output)"
