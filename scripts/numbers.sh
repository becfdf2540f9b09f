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
usage: scripts/numbers.sh OUT [system...]

Tests which systems generalize to longer sentences. Trains each system (default: all) on 20,000 lists of one to three
numbers in words (English to German), translates lists of up to sixteen numbers greedily, and prints the percentage of
exactly correct translations.

OUT  folder for texts, models and translations. After an interruption, run again: finished parts are kept

Environment: JOBS=1 is the number of systems trained in parallel, with one thread each; TRAIN="--epochs 1" appends options.
END
}

if (($# < 1)) || [[ $1 == -* ]]; then
    usage
    [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
    exit 2
fi
out=$1
shift

recurrent='--embedding 64 --hidden 96 --alignment 64 --dropout 0.2 --learning-rate 0.003 --epochs 10'
at_once='--embedding 64 --batch-tokens 1500 --dropout 0.1 --adam-betas 0.9:0.98 --learning-rate 0.003 --warm-up 400 --epochs 20'
rows="rnnencdec         $recurrent --attention none
      additive          $recurrent --attention additive
      per-dimension     $recurrent --attention per-dimension
      temporal          $recurrent --attention temporal
      location-aware    $recurrent --attention location-aware
      structural-biases $recurrent --attention structural-biases
      fertility         $recurrent --attention fertility
      gated-coverage    $recurrent --attention gated-coverage
      recurrent         $recurrent --attention recurrent
      local-p           $recurrent --system luong --layers 1 --attention local-p-general --input-feeding --window 4
      convs2s           $at_once --system convs2s --hidden 96 --layers 3
      transformer       $at_once --system transformer --hidden 256 --layers 2 --heads 4"
heed_choose_rows "$rows" "$@"

heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
heed_build tools translate >&2
heed_build demo number_lists >&2
heed_environment
translate=$heed_builds/tools/tools/translate lists=$heed_builds/demo/examples/number_lists
mkdir -p "$out"
cd "$out"

"$lists" --numbers 1:3 --count 20000 --seed 1 --source train.en --target train.de
"$lists" --numbers 1:3 --count 500 --seed 2 --source val.en --target val.de
lengths=(1 2 3 4 6 8 12 16)
for n in "${lengths[@]}"; do
    "$lists" --numbers "$n" --count 300 --seed "$((100 + n))" --source "test$n.en" --target "test$n.de"
done

# shellcheck disable=SC2034  # for heed_train
text=(--source train.en --target train.de --valid-source val.en --valid-target val.de)
out=.
heed_train_all

table()
{
    printf '| numbers in a list |'
    printf ' %s |' "${lengths[@]}"
    printf '\n|---|'
    printf '%s' "${lengths[@]/*/---|}"
    printf '\n| words |'
    for n in "${lengths[@]}"; do printf ' %.1f |' "$(wc -w <"test$n.en" | awk '{ print $1 / 300 }')"; done
    for system in "${names[@]}"; do
        printf '\n| %s |' "$system"
        for n in "${lengths[@]}"; do
            "$translate" run --threads 1 --model "$system.safetensors" --beam 1 --input "test$n.en" >"$system$n.de" 2>"$system.messages" ||
                heed_fail "$system: $(tail -n 1 "$system.messages")"
            printf ' %.1f |' "$(paste -d'\t' "$system$n.de" "test$n.de" | awk -F'\t' '$1 == $2 { ++n } END { print 100 * n / NR }')"
        done
    done
    echo
}
heed_write table.md table
cat table.md
