#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# browser.sh PROGRAM TRANSLATE FOLDER: builds the pages of scripts/browser.sh in FOLDER, with a small model that its
# --train makes, and uses them in a headless browser (browser.js). Compares the playground's numbers with the output of
# PROGRAM, the example `browser`, and translations with those of TRANSLATE. Exit code 77: emscripten or a browser is
# missing. CHROMIUM names a browser.

set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/find_browser.sh
source "$here/../find_browser.sh"
if [[ -z $browser ]] || ! command -v emcc >/dev/null || ! command -v node >/dev/null; then
    echo "skipped: needs emcc, node (Debian: emscripten, which brings node) and chromium"
    exit 77
fi

folder=$3
data=$folder/captions
rm -rf "$data" "$folder/pages" "$folder/browser"/captions.* "$folder/browser/rounded.safetensors"
mkdir -p "$data" "$folder/browser"
(
    cd "$data"
    for who in "a dog:ein hund" "the girl:das mädchen" "two men:zwei männer" "a small boy:ein kleiner junge"; do
        for what in "runs:rennt" "sleeps on the grass:schläft im gras" "sings in the rain:singt im regen" "looks at the sea:sieht das meer"; do
            echo "${who%%:*} ${what%%:*} ." >>train.en
            echo "${who##*:} ${what##*:} ." >>train.de
        done
    done
    for name in val test2016; do
        for language in en de; do cp train.$language $name.$language; done
    done
)

# Reuses what scripts/docs.sh or scripts/browser.sh has compiled, if it is up to date.
compiled=${HEED_BUILD_DIR:-$here/../../build}/browser/heed.js
if [[ -e $compiled && $compiled -nt $folder/browser/heed.js ]]; then cp -p "$compiled" "$folder/browser/heed.js"; fi
export OPENBLAS_NUM_THREADS=1
TRAIN="--attention additive --bpe 60 --embedding 16 --hidden 16 --alignment 16 --batch 4 --epochs 30 --learning-rate 0.02" \
    HEED_SETUP=off HEED_BUILD_DIR=$folder HEED_BROWSER_PROGRAM=$1 HEED_TRANSLATE_PROGRAM=$2 \
    "$here/../../scripts/browser.sh" --out "$folder/pages" --train "$data" 2>"$data/log" | tee "$data/said"
grep -q '^BLEU = ' "$data/said" || {
    echo "FAILED: browser.sh --train does not report how well the model translates"
    exit 1
}
"$2" run --threads 1 --model "$folder/browser/rounded.safetensors" --beam 6 <"$data/test2016.en" >"$data/translated" 2>>"$data/log"
profile=$(mktemp -d)
# Processes of a killed browser may still write to this folder briefly.
trap 'for _ in 1 2 3 4 5; do rm -rf -- "$profile" 2>/dev/null && break; sleep 1; done || true' EXIT
timeout 200 node "$here/browser.js" "$browser" "$folder/pages" "$1" "$profile" "$data"
