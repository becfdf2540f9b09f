#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Trains a translator of number words from English to German in less than a minute, and shows its attention. Installs
# missing packages (Debian 12, root or sudo), builds one program and runs it. Arguments are passed to the demo:
# scripts/demo.sh --help

set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

heed_setup "${heed_packages_build[@]}" "${heed_packages_demo[@]}"
heed_build demo demo
heed_environment
exec "$heed_builds/demo/examples/demo" "$@"
