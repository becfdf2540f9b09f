#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/multi30k_bpe.sh DATA OUT [attention...]

Trains an English-German translator on byte-pair subwords with each attention (default: additive temporal), translates
test2016 with beam 12, and prints the tables of docs/results/translation.md: BLEU, TB, RIBES, chrF, repetitions, BLEU by
length, and whether the systems differ. OUT/page.html compares them on 50 sentences; OUT/curves.svg plots the learning
curves, and OUT/lengths.svg BLEU by length.

DATA  a folder with train.en train.de val.en val.de test2016.en test2016.de, tokenized: Multi30k, task 1, the
      *.lc.norm.tok.* files
OUT   folder for models, logs and translations. After an interruption, run again: finished parts are kept

Environment: THREADS=2, and TRAIN to replace the training options of the table:
END
    printf 'TRAIN="%s"\n' "$train"
}

train=${TRAIN:-"--bpe 10000 --embedding 256 --hidden 256 --dropout 0.4 --label-smoothing 0.1 --epochs 12"}
if (($# < 2)) || [[ $1 == -* ]]; then
    usage
    exit $(($# < 2 ? 2 : 0))
fi
data=$1 out=$2
shift 2
attentions=("${@:-}")
[[ -n ${attentions[0]} ]] || attentions=(additive temporal)
for file in {train,val,test2016}.{en,de}; do
    [[ -r $data/$file ]] || heed_fail "$data/$file: cannot be read" "" "$(usage)"
done

heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
heed_build tools translate >&2
heed_build tools evaluate >&2
heed_environment
translate=("$heed_builds/tools/tools/translate" --threads "${THREADS:-2}")
evaluate=$heed_builds/tools/tools/evaluate
mkdir -p "$out"

greedy=() beam=() logs=() models=() names=()
for attention in "${attentions[@]}"; do
    model=$out/$attention.safetensors
    if [[ ! -e $model.done ]]; then
        resume=()
        [[ -e $model.checkpoint ]] && resume=(--resume)
        heed_say "training with $attention attention" >&2
        # shellcheck disable=SC2086  # $train is a list of options
        "${translate[@]}" train --source "$data/train.en" --target "$data/train.de" --valid-source "$data/val.en" \
            --valid-target "$data/val.de" --model "$model" --log "$out/$attention.csv" --attention "$attention" $train \
            "${resume[@]}"
        touch "$model.done"
    fi
    "${translate[@]}" run --model "$model" --beam 1 <"$data/test2016.en" >"$out/$attention.greedy.de"
    "${translate[@]}" run --model "$model" <"$data/test2016.en" >"$out/$attention.de"
    greedy+=("$attention.greedy.de") beam+=("$attention.de") logs+=("$out/$attention.csv") models+=(--model "$model")
    names+=(--name "$attention")
done

"${translate[@]}" page "${models[@]}" "${names[@]}" --source "$data/test2016.en" --reference "$data/test2016.de" \
    --title "Multi30k test2016, English to German" --output "$out/page.html"
"${translate[@]}" curves "${logs[@]}" "${names[@]}" --title "BLEU on val, greedy" --output "$out/curves.svg"

ln -sfn "$(cd "$data" && pwd)/test2016.de" "$out/reference.de"  # a short name for the tables
ln -sfn "$(cd "$data" && pwd)/test2016.en" "$out/source.en"
cd "$out"
for metric in bleu ter ribes chrf; do
    "$evaluate" "$metric" --reference reference.de "${greedy[@]}" "${beam[@]}"
    echo
done
"$evaluate" repetition --reference reference.de "${greedy[@]}" "${beam[@]}"
echo
"$evaluate" lengths --source source.en --reference reference.de --picture lengths.svg "${beam[@]}"
if ((${#beam[@]} == 2)); then
    echo
    "$evaluate" compare --reference reference.de "${beam[@]}"
fi
