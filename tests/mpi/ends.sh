#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# ends.sh <mpirun> <program>: one of three ranks exits while the others wait for it. All must exit within ten seconds
# with a nonzero status and an error message.

set -uo pipefail
mpirun=$1 program=$2
here=$(dirname "${BASH_SOURCE[0]}")
failed=0
check()
{
    local how=$1 text=$2 output status start=$SECONDS
    output=$(timeout -k 5 60 bash "$here/run.sh" "$mpirun" 3 "$program" --end "$how" 2>&1)
    status=$?
    if ((status == 0 || status == 124 || SECONDS - start > 10)) || [[ ! $output =~ $text ]]; then
        printf '%s: status %d after %d s, should print "%s":\n%s\n' "$how" "$status" "$((SECONDS - start))" "$text" "$output"
        failed=1
    fi
}
check killed 'signal 9|Killed|KILLED'
check throws 'the disk of this rank is full'
check throws-amid 'the memory of this rank is full'
check returns 'rank 2 of 3 has ended'
check exits 'exit'
exit "$failed"
