#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `translate train --log`: one row per epoch, never half a row, and the same rows when interrupted and resumed.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 200 1 train
sentences 20 2 valid
header=epoch,updates,minutes,training_loss,learning_rate,validation_loss,validation_bleu,tokens_per_second

# whole FILE: the file starts with the header, and each row has its eight fields and its end.
whole()
{
    [[ $(head -n 1 "$1") == "$header" ]] || fail "$1 starts with $(head -n 1 "$1")"
    awk -F, 'NF != 8 || (NR > 1 && $1 != NR - 1) { exit 1 }' "$1" || fail "not one row per epoch: $(cat "$1")"
    [[ -z $(tail -c 1 "$1") ]] || fail "$1 ends in the middle of a row"
}
# course FILE: the log without the columns that depend on the machine.
course() { cut -d, -f 1,2,4-7 "$1"; }

train --epochs 6 --log all.csv || fail "training"
whole all.csv
(($(wc -l <all.csv) == 7)) || fail "6 epochs, but $(($(wc -l <all.csv) - 1)) rows"
(($(sed -n 7p all.csv | cut -d, -f 2) == 150)) || fail "6 epochs of 25 batches are not 150 updates: $(sed -n 7p all.csv)"
# The log agrees with the messages.
sed -n 's/^epoch *\([0-9]*\) *loss \([0-9.]*\) .* BLEU \([0-9.]*\).*/\1 \2 \3/p' log >told
awk -F, 'NR > 1 { printf "%d %.3f %.2f\n", $1, $4, $7 }' all.csv | cmp - told || fail "messages and log differ"
awk -F, 'NR > 1 && !($3 >= before && $4 > 0 && $5 > 0 && $6 > 0 && $8 > 0) { exit 1 } { before = NR > 1 ? $3 : 0 }' all.csv ||
    fail "inconsistent numbers: $(cat all.csv)"
(($(sed -n 7p all.csv | cut -d, -f 4 | tr -d .) < $(sed -n 2p all.csv | cut -d, -f 4 | tr -d .))) || fail "the loss did not decrease"
# exp(validation loss) is the perplexity.
perplexity=$(sed -n 's/^epoch *6 .*perplexity \([0-9.]*\),.*/\1/p' log)
[[ $(awk -F, 'NR == 7 { printf "%.2f", exp($6) }' all.csv) == "$perplexity" ]] || fail "the validation loss is not the log perplexity"

# Small text: BLEU is always 0, since no reference has four words. Then the loss decides which epoch is the best: each
# epoch has a star, the rate is never halved, patience does not run out, and the last model is kept.
rm model.safetensors*
awk 'NF < 4' valid.a >brief.a
awk 'NF < 4' valid.b >brief.b
brief=(--valid-source brief.a --valid-target brief.b --patience 1 --seed 2)
train "${brief[@]}" --epochs 5 --log equal.csv || fail "training"
awk -F, 'NR > 1 && ($7 != 0 || NR > 2 && $6 >= last) { exit 1 } { last = $6 }' equal.csv ||
    fail "the loss does not fall, or BLEU is not 0: the test is ineffective: $(cat equal.csv)"
(($(grep -c '^epoch .* BLEU 0.00 \*  ' log) == 5)) || fail "a lower loss does not count as better"
[[ $(awk -F, 'NR > 1 { print $5 }' equal.csv | paste -sd ' ') == '0.001 0.001 0.001 0.001 0.001' ]] || fail "the rate is halved"
grep -q '^best validation BLEU 0.00 after epoch 5 of 5' log || fail "another epoch is the best"
"$translate" score --model model.safetensors --source brief.a --target brief.b --threads 1 >scores 2>/dev/null || fail "scoring"
paste -d ' ' <(sed -n 's/^perplexity = //p' scores) <(sed -n 6p equal.csv | cut -d, -f 6) |
    awk '{ d = log($1) - $2; exit d < -0.001 || d > 0.001 }' || fail "another model was kept"
# A checkpoint stores the best loss: with an unreachable one, no epoch is better, and patience runs out. With an older
# checkpoint that lacks it, the next epoch that equals the best is kept.
cp model.safetensors.checkpoint good
edited '"training.best-loss":"' '"training.best-loss":"0.001","x":"' good >model.safetensors.checkpoint
train "${brief[@]}" --epochs 9 --resume --log equal.csv || fail "resuming"
(($(grep -c '^epoch ' log) == 2)) || fail "patience does not end after two epochs without improvement"
grep -q '^epoch .*\*' log && fail "a larger loss counts as better"
[[ $(awk -F, 'NR > 6 { print $5 }' equal.csv | paste -sd ' ') == '0.001 0.0005' ]] || fail "the rate is not halved"
edited '"training.best-loss"' '"training.of-before"' good >model.safetensors.checkpoint
train "${brief[@]}" --epochs 6 --resume || fail "a checkpoint without the best loss"
(($(grep -c '^epoch  6 .*\*' log) == 1)) || fail "an equal epoch does not replace one of unknown loss"
# A better BLEU counts more than a larger loss.
edited '"training.best":"0","training.best-epoch":"5","training.best-loss":"' \
    '"training.best":"0.5","training.best-epoch":"5","training.best-loss":"9999' good >model.safetensors.checkpoint
train "${brief[@]}" --epochs 6 --resume || fail "resuming"
grep -q '^epoch .*\*' log && fail "a lower loss with a lower BLEU counts as better"

# Interrupted or killed, and resumed repeatedly; the log always consists of whole rows.
rm model.safetensors*
how=(--hidden 24 --embedding 24 --batch 4 --epochs 6)
train "${how[@]}" --log all.csv || fail "training"
rm model.safetensors*
resume=''
stopped=0
for signal in INT KILL TERM KILL INT; do
    rows=$([[ -e parts.csv ]] && wc -l <parts.csv || echo 1)
    # shellcheck disable=SC2086  # no word at first
    "${training[@]}" "${how[@]}" --log parts.csv $resume 2>log &
    process=$!
    while kill -0 $process 2>/dev/null; do
        [[ -e parts.csv ]] || continue
        whole parts.csv
        [[ -e model.safetensors.checkpoint ]] && (($(wc -l <parts.csv) > rows)) && break
    done
    if kill "-$signal" $process 2>/dev/null; then stopped=$((stopped + 1)); fi
    wait $process 2>/dev/null || true
    whole parts.csv
    resume=--resume
done
((stopped >= 2)) || fail "only $stopped interruptions"
train "${how[@]}" --log parts.csv --resume || fail "resuming: $(cat log)"
whole parts.csv
course parts.csv | cmp - <(course all.csv) || fail "the log of an interrupted and resumed run differs: $(diff parts.csv all.csv)"

# More epochs add rows; rows of repeated epochs are dropped.
printf '7,350,1,1,1,1,1,1\n8,400,1,1,1,1,1,1\n' >>parts.csv
train "${how[@]}" --epochs 8 --patience 9 --log parts.csv --resume || fail "more epochs"
whole parts.csv
(($(wc -l <parts.csv) == 9)) || fail "8 epochs, but $(($(wc -l <parts.csv) - 1)) rows"
head -n 7 parts.csv | course /dev/stdin | cmp - <(course all.csv) || fail "more epochs change earlier rows"
grep -q '^8,400,1,1' parts.csv && fail "a row of another run was kept"
# A log that starts at a later epoch; and a new run starts a new log.
train "${how[@]}" --epochs 9 --patience 9 --log late.csv --resume || fail "a log from here on"
[[ $(cut -d, -f 1 late.csv | paste -sd ' ') == 'epoch 9' ]] || fail "a late log has $(cat late.csv)"
rm model.safetensors*
train --epochs 1 --log parts.csv || fail "a new run"
(($(wc -l <parts.csv) == 2)) || fail "a new run continues the old log"

# Batches by tokens: all of the text in one update.
rm model.safetensors*
train --epochs 2 --log big.csv --batch-tokens 1000000 || fail "one batch"
[[ $(cut -d, -f 2 big.csv | paste -sd ' ') == 'updates 1 2' ]] || fail "the whole text in one batch: $(cat big.csv)"
rm model.safetensors*
train --epochs 1 --log small.csv --batch-tokens 1 || fail "batches of one"
[[ $(cut -d, -f 2 small.csv | paste -sd ' ') == 'updates 200' ]] || fail "200 batches of one pair: $(cat small.csv)"

# Rejected logs.
refused 'train.a: would overwrite an input' train --model new.safetensors --log train.a
refused 'is also the model' train --model new.safetensors --log ./new.safetensors
refused 'is also the model' train --model new.safetensors --log new.safetensors.checkpoint
refused 'is not a regular file' train --model new.safetensors --log /dev/null
refused '.: is not a regular file' train --model new.safetensors --log .
refused 'cannot create a temporary' train --model new.safetensors --log no/such/folder.csv
[[ ! -e new.safetensors ]] || fail "rejected, but a model was written"
cp valid.a strange.csv
refused 'strange.csv:1: not a log of this program' train --epochs 2 --batch-tokens 1 --resume --log strange.csv
cmp valid.a strange.csv || fail "a file that is not a log was overwritten"
printf '%s\nnonsense\n' $header >strange.csv
refused 'strange.csv:2: expected a row that begins with' train --epochs 2 --batch-tokens 1 --resume --log strange.csv
no_temporaries
