#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# site.sh PROGRAM [SITE]: tests the site that scripts/docs.sh has built in SITE (default: the build folder) in a
# headless browser (site.js). The mechanism pages run heed and must show the products that PROGRAM, the example
# `browser`, names. Exit code 77: no site was built there, it has no WebAssembly, or no browser is installed. CHROMIUM
# names a browser.

set -Eeuo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/find_browser.sh
source "$here/../find_browser.sh"

if [[ -z $browser ]] || ! command -v node >/dev/null; then
    echo "skipped: needs node and chromium"
    exit 77
fi
site=${2:-${HEED_BUILD_DIR:-$here/../../build}/docs/site}
if [[ ! -e $site/live/heed.js ]]; then
    echo "skipped: scripts/docs.sh has built no site with WebAssembly in $site"
    exit 77
fi
profile=$(mktemp -d)
# Processes of a killed browser may still write to this folder briefly.
trap 'for _ in 1 2 3 4 5; do rm -rf -- "$profile" 2>/dev/null && break; sleep 1; done || true' EXIT
timeout 280 node "$here/site.js" "$browser" "$site" "$1" "$profile"
