#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Smaller models: `translate quantize`, and the commands that read its files.
page=$(realpath -- "$(dirname "${BASH_SOURCE[0]}")/../../docs/how_to/smaller_models.md")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 200 1 train
sentences 20 2 valid
sentences 32 3 some

tiny=(--embedding 8 --hidden 12 --batch 16 --threads 1)
training=("$translate" train --source train.a --target train.b --valid-source valid.a --valid-target valid.b
    --model model.safetensors "${tiny[@]}")
# shrunk NUMBERS FILE: quantizes the model to FILE.
shrunk() { "$translate" quantize --model model.safetensors --to "$1" --output "$2" 2>log; }
# beaten MODEL: translations of the validation text by beam search.
beaten() { "$translate" run --model "$1" --input valid.a --beam 3 --threads 1 2>log; }
size() { stat -c %s "$1"; }

# Every system is trained, quantized, and run.
for system in 'rnnsearch' 'rnnsearch --cell lstm' 'choi' 'sankaran' 'luong --layers 1' 'convs2s --layers 1' \
    'transformer --layers 1 --heads 2'; do
    rm -f model.safetensors*
    # shellcheck disable=SC2086  # several words
    train --system $system --epochs 1 --source some.a --target some.b
    for numbers in int8 bf16; do
        shrunk $numbers small.safetensors
        grep -q 'times smaller than model.safetensors' log || fail "$system: $numbers reports no size"
        beaten small.safetensors >small
        (($(wc -l <small) == 20)) || fail "$system: $numbers writes $(wc -l <small) lines of 20"
    done
done

# A trained model of usual width: translations are preserved, and weights make up most of the file.
rm -f model.safetensors*
train --embedding 64 --hidden 64 --alignment 64 --epochs 5 --learning-rate 0.02
beaten model.safetensors >whole
shrunk int8 int8.safetensors
shrunk bf16 bf16.safetensors
for each in int8 bf16; do
    beaten $each.safetensors >$each
    same=$(paste -d '|' whole $each | awk -F '|' '$1 == $2' | wc -l)
    ((same >= 19)) || fail "$each: $same of 20 translations are the same"
    "$translate" score --model $each.safetensors --source valid.a --target valid.b >output 2>log
    "$translate" align --model $each.safetensors --source valid.a --target valid.b --output links 2>log
    (($(wc -l <links) == 20)) || fail "$each: no alignment"
done
((10 * $(size model.safetensors) >= 35 * $(size int8.safetensors))) || fail "int8 is $(size int8.safetensors) bytes"
((100 * $(size model.safetensors) >= 190 * $(size bf16.safetensors))) || fail "bf16 is $(size bf16.safetensors) bytes"
"$translate" run --model model.safetensors --model int8.safetensors --input valid.a --beam 3 --threads 1 >both 2>log
same=$(paste -d '|' whole both | awk -F '|' '$1 == $2' | wc -l)
((same >= 19)) || fail "an ensemble of both: $same of 20 translations are the same"
[[ $(metadata weights int8.safetensors) == I8 ]] || fail "the file does not record that it has 8 bits"
head -c 20000 int8.safetensors | grep -qa '"decoder.cell.W.scale":{"dtype":"F32","shape":\[1,192\]' || fail "no scales"
head -c 20000 int8.safetensors | grep -qa '"decoder.embedding.scale":{"dtype":"F32","shape":\[[0-9]*,1\]' ||
    fail "no scales of embeddings"

# The commands of the page, verbatim.
sed -n '/^```bash/,/^```/ { /^translate /p }' "$page" >lines
(($(wc -l <lines) >= 3)) || fail "$page has $(wc -l <lines) lines for the shell"
cp model.safetensors en-de.safetensors
cp valid.a test.en
cp valid.b test.de
while read -r -a line; do
    "$translate" "${line[@]:1}" >output 2>log || fail "${line[*]}"
done <lines
cmp small.safetensors int8.safetensors || fail "the page's file differs"

# 16 bits can be reduced to 8, but no other model is quantized twice.
"$translate" quantize --model bf16.safetensors --to int8 --output twice.safetensors 2>log
refused 'its weights are I8 already' "$translate" quantize --model int8.safetensors --to bf16 --output twice.safetensors
refused 'its weights are I8 already' "$translate" quantize --model int8.safetensors --to int8 --output twice.safetensors
refused 'its weights are BF16 already' "$translate" quantize --model bf16.safetensors --to bf16 --output twice.safetensors
refused 'would overwrite an input' "$translate" quantize --model int8.safetensors --to int8 --output int8.safetensors
misused '--to' quantize --model model.safetensors --to int4 --output twice.safetensors

# Training does not resume from quantized weights.
cp model.safetensors kept
cp int8.safetensors model.safetensors
refused 'its weights are I8, rounded by `translate quantize`' "${training[@]}" --embedding 64 --hidden 64 \
    --alignment 64 --epochs 6 --learning-rate 0.02 --resume
cp kept model.safetensors

# Damaged files.
poisoned decoder.cell.W.scale 1 '\x00\x00\xc0\x7f' int8.safetensors >bad.safetensors
refused '"decoder.cell.W.scale"[1] is NaN' beaten bad.safetensors
poisoned decoder.cell.W.scale 0 '\x00\x00\x80\xbf' int8.safetensors >bad.safetensors
refused '"decoder.cell.W.scale"[0] is negative' beaten bad.safetensors
edited '"decoder.cell.W.scale"' '"decoder.cell.W.other"' int8.safetensors >bad.safetensors
refused 'its scales are missing' beaten bad.safetensors
edited '"decoder.cell.W.scale":{"dtype":"F32","shape":[1,192]' '"decoder.cell.W.scale":{"dtype":"F32","shape":[192]' \
    int8.safetensors >bad.safetensors
refused 'its scales are F32 [192]; they must be F32, either one per column, [1,192]' beaten bad.safetensors
head -c $(($(size int8.safetensors) - 100)) int8.safetensors >bad.safetensors
refused 'bad.safetensors' beaten bad.safetensors
no_temporaries
