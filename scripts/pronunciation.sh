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
usage: scripts/pronunciation.sh TRAIN VALID OUT [row...]

Trains systems that translate the letters of a word to its phonemes, and prints their phoneme and word error rates.
Every twentieth word of TRAIN is in the test set and not in the training set. Rows select systems (default: all).

TRAIN, VALID  pronunciation dictionaries in a format of scripts/spelling.sh, such as CMUdict
OUT           folder for texts, models and translations. After an interruption, run again: finished parts are kept

Environment: JOBS=1 is the number of systems trained in parallel, with one thread each; TRAIN_OPTIONS="--epochs 1" appends
options.
END
}

if (($# < 3)) || [[ $1 == -* ]]; then
    usage
    [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
    exit 2
fi
out=$3
common='--embedding 128 --hidden 128 --alignment 128 --dropout 0.2 --epochs 10 --halve-from 8'
rows="additive       $common --attention additive
      additive-y     $common --attention additive-y
      per-dimension  $common --attention per-dimension
      temporal       $common --attention temporal
      location-aware $common --attention location-aware
      transformer    --system transformer --embedding 128 --hidden 512 --layers 3 --heads 4 --batch-tokens 4000 --dropout 0.1 --label-smoothing 0.1 --adam-betas 0.9:0.98 --learning-rate 0.002 --warm-up 1000 --epochs 15 --average 3"
heed_choose_rows "$rows" "${@:4}"
"$(dirname "${BASH_SOURCE[0]}")/spelling.sh" "$out" "$1" "$2"
TRAIN=${TRAIN_OPTIONS:-}

heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
heed_build tools translate >&2
heed_build tools evaluate >&2
heed_environment
translate=$heed_builds/tools/tools/translate evaluate=$heed_builds/tools/tools/evaluate
cd "$out"
# shellcheck disable=SC2034  # for heed_train
out=. text=(--source train.letters --target train.phonemes --valid-source valid.letters --valid-target valid.phonemes)
heed_train_all

echo '| system | parameters | best epoch | training |'
echo '|---|---|---|---|'
for name in "${names[@]}"; do
    echo "| $name | $(heed_parameters "$name") | $(heed_course "$name") |"
    "$translate" run --threads 1 --model "$name.safetensors" --beam 5 --input test.letters >"$name.phonemes" 2>/dev/null
done
references=()
for file in test.phonemes.[0-9]*; do references+=(--reference "$file"); done
echo
"$evaluate" wer "${references[@]}" "${names[@]/%/.phonemes}"
