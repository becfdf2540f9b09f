#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Text that is not parallel text, and invalid options.
evaluate=$(realpath -- "$2")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 50 1 train
sentences 10 2 valid
train --epochs 1 || fail "training"
rm model.safetensors.checkpoint
model=$(cksum <model.safetensors)

: >empty
printf '\xef\xbb\xbf' >bom
printf 'one\ntwo \xff three\n' >invalid
printf 'one\n\nthree\n' >gap
printf 'one\n \t \nthree\n' >blank
printf 'one\ntwo\0three\n' >nul
head -n 49 train.a >short
mkdir folder
printf 'one\n' >locked
chmod 000 locked

for side in source target valid-source valid-target; do
    refused 'empty: is empty' train --$side empty
    refused 'invalid:2:5: byte 0xff is not valid UTF-8' train --$side invalid
    refused 'gap:2: a sentence has no token' train --$side gap
    refused 'parallel files must have the same number' train --$side short
    refused 'nowhere/text: cannot be opened: No such file' train --$side nowhere/text
done
for side in source valid-target; do  # one function reads them all
    refused 'bom: is empty' train --$side bom
    refused 'blank:2: a sentence has no token' train --$side blank
    refused 'nul:2:4: byte 0x00' train --$side nul
    refused 'folder: is a directory' train --$side folder
    if ((EUID != 0)); then refused 'locked: cannot be opened: Permission denied' train --$side locked; fi
done

# An endless line, which is read only up to the maximum length of a line: 64 MiB are enough here.
endless() { head -c 67108864 /dev/zero | tr '\0' x || true; }  # the reader stops first
for side in source target valid-source valid-target; do
    refused ': a line has more than 16777216 bytes; expected a text' train --$side <(endless)
done
refused ':1: a line has more than 16777216 bytes' train --source /dev/zero
refused ':1: a line has more than 16777216 bytes' train --source /dev/zero --raw
refused ':1: a line has more than 65536 bytes' train --recipe /dev/zero
for option in '--bpe-codes' '--candidates 5:5 --dictionary'; do
    # shellcheck disable=SC2086  # several words
    refused ':1: a line has more than 16777216 bytes' train $option <(endless)
done
train --epochs 1 --model again.safetensors --log log.csv || fail "training with a log"
endless >>log.csv
refused ':3: a line has more than 16777216 bytes' train --epochs 2 --model again.safetensors --log log.csv --resume
rm again.safetensors* log.csv
one=(--model model.safetensors --threads 1)
refused ':1: a line has more than 16777216 bytes' "$translate" run "${one[@]}" --input /dev/zero
refused 'standard input:2: a line has more than 16777216 bytes' "$translate" run "${one[@]}" < <(echo one && endless)
refused ':1: a line has more than 16777216 bytes' "$translate" run "${one[@]}" --input train.a --replace-unknown <(endless)
refused ':1: a line has more than 16777216 bytes' "$translate" run "${one[@]}" --input train.a --candidates 5:5 --phrases <(endless)
refused ':1: a line has more than 16777216 bytes' "$translate" score "${one[@]}" --source <(endless) --target train.b
refused ':1: a line has more than 16777216 bytes' "$translate" align "${one[@]}" --source train.a --target <(endless)
refused ':1: a line has more than 16777216 bytes' "$translate" align "${one[@]}" --source train.a --target train.b \
    --picture picture.svg --gold <(endless)
refused ':1: a line has more than 16777216 bytes' "$translate" rescore "${one[@]}" --source train.a --n-best <(endless)
refused ':1: a line has more than 16777216 bytes' "$translate" curves --output curves.svg <(endless)
refused ':1: a line has more than 16777216 bytes' "$translate" bpe learn --input <(endless) --codes codes
for command in "bleu --reference" "perplexity --reference train.b" "repetition --reference" words "rerank --output kept --weights"; do
    status=0
    # shellcheck disable=SC2086  # several words
    "$evaluate" $command <(endless) train.b >output 2>log || status=$?
    ((status == 1)) && grep -q ':1: a line has more than 16777216 bytes' log || fail "evaluate $command: $status"
done

score=("$translate" score --model model.safetensors)
run=("$translate" run --model model.safetensors)
refused 'short has 49; parallel files' "${score[@]}" --source train.a --target short
"${score[@]}" --source gap --target gap >output 2>log || fail "an empty line to score"
grep -q '^perplexity = [0-9]' output || fail "no perplexity: $(cat output)"
refused 'gap has 3 lines, short has 49; parallel files' "${score[@]}" --source gap --target short
refused 'gap:2: a sentence has no token' "$translate" dictionary --source gap --target gap --output never
refused 'invalid:2:5' "${run[@]}" --input invalid
refused 'standard input:2:5' bash -c '"$@" <invalid' - "${run[@]}"
"${run[@]}" --input empty >output 2>log || fail "an empty file"
[[ ! -s output ]] || fail "translations of an empty file"
refused 'nowhere: cannot be opened: No such file' "${run[@]}" --input nowhere
refused 'folder: is a directory' "${run[@]}" --input folder
refused 'standard input: cannot be read' bash -c '"$@" <folder' - "${run[@]}"
refused 'standard input: cannot be read' bash -c '"$@" <&-' - "${run[@]}"

# Outputs that cannot be written, and files that must not be overwritten.
refused 'nowhere/m: cannot' train --model nowhere/m
refused 'folder: cannot' train --model folder
refused '/dev/full: is not a regular file' train --model /dev/full
grep -q 'sentence pairs' log && fail "text was read before the output path of the model was checked"
mkdir placeless.checkpoint
refused 'placeless.checkpoint: cannot' train --model placeless
[[ ! -e placeless ]] || fail "a model was written, although its checkpoint cannot be written"
refused 'nowhere/svg: cannot' "${run[@]}" --input valid.a --alignments nowhere/svg
[[ ! -s output ]] || fail "translated before the missing attention was reported"
text=$(cksum <train.a)
refused 'train.a: would overwrite' train --model train.a
refused './valid.b: would overwrite' train --model ./valid.b
ln -s train.a link
refused 'link: would overwrite' train --model link
refused 'model.safetensors: would overwrite' "${run[@]}" --input valid.a --alignments model.safetensors
refused 'valid.a: would overwrite' "${run[@]}" --input valid.a --alignments valid.a
[[ $(cksum <train.a) == "$text" ]] || fail "the text was changed"
train --attention none --model none.safetensors --epochs 1 || fail "training without attention"
refused 'no alignments to draw' "$translate" run --model none.safetensors --input valid.a --alignments a.svg
refused '--min-count 1000 leaves no word' train --min-count 1000

# A run that diverges stops, never becomes the best, and does not change the best model: in a batch, in an epoch, in a
# validation.
for rate in 1e30 1e9; do
    refused 'lower --learning-rate' train --model diverged.safetensors --learning-rate $rate --epochs 3
    grep -q ' in epoch 1, after update [0-9]*: training diverged at a learning rate of 1e+\(30\|09\); .*; no model was written$' log ||
        fail "it does not report the cause"
    grep -q '^epoch' log && fail "an epoch of a run that diverged"
    if compgen -G 'diverged*' >/dev/null; then fail "the model of a run that diverged"; fi
done
refused 'the validation perplexity is not a number in epoch 1, after update 1' train --model diverged.safetensors \
    --learning-rate 1e38 --batch-tokens 1000000
train --model diverged.safetensors --epochs 1 --learning-rate 0.02 || fail "one epoch"
cp diverged.safetensors best
cp diverged.safetensors.checkpoint good
edited '"training.rate":"0.02' '"training.rate":"1e9","x":"' good >diverged.safetensors.checkpoint
refused 'diverged.safetensors is still that of epoch 1, the best' train --model diverged.safetensors --epochs 3 --resume \
    --learning-rate 0.02 --log diverged.csv
cmp diverged.safetensors best || fail "a diverged run changed the best model"
(($(wc -l <diverged.csv) == 1)) || fail "a diverged run logged a row"
rm diverged* best good
# Large but finite: no long row of digits.
train --model large.safetensors --learning-rate 1 --epochs 1 --log large.csv || fail "training with a large loss"
grep -q '^epoch .* perplexity [0-9]\.[0-9]*e+[0-9]*, BLEU' log || fail "a long number: the test's, or the message's"
awk 'length > 150' log | grep . && fail "a long line"
"$translate" curves large.csv --y loss --output large.svg 2>log || fail "curves of large numbers"
rm large*

trains=("${training[@]:1}")
misused '--attention: .*bogus not in {none,additive,additive-y,per-dimension,temporal,.*}' "${trains[@]}" --attention bogus
# wrong OPTION VALUE...: each value must be rejected. Options of a kind share a parser: one option gets all malformed
# numbers, the others get the numbers outside their range.
wrong() { for value in "${@:2}"; do misused "--$1" "${trains[@]}" --$1="$value"; done; }
wrong embedding 0 -1 1.5 many '' 99999999999999999999999
for option in hidden alignment batch epochs min-count; do wrong $option 0 many; done
wrong patience -1 1.5 many
for option in seed threads; do wrong $option -1; done
wrong dropout 1 -0.1 nan inf much
wrong label-smoothing 1 -0.1 nan
wrong learning-rate 0 -1 nan inf much
wrong clip 0 -1 nan
misused '--target is required' train --source train.a
misused '--model is required' run
misused '^translate: --bogus is not an option of `translate train`$' "${trains[@]}" --bogus
# A misspelled option is named instead of the option that is then missing; the nearest or a longer option is suggested.
misused '^translate: --modle is not an option of `translate run`; did you mean --model?$' run --modle model.safetensors
misused '; did you mean --source?$' score --sorce=train.a --model model.safetensors
misused '; did you mean --output?$' align --model model.safetensors --source train.a --target train.b --out links
misused '^translate: --out is not an option of `translate bpe apply`; did you mean --output?$' bpe apply --out x
misused '; did you mean --pictures?$' run --picture 3 --pictures 3 --model model.safetensors
misused 'not expected' "${trains[@]}" bogus
misused '--alignments' run --model model.safetensors --pictures 3
misused '--batch' run --model model.safetensors --batch 0
misused '^translate: missing subcommand; choose from train, run, score' --threads 1
misused '^translate: bogus is not a subcommand; choose from train, run, score' bogus
misused '^translate: bogus is not a subcommand; choose from learn, apply, undo' bpe bogus
misused '^translate: --bogus is not an option of the program; options follow their subcommand' --bogus
[[ $(cksum <model.safetensors) == "$model" ]] || fail "the model is another"
no_temporaries
chmod 600 locked
