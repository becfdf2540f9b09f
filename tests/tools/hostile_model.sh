#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Files that are not a model, truncated models, and models with false metadata.
# shellcheck disable=SC2016  # these are not commands
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 50 1 train
sentences 10 2 valid
train --attention additive-y --epochs 1 || fail "training"
"$translate" run --model model.safetensors --input valid.a >expected 2>log || fail "translating"

# bad TEXT: the file `bad` is rejected with this message, and not changed.
bad()
{
    local before
    before=$(cksum <bad)
    refused "$1" "$translate" run --model bad --input valid.a --alignments bad.svg
    [[ $(tail -n 1 messages) == 'translate: bad: '* ]] || fail "the message does not start with the file"
    [[ ! -s output && ! -e bad.svg ]] || fail "output was written"
    [[ $(cksum <bad) == "$before" ]] || fail "the file was changed"
}
# lie OLD NEW TEXT: the model with a changed header is rejected.
lie()
{
    edited "$1" "$2" model.safetensors >bad
    bad "$3"
}

size=$(wc -c <model.safetensors)
header=$(od -An -tu8 -N8 model.safetensors)
for length in 0 1 7 8 9 100 $((8 + header / 2)) $((7 + header)) $((8 + header)) $((8 + header + 10)) $((size - 1)); do
    head -c "$length" model.safetensors >bad
    bad ''
done
head -c "$((size - 1))" model.safetensors >bad
bad 'truncated'
{ cat model.safetensors && echo; } >bad
bad 'after the last tensor: the header accounts for'
cp train.a bad
bad 'not a safetensors file'
printf '{"an object": "of JSON"}' >bad
bad 'not a safetensors file'
head -c 3000 /dev/zero >bad
bad 'not a safetensors file'
printf '\x40\0\0\0\0\0\0\0{"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}          1234' >bad
bad 'not a model of `translate train`'
refused 'not a model of `translate train`' "$translate" score --model bad --source valid.a --target valid.b
refused 'missing: cannot be opened: No such file' "$translate" run --model missing
refused 'is a directory' "$translate" run --model .

lie '"format":"heed' '"format":"need' 'need.translate/2'
lie '"options.hidden"' '"options.hiddem"' 'options.hidden'
for lied in hidden embedding alignment; do
    for value in 9 6148914691236517206 18446744073709551615; do
        lie "\"options.$lied\":\"8\"" "\"options.$lied\":\"$value\"" 'contradicts itself'
    done
    lie "\"options.$lied\":\"8\"" "\"options.$lied\":\"8x\"" "options.$lied is \"8x\""
done
# One reads the numbers of all.
for value in 0 1000000 123456789012; do lie '"options.hidden":"8"' "\"options.hidden\":\"$value\"" 'contradicts itself'; done
for value in '' -8 8.0 ' 8' 18446744073709551616; do
    lie '"options.hidden":"8"' "\"options.hidden\":\"$value\"" "options.hidden is \"$value\""
done
for value in '' -1 nan inf 1e999 x; do
    lie "\"options.clip\":\"1\"" "\"options.clip\":\"$value\"" "options.clip is \"$value\""
done
lie '"options.attention":"additive-y"' '"options.attention":"additive"' 'decoder.attention.score.W'
lie '"options.attention":"additive-y"' '"options.attention":"per-dimension"' 'decoder.attention.score'
lie '"options.attention":"additive-y"' '"options.attention":"bogus"' ''
lie '\nthree\n' '\n' 'contradicts itself'
lie '\nthree\n' '\nthree\nthree\n' 'vocabulary'
lie '<pad>' '<pat>' 'vocabulary'
lie '\nthree\n' '\nth ree\n' 'vocabulary'
lie '"encoder.embedding"' '"encoder.embeddinq"' 'encoder.embedding'
lie '"decoder.attention.score.Y"' '"decoder.attention.score.y"' 'decoder.attention.score.Y'
lie '"decoder.b"' '"decoder.c"' 'decoder.b'
lie '"decoder.W_s":{"dtype":"F32","shape":[8,8]' '"decoder.W_s":{"dtype":"F32","shape":[64]' 'decoder.W_s'
lie '"decoder.W_s":{"dtype":"F32","shape":[8,8]' '"decoder.W_s":{"dtype":"F64","shape":[4,8]' 'decoder.W_s'
lie '"decoder.U_o":{"dtype":"F32","shape":[8,16]' '"decoder.U_o":{"dtype":"F32","shape":[16,8]' 'decoder.U_o'

# Numbers that are not finite, in a tensor of each part: every command that reads a model names the first.
nan='\0\0\300\177' infinite='\0\0\200\377'
for place in encoder.embedding:3 decoder.attention.score.base.W:0 decoder.b:6; do
    poisoned "${place%:*}" "${place#*:}" $nan model.safetensors >bad
    bad "bad: \"${place%:*}\"[${place#*:}] is NaN; the file is damaged, or its training diverged"
done
poisoned decoder.b 0 $infinite model.safetensors >worse
poisoned encoder.embedding 3 $nan worse >bad
pair=(--source valid.a --target valid.b)
for command in 'run --input valid.a' "score ${pair[*]}" "align ${pair[*]}" 'page --source valid.a --output bad.html' \
    "dictionary ${pair[*]} --output bad.dictionary"; do
    # shellcheck disable=SC2086  # several words
    refused 'bad: "encoder.embedding"[3] is NaN; ' "$translate" $command --model bad
    # shellcheck disable=SC2086
    refused 'worse: "decoder.b"[0] is infinite; ' "$translate" $command --model worse
done
if compgen -G 'bad.*' >/dev/null; then fail "output was written"; fi

# A message cannot control the terminal.
lie '"options.hidden":"8"' '"options.hidden":"\u001b[2J"' 'options.hidden is'
grep -q $'\033' log && fail "an escape sequence in the message"

# A checkpoint is also a model; a model is not a checkpoint; and a checkpoint may have false metadata.
"$translate" run --model model.safetensors.checkpoint --input valid.a >output 2>log || fail "a checkpoint as a model"
cmp output expected || fail "the checkpoint translates differently"
cp model.safetensors.checkpoint good
model=$(cksum <model.safetensors)
resumes=(train --attention additive-y --epochs 2 --resume)
cp model.safetensors model.safetensors.checkpoint
refused 'model.safetensors.checkpoint: not a model of `translate train`' "${resumes[@]}"
refused 'remove this file' train --attention additive-y
lie_to_resume()
{
    edited "$1" "$2" good >model.safetensors.checkpoint
    refused "$3" "${resumes[@]}"
    [[ $(tail -n 1 messages) == 'translate: model.safetensors.checkpoint: '* ]] || fail "the message does not start with the file"
}
for value in nan inf -nan -1 '' x 1e999; do
    lie_to_resume '"training.rate":"0.001' "\"training.rate\":\"$value\",\"x\":\"" "training.rate is \"$value\""
done
for value in nan -1 x; do
    lie_to_resume '"training.best-loss":"' "\"training.best-loss\":\"$value\",\"x\":\"" "training.best-loss is \"$value\""
    lie_to_resume '"training.epoch":"1"' "\"training.epoch\":\"$value\"" "training.epoch is \"$value\""
    lie_to_resume '"adam.steps":"' "\"adam.steps\":\"$value\",\"x\":\"" "adam.steps is \"$value\""
done
lie_to_resume '"adam.first.decoder.b"' '"adam.first.decoder.c"' 'adam.first.decoder.b'
lie_to_resume '"adam.second.decoder.W_s":{"dtype":"F32","shape":[64]' '"adam.second.decoder.W_s":{"dtype":"F64","shape":[32]' \
    'adam.second.decoder.W_s'
for place in encoder.embedding:3 adam.first.decoder.b:1 adam.second.decoder.W_s:0; do
    poisoned "${place%:*}" "${place#*:}" $nan good >model.safetensors.checkpoint
    refused "model.safetensors.checkpoint: \"${place%:*}\"[${place#*:}] is NaN; the file is damaged" "${resumes[@]}"
done
head -c 5000 good >model.safetensors.checkpoint
refused 'model.safetensors.checkpoint: ' "${resumes[@]}"
refused 'model.safetensors.checkpoint: ' train --attention additive-y
[[ $(cksum <model.safetensors) == "$model" ]] || fail "the model was changed"
cp good model.safetensors.checkpoint
"${resumes[@]}" || fail "the checkpoint was good"
