#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# browser.sh PROGRAM TRANSLATE FOLDER: builds the pages of scripts/browser.sh in FOLDER and uses them in a headless
# browser (browser.js), which compares the playground's numbers with what PROGRAM, the example `browser`, prints, and the
# translations of a small model with those of TRANSLATE. Exit code 77: emscripten or a browser is missing; CHROMIUM can
# name one.

set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

browser=
for candidate in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [[ -n $candidate ]] && command -v "$candidate" >/dev/null; then
        browser=$candidate
        break
    fi
done
if [[ -z $browser ]] || ! command -v emcc >/dev/null || ! command -v node >/dev/null; then
    echo "skipped: needs emcc, node (Debian: emscripten, which brings node) and chromium"
    exit 77
fi

folder=$3
rm -rf "$folder/captions"
mkdir -p "$folder/captions"
(
    cd "$folder/captions"
    for who in "a dog:ein hund" "the girl:das mädchen" "two men:zwei männer" "a small boy:ein kleiner junge"; do
        for what in "runs:rennt" "sleeps on the grass:schläft im gras" "sings in the rain:singt im regen" "looks at the sea:sieht das meer"; do
            echo "${who%%:*} ${what%%:*} ." >>source
            echo "${who##*:} ${what##*:} ." >>target
        done
    done
    OPENBLAS_NUM_THREADS=1 "$2" train --source source --target target --valid-source source --valid-target target --model model \
        --system sankaran --attention additive --bpe 60 --embedding 16 --hidden 16 --alignment 16 --batch 4 --epochs 30 --learning-rate 0.02 \
        --threads 1 >log
    OPENBLAS_NUM_THREADS=1 "$2" run --model model --beam 6 <source >translated
)

HEED_SETUP=off HEED_BUILD_DIR=$folder HEED_BROWSER_PROGRAM=$1 "$here/../../scripts/browser.sh" --out "$folder/pages" \
    --captions "$folder/captions/model"
profile=$(mktemp -d)
# Processes of a browser that was killed may still write there for a moment.
trap 'for _ in 1 2 3 4 5; do rm -rf -- "$profile" 2>/dev/null && break; sleep 1; done || true' EXIT
timeout 200 node "$here/browser.js" "$browser" "$folder/pages" "$1" "$profile" "$folder/captions"
