#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/multi30k.sh DATA OUT [attention...]

Trains an English-German translator with each attention (default: none additive additive-y per-dimension temporal) and
prints the table of docs/results/multi30k.md.

DATA  a folder with train.en train.de val.en val.de test2016.en test2016.de, tokenized: Multi30k, task 1, the
      *.lc.norm.tok.* files
OUT   folder for models and logs. After an interruption, run again: finished models are kept, others are resumed

Environment: THREADS=2, and TRAIN to replace the training options of the table:
END
    printf 'TRAIN="%s"\n' "$train"
}

train=${TRAIN:-"--min-count 2 --embedding 256 --hidden 256 --dropout 0.4 --label-smoothing 0.1 --epochs 16"}
if (($# < 2)) || [[ $1 == -* ]]; then
    usage
    exit $(($# < 2 ? 2 : 0))
fi
data=$1 out=$2
shift 2
attentions=("${@:-}")
[[ -n ${attentions[0]} ]] || attentions=(none additive additive-y per-dimension temporal)
for file in {train,val,test2016}.{en,de}; do
    [[ -r $data/$file ]] || heed_fail "$data/$file: cannot be read" "" "$(usage)"
done

heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
heed_build tools translate >&2
heed_environment
translate=("$heed_builds/tools/tools/translate" --threads "${THREADS:-2}")
mkdir -p "$out"

# The two lines of `translate score` as "BLEU perplexity".
score()
{
    "${translate[@]}" score --model "$1" --source "$data/$2.en" --target "$data/$2.de" |
        sed -n 's/^BLEU = \([0-9.]*\).*/\1/p;s/^perplexity = //p' | paste -sd ' '
}

for attention in "${attentions[@]}"; do
    model=$out/$attention.safetensors log=$out/$attention.log
    if [[ -e $model.done ]]; then continue; fi
    resume=()
    [[ -e $model.checkpoint ]] && resume=(--resume)
    heed_say "training with $attention attention" >&2
    # shellcheck disable=SC2086  # $train is a list of options
    "${translate[@]}" train --source "$data/train.en" --target "$data/train.de" --valid-source "$data/val.en" \
        --valid-target "$data/val.de" --model "$model" --attention "$attention" $train "${resume[@]}" 2>&1 | tee -a "$log" >&2
    touch "$model.done"
done

printf '| attention | BLEU val | BLEU test2016 | perplexity val | perplexity test2016 | parameters | best epoch | training | tokens/s |\n'
printf '|---|---|---|---|---|---|---|---|---|\n'
for attention in "${attentions[@]}"; do
    log=$out/$attention.log
    read -r val_bleu val_perplexity < <(score "$out/$attention.safetensors" val)
    read -r test_bleu test_perplexity < <(score "$out/$attention.safetensors" test2016)
    awk -v name="$attention" -v vb="$val_bleu" -v tb="$test_bleu" -v vp="$val_perplexity" -v tp="$test_perplexity" '
        / parameters,/ { for (i = 2; i <= NF; ++i) if ($i ~ /^parameters/) parameters = $(i - 1) }
        /^epoch / { for (i = 1; i <= NF; ++i) if ($i ~ /^tokens\/s/) { speed += $(i - 1); ++epochs } }
        /^best validation BLEU/ { best = $7; sub(/^[^(]*\(/, ""); sub(/\).*/, ""); time = $0 }
        END { printf "| %s | %.2f | %.2f | %.2f | %.2f | %d | %s | %s | %.0f |\n", name, vb, tb, vp, tp, parameters, best, time,
              epochs ? speed / epochs : 0 }' "$log"
done
