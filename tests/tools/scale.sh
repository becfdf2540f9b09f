#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A text of more than --shard pairs is stored as numbers in a shard file and trained on shard by shard: in the same
# order for any number of threads, and resumed in the middle of an epoch to the same result, bit for bit. A shard file
# of another text, or a truncated or damaged one, is rebuilt; a full disk leaves no file.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 300 1 train
sentences 10 2 valid
how=(--epochs 3 --dropout 0.2 --seed 3)
sharded=("${how[@]}" --shard 80)
tensors() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }

# A text that fits in one shard is kept in memory for any --shard: the same model, and no file.
train "${how[@]}" || fail "in memory"
mv model.safetensors whole.safetensors
text=$(metadata training.text model.safetensors.checkpoint)
rm model.safetensors.checkpoint
train "${how[@]}" --shard 300 || fail "in memory, exactly"
cmp model.safetensors whole.safetensors || fail "--shard changes the model of a text that fits in it"
[[ -e model.safetensors.corpus ]] && fail "a text that fits has a shard file"
rm model.safetensors*

# In shards: a different order and therefore a different model; every pair once per epoch.
train "${sharded[@]}" --log shards.csv || fail "in shards"
grep -q '^model.safetensors.corpus: 300 sentence pairs in 4 shards, read in' log || fail "the log does not report shards"
grep -q '^300 sentence pairs, vocabularies of 7 and 7 words' log || fail "the text differs"
cmp -s model.safetensors whole.safetensors && fail "shards have the order of the whole text"
[[ $(metadata training.text model.safetensors.checkpoint) == "$text" ]] && fail "shards have the hash of the whole"
[[ $(metadata training.shards model.safetensors.checkpoint) == 4 ]] || fail "the checkpoint does not record the number of shards"
(($(sed -n '2s/,.*//p' shards.csv) == 1 && $(sed -n '2p' shards.csv | cut -d , -f 2) >= 300 / 8)) || fail "an epoch lacks batches: $(cat shards.csv)"
mv model.safetensors sharded.safetensors
tensors model.safetensors.checkpoint >sharded.tensors
rm model.safetensors.checkpoint

# The file is reused, also with another seed, and gives the same result; --cache sets its path.
before=$(stat -c '%i %y' model.safetensors.corpus)
train "${sharded[@]}" || fail "again"
grep -q '^model.safetensors.corpus: 300 sentence pairs in 4 shards, from the cache' log || fail "it is read again"
[[ $(stat -c '%i %y' model.safetensors.corpus) == "$before" ]] || fail "it was written again"
cmp model.safetensors sharded.safetensors || fail "used again, the shards give another model"
rm model.safetensors model.safetensors.checkpoint
mv model.safetensors.corpus kept.corpus
train "${sharded[@]}" --cache kept.corpus --seed 4 || fail "another seed"
grep -q '^kept.corpus: .*from the cache' log || fail "another seed makes other shards"
cmp -s model.safetensors sharded.safetensors && fail "another seed has the same order"
[[ -e model.safetensors.corpus ]] && fail "--cache is ignored"
rm model.safetensors*

# Read by two threads, the file is identical.
train "${sharded[@]}" --epochs 1 --threads 2 || fail "two threads"
cmp model.safetensors.corpus kept.corpus || fail "reading with two threads changes the shards"
rm model.safetensors*

# Interrupted in different parts of an epoch, and resumed repeatedly: the same, bit for bit.
first=$(train "${sharded[@]}" --cache kept.corpus --epochs 1 && metadata training.seconds model.safetensors.checkpoint)
rm model.safetensors*
middles=0 resume=''
for pause in 0.3 0.5 0.7; do
    pause=$(awk "BEGIN {print $pause * $first}")
    mkfifo messages.pipe
    # shellcheck disable=SC2086  # no word at first
    "${training[@]}" "${sharded[@]}" --cache kept.corpus $resume 2>messages.pipe &
    {
        while read -r line; do
            if [[ $line == 300* ]]; then break; fi
        done
        sleep "$pause"
        kill -INT $! 2>/dev/null || true
        cat
    } <messages.pipe >log
    rm messages.pipe
    status=0
    wait $! || status=$?
    if ((status == 0)); then  # a busy machine: it finished before the signal arrived
        rm model.safetensors*
        resume=''
        continue
    fi
    ((status == 130)) || fail "exit code $status after an interruption"
    (($(metadata training.shard model.safetensors.checkpoint) + $(metadata training.batch model.safetensors.checkpoint))) &&
        middles=$((middles + 1))
    resume=--resume
done
# With another --shard, an unfinished run is rejected.
if [[ $resume ]]; then
    refused 'on a text in 4 shards, now 2; pass the same files and the same --shard' \
        train "${how[@]}" --shard 160 --resume
    refused 'on a text in 4 shards, now 1; pass' train "${how[@]}" --resume
fi
# shellcheck disable=SC2086
train "${sharded[@]}" --cache kept.corpus $resume || fail "resuming"
cmp model.safetensors sharded.safetensors || fail "the model of an interrupted and resumed run differs"
tensors model.safetensors.checkpoint | cmp - sharded.tensors || fail "interrupted and resumed, weights or the optimizer's state differ"
((middles > 0)) || echo "note: no interruption was in the middle of an epoch"
rm model.safetensors*

# A killed run resumes from the last checkpoint of --save-every, in the middle of an epoch and after its first shard;
# the result is the same.
shard() { metadata training.shard model.safetensors.checkpoint 2>/dev/null || true; }
place=0
for ((attempt = 0; attempt < 20 && place == 0; ++attempt)); do
    rm -f model.safetensors*
    "${training[@]}" "${sharded[@]}" --cache kept.corpus --save-every 0.00001 2>log &
    until (($(shard))) || ! kill -0 $! 2>/dev/null; do sleep 0.01; done
    kill -KILL $! 2>/dev/null || true
    wait $! 2>/dev/null || true
    place=$(shard)
done
((place > 0)) || fail "no checkpoint in the middle of an epoch"
train "${sharded[@]}" --cache kept.corpus --resume || fail "resuming a killed run"
cmp model.safetensors sharded.safetensors || fail "killed in shard $place and resumed, the model differs"
tensors model.safetensors.checkpoint | cmp - sharded.tensors || fail "killed and resumed, weights or the optimizer's state differ"
rm model.safetensors model.safetensors.checkpoint

# remade TEXT OPTION...: the file is not used, for a reason that contains TEXT, and is rebuilt as the first time.
remade()
{
    rm -f model.safetensors model.safetensors.checkpoint
    train "${sharded[@]}" --epochs 1 --cache stale.corpus "${@:2}" || fail "$1"
    grep -q "^note: stale.corpus.*$1.*rebuilt" log || fail "no word of '$1'"
    grep -q '^stale.corpus: [0-9]* sentence pairs in . shards, read in' log || fail "not rebuilt: $1"
}
# From another text: of the same size, of a different size, and with other options.
cp kept.corpus stale.corpus
cp train.b train.old
sed '7s/eins/zwei/' train.old >train.b
remade 'for another text'
cmp -s stale.corpus kept.corpus && fail "another text has the same shards"
mv train.old train.b
remade 'for another text'
remade 'other options' --max-length 3
remade 'other options' --bpe 5
remade 'other options'
# The header contains the times of the text files; the rest is identical.
tail -c +4097 stale.corpus | cmp - <(tail -c +4097 kept.corpus) || fail "rebuilt shards differ"

# Truncated, and damaged in its header.
size=$(stat -c %s kept.corpus)
for bytes in 8 63 64 500 4096 $((size - 1)); do
    head -c "$bytes" kept.corpus >stale.corpus
    remade 'truncated\|not a file of sentence pairs\|damaged'
done
{ head -c 70 kept.corpus; printf X; tail -c +72 kept.corpus; } >stale.corpus
remade 'damaged'
# A damaged shard is detected when it is read, and rejected.
cp stale.corpus good.corpus
printf '\377' | dd of=stale.corpus bs=1 seek=$((size - 3)) conv=notrunc status=none
rm -f model.safetensors model.safetensors.checkpoint
refused 'stale.corpus: is damaged: shard 4 of 4 was changed; remove it to rebuild it' train "${sharded[@]}" --cache stale.corpus
# Other files, and the text, stay unchanged.
echo 'dear diary' >stale.corpus
refused 'stale.corpus: not a file of this program' train "${sharded[@]}" --cache stale.corpus
[[ $(cat stale.corpus) == 'dear diary' ]] || fail "another's file was written over"
refused 'train.a: would overwrite an input' train "${sharded[@]}" --cache train.a

# A full disk, here a limit on the size of files: it is reported, and no file remains.
rm -f model.safetensors* stale.corpus
status=0
(
    trap '' XFSZ
    ulimit -f 6
    exec "${training[@]}" "${sharded[@]}" --cache stale.corpus
) 2>log || status=$?
((status == 1)) || fail "a full disk: exit code $status"
grep -q '^translate: stale.corpus: cannot write: ' log || fail "a full disk is not reported"
[[ -e stale.corpus || -e model.safetensors ]] && fail "a full disk: a partial file remains"

# Text from a pipe is also read once, and its file is not reused.
train "${sharded[@]}" --epochs 1 --source <(cat train.a) --cache stale.corpus || fail "from a pipe"
cmp <(tail -c +4097 stale.corpus) <(tail -c +4097 kept.corpus) || fail "from a pipe, the shards are others"
remade 'for another text' --source <(cat train.a)
no_temporaries
