#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Byte-pair encoding: the commands, the same merges as an independent program, and subword models.
here=$(cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/tools/common.bash
source "$here/common.bash"

# The texts of this repository, and lines of letters with many equally frequent pairs and symbols next to themselves.
cat "$here"/../../{README.md,docs/*.md,docs/*/*.md} | sed -n '1,1200{s/\t/ /g;p}' >text
state=1
for ((i = 0; i < 300; ++i)); do
    line=''
    for ((j = 0; j < 12; ++j)); do
        state=$(((state * 1103515245 + 12345) % 2147483648))
        letters=(a aa b ba ü é€ 😀 ' ')
        line+=${letters[state / 65536 % 8]}
    done
    echo "$line"
done >letters

bpe() { "$translate" bpe "$@" 2>log; }
if command -v python3 >/dev/null; then
    head -n 400 text >part  # the independent program is slow
    for files in part letters 'part letters'; do
        # shellcheck disable=SC2086  # several names
        {
            python3 "$here/../kit/text/learn_bpe.py" 100 $files >expected || fail "the independent program"
            bpe learn --merges 100 --input ${files// / --input } --codes codes || fail "learning from $files"
        }
        cmp codes expected || fail "other merges from $files"
        [[ $files == letters ]] || (($(wc -l <codes) == 101)) || fail "100 merges should be 100 lines"
    done
else
    echo "no python3: not compared with tests/kit/text/learn_bpe.py"
fi

# Learned from standard input, from one file and from two: the same counts, the same codes.
bpe learn --merges 150 --codes joint --input text --input letters || fail "learning from two files"
grep -q '^150 merges from [0-9]* distinct words: joint' log || fail "it does not report its work"
cat text letters | bpe learn --merges 150 --codes piped || fail "learning from standard input"
cmp joint piped || fail "files and standard input differ"
bpe learn --merges 100000 --least 200 --codes frequent --input text --input letters || fail "--least"
head -n "$(wc -l <frequent)" joint | cmp frequent - || fail "--least changes more than the end"
(($(wc -l <frequent) < 150)) || fail "--least has no effect"

# Applied and undone; the number of lines is unchanged.
printf 'the cat\n\n  attention  ü😀 \r\na@@ @@ b@@' >some
bpe apply --codes joint --input some --output pieces || fail "applying"
bpe apply --codes joint <some | cmp - pieces || fail "files and standard input differ when applied"
(($(wc -l <pieces) == 4)) || fail "4 lines in, $(wc -l <pieces) out"
grep -q '@@ ' pieces || fail "no word is split"
bpe undo --input pieces --output whole || fail "undoing"
printf 'the cat\n\nattention ü😀\na@@ @@ b@@\n' | cmp - whole || fail "the text differs after undoing"
bpe apply --codes joint --input text | bpe undo | cmp - <(sed 's/  */ /g;s/^ //;s/ $//' text) || fail "text undone"
bpe undo </dev/null >output || fail "nothing to undo"
[[ ! -s output ]] || fail "undoing empty input prints text"

# Invalid input is rejected with its location.
printf 'fine\nab \xe9t\xe9\n' >latin
refused 'latin:2:4: byte 0xe9 is not valid UTF-8' bpe learn --input text --input latin --codes never
refused 'latin:2:4: byte 0xe9 is not valid UTF-8' bpe apply --codes joint --input latin --output never
refused 'standard input:2:4: byte 0xe9' bpe undo <latin
refused 'missing: cannot be opened' bpe learn --input missing --codes never
refused 'missing: cannot be opened' bpe apply --codes missing
refused 'is a directory' bpe learn --input . --codes never
refused 'no words to learn from' bpe learn --codes never </dev/null
refused 'text:1: not a code file' bpe apply --codes text
printf '#version: 0.2\na b\nabc\n' >bad
refused 'bad:3: 1 symbol; each line must be two' bpe apply --codes bad
sed '1s/0.2/0.1/' joint >bad
refused 'bad:1: codes have version "0.1"' bpe apply --codes bad
[[ ! -e never ]] || fail "refused, but written"
before=$(cksum <text)
refused 'text: would overwrite an input' bpe learn --input text --codes text
refused 'text: would overwrite an input' bpe apply --codes joint --input text --output text
refused 'joint: would overwrite an input' bpe apply --codes joint --input text --output joint
[[ $(cksum <text) == "$before" ]] || fail "the text was changed"
cp joint old
refused 'cannot write: File too large; the previous file is unchanged' \
    bash -c 'ulimit -f 1; "$@"' - "$translate" bpe learn --input text --codes old
cmp joint old || fail "a partial code file"
no_temporaries
misused -- --codes bpe learn --input text
misused -- --codes bpe apply --input text
misused merges bpe learn --input text --codes never --merges 0
misused subcommand bpe
misused -- --bpe train --source a --target b --valid-source c --valid-target d --model m --bpe-separate
misused -- --bpe train --source a --target b --valid-source c --valid-target d --model m --bpe-codes joint --bpe 5

# Subword models. The codes are in the model; input and output are words.
sentences 500 1 train
sentences 40 2 valid
sentences 60 3 few
# learns NAME OPTION...: a small model with byte-pair encoding.
learns() { train --model "$1.safetensors" --epochs 8 --learning-rate 0.015 "${@:2}" || fail "training $*"; }
learns joint --bpe 4
grep -q '^byte-pair encoding: 4 merges for both languages' log || fail "not joint"
grep -q 'subwords' log || fail "it does not say that its tokens are pieces"
[[ $(metadata bpe.source joint.safetensors) == '#version: 0.2\n'* ]] || fail "no codes in the model"
[[ $(metadata bpe.source joint.safetensors) == "$(metadata bpe.target joint.safetensors)" ]] || fail "not the same codes"
mkdir elsewhere
cp joint.safetensors valid.* elsewhere
"$translate" run --model elsewhere/joint.safetensors --input valid.a --alignments joint.svg >output 2>log || fail "translating"
(($(wc -l <output) == 40)) || fail "40 lines in, $(wc -l <output) out"
grep -q '@@' output && fail "subwords in the output"
grep -q @@ joint.svg && fail "subwords in the picture"
(($(tr ' ' '\n' <output | grep -c '^\(eins\|zwei\|drei\)$') > 40)) || fail "few words of the language: $(head -n 3 output)"
"$translate" score --model joint.safetensors --source valid.a --target valid.b >scores 2>log || fail "scoring"
bleu=$(sed 's/^BLEU = \([0-9]*\).*/\1/;q' scores)
((bleu >= 60)) || fail "the model did not learn this language: $(cat scores)"
# Perplexity per subword and per word: the same log p divided by fewer tokens, including the ends of sentences.
metadata bpe.target joint.safetensors | sed 's/\\n/\n/g' >its.codes
bpe apply --codes its.codes --input valid.b --output its.pieces || fail "splitting with the model's codes"
sed -n 's/^perplexity = \([0-9.]*\) per subword, \([0-9.]*\) per word$/\1 \2/p' scores |
    awk -v pieces="$(($(wc -w <its.pieces) + 40))" -v words="$(($(wc -w <valid.b) + 40))" '
        { d = log($1) * pieces - log($2) * words } END { exit NR != 1 || pieces == words || d < -0.05 || d > 0.05 }' ||
    fail "no perplexities of subwords and words: $(cat scores)"

# A subword model rejects a dictionary of words and accepts one of its subwords.
"$translate" dictionary --source train.a --target train.b --output words 2>log || fail "a dictionary of words"
"$translate" dictionary --source train.a --target train.b --model joint.safetensors --output pieces.dictionary 2>log || fail "a dictionary of subwords"
refused 'words: is a dictionary of words' "$translate" run --model joint.safetensors --input valid.a --candidates 5:2 --dictionary words
grep -q 'translate dictionary --model joint.safetensors' log || fail "the message does not explain the fix"
"$translate" run --model joint.safetensors --input valid.a --candidates 5:2 --dictionary pieces.dictionary >output 2>log ||
    fail "a dictionary of subwords"
refused 'words: is a dictionary of words' train --model never.safetensors --bpe 4 --candidates 5:2 --dictionary words
grep -q 'omit --dictionary' log || fail "it does not report the fix"

# BLEU during training is over words: the last epoch's value equals that of `score`.
train --model one.safetensors --epochs 1 --learning-rate 0.02 --bpe 4 || fail "one epoch"
while_training=$(sed -n 's/^epoch .* BLEU \([0-9.]*\).*/\1/p' log)
"$translate" score --model one.safetensors --source valid.a --target valid.b >scores 2>log || fail "scoring"
[[ $(sed 's/^BLEU = \([0-9.]*\),.*/\1/;q' scores) == "$while_training" ]] || fail "$while_training while training, then $(cat scores)"


# The same codes given explicitly produce the same model; different codes per language do not.
bpe learn --merges 4 --input train.a --input train.b --codes given || fail "learning"
tensors() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }
train --model given.safetensors --epochs 1 --learning-rate 0.02 --bpe-codes given || fail "training with given codes"
tensors one.safetensors | cmp - <(tensors given.safetensors) || fail "learned and given codes produce different models"
learns separate --bpe 4 --bpe-separate --epochs 1 --source few.a --target few.b
grep -q '^byte-pair encoding: 4 and 4 merges' log || fail "not separate"
for side in a b; do bpe learn --merges 4 --input few.$side --codes few.codes.$side || fail "learning"; done
learns two --bpe-codes few.codes.a --bpe-codes-target few.codes.b --epochs 1 --source few.a --target few.b
tensors separate.safetensors | cmp - <(tensors two.safetensors) || fail "learned and given separate codes produce different models"
"$translate" run --model separate.safetensors --input valid.a >output 2>log || fail "translating"
grep -q '@@' output && fail "subwords in the output"

# Training resumes only with the same codes.
rm -f model.safetensors*
training+=(--source few.a --target few.b)
train --epochs 1 --bpe-codes given || fail "training"
train --epochs 2 --bpe-codes given --resume || fail "resuming"
refused 'other byte-pair codes' train --epochs 3 --bpe-codes few.codes.a --resume
refused '--bpe 0, not 4' train --epochs 3 --bpe 4 --resume
refused 'other byte-pair codes' train --epochs 3 --resume
refused '--max-length 0, not 50' train --epochs 3 --bpe-codes given --resume --max-length 50
refused '--batch-tokens 0, not 9' train --epochs 3 --bpe-codes given --resume --batch-tokens 9
refused 'missing: cannot be opened' train --model never.safetensors --bpe-codes missing
refused 'given: would overwrite an input' train --model given --bpe-codes given

# Models with false codes, and a model of the first format, which had no subwords.
lies()
{
    edited "$1" "$2" "$3" >bad
    refused "$4" "$translate" run --model bad --input valid.a
    [[ $(tail -n 1 messages) == 'translate: bad: '* ]] || fail "the message does not start with the file"
}
lies '"bpe.source":"#version: 0.2' '"bpe.source":"#version: 0.3' joint.safetensors 'bpe.source:1: codes have version "0.3"'
lies '"bpe.target":"#version: 0.2\n' '"bpe.target":"#version: 0.2\nx\n' joint.safetensors 'bpe.target:2: 1 symbol'
lies '"bpe.target"' '"bpe.tarket"' joint.safetensors 'no bpe.target'
lies '"bpe.source"' '"bpe.sourke"' joint.safetensors 'no bpe.source'
lies '"options.bpe":"4"' '"options.bpe":"x"' joint.safetensors 'options.bpe is "x"'
lies '"options.reverse-source":"0"' '"options.reverse-source":"3"' joint.safetensors 'must be 0 or 2'
lies '"options.reverse-source":"0"' '"options.reverse-source":"1"' joint.safetensors 'by an earlier heed'
lies '"options.bpe-separate":"0"' '"options.bpe-separate":"2"' joint.safetensors 'must be 0 or 1'
train --model words.safetensors --epochs 1 || fail "training"
"$translate" run --model words.safetensors --input valid.a >expected 2>log || fail "translating"
cp words.safetensors first
for option in bpe bpe-separate max-length reverse-source batch-tokens; do
    edited "\"options.$option\":\"0\"," '' first >next
    mv next first
done
refused 'no options.b' "$translate" run --model first --input valid.a
edited '"format":"heed.translate/2"' '"format":"heed.translate/1"' first >next
"$translate" run --model next --input valid.a >output 2>log || fail "a model of the first format"
cmp output expected || fail "a model of the first format translates differently"

# The examples in --help.
mkdir examples
cp text examples/train.en
cp letters examples/train.de
cp some examples/test.de
cd examples
translate() { "$translate" "$@" 2>../log; }
for command in learn apply undo; do
    translate bpe $command --help >help
    awk 'length > 100' help | grep . && fail "bpe $command --help is wider than 100 columns"
    example=$(sed '1,/^Example:$/d' help)
    [[ $example == *"translate bpe $command"* ]] || fail "bpe $command --help has no example"
    eval "$example" >output || fail "the example of bpe $command: $example"
done
[[ $(cat output) == 'a bike' && -s test.bpe.de ]] || fail "the examples did something else"
