#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Update rules: optimizers, learning rates, gradient accumulation and averaging; and recipes.
recipes=$(realpath -- "$(dirname "${BASH_SOURCE[0]}")/../../tools/translate/recipes")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 40 1 train
sentences 10 2 valid

# rates FILE: the learning rates of a log, those of the last updates of its epochs.
rates() { cut -d, -f 5 "$1" | tail -n +2 | paste -sd ' '; }
# numbers NAME FILE: the numbers of a tensor.
numbers()
{
    local span
    span=$(head -c 200000 "$2" | grep -a -o "\"$1\":{[^}]*" | sed 's/.*"data_offsets":\[\([0-9]*\),\([0-9]*\).*/\1 \2/')
    [[ $span ]] || fail "$2 has no tensor $1"
    od -An -tf4 -w4 -v -j $((8 + $(od -An -tu8 -N8 "$2") + ${span% *})) -N $((${span#* } - ${span% *})) "$2"
}
fresh() { rm -f model.safetensors*; }

# Resuming equals an uninterrupted run: two epochs and two more, with every rule. 5 batches make 3 updates.
for rule in 'adam --adam-betas 0.9:0.98 --warm-up 4' 'sgd --halve-from 2' adadelta; do
    # shellcheck disable=SC2206  # several words
    how=(--optimizer $rule --accumulate 2 --average 2 --patience 9)
    train "${how[@]}" --epochs 4 --log whole.csv || fail "$rule"
    cp model.safetensors whole.safetensors
    fresh
    train "${how[@]}" --epochs 2 --log parts.csv || fail "two epochs by $rule"
    train "${how[@]}" --epochs 4 --log parts.csv --resume || fail "two more by $rule"
    cmp model.safetensors whole.safetensors || fail "the resumed model of $rule differs"
    [[ $(cut -d, -f 1,2,4-7 parts.csv) == "$(cut -d, -f 1,2,4-7 whole.csv)" ]] || fail "the resumed log of $rule differs"
    [[ $(cut -d, -f 2 whole.csv | paste -sd ' ') == 'updates 3 6 9 12' ]] || fail "--accumulate 2 of $rule: $(cat whole.csv)"
    [[ $(metadata options.optimizer model.safetensors) == "${rule%% *}" || ${rule%% *} == adam ]] || fail "$rule is not in the model"
    fresh
done
grep -q 'loss .* rate 1 ' log || fail "the rate of adadelta is not 1: $(cat log)"

# The rates. Five updates per epoch; warm-up ends after the fourth.
train --epochs 4 --warm-up 4 --learning-rate 0.01 --log up.csv || fail "--warm-up"
[[ $(rates up.csv) == '0.00894427 0.00632456 0.00516398 0.00447214' ]] || fail "--warm-up: $(rates up.csv)"
fresh
train --epochs 1 --warm-up 10 --learning-rate 0.01 --log up.csv || fail "--warm-up"
[[ $(rates up.csv) == 0.00500005 ]] || fail "in the middle of the warm-up, from 1e-7: $(rates up.csv)"
fresh
train --epochs 4 --halve-from 2 --patience 9 --optimizer sgd --learning-rate 0.5 --log halved.csv || fail "--halve-from"
[[ $(rates halved.csv) == '0.5 0.5 0.25 0.125' ]] || fail "--halve-from: $(rates halved.csv)"
fresh

# A mean per word over both batches equals the gradient of all sentences together.
train --epochs 3 --dropout 0 --batch 40 --log at_once.csv || fail "one batch"
fresh
train --epochs 3 --dropout 0 --batch 10 --accumulate 4 --log summed.csv || fail "--accumulate"
fresh
paste -d, <(cut -d, -f 2,4,6 at_once.csv) <(cut -d, -f 2,4,6 summed.csv) |
    awk -F, 'NR > 1 { for (i = 1; i <= 3; ++i) { d = $i - $(i + 3); if (d < -2e-5 || d > 2e-5) exit 1 } }' ||
    fail "--accumulate 4 is not one batch: $(cat at_once.csv summed.csv)"
train --epochs 3 --dropout 0 --batch 10 --log each.csv || fail "four updates"
fresh
cut -d, -f 4 each.csv | cmp -s - <(cut -d, -f 4 at_once.csv) && fail "four updates equal one: the test is ineffective"

# Products in bfloat16 change the losses, by less than 2%.
train --epochs 3 --dropout 0 --batch 40 --bfloat16 --log rounded.csv || fail "--bfloat16"
[[ $(metadata options.bfloat16 model.safetensors) == 1 ]] || fail "--bfloat16 is not recorded in the model"
fresh
cut -d, -f 4 rounded.csv | cmp -s - <(cut -d, -f 4 at_once.csv) && fail "--bfloat16 changes nothing"
paste -d, <(cut -d, -f 4 at_once.csv) <(cut -d, -f 4 rounded.csv) |
    awk -F, 'NR > 1 && ($1 - $2) ^ 2 > (0.02 * $1) ^ 2 { exit 1 }' || fail "--bfloat16: $(cat at_once.csv rounded.csv)"

# A run that ends within an epoch is validated last at its end. The mean of one model is that model.
train --epochs 9 --max-updates 7 --log ended.csv || fail "--max-updates"
[[ $(cut -d, -f 2 ended.csv | paste -sd ' ') == 'updates 5 7' ]] || fail "7 updates: $(cat ended.csv)"
[[ $(metadata training.finished model.safetensors.checkpoint) == 1 ]] || fail "not finished after 7 updates"
train --epochs 9 --max-updates 7 --resume || fail "resuming a finished run"
grep -q '^epoch ' log && fail "an epoch after the last update"
cp model.safetensors plain
refused 'started with --max-updates 7, not 8' train --epochs 9 --max-updates 8 --resume
fresh
train --epochs 9 --max-updates 7 --average 1 || fail "--average 1"
for name in encoder.embedding decoder.b; do
    cmp <(numbers $name plain) <(numbers $name model.safetensors) || fail "the mean of one model differs"
done
fresh

# The mean of two models: training continues from the parameters, which the checkpoint stores, not from the mean.
train --epochs 2 || fail "two epochs"
numbers decoder.b model.safetensors.checkpoint >second
fresh
train --epochs 1 || fail "one epoch"
numbers decoder.b model.safetensors.checkpoint >first
fresh
train --epochs 2 --average 2 || fail "--average 2"
numbers decoder.b model.safetensors.checkpoint | cmp - second || fail "training continues from the mean"
grep -q '^epoch  2 .*\*' log || fail "the second epoch is not the best: the test is ineffective"
paste first second <(numbers decoder.b model.safetensors) |
    awk '{ d = ($1 + $2) / 2 - $3; if (d < -1e-7 || d > 1e-7) exit 1; if ($2 != $3) differ = 1 } END { exit !differ }' ||
    fail "not the mean: $(paste first second <(numbers decoder.b model.safetensors))"
edited '"average.0":{"dtype":"F32","shape":[' '"average.x":{"dtype":"F32","shape":[' model.safetensors.checkpoint >bad
mv bad model.safetensors.checkpoint
refused 'average.0' train --epochs 3 --average 2 --resume
fresh

# Files record only options that differ from the defaults.
train --epochs 1 || fail "the defaults"
for option in system cell optimizer average; do
    [[ -z $(metadata options.$option model.safetensors) ]] || fail "--$option is recorded"
done
fresh
train --epochs 1 --cell lstm || fail "--cell lstm"
[[ $(metadata options.cell model.safetensors) == lstm ]] || fail "--cell is not in the model"
"$translate" run --model model.safetensors --input valid.a >output 2>log || fail "translating with LSTM"
edited '"options.cell":"lstm"' '"options.cell":"gru"' model.safetensors >bad
refused 'contradicts itself: "decoder.cell.W" is [8,32], but by its options and vocabularies [8,24]' \
    "$translate" run --model bad --input valid.a
edited '"options.cell":"lstm"' '"options.cell":"vax"' model.safetensors >bad
refused '--cell vax: --system rnnsearch supports gru or lstm' "$translate" run --model bad --input valid.a
edited '"options.cell":"lstm"' '"options.system":"vax"' model.safetensors >bad
refused 'there is no system "vax"' "$translate" run --model bad --input valid.a
fresh

# Recipes: the command line takes precedence, in any order.
printf '# how\nhidden = 12\n\nsystem = "luong"  # not rnnsearch\nreverse-source = true\nepochs = 1\n' >recipe
train --recipe recipe --hidden 8 || fail "--recipe"
[[ $(metadata options.hidden model.safetensors)/$(metadata options.system model.safetensors) == 8/luong ]] || fail "the command line does not take precedence"
[[ $(metadata options.reverse-source model.safetensors) == 2 ]] || fail "a flag of the recipe is not set"
fresh
"${training[@]:0:12}" --recipe=recipe --alignment 8 --threads 1 2>log || fail "--recipe=FILE"
[[ $(metadata options.hidden model.safetensors) == 12 ]] || fail "the recipe is not read"
fresh
wrong()
{
    printf 'cell = lstm\n# a comment\n%s\n' "$1" >wrong
    refused "$2" train --recipe wrong
    grep -q '^translate: wrong:3: ' messages || fail "the message does not start with file and line"
}
wrong 'hiden = 8' 'has no option --hiden'
wrong 'hidden = eight' '--hidden: '
wrong 'optimizer = vax' '--optimizer: '
wrong 'hidden =' ''
wrong 'cell = gru' '--cell is already set in line 1'
wrong '[model]' '"[model]" is not an option'
wrong 'model.hidden = 8' 'is not an option'
wrong 'recipe = other' 'has no option --recipe'
refused 'nowhere/recipe: cannot be opened' train --recipe nowhere/recipe

# Recipes that come with the program have names, but a file comes first; the program finds them wherever it is called.
refused 'nowhere: no such file, and not a recipe of this program; choose from bahdanau2015, luong2015, ' \
    train --recipe nowhere
for name in luong2015 luong2015.ini; do
    train --recipe $name --layers 1 --epochs 1 || fail "--recipe $name"
    [[ $(metadata options.attention model.safetensors) == local-p-general ]] || fail "another recipe than $name"
    fresh
done
echo 'cell = lstm' >luong2015
train --recipe luong2015 --epochs 1 || fail "a file with the name of a recipe"
[[ $(metadata options.cell model.safetensors) == lstm ]] || fail "the file is not read"
fresh
PATH=$(dirname "$translate"):$PATH
(mkdir elsewhere && cd elsewhere && translate train --recipe bahdanau2015 --help >help 2>log) || fail "called from elsewhere"
for recipe in "$recipes"/*; do
    "$translate" train --recipe "$recipe" --help >help 2>log || fail "$recipe: $(cat log)"
done

# Conflicting options.
contradicts '--adam-betas: applies to --optimizer adam' train --optimizer sgd --adam-betas 0.9:0.98
misused 'excludes' "${training[@]:1}" --warm-up 3 --halve-from 3
misused 'give two numbers' "${training[@]:1}" --adam-betas 0.9:1
misused 'there is no system "vax"; choose from ' "${training[@]:1}" --system vax
[[ ! -e model.safetensors ]] || fail "refused, but there is a model"
no_temporaries
