#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/epoch_times.sh DATA OUT

Measures the training speed of recurrent, convolutional and self-attention systems by the length of sentences: the same
5,760 pairs, 1, 2, 4, 8 or 16 of which are joined to a sentence, in batches of 2,000 tokens. Prints target tokens per
second of one epoch, with one thread: run it on an idle machine.

DATA  a folder with train and val in English and German, such as train.en, tokenized
OUT   folder for texts, models and logs. After an interruption, run again: finished measurements are kept

Environment: PROGRAMS=FOLDER contains `translate`; by default it is built from this checkout.
END
}

if (($# != 2)) || [[ $1 == -* ]]; then
    usage
    [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
    exit 2
fi
data=$(realpath -- "$1") out=$2
for file in train.en train.de val.en val.de; do
    [[ -r $data/$file ]] || heed_fail "$data/$file: cannot be read" "" "$(usage)"
done
if [[ ${PROGRAMS:-} ]]; then
    translate=$(realpath -- "$PROGRAMS/translate")
else
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
    heed_build tools translate >&2
    translate=$heed_builds/tools/tools/translate
fi
heed_environment
mkdir -p "$out"
cd "$out"

common='--embedding 256 --hidden 256 --batch-tokens 2000 --dropout 0.1 --min-count 2 --epochs 1 --threads 1'
declare -A options_of=(
    [rnnencdec]='--attention none'
    [rnnsearch]='--attention additive --alignment 256'
    [convs2s]='--system convs2s --layers 3'
    [transformer]='--system transformer --layers 3 --heads 4'
)
systems=(rnnencdec rnnsearch convs2s transformer) lengths=(1 2 4 8 16)
for language in en de; do
    head -n 8 "$data/val.$language" >"val.$language"
    for n in "${lengths[@]}"; do
        head -n 5760 "$data/train.$language" | awk -v n="$n" '{ printf "%s%s", $0, NR % n ? " " : "\n" }' >"train$n.$language"
    done
done

for n in "${lengths[@]}"; do
    for system in "${systems[@]}"; do
        base=$system.$n
        [[ ! -e $base.done ]] || continue
        rm -f "$base".*
        read -r -a options <<<"$common ${options_of[$system]}"
        "$translate" train "${options[@]}" --source "train$n.en" --target "train$n.de" --valid-source val.en --valid-target val.de \
            --model "$base.safetensors" --log "$base.csv" 2>"$base.log" || heed_fail "$base: $(tail -n 1 "$base.log")"
        rm -f "$base".safetensors*
        touch "$base.done"
    done
done

table()
{
    printf '| German words of a sentence |'
    printf ' %s |' "${systems[@]}"
    printf '\n|---|'
    printf '%s' "${systems[@]/*/---|}"
    for n in "${lengths[@]}"; do
        printf '\n| %.0f |' "$(awk '{ words += NF } END { print words / NR }' "train$n.de")"
        for system in "${systems[@]}"; do
            printf ' %.0f |' "$(awk -F, 'NR == 1 { for (i = 1; i <= NF; ++i) at[$i] = i } END { print $at["tokens_per_second"] }' "$system.$n.csv")"
        done
    done
    echo
}
heed_write table.md table
cat table.md
