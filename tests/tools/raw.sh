#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Raw text: input and output are plain text, in every command that reads text. docs/how_to/raw_text.md shows these
# commands.
here=$(cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/tools/common.bash
source "$here/common.bash"
# shellcheck source=tests/tools/service.bash
source "$here/service.bash"
evaluate=$(realpath -- "$2" 2>/dev/null || true)
[[ $evaluate ]] || evaluate=$(dirname "$translate")/evaluate

# A few sentences, repeated: a small model memorizes them.
english=('A man is sleeping.' 'A woman is sleeping.' 'The man is reading a book.' 'The woman is reading a book.'
    'Is the man sleeping?' 'Is the woman reading?' 'A dog is running!' 'The dog, a man and a woman are sleeping.'
    'A man (30) is reading.' 'He said: “The dog is sleeping.”')
german=('Ein Mann schläft.' 'Eine Frau schläft.' 'Der Mann liest ein Buch.' 'Die Frau liest ein Buch.'
    'Schläft der Mann?' 'Liest die Frau?' 'Ein Hund rennt!' 'Der Hund, ein Mann und eine Frau schlafen.'
    'Ein Mann (30) liest.' 'Er sagte: „Der Hund schläft.“')
printf '%s\n' "${english[@]}" >valid.a
printf '%s\n' "${german[@]}" >valid.b
for ((i = 0; i < 12; ++i)); do cat valid.a >&3 && cat valid.b >&4; done 3>train.a 4>train.b

# Without --raw, raw text is reported with advice; tokens are not.
train --epochs 1 --model tokens.safetensors || fail "training on words"
grep -q '^note: train.a: 108 of 120 lines end in a word with a mark, such as "sleeping.": .*--raw' log ||
    fail "raw text is not reported"
sed -E 's/([.,?!:()]|“|”|„)/ \1 /g' train.a >cut.a
sed -E 's/([.,?!:()]|“|”|„)/ \1 /g' train.b >cut.b
"${training[@]}" --source cut.a --target cut.b --epochs 1 --model cut.safetensors 2>log || fail "training on tokens"
if grep -q 'raw text' log; then fail "tokens are reported as raw text"; fi

echo 'A man was sleepy.' | "$translate" run --model cut.safetensors --threads 1 >output 2>log || fail "run"
grep -q '^note: 1 of 1 lines end in a word with a mark, such as "sleepy."; such words are not in the' log ||
    fail "raw text for a model of tokens is not noticed"
printf 'A man was sleepy.\nA dog was sleepy.\n' >raw.a
printf 'Ein Mann\nEin Hund\n' >raw.b
for command in 'score --source raw.a --target raw.b' 'align --source raw.a --target raw.b' 'page --source raw.a --output raw.html'; do
    # shellcheck disable=SC2086  # words
    "$translate" $command --model cut.safetensors --threads 1 >output 2>log || fail "$command"
    grep -q '^note: 2 of 2 lines end in a word with a mark, such as "sleepy."; such words are not in the' log ||
        fail "raw text for a model of tokens is not noticed by $command"
done
echo 'A man was sleepy .' | "$translate" run --model cut.safetensors --threads 1 >output 2>log || fail "run"
if grep -q 'note: 1 of' log; then fail "run reports tokens as raw text"; fi

# A program without SentencePiece and ICU rejects --raw.
if ! train --raw --epochs 1 --model probe.safetensors; then
    grep -q 'raw text requires SentencePiece and ICU, but this program was built without them; install them' log ||
        fail "no reason why --raw fails"
    echo "this program reads no raw text"
    exit 0
fi

misused 'requires --raw' "${training[@]:1}" --subword-vocab 100
misused 'excludes' "${training[@]:1}" --raw --bpe 100
misused 'subword-model' "${training[@]:1}" --raw --subword-model chance

# Input and output.
raw=(--raw --subword-vocab 150 --embedding 24 --hidden 24 --alignment 24 --dropout 0 --learning-rate 0.02 --epochs 14)
train "${raw[@]}" || fail "training on raw text"
grep -q 'subwords' log || fail "it does not report its tokens"
grep -q 'best validation BLEU 100.00' log || fail "the sentences are not learned by heart"
cp model.safetensors by_heart.safetensors
run() { "$translate" run --model model.safetensors --threads 1 "$@" 2>log; }
[[ $(echo 'A man is sleeping.' | run) == 'Ein Mann schläft.' ]] || fail "A man is sleeping."
run --input valid.a | cmp - valid.b || fail "wrong translations"

# Any white space and casing is accepted; empty lines are kept.
[[ $(printf '  A\xc2\xa0man \t is sleeping.\r\n' | run) == 'Ein Mann schläft.' ]] || fail "white space"
[[ $(echo 'A MAN IS SLEEPING.' | run) == 'EIN MANN SCHLÄFT.' ]] || fail "capitals"
[[ $(echo 'a man is sleeping.' | run) == 'Ein Mann schläft.' ]] || fail "no capital"
[[ $(echo 'A Man is SLEEPING.' | run) == 'Ein Mann schläft.' ]] || fail "some capitals"
[[ $(printf '\nA dog is running!\n \n' | run) == $'\nEin Hund rennt!' ]] || fail "empty lines"
printf 'Ω 日本 👍🏽 \xe2\x80\x8b￭ ▁a ↓b <unk> </s>\n' | run >output || fail "any text"
refused 'standard input:1:1: byte 0xff is not valid UTF-8' run <<<$'\xff'

# As a service.
printf 'A man is sleeping.\nA DOG IS RUNNING!\n' | "$translate" serve --model model.safetensors --stdin --threads 1 \
    >output 2>log || fail "serve"
[[ $(<output) == $'Ein Mann schläft.\nEIN HUND RENNT!' ]] || fail "the service translates differently"
if has_http model.safetensors; then
    begin "$translate" serve --model model.safetensors --port 0 --threads 1
    answers 200 '"text":"Ein Mann schläft.","words":["Ein","Mann","schläft","."]' POST /translate \
        '{"text": "A man is sleeping.", "alignment": true}'
    grep -q -F '"source":["A","man","is","sleeping",".","</s>"]' answer || fail "the source has no whole words: $(tail -n 1 answer)"
    row='\[[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*,[0-9.]*\]'
    grep -q "\"alignment\":\[$row,$row,$row,$row,$row\]" answer || fail "no weights between whole words: $(tail -n 1 answer)"
    stop
fi

# N-best lists, and rescoring by a second model.
run --n-best 3 --beam 4 --input valid.a >lists
[[ $(head -n 1 lists) == '0 ||| Ein Mann schläft. ||| '* ]] || fail "a list is not text"
"$translate" rescore --model model.safetensors --source valid.a --n-best lists --output both --threads 1 2>log || fail "rescore"
(($(head -n 1 both | wc -w) == $(head -n 1 lists | wc -w) + 1)) || fail "no score is added"

# Scores by 13a and chrF.
"$translate" score --model model.safetensors --source valid.a --target valid.b --threads 1 >output 2>log || fail "score"
grep -q '^BLEU = 100.00' output || fail "wrong BLEU"
grep -q '^chrF = 100.00' output || fail "wrong chrF"
run --input valid.a >hypothesis
"$evaluate" bleu --tokenize 13a --resamples 0 --reference valid.b hypothesis | grep -q ' 100.00 ' || fail "evaluate"

# Links, pictures and pages have whole words, with punctuation separate.
align=("$translate" align --model model.safetensors --source valid.a --target valid.b --threads 1)
"${align[@]}" --link-all --weights weights --picture picture.svg >links 2>log || fail "align"
# --tokens writes these words; weights and links index them.
"${align[@]}" --link-all --tokens words >again 2>log || fail "align --tokens"
cmp again links || fail "--tokens changes the links"
[[ $(head -n 1 words) == 'A man is sleeping . ||| Ein Mann schläft .' ]] || fail "wrong words: $(head -n 1 words)"
awk -F ' [|][|][|] ' 'NR == FNR { columns[NR] = split($1, some, " ") + 1; rows[NR] = split($2, some, " "); next }
    $0 == "" { if (row != rows[pair + 1]) exit 1; ++pair; row = 0; next }
    { ++row; if (split($0, some, " ") != columns[pair + 1]) exit 1 }
    END { if (pair != 10) exit 1 }' words weights || fail "the weights do not match the words of --tokens"
printf 'A man is sleeping.\n\n' | run --tokens words >output || fail "run --tokens"
[[ $(cat words) == $'A man is sleeping . ||| Ein Mann schläft .\n ||| ' ]] || fail "wrong words of a translation: $(cat words)"
(($(wc -l <links) == 10 && $(head -n 1 links | wc -w) == 4)) || fail "not a link for each of 'Ein Mann schläft .'"
(($(head -n 1 weights | wc -w) == 6)) || fail "not a weight for each of 'A man is sleeping . </s>'"
grep -q '>sleeping<' picture.svg || fail "the picture has no whole words"
echo 'A man is reading.' | run --alignments one.svg --page one.html >output || fail "run with pictures"
grep -q '>reading<' one.svg || fail "the picture of a translation has no whole words"
grep -q '"reading"' one.html || fail "the page of a translation has no whole words"
for forced in '' --forced; do
    "$translate" page --model model.safetensors --source valid.a --reference valid.b --output page.html --threads 1 \
        ${forced:+"$forced"} 2>log || fail "page $forced"
    grep -q '"schläft"' page.html || fail "the page has no whole words"
done
refused 'splits line 1 of valid.a into different words from model.safetensors' "$translate" page --model model.safetensors \
    --model tokens.safetensors --source valid.a --output never.html --threads 1

refused 'model.safetensors: reads raw text' "$translate" dimensions --model model.safetensors --source valid.a --target valid.b

# Unknown words become source words; a dictionary of this model's tokens limits the search.
[[ $(echo 'A 日本 is sleeping.' | run --replace-unknown) != *'<unk>'* ]] || fail "an unknown word is not replaced"
"$translate" dictionary --model model.safetensors --source train.a --target train.b --output words 2>log || fail "dictionary"
grep -q '^▁man ▁Mann ' words || fail "no dictionary of tokens"
[[ $(echo 'A man is sleeping.' | run --candidates 20:5 --dictionary words) == 'Ein Mann schläft.' ]] || fail "candidates"

# Ensembles need the same tokens; others are rejected.
[[ $(echo 'A man is sleeping.' | run --model model.safetensors) == 'Ein Mann schläft.' ]] ||
    fail "two models"
refused 'the same vocabularies' "$translate" run --model model.safetensors --model tokens.safetensors

# The same run again, and in two parts.
train "${raw[@]}" --epochs 2 --model whole.safetensors || fail "training again"
train "${raw[@]}" --epochs 1 --model parts.safetensors || fail "the first part"
train "${raw[@]}" --epochs 2 --model parts.safetensors --resume || fail "the second part"
cmp whole.safetensors.checkpoint parts.safetensors.checkpoint >/dev/null ||
    cmp whole.safetensors parts.safetensors || fail "training in two parts changes the model"
# Errors are reported before the program learns from the text.
head -n 119 train.b >short.b
refused 'short.b has 119; parallel files must have the same number' "${training[@]}" "${raw[@]}" --target short.b --model never.safetensors
if grep 'casing and subwords' log; then fail "it learns before it compares the lengths of files"; fi
refused '/dev/fd/' "${training[@]}" "${raw[@]}" --target <(cat short.b) --model never.safetensors
if grep 'casing and subwords' log; then fail "it learns before it compares the lengths of pipes"; fi
refused 'started with --subword-vocab 150, not 160' "${training[@]}" "${raw[@]}" --subword-vocab 160 --epochs 5 --model parts.safetensors --resume
if grep 'casing and subwords' log; then fail "it learns before it compares the options"; fi

# Other options.
train "${raw[@]}" --epochs 1 --subword-model unigram --model unigram.safetensors || fail "unigram"
train "${raw[@]}" --epochs 1 --casing as-is --model as_is.safetensors || fail "casing as it is"
train "${raw[@]}" --epochs 1 --system luong --reverse-source --model reversed.safetensors || fail "--reverse-source"
"$translate" align --model reversed.safetensors --source valid.a --target valid.b --threads 1 >links 2>log ||
    fail "align with --reverse-source"

# The commands of docs/how_to/raw_text.md, with a small model.
mkdir page
for side in train valid; do cp $side.a page/$side.en && cp $side.b page/$side.de; done
(
    cd page
    translate()
    {
        if [[ $1 == train ]]; then  # one epoch; otherwise the existing file would be rebuilt
            "$translate" "$@" "${tiny[@]}" "${raw[@]}" --epochs 1
            cp ../by_heart.safetensors en-de.safetensors
        else
            "$translate" "$@"
        fi
    }
    evaluate() { "$evaluate" "$@"; }
    eval "$(sed -n '/^```bash$/,/^```$/{/^```/d;p}' "$here/../../docs/how_to/raw_text.md")"
) >output 2>log || fail "a command of docs/how_to/raw_text.md"
[[ $(head -n 1 output) == 'Ein Mann schläft.' ]] || fail "docs/how_to/raw_text.md shows a different translation"
grep -q '^chrF = 100' output || fail "the scores of docs/how_to/raw_text.md"
[[ -s page/links.svg && -s page/page.html && -s page/scored.nbest ]] || fail "the files of docs/how_to/raw_text.md"
cmp page/valid.out valid.b || fail "the translations of docs/how_to/raw_text.md"

# The commands of tools/README.md, with a smaller model and one epoch; the service gets no line.
mkdir readme
for language in en:a de:b; do
    cp train.${language#*:} readme/train.${language%:*}
    for part in val test; do cp valid.${language#*:} readme/$part.${language%:*}; done
done
(
    cd readme
    translate()
    {
        case $1 in
        train) "$translate" "$@" "${tiny[@]}" --subword-vocab 150 --epochs 1 ;;
        serve) "$translate" "$@" --stdin </dev/null ;;
        *) "$translate" "$@" ;;
        esac
    }
    eval "$(sed -n '/^    translate train --raw/,/^    translate quantize/p' "$here/../../tools/README.md")"
) >output 2>log || fail "a command of tools/README.md"
grep -q '^perplexity = ' output || fail "the scores of tools/README.md"
grep -q 'translate: translated 0 sentences' log || fail "the service of tools/README.md"
for file in en-de.csv where.html small.safetensors; do [[ -s readme/$file ]] || fail "tools/README.md makes no $file"; done

# A quantized model gives the same translations.
"$translate" quantize --model model.safetensors --to int8 --output small.safetensors 2>log || fail "quantize"
"$translate" run --model small.safetensors --input valid.a --threads 1 2>log | cmp - valid.b || fail "8 bits"
"$translate" quantize --model model.safetensors --to bf16 --output small.safetensors 2>log || fail "quantize"
"$translate" run --model small.safetensors --input valid.a --threads 1 2>log | cmp - valid.b || fail "half the size"

# A damaged file is rejected.
edited 'heed.raw_text/1' 'heed.raw_text/9' model.safetensors >other.safetensors
refused 'other.safetensors: raw text: its description begins with "heed.raw_text/9"' "$translate" run \
    --model other.safetensors
edited 'raw.source' 'row.source' model.safetensors >other.safetensors
refused 'its metadata has no raw.source' "$translate" run --model other.safetensors
no_temporaries
