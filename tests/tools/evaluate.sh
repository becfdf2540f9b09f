#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each score of `evaluate`, its table and JSON; the examples of its help; files that are not text or differ in length.
evaluate=$(realpath -- "$2")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"

# ends_with STATUS TEXT COMMAND...: the command must exit with this status and one message, which contains TEXT.
ends_with()
{
    local status=0
    "${@:3}" >output 2>log || status=$?
    ((status == $1)) || fail "exit code $status instead of $1: ${*:3}"
    grep -q '^evaluate: ' log || fail "no message: ${*:3}"
    [[ $(tail -n 1 log) == *"$2"* ]] || fail "the message has no '$2': ${*:3}"
    [[ ! -s output ]] || fail "output was printed: ${*:3}"
}

# misused TEXT ARGUMENT...: the arguments must be rejected, with a message that contains TEXT.
misused()
{
    local status=0
    "$evaluate" "${@:2}" >output 2>log || status=$?
    ((status == 2)) || fail "exit code $status: ${*:2}"
    grep -q -- "$1" log || fail "the message has no '$1': ${*:2}"
}

# prints PATTERN ARGUMENT...: a line of the output must match, after squeezing spaces.
prints()
{
    "$evaluate" "${@:2}" >output 2>log || fail "failed: ${*:2}"
    tr -s ' ' <output | grep -q -- "$1" || fail "no line '$1' from ${*:2}: $(cat output)"
}

# The example of sacrebleu's tests, and a better system.
printf 'The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n' >test.de
printf 'The dog had bit the man.\nNo one was surprised.\nThe man had bitten the dog.\n' >second.de
printf "The dog bit the man.\\nIt wasn't surprising.\\nThe man had just bitten him.\\n" >system.de
printf 'the the the man.\n\nman The man bit him first. man The man bit him first.\n' >other.de
cp other.de baseline.de
printf -- '-6.9314718\n-0.6931472 -2 -1 -0.5\n-0\n' >system.scores
printf 'a b c d e\na b c d\na b c d e f\n' >test.en
printf '0.9 0 0 0 0.05 0.05\n0 0.5 0.25 0.15 0 0.1\n\n\n0 0 0 0 0 1 0\n0.2 0.2 0.2 0.1 0.2 0 0.1\n\n' >system.weights
printf '0-0 1-1 3p3\n0-0\n1-2 2p2\n' >test.gold
printf '0-0 1-1 3-3\n0-1\n1-2\n' >forward.links
printf '0-0 1-1 1-2\n0-0\n1-2 2-2\n' >reverse.links

prints '^system.de 48\.53 ' bleu --tokenize 13a --smoothing exp --reference test.de --reference second.de system.de
prints '^system.de 49\.19 ' bleu --smoothing exp --reference test.de --reference second.de system.de
prints '"score": 48\.53082' bleu --json --tokenize 13a --reference test.de --reference second.de system.de
prints '"precisions": \[' bleu --json --reference test.de system.de
prints '^test.de 100\.00 \[100\.00, 100\.00\] 100\.0 100\.0 100\.0 100\.0 1\.000 1\.000 14$' \
    bleu --reference test.de test.de
prints '^standard input 29\.73 ' bleu --reference test.de - <other.de
prints '^test.de 0\.00 \[0\.00, 0\.00\] 0 0 14 100\.00 -50\.00 \[-50\.00, -50\.00\]$' \
    ter --reference test.de test.de
# "The dog bit" is replaced by "the the"; the second line is missing; the third has seven words too many.
prints '"edits": 14' ter --json --reference test.de other.de
# Several references: each line of test.de is in one of two texts, which have 11 and 16 words.
printf 'The dog bit the man.\nx\nThe man bit him first.\n' >one.de
printf 'The dog had bit the man.\nIt was not unexpected.\nThe man had bitten the dog.\n' >two.de
prints '^test.de 0\.00 .* 0 0 13\.50 100\.00 -50\.00 ' ter --reference one.de --reference two.de test.de
prints '^test.de 1\.0000 \[1\.0000, 1\.0000\] 3$' ribes --reference one.de --reference two.de test.de
prints '^test.de 100\.00 \[100\.00, 100\.00\]$' chrf --reference one.de --reference two.de test.de
prints '^2 references$\|; 2 references$' chrf --reference one.de --reference two.de test.de
for metric in bleu ter chrf ribes; do
    prints "^$metric .* +0\.00" compare --metric $metric --reference one.de --reference two.de test.de test.de
done
prints '^tb -50\.00 -50\.00 ' compare --metric tb --reference one.de --reference two.de test.de test.de
prints '^test.de 1\.0000 \[1\.0000, 1\.0000\] 3$' ribes --reference test.de test.de
prints '^test.de 100\.00 \[100\.00, 100\.00\]$' chrf --words 2 --reference test.de test.de
# "The dog bit" is replaced by "the the the", four words are missing, seven are extra.
prints '^other.de 100\.00 \[.*\] 14 14 100\.00 \[100\.00, 100\.00\]$' wer --reference test.de other.de
prints '"wrong_lines": {' wer --json --reference test.de other.de
printf 'T AH M EY T OW\nR IY D\n' >said.phones
printf 'T AH M AA T OW\nR EH D\n' >first.phones
printf 'T AH M EY T OW\n\n' >second.phones
prints '^said.phones 11\.11 .* 1 9 50\.00 ' wer --reference first.phones --reference second.phones said.phones
# An empty line in a reference file is not a reference. Every n-gram matches and 7 words are of 13: 100 exp(1 - 13/7).
printf 'a b\nq w e r t\n' >few.de
printf 'a b c d e f g h\nq w e r t\n' >first.de
printf '\nq w e r t\n' >holes.de
for references in 'first.de --reference holes.de' 'holes.de --reference first.de'; do
    # shellcheck disable=SC2086  # several words
    for choice in 'bleu' 'bleu --tokenize 13a'; do prints '^few.de 42\.44 ' $choice --reference $references few.de; done
    # shellcheck disable=SC2086
    prints '^few.de 46\.15 .* 6 0 13 42\.44 ' ter --reference $references few.de
    # shellcheck disable=SC2086
    prints '^few.de 46\.15 .* 6 13 50\.00 ' wer --reference $references few.de
    for metric in ribes chrf; do
        "$evaluate" $metric --reference first.de few.de | grep '^few.de' >alone || fail "$metric of one reference"
        # shellcheck disable=SC2086
        "$evaluate" $metric --reference $references few.de | grep '^few.de' | cmp - alone || fail "$metric: an empty reference counts"
    done
    # shellcheck disable=SC2086
    prints '^bleu 42\.44 100\.00 ' compare --metric bleu --reference $references few.de first.de
done
printf '0 ||| a b c d e f x h ||| 1\n0 ||| a b ||| 0\n1 ||| q w e r t ||| 1\n' >holes.nbest
"$evaluate" tune --reference first.de --reference holes.de --output holes.weights holes.nbest >/dev/null || fail "tuning with holes"
"$evaluate" rerank --weights holes.weights --output - holes.nbest >output || fail "reranking"
[[ $(head -n 1 output) == 'a b c d e f x h' ]] || fail "tuned to the empty reference: $(cat output)"
# Text that is not tokenized, or is.
prints '^system.de ' bleu --reference test.de system.de
grep -q '^note: references: 3 of 3 lines end in a word with a mark, such as "man."; .*--tokenize 13a ' log || fail "no note: $(cat log)"
prints '^few.de ' bleu --reference first.de few.de
[[ ! -s log ]] || fail "a note of tokens: $(cat log)"
printf 'a b.\nq w e r t.\n' >raw.de
prints '^raw.de ' bleu --reference first.de raw.de
grep -q '^note: system: 2 of 2 lines' log || fail "no note: $(cat log)"
prints '^raw.de ' bleu --tokenize 13a --reference first.de raw.de
[[ ! -s log ]] || fail "a note of 13a: $(cat log)"
"$evaluate" compare --metric bleu --reference test.de system.de second.de 2>log >output
grep -q '^note: references: 3 of 3 lines' log || fail "no note: $(cat log)"
# Very long lines: one word in a thousand is wrong.
count=150000
awk -v n=$count 'BEGIN { for (i = 0; i < n; ++i) printf "%d ", i; print "" }' >long.text
awk -v n=$count 'BEGIN { for (i = 0; i < n; ++i) printf "%s ", i % 1000 ? i : "x"; print "" }' >wrong.text
prints "^wrong.text 0\.10 $((count / 1000)) $count 100\.00\$" wer --resamples 0 --reference long.text wrong.text
# 14 words and 3 ends; 11.125 nats.
prints '^system.scores 1\.924 \[.*\] 0\.6544 17$' perplexity --reference test.de system.scores
printf -- '-10\n-1 -3 -1e0\n-0\n' >bits
prints '^bits 1\.843 ' perplexity --base 2 --reference test.de bits
printf -- '-10\n-inf\n-0\n' >never
prints '^never inf \[.*inf\] inf 17$' perplexity --reference test.de never
for wrong in 0.5 nan two '' 1e999; do
    printf -- '-1\n%s\n-1\n' "$wrong" >wrong.scores
    refused 'wrong.scores:2: ' "$evaluate" perplexity --reference test.de wrong.scores
done
prints ' chrF2++ ' chrf --words 2 --reference test.de test.de
prints '^forward.links 5 80\.000 75\.000 77\.419 22\.222$' align --gold test.gold forward.links
prints '^intersection 3 100\.000 75\.000 85\.714 14\.286$' align --gold test.gold forward.links reverse.links \
    --symmetrize intersection
prints '"proposed_possible": 4' align --json --gold test.gold forward.links
prints '^2 sentence pairs$' align --gold test.gold --source test.en --target test.en --max-length 5 forward.links
# d and e; all words of an empty translation; d.
prints '^system.weights 46\.67 \[.*\] 7 15 3 3 1\.208$' adequacy --source test.en --output overlooked system.weights
[[ $(cat overlooked) == $'d e\na b c d\nd' ]] || fail "other words are overlooked: $(cat overlooked)"
prints '^system.weights 27\.27 \[.*\] 3 11 2 3 1\.208$' adequacy system.weights
prints '^system.weights 9\.09 ' adequacy --threshold 0.1 system.weights
prints '^forward.links 66\.67 \[.*\] 10 15 3 3$' adequacy --links --source test.en --output overlooked forward.links
[[ $(cat overlooked) == $'c e\nb c d\na c d e f' ]] || fail "other words have no link: $(cat overlooked)"
prints '"overlooked": 7' adequacy --json --source test.en system.weights
printf '0 0 0\n0.5 0.5 0\n2 1 1\n' >spread  # 0, 1 and 1.5 bits
prints '^spread .* 0\.833$' adequacy spread
printf '0.5 -0.5\n' >negative
refused 'negative:1: "-0.5" is not a weight' "$evaluate" adequacy negative
printf '0.5 0.5\n0.2 0.3 0.5\n' >uneven
refused 'uneven:2: has 3 weights, expected 2: ' "$evaluate" adequacy uneven
refused 'uneven:1: has 2 weights, expected 6: ' "$evaluate" adequacy --source test.en uneven
printf '0.5 0.1 0.1 0.1 0.1 0.1\n' >short.weights
refused 'short.weights has 1 pair, test.en has 3 lines' "$evaluate" adequacy --source test.en short.weights
refused 'short.weights has 1 pair, system.weights has 3' "$evaluate" adequacy system.weights short.weights
refused 'forward.links:1: "0-0" is not a weight; if these are links' "$evaluate" adequacy forward.links
printf '0-0\n4-0\n0-0\n' >out.links
refused 'out.links:2: the link 4-0 is outside its source sentence, which has 4 words' \
    "$evaluate" adequacy --links --source test.en out.links
refused 'test.en: would overwrite' "$evaluate" adequacy --source test.en --output test.en system.weights
contradicts '--output requires exactly one file, got 2' "$evaluate" adequacy --source test.en --output x system.weights system.weights
misused '--links requires --source' adequacy --links forward.links
misused '--threshold' adequacy --threshold 0 system.weights
# "the the the": twice; "man The man bit him first." repeated directly.
prints '^other.de 3 2 3 3 2\.67 16 50\.00 3$' repetition other.de
prints '^test.de ' repetition --reference test.de other.de
prints '^0-4 1 ' lengths --bounds 4,10 --reference test.de system.de other.de
prints '^5-10 2 ' lengths --bounds 4,10 --reference test.de system.de other.de
prints '^11+ 0 -$' lengths --bounds 4,10 --reference test.de system.de
prints '^6+ 1 ' lengths --source test.en --bounds 5 --reference test.de system.de
prints '^test.de ' words --reference test.de other.de
prints '"distinct": 12' words --json test.de
# Three 4-grams of the second line, and two edits of the third; the scores of a corpus follow from its sentences.
prints '^2 4 4 4 3 2 1 0 1\.0000 0$' sentences --reference test.de test.de
prints '^3 12 5 5 4 3 2 7 [0-9.]* 1$' sentences --reference test.de other.de
prints '^1 4 5 ' sentences --reference test.de other.de
prints '"edits": 7' sentences --json --reference test.de other.de
refused 'numbers must be equal' "$evaluate" sentences --reference test.de few.de
misused 'received 2' sentences --reference test.de test.de other.de
prints '^bleu 100\.00 100\.00 +0\.00 \[0\.00, 0\.00\] 1\.0000$' compare --reference test.de test.de test.de
prints '"p_value": 1\.0' compare --json --metric ter --reference test.de system.de system.de
if grep -q ribes output; then fail "only one metric was requested"; fi
# column N NAME: column N of the last output's line of that name, in hundredths.
column() { awk -v n="$1" -v name="$2" '$1 == name { printf "%.0f", 100 * $n }' output; }
# TB is computed from the displayed TER and BLEU, for any options; "man." is one word or two tokens.
for choice in "" "--tokenize 13a" "--smoothing exp" "--tokenize 13a --smoothing exp"; do
    # shellcheck disable=SC2086  # several options
    "$evaluate" compare --reference test.de system.de second.de $choice >output 2>log || fail "comparing: $choice"
    for n in 2 3; do
        apart=$((2 * $(column $n tb) - $(column $n ter) + $(column $n bleu)))
        ((apart >= -2 && apart <= 2)) || fail "TB is not (TER - BLEU) / 2 with '$choice': $(cat output)"
    done
    blues+="$(column 3 bleu) "
done
[[ $(tr ' ' '\n' <<<"${blues% }" | sort -u | wc -l) == 3 ]] || fail "the options have no effect: $blues"
prints '^bleu, and in tb: tokenize 13a, smoothing exp$' compare --metric tb --tokenize 13a --smoothing exp \
    --reference test.de system.de second.de
prints '"tokenize": "13a"' compare --json --tokenize 13a --reference test.de system.de second.de
contradicts '--tokenize: applies to bleu and tb, but --metric selects neither' \
    "$evaluate" compare --metric ter --metric ribes --tokenize 13a --reference test.de system.de second.de
contradicts '--smoothing: applies to bleu and tb' "$evaluate" compare --metric chrf --smoothing exp --reference test.de test.de test.de
prints '^warning: 3 sentences: too few distinct resamples' compare --reference test.de other.de system.de
prints '^warning: 3 sentences: too few distinct resamples' ter --reference test.de other.de
"$evaluate" ribes --resamples 0 --reference test.de other.de >output || fail "without resamples"
if grep -q warning output; then fail "a warning without resampling"; fi
for i in {1..10}; do cat test.de; done >long.de
"$evaluate" compare --reference long.de long.de long.de >output || fail "comparing thirty sentences"
if grep -q 'warning\|tokenize.*exp' output; then fail "a warning for thirty sentences: $(cat output)"; fi
"$evaluate" compare --reference test.de other.de system.de >once || fail "comparing"
"$evaluate" compare --reference test.de other.de system.de >again || fail "comparing again"
cmp once again || fail "two runs differ"
for threads in 1 2 5; do
    "$evaluate" compare --threads $threads --reference test.de other.de system.de >again || fail "$threads threads"
    cmp once again || fail "$threads threads, another result"
done
"$evaluate" --threads 2 compare --reference test.de other.de system.de | cmp once || fail "--threads before the command"
# Progress of a long task is shown only on a terminal; the output is unaffected.
for subcommand in bleu ter ribes chrf wer compare; do
    systems=other.de
    [[ $subcommand != compare ]] || systems+=' system.de'
    score="$evaluate $subcommand --reference test.de $systems"
    $score >output 2>log || fail "$subcommand"
    if grep -v '^note: references: ' log; then fail "a log contains terminal output: $subcommand"; fi
    script -qec true /dev/null </dev/null >/dev/null 2>&1 || continue  # the program is missing, or no terminals are available
    script -qec "$score >shown" /dev/null </dev/null >terminal || fail "$subcommand on a terminal"
    cmp output shown || fail "a terminal changes the output: $subcommand"
    grep -q '/3 sentences, ' terminal || fail "no sentences are counted on a terminal: $subcommand"
    grep -q '/1000 resamples, ' terminal || fail "no resamples are counted on a terminal: $subcommand"
done

if script -qec true /dev/null </dev/null >/dev/null 2>&1; then  # a single line, which takes long
    script -qec "$evaluate wer --resamples 0 --reference long.text wrong.text" /dev/null </dev/null >terminal || fail "evaluating wer on a terminal"
    grep -q ' steps, .*/s, left ' terminal || fail "no steps are counted on a terminal"
fi

# N-best lists: the second score prefers the translations with the references' words.
printf '0 ||| a b c ||| -1\n0 ||| a b c d e ||| -2\n1 ||| x ||| -1\n1 ||| f g h i ||| -1.5\n2 |||  ||| -1\n2 ||| j k l m ||| -3\n' >val.nbest
printf 'a b c d e\nf g h i\nj k l m\n' >val.de
printf -- '-3\n-1\n-3\n-1\n-3\n-1\n' >val.second
prints '^the first score alone 0\.00$' tune --reference val.de --scores val.second --output val.weights val.nbest
grep -q '^tuned *100\.00$' output || fail "wrong tuned score: $(cat output)"
[[ $(cut -d ' ' -f 1 val.weights) == $'score1\nscore2' ]] || fail "the weights: $(cat val.weights)"
"$evaluate" tune --reference val.de --scores val.second --output again.weights val.nbest >/dev/null || fail "tuning again"
cmp val.weights again.weights || fail "two runs differ"
"$evaluate" rerank --weights val.weights --scores val.second --output - val.nbest >output || fail "reranking"
cmp output val.de || fail "other translations: $(cat output)"
for metric in ter tb; do
    prints "^tuned $([[ $metric == ter ]] && echo 0.00 || echo -50.00)$" tune --metric $metric --reference val.de --scores val.second val.nbest
done
prints '"score2": ' tune --json --reference val.de --scores val.second val.nbest
# Lengths alone work as well; the example of the help.
prints '^weight of words ' tune --reference val.de --length --output val.weights val.nbest
for subcommand in tune rerank; do
    "$evaluate" $subcommand --help >help || fail "help of $subcommand"
    example=$(grep -A 3 '^Example:' help | grep "^  evaluate $subcommand ")
    read -r -a words <<<"${example//test.nbest/val.nbest}"
    "$evaluate" "${words[@]:1}" >output 2>log || fail "the example does not work:$example: $(cat log)"
    grep -q . output || fail "the example prints nothing:$example"
done
cmp test.de val.de || fail "other translations of the example: $(cat test.de)"
printf 'The dog bit the man.\nIt was not unexpected.\nThe man bit him first.\n' >test.de
refused 'val.weights has weights for score1, words, got score1, score2, words' \
    "$evaluate" rerank --weights val.weights --scores val.second --output x val.nbest
refused 'val.nbest, a line for each index, has 3 lines, short.de has 2' bash -c 'head -n 2 val.de >short.de; "$@"' - \
    "$evaluate" tune --reference short.de val.nbest
# A word "|||" is written &#124;&#124;&#124;, and a word that is written so gets an additional "amp;"; other words stay.
printf '%s\n' '0 ||| a &#124;&#124;&#124; || &#124; &amp;#124;&#124;&#124; ||| -3.1' >bars.nbest
echo 'score1 1' >bars.weights
"$evaluate" rerank --weights bars.weights --output - bars.nbest >output || fail "reranking a list with |||"
[[ $(cat output) == 'a ||| || &#124; &#124;&#124;&#124;' ]] || fail "wrong words: $(cat output)"
echo 'a ||| || &#124; &#124;&#124;&#124;' >bars.de
prints '^tuned 100\.00$' tune --reference bars.de bars.nbest
for line in '0 ||| a ||| ||| -3.1' 'a b c' '0 ||| a b c' 'x ||| a ||| 1' '0 ||| a ||| 1 ||| 2' '0|||a|||1' '-1 ||| a ||| 1'; do
    echo "$line" >wrong.nbest
    refused 'wrong.nbest:1: expected a line of an n-best list' "$evaluate" tune --reference val.de wrong.nbest
done
printf '0 ||| a ||| 1\n2 ||| a ||| 1\n' >wrong.nbest
refused 'wrong.nbest:2: found index 2, expected 1; ' "$evaluate" tune --reference val.de wrong.nbest
printf '1 ||| a ||| 1\n' >wrong.nbest
refused 'wrong.nbest:1: found index 1, expected 0; ' "$evaluate" tune --reference val.de wrong.nbest
printf '0 ||| a ||| 1\n0 ||| a ||| 1 2\n' >wrong.nbest
refused 'wrong.nbest:2: has 2 scores' "$evaluate" tune --reference val.de wrong.nbest
printf '0 ||| a ||| nan\n' >wrong.nbest
refused 'wrong.nbest:1: "nan" is not a score' "$evaluate" tune --reference val.de wrong.nbest
refused 'val.weights:1: expected the name' bash -c 'echo score1 >val.weights; "$@"' - \
    "$evaluate" rerank --weights val.weights --output x val.nbest
refused 'val.de: would overwrite' "$evaluate" tune --reference val.de --output val.de val.nbest
contradicts 'name a file' "$evaluate" rerank --json --weights val.weights --output - val.nbest

# Symmetrized links can be written, with or without a gold alignment, in either direction.
"$evaluate" align --symmetrize union --output union.links forward.links reverse.links >output || fail "writing"
[[ $(cat union.links) == $'0-0 1-1 1-2 3-3\n0-0 0-1\n1-2 2-2' ]] || fail "other links: $(cat union.links)"
sed 's/\([0-9]*\)-\([0-9]*\)/\2-\1/g' reverse.links >flipped.links
"$evaluate" align --symmetrize union --flip --output flip.links forward.links flipped.links >output || fail "flipping"
cmp union.links flip.links || fail "flipping changes the links"
"$evaluate" align --symmetrize union --output - forward.links reverse.links >output || fail "writing to standard output"
cmp union.links output || fail "standard output has other links"
[[ ! -e - ]] || fail "a file is named -"
contradicts 'name a file' "$evaluate" align --gold test.gold --symmetrize union --output - forward.links reverse.links
contradicts 'name a file' "$evaluate" align --json --symmetrize union --output - forward.links reverse.links
"$evaluate" align --symmetrize union --output union.links forward.links reverse.links >output || fail "writing again"
[[ $(cat output) == '3 lines of links: union.links' && $(wc -l <output) == 1 ]] || fail "printed: $(cat output)"
no_temporaries

"$evaluate" lengths --bounds 5 --picture picture.svg --reference test.de system.de >output || fail "a picture"
grep -q '>words of the reference (sentences)<' picture.svg || fail "the picture does not name the side of the words"
"$evaluate" lengths --bounds 5 --picture picture.svg --source test.en --reference test.de system.de >output || fail "a picture"
grep -q '>words of the source (sentences)<' picture.svg || fail "the picture does not name the side of the words"
refused 'would overwrite' "$evaluate" lengths --picture test.de --reference test.de system.de
contradicts 'name a file' "$evaluate" lengths --picture - --reference test.de system.de
prints '"shortest": 10,' repetition --json --shortest 010 system.de

# The example in each help works, in this directory.
for subcommand in bleu ter ribes chrf wer perplexity compare align adequacy repetition lengths words; do
    "$evaluate" $subcommand --help >help || fail "help of $subcommand"
    # "..." means several in a row, and only positional arguments have it.
    if grep -q '\.\.\. *\.\.\.\|(2x)\|x 2\|^  -.*\.\.\.' help; then fail "the help of $subcommand: $(cat help)"; fi
    [[ $subcommand == compare ]] || grep -q '^Usage: .* FILE\.\.\.$' help || fail "the usage of $subcommand: $(cat help)"
    example=$(grep -A 3 '^Example:' help | grep '^  evaluate ')
    [[ $example == "  evaluate $subcommand "* ]] || fail "no example: $subcommand"
    read -r -a words <<<"$example"
    "$evaluate" "${words[@]:1}" >output 2>log || fail "the example does not work:$example"
    (($(wc -l <output) >= 2)) || fail "the example prints nothing:$example"
    "$evaluate" "${words[@]:1}" --json >output 2>log || fail "no JSON:$example"
    [[ $(head -c 1 output) == '{' && $(tail -n 1 output) == '}' ]] || fail "this is not JSON:$example"
done

: >empty
printf 'one\ntwo \xff three\nfour\n' >invalid
printf 'one\ntwo\0three\nfour\n' >nul
head -n 2 test.de >short
mkdir folder
for subcommand in bleu ter ribes chrf wer lengths; do
    score=("$evaluate" "$subcommand" --reference)
    refused 'short has 2 lines, test.de has 3' "${score[@]}" test.de short
    refused 'test.de has 3 lines, short has 2' "${score[@]}" short test.de
    refused 'invalid:2:5: byte 0xff is not valid UTF-8' "${score[@]}" test.de invalid
    refused 'invalid:2:5: byte 0xff is not valid UTF-8' "${score[@]}" invalid test.de
    refused 'nul:2:4: byte 0x00' "${score[@]}" test.de nul
    refused 'empty: is empty' "${score[@]}" test.de empty
    refused 'nowhere: cannot be opened: No such file' "${score[@]}" test.de nowhere
    refused 'folder: is a directory' "${score[@]}" folder test.de
    refused 'can be read only once' bash -c '"$@" <test.de' - "${score[@]}" test.de - -
done
for subcommand in bleu ter ribes chrf wer; do
    refused 'second.de has 3 lines' "$evaluate" $subcommand --reference short --reference second.de short
done
refused 'second.de has 3 lines' "$evaluate" compare --reference short --reference second.de short short
refused 'short has 2 lines, test.de has 3' "$evaluate" compare --reference test.de system.de short
"$evaluate" lengths --bounds 4,10 --picture lengths.svg --reference test.de system.de other.de >/dev/null
grep -q '>5-10 ([0-9]*)<' lengths.svg || fail "the picture of BLEU by length does not name the groups"
[[ $(grep -c 'class="hit' lengths.svg) == 4 ]] || fail "two systems in two groups should be four points"
refused 'short has 2 lines' "$evaluate" lengths --source short --reference test.de system.de
refused 'system.de has 3 lines, short has 2' "$evaluate" repetition --reference short system.de
refused 'forward.links has 3 lines, short.gold has 2' bash -c 'head -n 2 test.gold >short.gold; "$@"' - \
    "$evaluate" align --gold short.gold forward.links
refused 'test.de:1: "The" is not a link' "$evaluate" align --gold test.gold test.de
refused 'test.gold:1: 3p3 is a possible link' "$evaluate" align --gold test.gold test.gold
contradicts 'nothing to do' "$evaluate" align forward.links
contradicts 'requires two files' "$evaluate" align --symmetrize union --gold test.gold forward.links
contradicts 'one method' "$evaluate" align --output links forward.links reverse.links
refused 'would overwrite' "$evaluate" align --symmetrize union --output forward.links forward.links reverse.links
refused 'nowhere/links: cannot' "$evaluate" align --symmetrize union --output nowhere/links forward.links reverse.links
printf 'a\na\na\n' >tiny
refused 'forward.links:1: the link 1-1 is outside its sentences, which have 1 and 1 words' \
    "$evaluate" align --gold test.gold --source tiny --target tiny forward.links

subcommands='bleu, ter, ribes, chrf, wer, perplexity, compare, tune, rerank, align, adequacy, repetition, lengths, words, sentences'
misused "^evaluate: missing subcommand; choose from $subcommands\$"
misused "^evaluate: blue is not a subcommand; choose from $subcommands\$" blue --reference test.de system.de
misused "^evaluate: --json is not an option of the program; .*: $subcommands\$" --json
misused '--reference is required' bleu system.de
misused 'FILE is required' bleu --reference test.de
misused 'SYSTEM is required' compare --reference test.de system.de
misused 'not expected: other.de' compare --reference test.de system.de system.de other.de
misused '--bounds: a is not an integer; .* separated by commas' lengths --bounds a --reference test.de system.de
misused '--bounds: missing number; ' lengths --bounds 10, --reference test.de system.de
misused '--bounds: 5 after 10; lengths must ascend, such as 10,20,30' lengths --bounds 10,5 --reference test.de system.de
misused '--bounds: 5 after 5;' lengths --bounds 5,5 --reference test.de system.de
contradicts '20: no such file; separate the lengths of --bounds' \
    "$evaluate" lengths --bounds 10 20 --reference test.de system.de
contradicts 'two files, forward and reverse, got 3; repeat the option for each method: --symmetrize union' \
    "$evaluate" align --gold test.gold --symmetrize grow-diag union forward.links reverse.links
misused '--seed: a is not an integer' bleu --seed a --reference test.de system.de
misused '--resamples: -1 is not between 0 and 1000000' bleu --resamples=-1 --reference test.de system.de
misused '--threads: ' bleu --threads many --reference test.de system.de
misused '--confidence: nan is not a number' bleu --confidence nan --reference test.de system.de
misused '--tokenize: .*bogus' bleu --tokenize bogus --reference test.de system.de
misused '--symmetrize: .*bogus' align --symmetrize bogus --gold test.gold forward.links reverse.links
misused '--metric: .*bogus' compare --metric bogus --reference test.de system.de other.de
for value in 0 1 nan 2 much; do misused '--confidence' bleu --confidence "$value" --reference test.de system.de; done
for value in -1 1.5 many; do misused '--resamples' bleu --resamples=$value --reference test.de system.de; done
misused '--beta' chrf --beta 0 --reference test.de system.de
misused '--words' chrf --words 3 --reference test.de system.de
misused '--shortest' repetition --shortest 0 system.de
if [[ -e /dev/full ]]; then
    status=0
    "$evaluate" words test.de >/dev/full 2>log || status=$?
    ((status == 1)) || fail "a full disk should be an error"
    grep -q 'cannot write to standard output' log || fail "the message is another"
fi
