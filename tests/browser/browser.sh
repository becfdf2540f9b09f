#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# browser.sh PROGRAM FOLDER: builds the pages of scripts/browser.sh in FOLDER and uses them in a headless browser
# (browser.js), which compares the playground's numbers with what PROGRAM, the example `browser`, prints. Exit code 77:
# emscripten or a browser is missing; CHROMIUM can name one.

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

HEED_SETUP=off HEED_BUILD_DIR=$2 "$here/../../scripts/browser.sh" --out "$2/pages"
profile=$(mktemp -d)
trap 'rm -rf -- "$profile"' EXIT
timeout 200 node "$here/browser.js" "$browser" "$2/pages" "$1" "$profile"
