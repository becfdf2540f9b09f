#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Train, translate and score, with every attention; the number of lines is preserved.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 600 1 train
sentences 40 2 valid
sentences 60 3 few

for attention in none additive-y per-dimension temporal additive; do
    train --attention $attention --epochs 2 --source few.a --target few.b || fail "training with $attention"
    grep -q "$attention attention" log || fail "the log does not report $attention"
    [[ $(metadata options.attention model.safetensors) == "$attention" ]] || fail "$attention is not recorded in the model"
    (($(grep -c '^epoch .*loss .*tokens/s .*perplexity .*BLEU' log) == 2)) || fail "two epochs should have two lines"
    "$translate" run --model model.safetensors --input valid.a >output 2>log || fail "translating with $attention"
    (($(wc -l <output) == 40)) || fail "40 lines in, $(wc -l <output) out"
    rm model.safetensors*
done

train --epochs 6 --learning-rate 0.03 || fail "training"
grep -q '^best validation BLEU ' log || fail "no last line"
# shellcheck disable=SC2094
"$translate" score --model model.safetensors --source valid.a --target valid.b >scores 2>log || fail "scoring"
grep -q '^BLEU = ' scores || fail "no BLEU: $(cat scores)"
grep -q '^perplexity = [0-9]' scores || fail "no perplexity: $(cat scores)"
bleu=$(sed 's/^BLEU = \([0-9]*\).*/\1/;q' scores)
((bleu >= 60)) || fail "the model did not learn this language: $(cat scores)"

# The number of lines is preserved, including empty ones and one without a final newline; lines are independent of each
# other.
printf 'one two\n\nthree unheard-of\n  \r\none' >some
"$translate" run --model model.safetensors --input some >from_file 2>log || fail "translating a file"
"$translate" run --model model.safetensors <some >from_standard 2>log || fail "translating standard input"
"$translate" run --model model.safetensors --batch 1 <some >one_by_one 2>log || fail "translating one by one"
cmp from_file from_standard || fail "a file and standard input differ"
cmp from_file one_by_one || fail "the size of a batch changes translations"
(($(wc -l <from_file) == 5)) || fail "5 lines in, $(wc -l <from_file) out"
[[ -z $(sed -n '2p;4p' from_file) ]] || fail "an empty line has a translation"
[[ $(sed -n 5p from_file) == eins ]] || fail "one is $(sed -n 5p from_file)"
"$translate" run --model model.safetensors </dev/null >output 2>log || fail "empty standard input"
[[ ! -s output ]] || fail "a translation of empty input"
: >nothing
"$translate" run --model model.safetensors --input nothing --tokens nothing.tokens >output 2>log || fail "an empty file"
[[ ! -s output && -e nothing.tokens && ! -s nothing.tokens ]] || fail "a translation of an empty file"

# A sentence longer than any in training.
for ((i = 0; i < 3000; ++i)); do printf 'two '; done >long
"$translate" run --model model.safetensors --input long >output 2>log || fail "a long sentence"
(($(wc -l <output) == 1)) || fail "a long sentence must be one line"

# Each answer immediately, for interactive use.
coproc "$translate" run --model model.safetensors --batch 1 2>log
process=$COPROC_PID  # the variable disappears with the process
echo one >&"${COPROC[1]}"
read -r -t 60 answer <&"${COPROC[0]}" || fail "no answer before the input ends"
[[ $answer == eins ]] || fail "the answer to one is $answer"
# shellcheck disable=SC1083,SC2093  # the end of its input
exec {COPROC[1]}>&-
wait "$process" || fail "the end of standard input"

# Pictures.
"$translate" run --model model.safetensors --input some --alignments some.svg >output 2>log || fail "drawing"
cmp output from_file || fail "drawing changes translations"
[[ $(head -c 5 some.svg) == '<svg ' && $(tail -n 1 some.svg) == '</svg>' ]] || fail "no SVG"
(($(grep -o '<g[ >]' some.svg | wc -l) == $(grep -o '</g>' some.svg | wc -l))) || fail "an SVG that is not well-formed"
(($(grep -o '<text[ >]' some.svg | wc -l) == $(grep -o '</text>' some.svg | wc -l))) || fail "not well-formed"
if command -v xmllint >/dev/null; then xmllint --noout some.svg || fail "xmllint on the SVG"; fi
grep -q '>unheard-of<' some.svg || fail "the picture lacks a word"
"$translate" run --model model.safetensors --input some --alignments one.svg --pictures 1 >output 2>log || fail "--pictures"
grep -q '>unheard-of<' one.svg && fail "--pictures 1 draws two"

# Tokens that would be markup, and a token with a terminal escape sequence.
printf '<b>&"one \033[2J\n' | "$translate" run --model model.safetensors --alignments odd.svg >output 2>log || fail "odd"
grep -q '&lt;b&gt;&amp;&quot;one' odd.svg || fail "the SVG is not escaped"
grep -q $'\033' odd.svg && fail "an escape sequence in the SVG"

# Reversed sources; short sentences only; batches by tokens.
sentences 800 3 more
train --source more.a --target more.b --model backwards.safetensors --epochs 12 --learning-rate 0.02 --system luong \
    --reverse-source --max-length 3 --batch-tokens 24 || fail "training backwards"
left=$(awk 'NF > 3' more.a | wc -l)
grep -q "^skipped $left sentence pairs with more than 3 tokens on a side" log || fail "not $left pairs are too long"
grep -q "^$((800 - left)) sentence pairs, " log || fail "it does not train on the remaining pairs"
[[ $(metadata options.reverse-source backwards.safetensors) == 2 ]] || fail "the model does not know of its direction"
awk 'NF <= 3' valid.a >short.a
awk 'NF <= 3' valid.b >short.b
"$translate" score --model backwards.safetensors --source short.a --target short.b >scores 2>log || fail "scoring backwards"
perplexity=$(sed -n 's/^perplexity = \([0-9]*\).*/\1/p' scores)
((perplexity < 2)) || fail "the model did not learn this language with reversed sources: $(cat scores)"
# The picture has the order of the text.
echo 'one two three' | "$translate" run --model backwards.safetensors --alignments backwards.svg >output 2>log || fail "drawing"
[[ $(grep -o '>\(one\|two\|three\|&lt;/s&gt;\)<' backwards.svg | head -n 4 | tr -d '\n') == '>one<>two<>three<>&lt;/s&gt;<' ]] ||
    fail "words in a different order"
grep ' ' more.a >long.a
grep ' ' more.b >long.b
refused 'long.a: --max-length 1 leaves no sentence pair' train --model nothing.safetensors --source long.a --target long.b \
    --max-length 1

# The examples in --help.
mkdir examples
for side in en:a de:b; do
    for set in train:train val:valid test:valid; do cp "${set#*:}.${side#*:}" "examples/${set%:*}.${side%:*}"; done
done
cd examples
translate() { "$translate" "$@" 2>../log; }
printf '0 ||| eins ||| -1\n' >test.nbest
for command in train run score align page rescore dictionary curves; do
    translate $command --help >help
    awk 'length > 100' help | grep . && fail "$command --help is wider than 100 columns"
    example=$(sed '1,/^Example:$/d' help)
    [[ $example == *"translate $command "* ]] || fail "$command --help has no example"
    [[ $command == train ]] && example+=" --epochs 1 --embedding 8 --hidden 8 --alignment 8"
    eval "$example" >output || fail "the example of $command: $example"
done
[[ -s en-de.safetensors && -s alignment.svg && -s test.links && -s page.html && -s en-de.dictionary && -s bleu.svg ]] || fail "the examples wrote no files"
translate dimensions --help | awk 'length > 100' | grep . && fail "dimensions --help is wider than 100 columns"
translate --help >help || fail "--help"
grep -q '^  train ' help || fail "--help lacks the commands"
version=$(translate --version) || fail "--version"
[[ $version =~ [0-9]+\.[0-9]+\.[0-9]+ ]] || fail "the version is '$version'"
translate --threads 1 score --model en-de.safetensors --source test.en --target test.de >before || fail "--threads before"
translate score --threads 1 --model en-de.safetensors --source test.en --target test.de >after || fail "--threads after"
cmp before after || fail "the position of --threads matters"
