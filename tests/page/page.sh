#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# page.sh PROGRAM: the page that PROGRAM writes, in a headless browser (page.js), wide and narrow. Exit code 77: no
# browser is installed. CHROMIUM names a browser.

set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tests/find_browser.sh
source "$here/../find_browser.sh"
if [[ -z $browser ]]; then
    echo "skipped: neither chromium nor google-chrome is installed (Debian: chromium)"
    exit 77
fi

directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
{
    "$1"
    echo '<script>' && cat "$here/page.js" && echo '</script>'
} >"$directory/test.html"

# open FILE WIDTH: writes the final page to dom and the browser's messages to log.
open()
{
    # Its sandbox needs privileges that containers do not have; the page is trusted.
    HOME=$directory timeout 240 "$browser" --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run \
        --disable-background-networking --user-data-dir="$directory/profile$2" --window-size="$2,500" \
        --virtual-time-budget=20000 --enable-logging=stderr --dump-dom "file://$directory/$1" \
        >"$directory/dom" 2>"$directory/log" || {
        echo "FAILED: $browser ended with $?" && tail -n 20 "$directory/log"
        exit 1
    }
    if grep 'CONSOLE' "$directory/log"; then
        echo "FAILED: the page wrote to the console"
        exit 1
    fi
}

for width in 1280 500; do
    open test.html "$width"
    if ! grep -o 'all [0-9]* checks passed' "$directory/dom"; then
        echo "at a width of $width:"
        sed -n '/<pre id="result">/,/<\/pre>/p' "$directory/dom"
        exit 1
    fi
done
