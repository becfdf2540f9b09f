#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Training with candidates: `translate train --candidates`, with a learned or given dictionary.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 120 1 train
sentences 10 2 valid
# Rare words with one translation each: few occur in a batch.
for side in a b; do
    for ((i = 0; i < 60; ++i)); do echo "rare$side$i rare$side$i one$side"; done >>train.$side
done
how=(--epochs 3 --learning-rate 0.03)
# losses FILE: the training losses, one per epoch.
losses() { awk -F, 'NR > 1 { print $4 }' "$1"; }
# validation FILE
validation() { awk -F, 'NR > 1 { print $6 }' "$1"; }
# near FILE FILE: the numbers are equal up to rounding.
near()
{
    paste "$1" "$2" | awk 'function abs(x) { return x < 0 ? -x : x }
        NF != 2 || abs($1 - $2) > 0.001 * abs($1) { exit 1 } END { exit !NR }'
}

train "${how[@]}" --log all.csv || fail "training among all words"
grep -q 'candidates' log && fail "candidates although none were requested"
mv model.safetensors all.safetensors
losses all.csv >all
validation all.csv >all.valid

# Few candidates: a choice among fewer words, so that the loss is smaller at first, and decreases.
rm model.safetensors.checkpoint
train "${how[@]}" --log few.csv --candidates 5:2 || fail "--candidates 5:2"
grep -q '^candidates: the 5 most frequent tokens, 2 translations .* learned in .* has translations for 64 of 64$' log || fail "$(cat log)"
size=$(grep -c . <(metadata vocabulary.target model.safetensors | sed 's/\\n/\n/g'))
count=$(sed -n 's/^epoch  1 .* \([0-9]*\) candidates per batch .*/\1/p' log)
((count > 5 && count < size / 2)) || fail "$count candidates of $size words"
losses few.csv >few
paste all few | awk 'NR == 1 && $2 > 0.8 * $1 { exit 1 }' || fail "the loss is not that of fewer words: $(paste all few)"
awk 'NR > 1 && $1 >= last { exit 1 } { last = $1 }' few || fail "the loss does not decrease: $(cat few)"
# Validation and search use all words: the file contains an ordinary model.
validation few.csv >few.valid
cat all.valid few.valid | awk '$1 <= 0 { exit 1 }' || fail "validation"
"$translate" score --model model.safetensors --source valid.a --target valid.b --threads 1 >scores 2>/dev/null || fail "scoring"
best=$(sed -n 's/^best .* after epoch \([0-9]*\) of.*/\1/p' log)
paste -d ' ' <(sed -n 's/^perplexity = //p' scores) <(sed -n "${best}p" few.valid) |
    awk '{ d = log($1) - $2; exit d < -0.001 || d > 0.001 }' || fail "validation does not use all words: $(cat scores few.valid)"
paste all.valid few.valid | awk '{ if ($2 < $1) less++ } END { exit less == NR }' || fail "validation uses few words"
[[ $(metadata options.candidates model.safetensors) == 5:2 ]] || fail "the model does not record its candidates"
"$translate" run --model model.safetensors --input valid.a >output 2>log || fail "translating"
(($(wc -l <output) == 10)) || fail "10 sentences"
cp model.safetensors few.safetensors
rm model.safetensors*

# A word "|||" of a text is kept in its dictionary and phrases.
printf 'a ||| b\n||| c\n' >bars.a
printf 'x ||| y\n||| z\n' >bars.b
"$translate" dictionary --source bars.a --target bars.b --output bars.words --phrases bars.phrases 2>log || fail "a dictionary with |||"
grep -q '^||| ||| ' bars.words || fail "||| is missing in $(cat bars.words)"
grep -q '^&#124;&#124;&#124; ||| .*&#124;&#124;&#124;' bars.phrases || fail "||| is missing in $(cat bars.phrases)"
! grep -q '^||| ' bars.phrases || fail "a line that begins with |||: $(cat bars.phrases)"
"$translate" train --source bars.a --target bars.b --valid-source bars.a --valid-target bars.b --model bars.safetensors \
    "${tiny[@]}" --epochs 1 --candidates 5:2 --dictionary bars.words 2>log || fail "training with |||: $(cat log)"
"$translate" run --model bars.safetensors --input bars.a --n-best 2 --candidates 5:2 --dictionary bars.words --phrases bars.phrases \
    >bars.nbest 2>log || fail "translating with |||: $(cat log)"
awk -F ' [|][|][|] ' 'NF != 3 { exit 1 }' bars.nbest || fail "a line without three fields: $(cat bars.nbest)"

# The words of phrases are candidates as well: "one one one one" is mostly an idiom, which no single word can predict.
cp train.a kept.a && cp train.b kept.b
for ((i = 0; i < 30; ++i)); do
    echo 'one one one one' >>train.a
    ((i % 3)) && echo 'idiom' || echo 'eins eins eins eins'
done >>train.b
few=(--epochs 1 --batch 2 --candidates 0:1)
train "${few[@]}" --log without.csv || fail "without phrases"
rm model.safetensors*
train "${few[@]}" --phrases --log with.csv || fail "--phrases"
grep -q '^candidates: .*; [1-9][0-9]* phrases learned in ' log || fail "$(cat log)"
paste <(losses without.csv) <(losses with.csv) | awk '$2 <= $1 { exit 1 }' || fail "phrases add no candidates: $(losses without.csv) $(losses with.csv)"
[[ $(metadata options.phrases model.safetensors) == 1 ]] || fail "the model does not record its phrases"
refused 'started with --phrases 1, not 0' train --epochs 2 --batch 2 --candidates 0:1 --resume
rm model.safetensors*
mv kept.a train.a && mv kept.b train.b
for no in '' '--candidates all' '--candidates 5:0'; do
    # shellcheck disable=SC2086  # none, or two words
    contradicts '--phrases: uses the N best words' train --phrases $no
done

# All words as candidates: the same up to rounding.
for many in 1000:0 1000:3 18446744073709551615:18446744073709551615; do
    train "${how[@]}" --log many.csv --candidates $many || fail "--candidates $many"
    near <(losses many.csv) all || fail "$many: another loss: $(paste all <(losses many.csv))"
    near <(validation many.csv) all.valid || fail "$many: another validation: $(paste all.valid <(validation many.csv))"
    rm model.safetensors*
done
grep -q ", $size candidates per batch" log || fail "not all $size: $(cat log)"

# --candidates all equals no option; leading zeros are ignored.
train "${how[@]}" --candidates all || fail "--candidates all"
cmp model.safetensors all.safetensors || fail "--candidates all changes the model"
rm model.safetensors*
train "${how[@]}" --candidates 05:02 || fail "--candidates 05:02"
cmp model.safetensors few.safetensors || fail "--candidates 05:02 differs from 5:2"
rm model.safetensors*

# Given dictionaries: that of `translate dictionary`, which learns the same, also with its lines in a different order.
"$translate" dictionary --source train.a --target train.b --output words 2>log || fail "a dictionary"
train "${how[@]}" --candidates 5:2 --dictionary words || fail "--dictionary"
grep -q '^candidates: .*; words has translations for 64 of 64$' log || fail "$(cat log)"
metadata options.candidates model.safetensors.checkpoint | grep -q '^5:2$' || fail "no candidates in the checkpoint"
cmp model.safetensors few.safetensors || fail "given and learned dictionaries produce different models"
rm model.safetensors*
# Unknown words are ignored; a partial dictionary is accepted.
{ grep '^rare' words; echo 'cat Katze 0.5'; echo 'one Katze 1'; echo 'cat eins'; } >half
train "${how[@]}" --candidates 5:2 --dictionary half || fail "half a dictionary"
grep -q '; half has translations for 60 of 64$' log || fail "$(cat log)"
cmp -s model.safetensors few.safetensors && fail "the dictionary changes nothing"
rm model.safetensors*

# Interrupted and resumed: the same bit for bit, for each kind of candidates.
tensors() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }
long=(--hidden 16 --embedding 16 --alignment 16 --batch 4 --epochs 3 --dropout 0.3)
for candidates in '5:2' '5:2 --dictionary half' '5:2 --phrases' '6:0' '0:1 --bpe 12'; do
    # shellcheck disable=SC2206  # several words
    options=("${long[@]}" --candidates $candidates)
    train "${options[@]}" || fail "uninterrupted: $candidates"
    mv model.safetensors uninterrupted.safetensors
    tensors model.safetensors.checkpoint >uninterrupted.tensors
    rm model.safetensors.checkpoint
    resume='' stops=0
    for ((attempt = 0; attempt < 20 && stops < 2; ++attempt)); do
        status=0
        : >log
        # shellcheck disable=SC2086  # no word at first
        "${training[@]}" "${options[@]}" $resume 2>log &
        process=$!
        for ((i = 0; i < 500; ++i)); do  # past startup, where a signal just ends it
            if grep -q 'parameters' log; then break; fi
            sleep 0.01
        done
        sleep 0.0$((attempt * 3 % 8))
        kill -INT $process 2>/dev/null || true
        wait $process || status=$?
        if ((status == 130)); then
            stops=$((stops + 1))
            resume=--resume
        else  # a busy machine: training finished before the signal arrived, and starts again
            ((status == 0)) || fail "ended with $status"
            rm model.safetensors*
            resume=''
        fi
    done
    [[ $resume ]] || fail "never interrupted: the test is ineffective"
    # shellcheck disable=SC2086
    train "${options[@]}" $resume || fail "resuming: $candidates"
    cmp model.safetensors uninterrupted.safetensors || fail "the resumed model differs: $candidates"
    tensors model.safetensors.checkpoint | cmp - uninterrupted.tensors || fail "the resumed checkpoint differs: $candidates"
    rm model.safetensors*
done

# A different choice is a different run.
train --epochs 1 --candidates 5:2 || fail "one epoch"
more=(train --epochs 2 --resume)
refused 'started with --candidates 5:2, not all' "${more[@]}"
refused 'started with --candidates 5:2, not 5:3' "${more[@]}" --candidates 5:3
refused 'started without --dictionary; omit it' "${more[@]}" --candidates 5:2 --dictionary words
cp model.safetensors.checkpoint good
lie()
{
    edited "$1" "$2" good >model.safetensors.checkpoint
    refused "$3" "${more[@]}" --candidates 5:2
    [[ $(tail -n 1 messages) == 'translate: model.safetensors.checkpoint: '* ]] || fail "the message does not start with the file"
}
lie '"training.dictionary":"learned"' '"training.dictionary":"given"' 'started with --dictionary; pass the same'
lie '"training.dictionary":"learned"' '"training.dictionary":""' 'pass the same'
lie '"training.dictionary"' '"training.dictionari"' 'no training.dictionary'
lie '"candidates.counts"' '"candidates.count5"' 'candidates.counts'
lie '"candidates.words"' '"candidates.word5"' 'candidates.words'
lie '"candidates.counts"' '"candidates.temporary"' 'candidates.counts'
# The tensors swapped: their sizes do not fit.
edited '"candidates.counts"' '"candidates.x"' good >half_way
edited '"candidates.words"' '"candidates.counts"' half_way >other_way
edited '"candidates.x"' '"candidates.words"' other_way >model.safetensors.checkpoint
refused 'the file contradicts itself' "${more[@]}" --candidates 5:2
# last_word FILE: the end of the last number of the words.
last_word()
{
    local size place
    size=$(od -An -tu8 -N8 "$1")
    place=$(tail -c +9 "$1" | head -c "$size" | grep -o '"candidates.words":{[^}]*}' | sed 's/.*,\([0-9]*\)\].*/\1/')
    echo $((8 + size + place))
}
# with BYTE PLACE: the checkpoint with one byte changed.
with()
{
    cp good model.safetensors.checkpoint
    # shellcheck disable=SC2059  # the format is the byte
    printf "$1" | dd of=model.safetensors.checkpoint bs=1 seek="$2" conv=notrunc status=none
}
# An invalid token.
for byte in '\x7f' '\xff'; do
    with "$byte" $(($(last_word good) - 1))
    refused 'the file contradicts itself' "${more[@]}" --candidates 5:2
done
# A dictionary that the text would not produce: the run continues with the checkpoint's.
[[ $(od -An -tu1 -j $(($(last_word good) - 8)) -N1 good) != *' 2' ]] || fail "the checkpoint has that number already"
with '\x02' $(($(last_word good) - 8))
"${more[@]}" --candidates 5:2 || fail "resuming with the checkpoint's dictionary"
[[ $(od -An -tu8 -j $(($(last_word model.safetensors.checkpoint) - 8)) -N8 model.safetensors.checkpoint) == *' 2' ]] ||
    fail "the dictionary was learned again"
cp good model.safetensors.checkpoint
"${more[@]}" --candidates 5:2 || fail "the checkpoint was good"
rm model.safetensors*
train --epochs 1 --candidates 5:2 --dictionary words || fail "one epoch"
refused 'started with --dictionary; pass the same' "${more[@]}" --candidates 5:2
refused 'started with another --dictionary; pass the same' "${more[@]}" --candidates 5:2 --dictionary half
sort -s -k 1,1 words >sorted
cmp -s words sorted && fail "the same order of lines: the test is ineffective"
"${more[@]}" --candidates 5:2 --dictionary sorted || fail "resuming with the same"
rm model.safetensors*
train --epochs 1 || fail "one epoch"
refused 'started with --candidates all, not 5:2' "${more[@]}" --candidates 5:2
# A checkpoint from a version without candidates.
edited '"options.candidates":"all"' '"x":"y"' model.safetensors.checkpoint >old
mv old model.safetensors.checkpoint
"${more[@]}" || fail "resuming a checkpoint without candidates"
rm model.safetensors*

# Invalid options.
for value in 5 5: :5 5:x 5:5:5 -5:5 5:-5 ' 5:5' some 99999999999999999999:1; do
    misused '--candidates: .*such as 2000:10, or all' "${training[@]:1}" --candidates="$value"
done
misused '--candidates' "${training[@]:1}" --candidates=
misused '--candidates: .*0:0 leaves no candidates' "${training[@]:1}" --candidates 0:0
misused '--candidates: .*0:0 leaves no candidates' "${training[@]:1}" --candidates 00:0 --dictionary words
misused '--dictionary requires --candidates' "${training[@]:1}" --dictionary words
contradicts '--dictionary: applies to --candidates K:N' train --candidates all --dictionary words
contradicts '--candidates 5:0 does not use --dictionary' train --candidates 5:0 --dictionary words
refused 'nowhere: cannot be opened' train --candidates 5:2 --dictionary nowhere
refused '.: is a directory' train --candidates 5:2 --dictionary .
for line in one 'one eins zwei' 'one eins -1' 'one eins nan' 'one eins inf' 'one eins 1e999' 'one eins 1 1' ''; do
    printf 'two zwei 1\n%s\n' "$line" >bad
    refused 'bad:2: ' train --candidates 5:2 --dictionary bad
done
printf 'one eins\ntwo \xff\n' >bad
refused 'bad:2:5: byte 0xff' train --candidates 5:2 --dictionary bad
: >bad
refused 'bad: is empty' train --candidates 5:2 --dictionary bad
printf 'cat Katze\none Katze\ncat eins\n<unk> eins\none </s>\n' >bad
refused 'bad: no line has both words' train --candidates 5:2 --dictionary bad
cp words sums
refused 'words: would overwrite' train --candidates 5:2 --dictionary words --model words
refused 'words: would overwrite' train --candidates 5:2 --dictionary words --log words
cmp words sums || fail "the dictionary was changed"
if compgen -G 'model.safetensors*'; then fail "a rejected command wrote a file"; fi

# The example of --help.
"$translate" train --help >help
grep -q -e '--candidates 2000:10' help || fail "--help has no example"
mkdir examples
for set in train:train val:valid; do
    cp "${set#*:}.a" "examples/${set%:*}.en" && cp "${set#*:}.b" "examples/${set%:*}.de"
done
cd examples
translate() { "$translate" "$@" 2>../log; }
eval "$(sed '1,/^Example:$/d' ../help) --epochs 1 --embedding 8 --hidden 8 --alignment 8 --candidates 2000:10" || fail "the example"
[[ -s en-de.safetensors ]] || fail "the example wrote no model"
cd ..
no_temporaries
