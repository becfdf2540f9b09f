#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several processes under mpirun: the updates equal those of one process except for rounding, and repeat bit for bit;
# any number of processes can resume; if one is killed, the others exit; translations and scores equal those of one
# process.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
evaluate=$(realpath -- "$2")
# For root, more processes than cores, and containers. Other launchers ignore these variables.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_hwloc_base_binding_policy=none
export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0  # MPI itself leaks
if ! command -v mpirun >/dev/null; then
    echo 'there is no mpirun (Debian: openmpi-bin libopenmpi-dev): skipped'
    exit 77
fi

# Without MPI several processes exit with one error message.
if ! ldd "$translate" | grep -q libmpi; then
    status=0
    mpirun -n 2 "$translate" score --model x --source x --target x 2>log || status=$?
    ((status)) || fail "two processes without MPI"
    (($(grep -c '^translate: started as 2 processes, but built without MPI' log) == 1)) || fail "no refusal, or two"
    echo 'translate is built without MPI: the rest is skipped'
    exit 77
fi

sentences 36 1 train
sentences 21 2 valid
# Without --alignment, which some systems do not support.
training=("$translate" train --source train.a --target train.b --valid-source valid.a --valid-target valid.b
    --model model.safetensors --embedding 8 --hidden 8 --batch 8 --threads 1)
fixed=(--optimizer sgd --learning-rate 0.5 --dropout 0.3 --epochs 3 --patience 9)

# ranks N OPTION...: trains with N processes; with N = 0, without mpirun.
ranks()
{
    local -a launcher=()
    if (($1)); then launcher=(mpirun -n "$1"); fi
    "${launcher[@]}" "${training[@]}" "${@:2}" 2>log
}
# numbers FILE: the parameters of a model, in a fixed order.
numbers()
{
    local size
    size=$(od -An -tu8 -N8 "$1")
    tail -c +$((9 + size)) "$1" | od -An -v -w4 -tf4
}
# same_numbers ONE OTHER: no number differs by more than 1e-5.
same_numbers()
{
    paste <(numbers "$1") <(numbers "$2") |
        awk 'NF != 2 { bad = 1 } { d = $1 - $2; if (d < 0) d = -d; if (d > most) most = d; ++n }
             END { if (bad || n == 0 || !(most < 1e-5)) { print "maximum difference", most, "of", n; exit 1 } }'
}
# same_course ONE OTHER: two logs are equal, except for times and speeds; losses to 1e-5.
same_course()
{
    paste -d , "$1" "$2" | awk -F , '
        NR > 1 && ($1 != $9 || $2 != $10 || $5 != $13) { print "row", NR; exit 1 }
        NR > 1 { for (i = 4; i < 8; ++i) { d = $i - $(i + 8); if (d < 0) d = -d; if (d > 2e-5) { print $0; exit 1 } } }
        END { if (NR < 2) exit 1 }'
}
fresh() { rm -f model.safetensors* course.csv; }

# 1 and 4 processes; some get no sentence of the last batch, which has four.
ranks 0 "${fixed[@]}" --log one.csv || fail "one process"
mv model.safetensors one
rm model.safetensors.checkpoint
for n in 1 4; do
    fresh
    ranks $n "${fixed[@]}" --log course.csv || fail "$n processes"
    same_course one.csv course.csv || fail "$n processes have different losses"
    same_numbers one model.safetensors || fail "$n processes train a different model"
    if ((n == 1)); then cmp one model.safetensors || fail "one process under mpirun trains a different model"; fi
    (($(grep -c '^epoch' log) == 3)) || fail "not one line per epoch"
done
fresh
ranks 0 "${fixed[@]}" --dropout 0 || fail "without dropout"
same_numbers one model.safetensors >/dev/null && fail "dropout has no effect: the test is ineffective"

# More processes than sentences in a batch; a second run is equal bit for bit.
fresh
ranks 0 "${fixed[@]}" --batch 2 --epochs 1 || fail "batches of two"
mv model.safetensors two
for again in 1 2; do
    fresh
    ranks 4 "${fixed[@]}" --batch 2 --epochs 1 || fail "four processes, batches of two"
    mv model.safetensors four.$again
done
same_numbers two four.1 || fail "idle processes change the model"
cmp four.1 four.2 || fail "a second run differs"

# Each system, and options that affect a step.
awk '{ line = ""; for (i = 0; i < NF; ++i) line = line (i ? " " : "") i "-" NF - 1 - i; print line }' train.a >links
while read -r -a how; do
    for n in 0 3; do
        fresh
        ranks $n "${fixed[@]}" --epochs 1 "${how[@]}" --log course.csv || fail "${how[*]}: $n processes"
        mv model.safetensors system.$n
        mv course.csv system.$n.csv
    done
    same_course system.0.csv system.3.csv || fail "${how[*]}: different losses"
    same_numbers system.0 system.3 || fail "${how[*]}: a different model"
done <<<"--system transformer --heads 2
--penalty coverage:0.5,monotone:0.2 --guided-alignment links --guided-shift 1
--system luong --input-feeding --accumulate 2 --average 2 --bpe 3
--system choi --candidates 3:2${HEED_TEST_EXHAUSTIVE:+
--system convs2s
--system sankaran --attention coverage}"

# Interrupted and resumed with other numbers of processes, the result is the same.
fresh
ranks 2 "${fixed[@]}" --epochs 1 --log course.csv || fail "the first epoch"
ranks 3 "${fixed[@]}" --epochs 2 --log course.csv --resume || fail "resuming with three"
grep -q '^note: started with 2 .*, resumed with 3' log || fail "the number of processes is not reported"
ranks 0 "${fixed[@]}" --log course.csv --resume || fail "resuming without mpirun"
same_course one.csv course.csv || fail "resuming with other numbers of processes changes the losses"
same_numbers one model.safetensors || fail "resuming with other numbers of processes changes the model"

# long N: starts a training run that does not end, with `launcher` as its mpirun; waits for a first checkpoint.
long()
{
    fresh
    mpirun -n "$1" "${training[@]}" --epochs 1000000 --patience 1000000 --batch 4 2>log &
    launcher=$!
    until [[ -e model.safetensors.checkpoint ]]; do
        kill -0 $launcher || fail "training ended early"
        sleep 0.02
    done
    mapfile -t processes < <(pgrep -P $launcher | sort -n)
    ((${#processes[@]} == $1)) || fail "$1 processes should be the launcher's, not ${processes[*]}"
}
# ended SECONDS: waits for `launcher`, and sets `status`.
ended()
{
    local begin=$SECONDS
    status=0
    wait $launcher || status=$?
    ((SECONDS - begin <= $1)) || fail "exiting took $((SECONDS - begin)) seconds"
    for process in "${processes[@]}"; do
        while kill -0 "$process" 2>/dev/null; do
            ((SECONDS - begin <= $1)) || fail "a process is still running"
            sleep 0.05
        done
    done
}
goes_on()
{
    local epochs=$(($(metadata training.epoch model.safetensors.checkpoint) + 1))
    ranks "$1" --resume --epochs $epochs --patience 1000000 --batch 4 || fail "resuming with $1"
    [[ $(metadata training.finished model.safetensors.checkpoint) == 1 ]] || fail "the resumed run did not finish"
}

# One process is killed.
for victim in 0 2; do
    long 3
    kill -KILL "${processes[victim]}"
    ended 10
    ((status)) || fail "a killed process, and all is well?"
    grep -q -- '--resume continues from model.safetensors.checkpoint' log || fail "it does not say how to resume"
    goes_on $victim
done

# Ctrl-C stops all processes.
long 2
kill -INT $launcher
ended 10
((status)) || fail "interrupted, with status 0"
# On a busy machine the launcher kills before a step has ended.
grep -q -- '^stopped in epoch .*--resume\|--resume continues' log || fail "it does not say how to resume"
goes_on 3

# Translations, alignments, pages and scores equal those of one process, byte for byte.
compare()
{
    "$translate" "$@" >expected 2>log || fail "$*"
    mv pictures.svg expected.svg 2>/dev/null || true
    mv page.html expected.html 2>/dev/null || true
    mpirun -n 3 "$translate" "$@" >output 2>log || fail "three processes: $*"
    cmp expected output || fail "three processes give another output: $*"
    if [[ -e expected.svg ]]; then cmp expected.svg pictures.svg || fail "different pictures"; fi
    if [[ -e expected.html ]]; then cmp expected.html page.html || fail "a different page"; fi
    rm -f expected.* pictures.svg page.html
}
{ cat valid.a; echo; cat train.a; } >lines
common=(run --model one --threads 1 --batch 4)
compare "${common[@]}" --input lines
compare "${common[@]}" --input lines --beam 3 --n-best 2 --alignments pictures.svg --page page.html
compare "${common[@]}" --input lines --candidates 4:0
compare score --model one --threads 1 --batch 4 --source valid.a --target valid.b
compare score --model one --model four.1 --threads 1 --batch 4 --source valid.a --target valid.b --replace-unknown --beam 2
mpirun -n 2 "${translate}" "${common[@]}" <lines >output 2>log || fail "standard input"
"$translate" "${common[@]}" <lines 2>log | cmp - output || fail "standard input of two processes"

# A search is waiting for lines when one of its processes is killed.
mkfifo fifo
exec 9<>fifo
mpirun -n 3 "$translate" "${common[@]}" <fifo >output 2>log &
launcher=$!
until mapfile -t processes < <(pgrep -P $launcher | sort -n) && ((${#processes[@]} == 3)); do
    kill -0 $launcher || fail "the search ended early"
    sleep 0.05
done
echo one >&9
sleep 0.5
kill -KILL "${processes[1]}"
ended 10
exec 9>&-
((status)) || fail "a process was killed, but the exit code is 0"
grep -q 'signal 9\|[Kk]illed\|KILLED' log || fail "no message reports the killed process"

# Rank 0 cannot write a file: all processes exit with its error, and the saved run can be resumed.
if [[ -e ${4:-} ]]; then
    faults=$(realpath -- "$4")
    "$translate" score --model one --source valid.a --target valid.b >expected 2>log || fail "scoring"
    # The third rename is that of the last checkpoint: the other ranks have finished. If rank 0 is killed while it writes, the
    # temporary file and the lock remain until the run is resumed.
    for fault in 'rename 1 28 .checkpoint' 'fsync 2 28 .checkpoint' 'rename 1 28 model.safetensors' 'write 2 28 course.csv' \
        'rename 3 28 .checkpoint' 'rename 2 kill .checkpoint'; do
        fresh
        begin=$SECONDS
        status=0
        timeout 60 mpirun -n 3 env LD_PRELOAD="$faults" WRITE_FAULT="$fault" "${training[@]}" "${fixed[@]}" --log course.csv 2>log || status=$?
        ((status != 0 && status != 124 && SECONDS - begin <= 10)) || fail "$fault: status $status after $((SECONDS - begin)) s"
        if [[ $fault == *kill* ]]; then
            grep -q 'signal 9\|[Kk]illed\|KILLED' log || fail "no message reports the killed process"
        else
            (($(grep -c "^translate: ${fault##* }.*: No space left on device\|^translate: model.safetensors.checkpoint: .*: No space left on device" log) == 1)) ||
                fail "not reported once: $fault"
            no_temporaries
            if compgen -G '.*.lock'; then fail "a lock file remains: $fault"; fi
        fi
        again=''
        [[ ! -e model.safetensors.checkpoint ]] || again=--resume
        ranks 3 "${fixed[@]}" --log course.csv $again || fail "resuming after $fault"
        same_course one.csv course.csv || fail "other losses after $fault"
        same_numbers one model.safetensors || fail "another model after $fault"
        no_temporaries
    done
    # Rank 0 cannot write the shards that the other ranks wait for.
    fresh
    status=0
    timeout 60 mpirun -n 3 env LD_PRELOAD="$faults" WRITE_FAULT='pwrite 1 28 .corpus' "${training[@]}" "${fixed[@]}" --shard 10 2>log || status=$?
    ((status != 0 && status != 124)) || fail "shards that cannot be written: status $status"
    (($(grep -c '^translate: model.safetensors.corpus: cannot write: No space left on device' log) == 1)) || fail "not reported once"
    if compgen -G '*model.safetensors*' || compgen -G '.*model.safetensors*'; then fail "a file remains"; fi
    status=0
    timeout 60 mpirun -n 3 env LD_PRELOAD="$faults" WRITE_FAULT='write 1 28 tokens' "$translate" "${common[@]}" --input lines --tokens tokens >output 2>log || status=$?
    ((status != 0 && status != 124)) || fail "an output that cannot be written: status $status"
    grep -q '^translate: tokens: cannot write: No space left on device' log || fail "the output is not named"
    if timeout 60 mpirun -n 3 bash -c '"$@" >/dev/full' - "$translate" "${common[@]}" --input lines 2>log; then fail "a full standard output"; fi
    grep -q '^translate: cannot write to standard output: No space left on device' log || fail "standard output is not named"
fi

# An error of all processes is reported once.
refused_by_all()
{
    local status=0
    mpirun -n 3 "${@:2}" >output 2>log || status=$?
    ((status)) || fail "not rejected: ${*:2}"
    (($(grep -c "$1" log) == 1)) || fail "not reported once: $1"
}
fresh
refused_by_all '^translate: model.safetensors.checkpoint: no such file to resume from' "${training[@]}" --resume
refused_by_all '^translate: missing: ' "$translate" score --model one --source missing --target valid.b
refused_by_all '^translate: `translate page` runs in one process; start it without mpirun' \
    "$translate" page --model one --source valid.a --reference valid.b --output page.html
refused_by_all 'no-such-option' "$translate" run --model one --no-such-option
refused_by_all '^evaluate: runs in one process; start it without mpirun' \
    "$evaluate" bleu --reference valid.b valid.b
[[ ! -s output ]] || fail "evaluate printed output"
no_temporaries
if compgen -G '.*.lock'; then fail "a lock file remains"; fi
