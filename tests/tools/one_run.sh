#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# One model, one run at a time; --resume requires files of the same run; a checkpoint is never overwritten.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 50 1 train
sentences 10 2 valid
files() { cksum model.safetensors model.safetensors.checkpoint; }

# While one run trains a model, no other run can, under any name, resumed or not. The first is suspended meanwhile, so
# that its files do not change.
"${training[@]}" --epochs 1000000 --patience 1000000 2>first.log &
process=$!
until [[ -e model.safetensors.checkpoint ]]; do
    kill -0 $process || fail "training ended early: $(cat first.log)"
    sleep 0.02
done
kill -STOP $process
before=$(files)
ln -s model.safetensors link
ln -s . folder
for name in model.safetensors ./model.safetensors folder/model.safetensors link; do
    for how in '' --resume '--attention temporal'; do
        # shellcheck disable=SC2086  # no word, one or two
        refused "$name: is being trained by process $process on $(uname -n); wait until that run ends, or stop it" \
            train --model "$name" $how
    done
done
[[ $(files) == "$before" ]] || fail "a rejected run changes the files of the first"
train --model other.safetensors --epochs 1 || fail "training another model at the same time"

# A killed run does not block others.
kill -KILL $process
wait $process 2>/dev/null || true
[[ -e .model.safetensors.lock ]] || fail "a killed run left no lock: the test is ineffective"
refused 'add --resume to continue, or remove this file' train
[[ $(files) == "$before" ]] || fail "rejected, but the files changed"
epochs=$(($(metadata training.epoch model.safetensors.checkpoint) + 1))
train --resume --epochs $epochs --patience 1000000 || fail "resuming a killed run"
[[ $(metadata training.finished model.safetensors.checkpoint) == 1 ]] || fail "the resumed run did not finish"
if compgen -G '.*.lock'; then fail "a lock file remains"; fi
no_temporaries

# A user's file is not a lock.
echo 'my notes' >.model.safetensors.lock
refused '.model.safetensors.lock: is not a lock of this program' train --resume
[[ $(cat .model.safetensors.lock) == 'my notes' ]] || fail "a file that is not a lock was overwritten"
rm .model.safetensors.lock

# A finished run is not overwritten either, nor is a checkpoint under the name of a model.
before=$(files)
refused 'a finished run ended here' train
refused 'model.safetensors.checkpoint: is the name of a checkpoint; pass --model the name of the model, model.safetensors' \
    train --model model.safetensors.checkpoint
[[ $(files) == "$before" ]] || fail "rejected, but the files changed"

# If a checkpoint appears while a run reads its text, neither it nor the model next to it is overwritten.
mkdir late
mkfifo late.b
"${training[@]}" --model late/model.safetensors --valid-target late.b --epochs 3 2>log &
process=$!
{
    cp model.safetensors model.safetensors.checkpoint late
    cat valid.b
} >late.b  # opened when the run reads it
status=0
wait $process || status=$?
((status == 1)) || fail "it ended with $status"
grep -q '^translate: late/model.safetensors.checkpoint: did not exist when this run began and is not overwritten' log ||
    fail "it does not say why it ended"
cmp model.safetensors.checkpoint late/model.safetensors.checkpoint || fail "the checkpoint was written over"
cmp model.safetensors late/model.safetensors || fail "the model next to the checkpoint was overwritten"

# A model and a checkpoint of different runs.
two_runs()
{
    cp "$1" model.safetensors
    before=$(files)
    refused "model.safetensors: $2; they are not from the same run" train --resume --epochs $((epochs + 1)) --patience 1000000
    [[ $(files) == "$before" ]] || fail "rejected, but the files changed"
}
cp model.safetensors right
train --model temporal --attention temporal --epochs 1 || fail "another attention"
train --model wide --hidden 12 --epochs 1 || fail "a different size"
train --model seed --seed 2 --epochs 1 || fail "another seed"
train --model words --source valid.b --target valid.a --epochs 1 || fail "other words"
two_runs temporal 'trained with --attention temporal, but model.safetensors.checkpoint with --attention additive'
two_runs wide 'trained with --hidden 12, but model.safetensors.checkpoint with --hidden 8'
two_runs seed 'trained with --seed 2, but model.safetensors.checkpoint with --seed 1'
two_runs words 'its vocabularies or byte-pair codes are not those of model.safetensors.checkpoint'
poisoned decoder.b 0 '\0\0\300\177' right >nan
cp nan model.safetensors
refused 'model.safetensors: "decoder.b"[0] is NaN' train --resume --epochs $((epochs + 1)) --patience 1000000
cp right model.safetensors
train --resume --epochs $((epochs + 1)) --patience 1000000 || fail "resuming with the model of the run"
