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
usage: scripts/pronunciation.sh [--ensemble N] TRAIN DEV OUT [row...]
       scripts/pronunciation.sh --score TEST MODEL...

Trains systems that translate the letters of a word to its phonemes, and prints a table of their phoneme and word error
rates on DEV with 95% bootstrap intervals. A model is that of the epoch with the best BLEU on DEV. With --score, prints
the error rates of a trained model on TEST instead; several models form an ensemble.

TRAIN, DEV, TEST  pronunciation dictionaries in a format of scripts/spelling.sh: the files of the SIGMORPHON shared tasks
                  are used as they are
OUT               folder for texts, models and pronunciations. After an interruption, run again: finished parts are kept
row               a system; default: all
MODEL             a model that was trained by this script, such as OUT/additive.1.safetensors

--ensemble N      trains each system with seeds 1 to N, and also scores the ensemble of these models

    scripts/pronunciation.sh hun_train.tsv hun_dev.tsv out additive
    scripts/pronunciation.sh --score hun_test.tsv out/additive.1.safetensors

Environment: JOBS=1 is the number of systems trained in parallel, with one thread each; TRAIN_OPTIONS="--epochs 1" appends
options. PROGRAMS=FOLDER contains `translate` and `evaluate`; by default they are built from this checkout.
END
}

seeds=1 score=no least=3
case ${1:-} in
    -h | --help) usage && exit 0 ;;
    --score) score=yes least=2 && shift ;;
    --ensemble)
        seeds=${2:-}
        [[ $seeds =~ ^[1-9][0-9]*$ ]] || heed_fail "--ensemble requires a number of models" "" "$(usage)"
        shift 2
        ;;
    -*) heed_fail "unknown option $1" "" "$(usage)" ;;
esac
if (($# < least)); then
    usage >&2
    exit 2
fi

common='--embedding 128 --hidden 128 --alignment 128 --dropout 0.4 --label-smoothing 0.1 --batch 16 --learning-rate 0.002 --halve-from 25 --epochs 34 --patience 12'
rows="additive       $common --cell lstm --attention additive
      additive-y     $common --cell lstm --attention additive-y
      temporal       $common --cell lstm --attention temporal
      location-aware $common --attention location-aware
      monotonic      $common --attention monotonic
      chunkwise      $common --attention chunkwise
      per-dimension  $common --cell lstm --attention per-dimension
      transformer    --system transformer --embedding 128 --hidden 512 --layers 3 --heads 4 --dropout 0.2 --label-smoothing 0.1 --batch 64 --adam-betas 0.9:0.98 --learning-rate 0.002 --warm-up 1000 --average 3 --epochs 60 --patience 6"

if [[ $score == no ]]; then
    heed_choose_rows "$rows" "${@:4}"
    systems=("${names[@]}") names=()
    for ((seed = 1; seed <= seeds; ++seed)); do
        for name in "${systems[@]}"; do
            names+=("$name.$seed")
            options_of[$name.$seed]="${options_of[$name]} --seed $seed"
        done
    done
fi

if [[ ${PROGRAMS:-} ]]; then
    translate=$PROGRAMS/translate evaluate=$PROGRAMS/evaluate
else
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
    heed_build tools translate >&2
    heed_build tools evaluate >&2
    translate=$heed_builds/tools/tools/translate evaluate=$heed_builds/tools/tools/evaluate
fi
heed_environment

# error_rates LETTERS REFERENCES HYPOTHESES MODEL...: writes the pronunciations of LETTERS to HYPOTHESES and prints
# "phoneme errors | word errors". References are REFERENCES.1 and so on.
error_rates()
{
    local letters=$1 hypotheses=$3 model messages file
    local -a models=() references=()
    for file in "$2".[0-9]*; do references+=(--reference "$file"); done
    for model in "${@:4}"; do models+=(--model "$model"); done
    messages=$("$translate" run --threads 1 "${models[@]}" --beam 5 --input "$letters" 2>&1 >"$hypotheses") ||
        heed_fail "$(tail -n 1 <<<"$messages")"
    "$evaluate" wer --threads 1 "${references[@]}" - <"$hypotheses" |
        awk 'NR == 2 { sub(/^standard input/, ""); print $1 "% " $2, $3 " | " $6 "% " $7, $8 }'
}

if [[ $score == yes ]]; then
    scratch=$(mktemp -d)
    trap 'rm -rf -- "$scratch"' EXIT
    "$heed_root/scripts/spelling.sh" --test "$scratch" "$1" >&2
    rates=$(error_rates "$scratch/test.letters" "$scratch/test.phonemes" "$scratch/hypotheses" "${@:2}")
    echo '| models | phoneme errors | word errors |'
    echo '|---|---|---|'
    echo "| $(($# - 1)) | $rates |"
    exit
fi

out=$3
"$heed_root/scripts/spelling.sh" "$out" "$1" "$2" >&2
# shellcheck disable=SC2034  # for heed_train
TRAIN=${TRAIN_OPTIONS:-} text=(--source "$out/train.letters" --target "$out/train.phonemes"
    --valid-source "$out/valid.letters" --valid-target "$out/valid.phonemes")
data_sum=$(cat "$1" "$2" | sha256sum | head -c 12)
for name in "${names[@]}"; do heed_started "$name" "$data_sum ${options_of[$name]} $TRAIN"; done
heed_train_all

echo '| system | seed | parameters | best epoch | training | phoneme errors | word errors |'
echo '|---|---|---|---|---|---|---|'
for name in "${systems[@]}"; do
    models=()
    for ((seed = 1; seed <= seeds; ++seed)); do
        run=$name.$seed
        models+=("$out/$run.safetensors")
        rates=$(error_rates "$out/valid.letters" "$out/valid.phonemes" "$out/$run.phonemes" "${models[-1]}")
        echo "| $name | $seed | $(heed_parameters "$run") | $(heed_course "$run") | $rates |"
    done
    if ((seeds > 1)); then
        rates=$(error_rates "$out/valid.letters" "$out/valid.phonemes" "$out/$name.phonemes" "${models[@]}")
        echo "| $name | ensemble | | | | $rates |"
    fi
done
