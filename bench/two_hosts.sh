#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
#     bench/two_hosts.sh TRANSLATE [RATE...]
#
# Compares one rank of one thread on each of two hosts with one process of one thread: `translate train` on the same
# batches. The hosts are network namespaces of this machine with different names, joined by a link of RATE (default:
# "1gbit" and "10gbit"; "none": no limit). Messages go through TCP, and each host runs a daemon of Open MPI. Needs root,
# iproute2 and two idle cores. Prints a Markdown table: the medians of ROUNDS (3) runs of UPDATES (40) updates of 64
# sentences, with a generated text of 4,000 pairs of 5 to 20 words. HEED_RANKS_SYSTEMS selects other systems than
# RNNsearch and the Transformer.

set -Eeuo pipefail
case ${1:--h} in -h | --help) sed -n '/^$/q; 4,$s/^# \{0,1\}//p' "$0"; exit $((2 * ($# == 0))) ;; esac
translate=$(realpath -- "$1") rounds=${ROUNDS:-3} updates=${UPDATES:-40}
rates=("${@:2}")
((${#rates[@]})) || rates=(1gbit 10gbit)
read -r -a systems <<<"${HEED_RANKS_SYSTEMS:-rnnsearch transformer}"
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/setup.sh"
heed_environment
# shellcheck source=bench/made_text.sh
source "$(dirname "${BASH_SOURCE[0]}")/made_text.sh"
directory=$(mktemp -d)
first=heed-a-$$ second=heed-b-$$
clean_up()
{
    ip netns del "$first" 2>/dev/null || true
    ip netns del "$second" 2>/dev/null || true
    rm -rf -- "$directory"
}
trap clean_up EXIT
heed_made_text "$directory/made.a" "$directory/made.b" 4000
head -n 64 "$directory/made.a" >"$directory/valid.a"
head -n 64 "$directory/made.b" >"$directory/valid.b"

ip netns add "$first"
ip netns add "$second"
ip link add heed-va type veth peer name heed-vb
ip link set heed-va netns "$first"
ip link set heed-vb netns "$second"
ip -n "$first" addr add 10.77.0.1/24 dev heed-va
ip -n "$second" addr add 10.77.0.2/24 dev heed-vb
for host in "$first" "$second"; do ip -n "$host" link set lo up; done
ip -n "$first" link set heed-va up
ip -n "$second" link set heed-vb up

# The command with which Open MPI starts its daemon on the other host: agent HOST COMMAND...
cat >"$directory/agent" <<END
#!/bin/bash
shift
exec ip netns exec $second unshare --uts bash -c "hostname heed-b; \$*"
END
chmod +x "$directory/agent"

# limit RATE: limits both directions of the link.
limit()
{
    ip netns exec "$first" tc qdisc del dev heed-va root 2>/dev/null || true
    ip netns exec "$second" tc qdisc del dev heed-vb root 2>/dev/null || true
    [[ $1 != none ]] || return 0
    ip netns exec "$first" tc qdisc add dev heed-va root tbf rate "$1" burst 1m latency 50ms
    ip netns exec "$second" tc qdisc add dev heed-vb root tbf rate "$1" burst 1m latency 50ms
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_hwloc_base_binding_policy=none
on_two=(ip netns exec "$first" unshare --uts bash -c 'hostname heed-a; exec "$@"' two
    mpirun --host 10.77.0.1:1,10.77.0.2:1 -n 2 --mca plm_rsh_agent "$directory/agent" --mca btl tcp,self
    --mca btl_tcp_if_include 10.77.0.0/24 --mca oob_tcp_if_include 10.77.0.0/24)

# speed SYSTEM [LAUNCHER...]: median tokens/s of the training runs.
speed()
{
    local round
    for ((round = 0; round < rounds; ++round)); do
        rm -f "$directory/model"*
        if ! "${@:2}" "$translate" train --system "$1" --threads 1 --source "$directory/made.a" --target "$directory/made.b" \
            --valid-source "$directory/valid.a" --valid-target "$directory/valid.b" --model "$directory/model" --min-count 2 --epochs 1 \
            --batch 64 --max-updates "$updates" 2>"$directory/log"; then
            cat "$directory/log" >&2
            return 1
        fi
        sed -n 's/^epoch .*  \([0-9]*\) tokens\/s.*/\1/p' "$directory/log"
    done | sort -n | sed -n "$((rounds / 2 + 1))p"
}

echo "Processor: $(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
echo "$(mpirun --version | head -n 1), $rounds rounds of $updates updates:"
echo
echo "| system | link | one host, tokens/s | two hosts, tokens/s | ratio |"
echo "|---|---|---|---|---|"
for system in "${systems[@]}"; do
    one=$(speed "$system")
    for rate in "${rates[@]}"; do
        limit "$rate"
        two=$(speed "$system" "${on_two[@]}")
        echo "| $system | $rate | $one | $two | $(awk -v a="$two" -v b="$one" 'BEGIN { printf "%.2f", a / b }') |"
    done
done
