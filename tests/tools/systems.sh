#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Every system of the papers: trained, interrupted and resumed, searched, force-decoded, drawn, and combined in
# ensembles; unsupported options are rejected.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 40 1 train
sentences 6 2 valid
seq 1 4 | sed 's/.*/one two/' >some

tiny=(--embedding 8 --hidden 12 --batch 16 --threads 1)
training=("$translate" train --source train.a --target train.b --valid-source valid.a --valid-target valid.b
    --model model.safetensors "${tiny[@]}")
n=0
while read -r -a how; do
    how=(--system "${how[@]}")
    train "${how[@]}" --epochs 2 || fail "training: ${how[*]}"
    cp model.safetensors whole.safetensors
    rm model.safetensors*
    train "${how[@]}" --epochs 1 || fail "one epoch: ${how[*]}"
    train "${how[@]}" --epochs 2 --resume || fail "one more: ${how[*]}"
    cmp model.safetensors whole.safetensors || fail "the resumed model differs: ${how[*]}"
    "$translate" run --model model.safetensors --input some --beam 3 >output 2>log || fail "translating: ${how[*]}"
    (($(sort -u output | wc -l) == 1)) || fail "the same sentence has several translations: ${how[*]}"
    # Forced decoding of references: the loss of training, also without attention. BLEU is that of a greedy search.
    "$translate" score --model model.safetensors --source valid.a --target valid.b >scores 2>log || fail "scoring: ${how[*]}"
    grep -q '^perplexity = [0-9]' scores || fail "no perplexity: ${how[*]}"
    if [[ ${how[*]} != *'--attention none'* ]]; then
        "$translate" align --model model.safetensors --source valid.a --target valid.b >links 2>log || fail "aligning: ${how[*]}"
        (($(wc -l <links) == 6)) || fail "6 pairs, $(wc -l <links) lines: ${how[*]}"
    fi
    mv model.safetensors $((n++)).safetensors
    rm model.safetensors*
done <<'SYSTEMS'
rnnsearch --attention additive
rnnsearch --attention structural-biases
rnnsearch --attention gated-coverage
rnnsearch --attention recurrent
rnnsearch --attention sparsemax
rnnsearch --attention grouped
rnnsearch --attention monotonic
rnnsearch --attention chunkwise
choi --context --attention additive-y
choi --attention additive
sankaran --attention coverage --coverage 4
sankaran --attention local-temporal --window 2
sankaran --attention recent-temporal --last 2
sankaran --attention learned-temporal
luong --attention none --reverse-source
luong --attention local-p-general --input-feeding --layers 2 --reverse-source
luong --attention location --layers 1 --longest 9
convs2s --layers 2 --width 2
transformer --layers 2 --heads 2 --norm post --positions learned --longest 40
transformer --layers 1 --heads 1 --activation gelu --share-embeddings output
transformer --layers 1 --heads 1 --share-embeddings none
SYSTEMS

# An ensemble of a conditional GRU, convolutions and RNNsearch; a model with another vocabulary is rejected.
"$translate" run --model 0.safetensors --model 10.safetensors --model 17.safetensors --input some >output 2>log ||
    fail "an ensemble of different systems"
refused 'does not read the same words' "$translate" run --model 0.safetensors --model 18.safetensors --input some

contradicts '--heads: --system luong does not support it; omit it, or use --system transformer' \
    "${training[@]}" --system luong --heads 2
contradicts '--attention temporal: --system luong supports none, location' "${training[@]}" --system luong --attention temporal
contradicts '--cell lstm is incompatible with --attention recurrent' "${training[@]}" --cell lstm --attention recurrent
status=0
"${training[@]}" --system gru 2>log || status=$?
((status == 2)) && grep -q 'there is no system "gru"; choose from rnnsearch' log || fail "a system that does not exist"
contradicts '--reverse-source: --system rnnsearch does not support it; omit it, or use --system luong' \
    "${training[@]}" --reverse-source
contradicts '3 heads for a width of 8' "${training[@]}" --system transformer --heads 3
