#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
# shellcheck source=scripts/training.sh
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"

usage()
{
    cat <<'END'
usage: scripts/papers.sh PAPER DATA OUT [row...]

Trains the systems of a paper's tables on English-German sentences, decodes test2016 with each, and prints the table.
Rows select systems (default: all).

PAPER  choi2018       LSTM: plain, previous word, per dimension; each with and without context     (their table 1)
       sankaran2016   conditional GRU: plain, coverage, local, temporal, and temporal's relatives  (their tables 2 to 5)
       luong2015      stacked LSTM on whole words: from no attention to local-p with input feeding (their table 1)
       luong2015-grid stacked LSTM with seven attentions                                           (their table 4)
       mechanisms     RNNsearch with every attention that it supports
       survey         RNNencdec and RNNsearch on short and on all sentences, ConvS2S, Transformer  (Jia's survey)
DATA   a folder with train.en train.de val.en val.de test2016.en test2016.de, tokenized: Multi30k, task 1, the
       *.lc.norm.tok.* files
OUT    folder for models, logs and translations. After an interruption, run again: finished parts are kept

Environment: JOBS=1 is the number of systems trained in parallel, with one thread each; TRAIN="--epochs 1" appends options.
GOLD=FOLDER, with src, tgt and gold of manual German-English alignments, also evaluates the alignments of the weights.
END
}

if (($# < 3)) || [[ $1 == -* ]]; then
    usage
    [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
    exit 2
fi
paper=$1 data=$2 out=$3
shift 3

smoothed='--dropout 0.3 --label-smoothing 0.1'
small='--bpe 5000 --embedding 128 --hidden 128 --alignment 128 --batch 32 --learning-rate 0.002'
large='--bpe 10000 --embedding 256 --hidden 256 --alignment 256 --dropout 0.4 --label-smoothing 0.1 --epochs 12'
words='--min-count 2 --embedding 128 --hidden 128 --layers 2 --batch 32 --learning-rate 0.002 --epochs 12'
ensemble=''
case $paper in
    choi2018)
        common="--system choi $small $smoothed --epochs 16"
        rows='base           --attention additive
              atty           --attention additive-y
              atty2d         --attention per-dimension
              context        --attention additive --context
              context-atty   --attention additive-y --context
              context-atty2d --attention per-dimension --context'
        ;;
    sankaran2016)
        common="--system sankaran $small $smoothed --epochs 12"
        rows='nmt             --attention additive
              coverage        --attention coverage
              local-m         --attention local-m
              temporal        --attention temporal
              recent-temporal --attention recent-temporal
              local-temporal  --attention local-temporal
              temporal-2      --attention temporal --seed 2
              temporal-3      --attention temporal --seed 3
              temporal-4      --attention temporal --seed 4'
        ensemble='temporal temporal-2 temporal-3 temporal-4'
        ;;
    luong2015)
        common="--system luong $words"
        rows='base     --attention none --dropout 0
              reverse  --attention none --dropout 0 --reverse-source
              dropout  --attention none --dropout 0.3 --reverse-source
              location --attention location --dropout 0.3 --reverse-source
              feeding  --attention location --dropout 0.3 --reverse-source --input-feeding
              local-p  --attention local-p-general --dropout 0.3 --reverse-source --input-feeding'
        ;;
    luong2015-grid)
        common="--system luong $words --dropout 0.3 --reverse-source --input-feeding"
        rows='location        --attention location
              dot             --attention dot
              general         --attention general
              local-m-dot     --attention local-m-dot
              local-m-general --attention local-m-general
              local-p-dot     --attention local-p-dot
              local-p-general --attention local-p-general'
        ensemble='location dot general local-m-dot local-m-general local-p-dot local-p-general'
        ;;
    mechanisms)
        common="$small $smoothed --epochs 10"
        rows=''
        for attention in none additive additive-y per-dimension grouped temporal decayed-temporal location-aware \
            structural-biases fertility gated-coverage recurrent sparsemax entmax sigmoid gated; do
            rows+="$attention --attention $attention"$'\n'
        done
        rows=${rows%$'\n'}
        ;;
    survey)
        common=''
        rows="rnnencdec-10 $large --attention none --max-length 10
              rnnencdec    $large --attention none
              rnnsearch-10 $large --attention additive --max-length 10
              rnnsearch    $large --attention additive
              convs2s      --system convs2s --bpe 10000 --embedding 256 --hidden 256 --batch-tokens 4000 --learning-rate 0.0015 --adam-betas 0.9:0.98 --warm-up 600 --dropout 0.3 --label-smoothing 0.1 --epochs 12
              transformer  --recipe RECIPES/transformer-multi30k.ini"
        ;;
    *) heed_fail "unknown paper \"$paper\"" "" "$(usage)" ;;
esac

for file in {train,val,test2016}.{en,de}; do
    [[ -r $data/$file ]] || heed_fail "$data/$file: cannot be read" "" "$(usage)"
done
if [[ ${GOLD:-} ]]; then
    for file in src tgt gold; do
        [[ -r $GOLD/$file ]] || heed_fail "$GOLD/$file: cannot be read" "" "$(usage)"
    done
    GOLD=$(cd "$GOLD" && pwd)
fi
heed_choose_rows "$rows" "$@"
recipes=$(cd "$(dirname "${BASH_SOURCE[0]}")/../tools/translate/recipes" && pwd)
for name in "${!options_of[@]}"; do options_of[$name]="$common ${options_of[$name]//RECIPES/$recipes}"; done

heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
heed_build tools translate >&2
heed_build tools evaluate >&2
heed_environment
translate=$heed_builds/tools/tools/translate evaluate=$heed_builds/tools/tools/evaluate
mkdir -p "$out"
# shellcheck disable=SC2034  # for heed_train
text=(--source "$data/train.en" --target "$data/train.de" --valid-source "$data/val.en" --valid-target "$data/val.de")
heed_train_all

# score NAME BEAM OPTION...: BLEU, then perplexity, on test2016; the decoding speed is written to NAME.beamBEAM.
score()
{
    "$translate" score --threads 1 --model "$out/$1.safetensors" --source "$data/test2016.en" --target "$data/test2016.de" --beam "$2" \
        "${@:3}" 2>"$out/$1.beam$2" | sed 's/.*BLEU = \([0-9.]*\).*/\1/; s/^perplexity = \([0-9.]*\).*/\1/'
}
looks() { [[ ${options_of[$1]} != *'--attention none'* ]]; }
if [[ $paper == luong2015* && ! -e $out/dictionary ]]; then  # the replacements of unknown words
    "$translate" dictionary --source "$data/train.en" --target "$data/train.de" --output "$out/dictionary" 2>/dev/null
fi
echo "| $paper | parameters | perplexity | BLEU greedy | BLEU beam 12 | words/s greedy | words/s beam 12 | best epoch | training |"
echo '|---|---|---|---|---|---|---|---|---|'
for name in "${names[@]}"; do
    model=$out/$name.safetensors
    replace=()
    [[ $paper != luong2015* || ${options_of[$name]} == *'--attention none'* ]] || replace=(--replace-unknown "$out/dictionary")
    mapfile -t greedy < <(score "$name" 1)
    mapfile -t beam < <(score "$name" 12 "${replace[@]}")
    "$translate" run --threads 1 --model "$model" --input "$data/test2016.en" >"$out/$name.de" 2>/dev/null
    speed() { sed -n 's/.*: \([0-9]*\) words\/s.*/\1/p' "$out/$name.beam$1" | tail -n 1; }
    if looks "$name"; then
        "$translate" align --threads 1 --model "$model" --source "$data/test2016.en" --target "$out/$name.de" \
            --weights "$out/$name.weights" --output "$out/$name.own.links" 2>/dev/null
    fi
    echo "| $name | $(heed_parameters "$name") | ${greedy[-1]} | ${greedy[0]} | $(printf '%s ' "${beam[@]:0:${#beam[@]}-1}")| $(speed 1) | $(speed 12) | $(heed_course "$name") |"
done
# The ensemble, if all its models exist.
members=()
for name in $ensemble; do
    [[ ! -e $out/$name.safetensors.done ]] || members+=(--model "$out/$name.safetensors")
done
if ((${#members[@]} > 0 && ${#members[@]} == 2 * $(wc -w <<<"$ensemble"))); then
    "$translate" run --threads 1 "${members[@]}" --input "$data/test2016.en" >"$out/ensemble.de" 2>/dev/null
    echo "| ensemble of $(wc -w <<<"$ensemble") | | $(
        "$translate" score --threads 1 "${members[@]}" --source "$data/test2016.en" --target "$data/test2016.de" --beam 12 2>/dev/null |
            sed 's/.*BLEU = \([0-9.]*\).*/\1/; s/^perplexity = \([0-9.]*\).*/\1/' | tac | paste -sd'|' | sed 's/|/ | | /'
    ) | | | | |"
fi

ln -sfn "$(cd "$data" && pwd)/test2016.de" "$out/reference.de"  # short names for the tables
ln -sfn "$(cd "$data" && pwd)/test2016.en" "$out/source.en"
cd "$out"
outputs=("${names[@]/%/.de}")
weights=()
for name in "${names[@]}"; do
    if looks "$name"; then weights+=("$name.weights"); fi
done
[[ ! -e ensemble.de ]] || outputs+=(ensemble.de)
for metric in bleu ter ribes chrf; do
    echo
    "$evaluate" "$metric" --reference reference.de "${outputs[@]}"
done
echo
"$evaluate" repetition --reference reference.de "${outputs[@]}"
if ((${#weights[@]})); then
    echo
    "$evaluate" adequacy --source source.en "${weights[@]}"
fi
echo
"$evaluate" lengths --source source.en --reference reference.de --picture lengths.svg "${outputs[@]}"
logs=() titles=()
for name in "${names[@]}"; do logs+=("$name.csv") titles+=(--name "$name"); done
"$translate" curves "${logs[@]}" "${titles[@]}" --title "BLEU on val, greedy" --output curves.svg

if [[ ${GOLD:-} ]]; then  # German first in the gold links
    links=()
    for name in "${names[@]}"; do
        looks "$name" || continue
        "$translate" align --threads 1 --model "$name.safetensors" --source "$GOLD/tgt" --target "$GOLD/src" 2>/dev/null |
            sed -E 's/([0-9]+)-([0-9]+)/\2-\1/g' >"$name.links"
        links+=("$name.links")
    done
    echo
    "$evaluate" align --gold "$GOLD/gold" --source "$GOLD/src" --target "$GOLD/tgt" "${links[@]}"
fi
