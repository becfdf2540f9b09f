#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
#     bench/ranks.sh TRANSLATE [ROUNDS [UPDATES [SOURCE TARGET]]]
#
# Compares two ranks of one thread with one process of two threads: `translate train` on the same batches, for two
# systems. The two take turns, and each ratio is that of a round. Prints a Markdown table: the median of ROUNDS (5)
# ratios of tokens/s and their range. It measures Open MPI's default (a process reads the memory of the other) and
# OMPI_MCA_btl_vader_single_copy_mechanism=none (both copy through shared memory), which some containers need. UPDATES
# (40) are of 64 sentences. Without SOURCE and TARGET, a text of 4,000 pairs of 5 to 20 words is generated.
# HEED_RANKS_SYSTEMS selects other systems.

set -Eeuo pipefail
case ${1:--h} in -h | --help) sed -n '/^$/q; 4,$s/^# \{0,1\}//p' "$0"; exit $((2 * ($# == 0))) ;; esac
translate=$(realpath -- "$1") rounds=${2:-5} updates=${3:-40}
read -r -a systems <<<"${HEED_RANKS_SYSTEMS:-rnnsearch transformer}"
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/../scripts/setup.sh"
heed_environment
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
source=${4:-$directory/made.a} target=${5:-$directory/made.b}
if [[ $source == "$directory/made.a" ]]; then
    # shellcheck source=bench/made_text.sh
    source "$(dirname "${BASH_SOURCE[0]}")/made_text.sh"
    heed_made_text "$source" "$target" 4000
fi
head -n 64 "$source" >"$directory/valid.a"
head -n 64 "$target" >"$directory/valid.b"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # otherwise Open MPI refuses to run as root
export OMPI_MCA_rmaps_base_oversubscribe=1                       # it counts two threads of a core as one slot
export OMPI_MCA_hwloc_base_binding_policy=none

# speed SYSTEM THREADS [LAUNCHER...]: tokens/s of a training run.
speed()
{
    rm -f "$directory/model"*
    if ! "${@:3}" "$translate" train --system "$1" --threads "$2" --source "$source" --target "$target" --valid-source "$directory/valid.a" \
        --valid-target "$directory/valid.b" --model "$directory/model" --min-count 2 --epochs 1 --batch 64 --max-updates "$updates" 2>"$directory/log"; then
        cat "$directory/log" >&2
        return 1
    fi
    sed -n 's/^epoch .*  \([0-9]*\) tokens\/s.*/\1/p' "$directory/log"
}

for ((round = 0; round < rounds; ++round)); do
    for system in "${systems[@]}"; do
        for copies in unset none; do
            set_copies=(env -u OMPI_MCA_btl_vader_single_copy_mechanism)
            [[ $copies == unset ]] || set_copies=(env OMPI_MCA_btl_vader_single_copy_mechanism=none)
            if (((round % 2) == 0)); then
                one=$(speed "$system" 2)
                two=$(speed "$system" 1 "${set_copies[@]}" mpirun -n 2)
            else # in the other order
                two=$(speed "$system" 1 "${set_copies[@]}" mpirun -n 2)
                one=$(speed "$system" 2)
            fi
            echo "round $((round + 1)): $system, $copies: one process $one tokens/s, two ranks $two" >&2
            echo "$system $copies $one $two" >>"$directory/rounds"
        done
    done
done

sed -n 's/^model name.*: /Processor: /p' /proc/cpuinfo | head -n 1
echo "$(mpirun --version | head -n 1), $rounds rounds of $updates updates:"
echo
echo '| system | single copy mechanism | one process, tokens/s | two ranks, tokens/s | ratio (target: 0.95) | range |'
echo '|---|---|---|---|---|---|'
for system in "${systems[@]}"; do
    for copies in unset none; do
        awk -v system_is="$system" -v copies="$copies" '
            function median(x, n, i, j, t) {
                for (i = 2; i <= n; ++i)
                    for (j = i; j > 1 && x[j] < x[j - 1]; --j) { t = x[j]; x[j] = x[j - 1]; x[j - 1] = t }
                return n % 2 ? x[(n + 1) / 2] : (x[n / 2] + x[n / 2 + 1]) / 2
            }
            $1 == system_is && $2 == copies { ++n; one[n] = $3; two[n] = $4; ratio[n] = $4 / $3 }
            END {
                middle = median(ratio, n)
                printf "| %s | %s | %.0f | %.0f | %.2f | %.2f to %.2f |\n", system_is, copies, median(one, n), median(two, n), middle, ratio[1], ratio[n]
            }' "$directory/rounds"
    done
done
