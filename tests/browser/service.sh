#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# service.sh TRANSLATE [PICTURES]: the page of `translate serve` in a headless browser (service.js), wide and narrow,
# light and dark. Exit code 77: no browser or Node is installed, or the program was built without HTTP.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
pictures=${2:+$(realpath -- "$2")}
# shellcheck source=tests/find_browser.sh
source "$here/../find_browser.sh"
if [[ -z $browser ]] || ! command -v node >/dev/null; then
    echo "skipped: a browser or Node is missing (Debian: chromium nodejs)"
    exit 77
fi
# shellcheck source=tests/tools/common.bash
source "$here/../tools/common.bash"
service=  # a process that must be killed if the test fails
trap 'status=$?; [[ ! $service ]] || kill -9 $service 2>/dev/null || true; rm -rf -- "$directory"; ((status)) || echo passed' EXIT
sentences 100 1 train
sentences 12 2 valid
train --epochs 15 --learning-rate 0.02 || fail "training"
"$translate" serve --model model.safetensors --port 0 --threads 1 --quiet --from en --to Counting --example "one two three one" >url 2>log &
service=$!
for ((i = 0; i < 600; ++i)); do
    [[ ! -s url ]] || break
    kill -0 $service 2>/dev/null || break
    sleep 0.05
done
if grep -q 'built without cpp-httplib' log; then
    echo 'skipped: without cpp-httplib'
    trap - EXIT
    rm -rf -- "$directory"
    exit 77
fi
mkdir profile
status=0
timeout 200 node "$here/service.js" "$browser" "$directory/profile" "$(cat url)/" 'one two three one' $pictures || status=$?
kill $service
wait $service || true
exit $status
