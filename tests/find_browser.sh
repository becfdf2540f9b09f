# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Sourced by tests that need a browser: sets `browser` to CHROMIUM, or to the first browser that is installed, or to "".

browser=
for candidate in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [[ -n $candidate ]] && command -v "$candidate" >/dev/null; then
        # shellcheck disable=SC2034  # for the script that sources this
        browser=$candidate
        break
    fi
done
