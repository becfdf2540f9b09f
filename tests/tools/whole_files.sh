#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Killed in the middle of a save, or out of space: the old files stay intact.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 8 1 train
sentences 2 2 valid
# Files of a few megabytes, so that saving takes most of the time.
how=(--embedding 400 --epochs 1000 --patience 100000)

# A model without its header, which contains the number of epochs.
data_size() { echo $(($(wc -c <"$1") - $(od -An -tu8 -N8 "$1"))); }

train "${how[@]}" --epochs 1 || fail "training"
whole=$(data_size model.safetensors)
rm model.safetensors*

torn=0
resume=''
for ((round = 0; round < 5; ++round)); do
    # shellcheck disable=SC2086  # no word at first
    "${training[@]}" "${how[@]}" $resume 2>log &
    process=$!
    # Saved at least once; then killed when a partial file appears, a little later each time.
    until [[ -e model.safetensors.checkpoint ]]; do
        kill -0 $process 2>/dev/null || fail "training ended early"
        sleep 0.01
    done
    sleep 0.0$((round))
    while ! compgen -G ".model*.$process-*.tmp" >/dev/null; do
        kill -0 $process 2>/dev/null || fail "training ended early"
    done
    kill -KILL $process
    wait $process 2>/dev/null || true
    if compgen -G ".model*.$process-*.tmp" >/dev/null; then torn=$((torn + 1)); fi
    for file in model.safetensors model.safetensors.checkpoint; do
        "$translate" run --model $file --input valid.a >output 2>log || fail "$file after a kill"
        (($(wc -l <output) == 2)) || fail "$file after a kill: no translations"
    done
    (($(data_size model.safetensors) == whole)) || fail "the size differs after a kill"
    resume=--resume
done
((torn > 0)) || fail "no kill was in the middle of a save"

# Partial files do not accumulate. Without space for the model and for its checkpoint: an error message, not the
# kernel's signal.
before=$(cksum model.safetensors model.safetensors.checkpoint)
limited() { (ulimit -f "$1" && shift && "$@"); }
for blocks in 1 $((whole / 1024 + 100)); do
    refused 'cannot write: File too large; the previous file is unchanged' \
        limited "$blocks" "${training[@]}" "${how[@]}" --resume
    no_temporaries
    [[ $(tail -n 1 <<<"$before") == $(cksum model.safetensors.checkpoint) ]] || fail "the checkpoint was changed"
done
"$translate" run --model model.safetensors --input valid.a >output 2>log || fail "the model after a full disk"
model=$(cksum <model.safetensors)
refused 'picture.svg: cannot write: File too large' limited 1 "$translate" run --model model.safetensors \
    --input valid.a --alignments picture.svg
[[ ! -e picture.svg ]] || fail "a partial picture"

# Standard output may be a file, or a pipe without a reader.
mkfifo pipe
exec 7<>pipe
exec 8>pipe
exec 7>&-
for command in "run --input valid.a" "score --source valid.a --target valid.b"; do
    # shellcheck disable=SC2086  # several words
    {
        refused 'standard output: No space left on device' bash -c '"$@" >/dev/full' - "$translate" $command --model model.safetensors
        refused 'standard output: Bad file descriptor' bash -c '"$@" >&-' - "$translate" $command --model model.safetensors
        refused 'standard output: Broken pipe' bash -c '"$@" >&8' - "$translate" $command --model model.safetensors
    }
done
refused 'standard output: No space left on device' bash -c '"$@" >/dev/full' - "$translate" --help
[[ $(cksum <model.safetensors) == "$model" ]] || fail "the model was changed"

# The program continues if its messages cannot be written.
rm model.safetensors.checkpoint
for nowhere in '2>/dev/full' '2>&-' '2>&- >&-' '2>&8'; do
    bash -c '"$@" '"$nowhere" - "${training[@]}" --model silent.safetensors --epochs 2 || fail "training with $nowhere"
    "$translate" run --model silent.safetensors --input valid.a >output 2>log || fail "the model trained with $nowhere"
    rm silent.safetensors*
done
exec 8>&-

# An output may be a pipe: its reader gets the whole text.
cat pipe >got &
"$translate" align --model model.safetensors --source valid.a --target valid.b --output pipe 2>log || fail "a pipe as output"
wait $!
"$translate" align --model model.safetensors --source valid.a --target valid.b 2>log | cmp - got || fail "the reader of a pipe"
status=0
bash -c '"$@" 2>/dev/full' - "$translate" run --model missing || status=$?
((status == 1)) || fail "an error that cannot be printed: exit code $status"
