#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
#     bench/service.sh TRANSLATE SERVICE_CLIENT MODEL SOURCE [ROUNDS [CLIENTS [THREADS]]]
#
# Compares the throughput of `translate serve` with that of `translate run` on the same sentences. Each of CLIENTS (32)
# clients sends a sentence, waits for the translation and sends the next. The two take turns; the result is the median of
# the rounds' ratios. SERVICE_CLIENT is the program built from tests/tools/service_client.cpp. Fails if a byte differs.

set -Eeuo pipefail
case ${1:--h} in -h | --help) sed -n '/^$/q; 4,$s/^# \{0,1\}//p' "$0"; exit $((2 * ($# == 0))) ;; esac
translate=$1 client=$2 model=$3 source=$4 rounds=${5:-5} clients=${6:-32} threads=${7:-1}
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/setup.sh"
heed_environment
directory=$(mktemp -d)
trap 'kill $service 2>/dev/null || true; rm -rf -- "$directory"' EXIT

"$translate" serve --model "$model" --port 0 --threads "$threads" --quiet >"$directory/url" 2>/dev/null &
service=$!
until [[ -s $directory/url ]]; do
    kill -0 $service
    sleep 0.1
done
port=$(sed 's/.*://' "$directory/url")

for ((round = 0; round < rounds; ++round)); do
    "$translate" run --model "$model" --input "$source" --threads "$threads" >"$directory/offline" 2>"$directory/log"
    offline=$(sed -n 's/.*: \([0-9]*\) words\/s$/\1/p' "$directory/log")
    "$client" "$port" ask "$clients" <"$source" >"$directory/online" 2>"$directory/log"
    online=$(sed -n 's/.*: \([0-9]*\) words\/s; .*/\1/p' "$directory/log")
    cmp "$directory/offline" "$directory/online"
    echo "offline $offline words/s, $clients clients $online words/s: $((100 * online / offline)) %; $(sed 's/.*latency/latency/; s/ %;.*/ %/' "$directory/log")"
done | tee "$directory/rounds"
sed 's/.*: \([0-9]*\) %;.*/\1/' "$directory/rounds" | sort -n | awk '{ all[NR] = $1 } END { print "median of " NR ": " all[int((NR + 1) / 2)] " % of offline; identical bytes" }'
awk '/^VmRSS/ { print "memory of the service: " $2 " kB" }' /proc/$service/status
