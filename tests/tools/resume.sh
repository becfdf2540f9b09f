#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Ctrl-C, SIGTERM or SIGHUP at any time saves and exits; --resume continues to the same result, bit for bit.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 150 1 few
sentences 20 2 valid
how=(--attention temporal --embedding 24 --hidden 24 --alignment 24 --batch 4 --epochs 4 --dropout 0.3
    --learning-rate 0.0001)

# Enough text to interrupt an epoch in the middle: a quarter of a second.
for side in a b; do cp few.$side train.$side; done
begin=$(date +%s%N)
train "${how[@]}" --epochs 1 || fail "one epoch"
milliseconds=$((($(date +%s%N) - begin) / 1000000))
rm model.safetensors*
for ((copies = 1; copies < 30 && copies * milliseconds < 250; ++copies)); do
    for side in a b; do cat few.$side >>train.$side; done
done

# interrupt SIGNAL LINES PAUSE OPTION...: interrupts training PAUSE seconds after LINES lines of messages. Returns its
# exit code.
interrupt()
{
    local process status=0 line lines=0
    mkfifo messages.pipe
    env --default-signal=HUP "${training[@]}" "${how[@]}" "${@:4}" 2>messages.pipe &
    process=$!
    {
        while ((lines < $2)) && read -r line; do
            echo "$line"
            if [[ $line == [0-9e]* ]]; then lines=$((lines + 1)); fi
        done
        sleep "$3"
        kill "-$1" $process 2>/dev/null || true
        # A closed terminal may signal twice.
        if [[ $1 == HUP ]]; then kill -HUP $process 2>/dev/null || true; fi
        cat
    } <messages.pipe >log
    rm messages.pipe
    wait $process || status=$?
    return $status
}

# tensors FILE: a safetensors file without its header. A checkpoint's header contains the elapsed time.
tensors() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }

middles=0
plain=("${how[@]}")
for threads in 1 2; do
    # The run with two threads also has all other state that a checkpoint must store.
    if ((threads == 2)); then how+=(--cell lstm --optimizer adadelta --warm-up 700 --learning-rate 1 --accumulate 2 --average 3); fi
    train "${how[@]}" --threads $threads || fail "uninterrupted"
    mv model.safetensors uninterrupted.safetensors
    tensors model.safetensors.checkpoint >uninterrupted.tensors
    loss=$(metadata training.best-loss model.safetensors.checkpoint)
    rm model.safetensors.checkpoint

    # Repeatedly in one run: in its first epoch, in the middle, by each signal.
    resume=''
    for moment in 'INT 1 0' 'HUP 1 0.06' 'TERM 2 0.11' 'HUP 2 0.03'; do
        read -r signal lines pause <<<"$moment"
        status=0
        # shellcheck disable=SC2086  # no word at first
        interrupt "$signal" "$lines" "$pause" --threads $threads $resume || status=$?
        if ((status == 0)); then  # a busy machine: it finished before the signal arrived; the next interruption starts again
            rm model.safetensors*
            resume=''
            continue
        fi
        ((status == 128 + $(kill -l "$signal"))) || fail "$signal after $lines lines and $pause s: exit code $status"
        grep -q '^stopped in epoch .*--resume' log || fail "the message does not explain how to resume"
        [[ $(metadata training.finished model.safetensors.checkpoint) == 0 ]] || fail "no unfinished checkpoint"
        (($(metadata training.batch model.safetensors.checkpoint))) && middles=$((middles + 1))
        resume=--resume
    done
    # shellcheck disable=SC2086
    train "${how[@]}" --threads $threads $resume || fail "resuming"
    cmp model.safetensors uninterrupted.safetensors || fail "the model of an interrupted and resumed run differs ($threads threads)"
    tensors model.safetensors.checkpoint | cmp - uninterrupted.tensors || fail "weights or the optimizer's state differ"
    [[ $(metadata training.finished model.safetensors.checkpoint) == 1 ]] || fail "the checkpoint is not marked as finished"
    [[ $(metadata training.best-loss model.safetensors.checkpoint) == "$loss" ]] || fail "the best loss differs"

    # A finished run; then more epochs, with the same result as more epochs from the start.
    train "${how[@]}" --threads $threads --resume || fail "resuming a finished run"
    cmp model.safetensors uninterrupted.safetensors || fail "resuming a finished run changes the model"
    train "${how[@]}" --threads $threads --resume --epochs 5 --patience 9 || fail "resuming with more epochs"
    (($(grep -c '^epoch ' log) == 1)) || fail "one more epoch should have one line"
    more=$("$translate" score --model model.safetensors --source valid.a --target valid.b --threads 1 2>/dev/null)
    rm model.safetensors*
    train "${how[@]}" --threads $threads --epochs 5 --patience 9 || fail "five epochs"
    all=$("$translate" score --model model.safetensors --source valid.a --target valid.b --threads 1 2>/dev/null)
    [[ $more == "$all" ]] || fail "4 + 1 epochs: $more; 5 epochs: $all"
    rm model.safetensors*
done
how=("${plain[@]}")
((middles >= 2)) || fail "only $middles of 8 interruptions were in the middle of an epoch"

# A run that is interrupted in the update that ruins it does not save: the whole text is one batch.
interrupt INT 1 0.02 --batch 5000 --learning-rate 1e300 && fail "training with such a learning rate"
if [[ -e model.safetensors.checkpoint ]]; then
    "$translate" run --model model.safetensors.checkpoint --input valid.a >output 2>log || fail "a ruined checkpoint"
else
    # Or it detects the problem at the end of the epoch, if the signal arrives later.
    grep -q '^translate: \("[a-zA-Z._]*"\[[0-9]*\] is \(NaN\|infinite\)\|the validation perplexity is not a number\) in epoch 1, after update 1: .*no model was written' log ||
        fail "the message does not explain the error"
fi
rm -f model.safetensors*

# SIGHUP stays ignored if it is ignored when the program starts, as under nohup.
line=''
mkfifo messages.pipe
(
    trap '' HUP
    exec "${training[@]}" --epochs 1 --batch 64
) 2>messages.pipe &
{
    until [[ $line == [0-9]* ]]; do read -r line; done
    kill -HUP $!
    cat
} <messages.pipe >log
wait $! || fail "SIGHUP under nohup"
rm messages.pipe model.safetensors*

# A finished run and its log are not overwritten.
train --epochs 1 --log kept.csv || fail "one epoch"
kept=$(cksum model.safetensors model.safetensors.checkpoint kept.csv)
refused 'model.safetensors.checkpoint: a finished run ended here; add --resume and more --epochs' train --epochs 2 --log kept.csv
[[ $(cksum model.safetensors model.safetensors.checkpoint kept.csv) == "$kept" ]] || fail "rejected, but a file was changed"
train --epochs 2 --log kept.csv --resume || fail "resuming as the message says"
(($(wc -l <kept.csv) == 3)) || fail "not one row per epoch: $(cat kept.csv)"
rm model.safetensors*

# Rejected options.
refused 'model.safetensors.checkpoint: no such file' train "${how[@]}" --resume
[[ -e model.safetensors ]] && fail "rejected, but a model was written"
until [[ -e model.safetensors.checkpoint && $(metadata training.finished model.safetensors.checkpoint) == 0 ]]; do
    rm -f model.safetensors*
    interrupt INT 2 0.02 || true
done
refused 'add --resume to continue' train "${how[@]}"
checkpoint=$(cksum <model.safetensors.checkpoint)
for other in '--hidden 9' '--attention additive' '--dropout 0.2' '--seed 2' '--batch 5' '--learning-rate 0.002' \
    '--clip 2' '--label-smoothing 0.1' '--min-count 2' '--embedding 9' '--alignment 9'; do
    # shellcheck disable=SC2086  # option and value
    refused "${other% *}" train "${how[@]}" $other --resume
done
refused 'started with --learning-rate 0.0001, not 0.1; pass' train "${how[@]}" --learning-rate 0.1 --resume
cp train.b train.old
sed '7s/.*/eins eins eins eins eins/' train.old >train.b
refused 'another text' train "${how[@]}" --resume
mv train.old train.b
cp valid.a valid.old
sed '1s/.*/three three/' valid.old >valid.a
refused 'another text' train "${how[@]}" --resume
mv valid.old valid.a
[[ $(cksum <model.safetensors.checkpoint) == "$checkpoint" ]] || fail "a rejected command changed the checkpoint"
train "${how[@]}" --resume --threads 2 || fail "resuming with more threads"
grep -q '^note: started with --threads 1, resumed with 2' log || fail "the number of threads is not reported"
rm model.safetensors
refused 'best model so far is missing' train "${how[@]}" --resume
no_temporaries
