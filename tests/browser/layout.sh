#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# layout.sh [SITE]: tests that each page of the site that scripts/docs.sh has built in SITE (default: the build folder)
# fits on a telephone, and some on a tablet and a desktop, in a headless browser (layout.js); and that deliberate faults are found.
# Exit code 77: no site was built there, or no browser is installed. CHROMIUM names a browser.

set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/find_browser.sh
source "$here/../find_browser.sh"

if [[ -z $browser ]] || ! command -v node >/dev/null; then
    echo "skipped: needs node and chromium"
    exit 77
fi
site=${1:-${HEED_BUILD_DIR:-$here/../../build}/docs/site}
if [[ ! -e $site/index.html ]]; then
    echo "skipped: scripts/docs.sh has built no site in $site"
    exit 77
fi
scratch=$(mktemp -d)
# Processes of a killed browser may still write to this folder briefly.
trap 'for _ in 1 2 3 4 5; do rm -rf -- "$scratch" 2>/dev/null && break; sleep 1; done || true' EXIT

# A page with one fault of each kind.
mkdir "$scratch/faults"
cp -r "$site/_static" "$scratch/faults/"
echo '<svg xmlns="http://www.w3.org/2000/svg" width="1200" height="9"/>' >"$scratch/faults/wide.svg"
{
    sed '/<article role="main">/q' "$site/index.html"
    cat <<'END'
<p><img src="none.svg" alt=""> <img src="wide.svg" alt=""></p>
<div style="width: 60em">wider than a telephone</div>
<h2>one_name_that_is_longer_than_the_screen_of_any_telephone</h2>
<table><tr><td style="max-width: 4em"><code style="white-space: nowrap">longer than its cell</code></td><td>next</td></tr></table>
<div class="equations"><span class="both" style="height: 1em"><br><br>below</span></div>
<p style="color: #999">faint</p>
</article></div></div></div></div></body></html>
END
} >"$scratch/faults/index.html"
timeout 60 node "$here/layout.js" "$browser" "$scratch/faults" "$scratch/profile" >"$scratch/found" && {
    echo "FAILED: a page with deliberate faults passes"
    exit 1
}
for fault in 'no picture' 'a picture is shrunk' 'the page scrolls sideways' 'outside of the page' 'covers its neighbor: h2' 'covers its neighbor: td' 'cut at the bottom' 'hard to read' 'only 1 pages'; do
    grep -q "$fault" "$scratch/found" || {
        echo "FAILED: this deliberate fault is not found: $fault"
        cat "$scratch/found"
        exit 1
    }
done
timeout 560 node "$here/layout.js" "$browser" "$site" "$scratch/profile"
