#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Text that is no parallel text, and options that make no sense.
# shellcheck source=tests/tool/common.bash
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
    refused 'bom: is empty' train --$side bom
    refused 'invalid:2:5: byte 0xff is not valid UTF-8' train --$side invalid
    refused 'gap:2: a sentence with no token' train --$side gap
    refused 'blank:2: a sentence with no token' train --$side blank
    refused 'nul:2:4: byte 0x00' train --$side nul
    refused 'parallel files need as many' train --$side short
    refused 'nowhere/text: cannot be opened: No such file' train --$side nowhere/text
    refused 'folder: is a directory' train --$side folder
    if ((EUID != 0)); then refused 'locked: cannot be opened: Permission denied' train --$side locked; fi
done

score=("$translate" score --model model.safetensors)
run=("$translate" run --model model.safetensors)
refused 'short has 49; parallel files' "${score[@]}" --source train.a --target short
refused 'gap:2: a sentence with no token' "${score[@]}" --source gap --target gap
refused 'invalid:2:5' "${run[@]}" --input invalid
refused 'standard input:2:5' bash -c '"$@" <invalid' - "${run[@]}"
refused 'empty: is empty' "${run[@]}" --input empty
refused 'nowhere: cannot be opened: No such file' "${run[@]}" --input nowhere
refused 'folder: is a directory' "${run[@]}" --input folder
refused 'standard input: cannot be read' bash -c '"$@" <folder' - "${run[@]}"
refused 'standard input: cannot be read' bash -c '"$@" <&-' - "${run[@]}"

# Where nothing can be written, and what must not be written over.
refused 'nowhere/m: cannot' train --model nowhere/m
refused 'folder: cannot' train --model folder
refused 'nowhere/svg: cannot' "${run[@]}" --input valid.a --alignments nowhere/svg
[[ ! -s output ]] || fail "translated before it was seen that nothing can be drawn"
text=$(cksum <train.a)
refused 'train.a: would overwrite' train --model train.a
refused './valid.b: would overwrite' train --model ./valid.b
ln -s train.a link
refused 'link: would overwrite' train --model link
refused 'model.safetensors: would overwrite' "${run[@]}" --input valid.a --alignments model.safetensors
refused 'valid.a: would overwrite' "${run[@]}" --input valid.a --alignments valid.a
[[ $(cksum <train.a) == "$text" ]] || fail "the text is another"
train --attention none --model none.safetensors --epochs 1 || fail "training without attention"
refused 'no alignment to draw' "$translate" run --model none.safetensors --input valid.a --alignments a.svg
refused '--min-count 1000 leaves no word' train --min-count 1000
refused 'lower --learning-rate' train --learning-rate 1e30 --epochs 3

trains=("${training[@]:1}")
misused '--attention: .*bogus not in {none,additive,additive-y,per-dimension,temporal}' "${trains[@]}" --attention bogus
for option in embedding hidden alignment batch epochs min-count; do
    for value in 0 -1 1.5 many '' 99999999999999999999999; do misused "--$option" "${trains[@]}" --$option="$value"; done
done
for option in patience seed threads; do
    for value in -1 1.5 many; do misused "--$option" "${trains[@]}" --$option="$value"; done
done
for option in dropout label-smoothing; do
    for value in 1 -0.1 nan inf much; do misused "--$option" "${trains[@]}" --$option="$value"; done
done
for option in learning-rate clip; do
    for value in 0 -1 nan inf much; do misused "--$option" "${trains[@]}" --$option="$value"; done
done
misused '--target is required' train --source train.a
misused '--model is required' run
misused 'not expected' "${trains[@]}" --bogus
misused 'not expected' "${trains[@]}" bogus
misused '--alignments' run --model model.safetensors --pictures 3
misused '--batch' run --model model.safetensors --batch 0
misused 'subcommand' --threads 1
misused 'subcommand' bogus
[[ $(cksum <model.safetensors) == "$model" ]] || fail "the model is another"
no_temporaries
chmod 600 locked
