#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Searches: beams, n-best lists, penalties, ensembles, unknown words, candidate lists.
evaluate=$(realpath -- "$2")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 500 1 plain
sentences 30 2 valid
# The third word differs in each line and is therefore unknown to the model, which learns to write the unknown word.
awk '{ gsub("three", "name" NR) } 1' plain.a >train.a
awk '{ gsub("drei", "name" NR) } 1' plain.b >train.b
train --epochs 6 --learning-rate 0.02 --min-count 50 || fail "training"

model=(--model model.safetensors --threads 1)
run() { "$translate" run "${model[@]}" --input valid.a "$@" 2>log; }

run >twelve || fail "translating"
run --beam 12 | cmp - twelve || fail "the default beam is not 12"
run --beam 1 >greedy || fail "--beam 1"
# No n-gram is blocked, but a beam search runs.
run --beam 1 --block-ngrams 1000 | cmp - greedy || fail "a beam of 1 is not greedy"
grep -q '<unk>' greedy || fail "no word is unknown: the test is ineffective"

# Lists: three translations for each sentence, best first; the first is the translation.
run --n-best 3 >list || fail "--n-best"
(($(wc -l <list) == 90)) || fail "30 sentences, 3 of each: $(wc -l <list) lines"
awk -F ' [|][|][|] ' '
    NF != 3 || $1 != int((NR - 1) / 3) || $3 !~ /^-?[0-9]+\.[0-9]+$/ { exit 1 }
    $1 == last && $3 > score { exit 1 }
    { last = $1; score = $3 }' list || fail "a list out of order: $(head -n 6 list)"
awk -F ' [|][|][|] ' 'NR % 3 == 1 { print $2 }' list | cmp - twelve || fail "the first of a list is not the translation"
awk -F ' [|][|][|] ' '{ print $1, $2 }' list | sort | uniq -d | grep . && fail "the same translation twice"
# Without a length penalty the score is the log-probability, which `score` computes differently.
sed -n 1p valid.a >one.a
"$translate" run "${model[@]}" --input one.a --n-best 1 --length-penalty 0 >one 2>log || fail "--n-best 1"
awk -F ' [|][|][|] ' '{ print $2 }' one >one.b
"$translate" score "${model[@]}" --source one.a --target one.b >scores 2>log || fail "scoring"
paste -d ' ' <(sed -n 's/^perplexity = //p' scores) <(sed 's/.* //' one) <(wc -w <one.b) |
    awk '{ d = log($1) + $2 / ($3 + 1); exit d < -0.001 || d > 0.001 }' || fail "$(cat one scores): scores differ"
printf 'one\n\ntwo\n' | "$translate" run "${model[@]}" --n-best 2 >output 2>log || fail "an empty line in a list"
[[ $(cut -d ' ' -f 1 output | tr -d '\n') == 00122 && $(sed -n 3p output) == '1 |||  ||| 0.000000' ]] || fail "$(cat output)"

# Lengths, repeats, coverage.
run --min-length 6 --max-length 7 >output || fail "lengths"
awk 'NF < 6 || NF > 7 { exit 1 }' output || fail "not 6 or 7 words: $(cat output)"
run --max-length 1 --beam 1 | awk 'NF > 1 { exit 1 }' || fail "--max-length with --beam 1"
run --block-ngrams 1 >output || fail "--block-ngrams"
awk '{ split("", seen); for (i = 1; i <= NF; ++i) if (seen[$i]++) exit 1 }' output || fail "a repeated word"
run --block-ngrams 1 | cmp -s - twelve && fail "no translation repeats a word: the test is ineffective"
run --coverage-penalty 5 --n-best 12 >output || fail "--coverage-penalty"
cut -d '|' -f 1-4 output | sort -u >covered
run --n-best 12 | cut -d '|' -f 1-4 | sort -u | cmp - covered || fail "coverage changes the set of translations"
run --n-best 12 | cmp -s - output && fail "coverage does not change the order"

# Ensembles.
for others in model.safetensors 'model.safetensors --model model.safetensors'; do
    # shellcheck disable=SC2086  # several names
    run --model $others | cmp - twelve || fail "an ensemble of one model twice changes translations"
done
for attention in temporal none; do
    train --model $attention.safetensors --attention $attention --epochs 2 --min-count 50 || fail "training $attention"
    run --model $attention.safetensors >output || fail "an ensemble with $attention"
    (($(wc -l <output) == 30)) || fail "an ensemble of two attentions"
done
run --model temporal.safetensors --model none.safetensors --n-best 1 >output || fail "three models"
"$translate" run --model none.safetensors --input valid.a --n-best 1 2>log | cmp -s - output && fail "one model determines the result"

# Ensembles are scored as they translate.
score=("$translate" score --threads 1 --source valid.a --target valid.b)
"${score[@]}" --model model.safetensors >alone 2>log || fail "scoring"
"${score[@]}" --model model.safetensors --model model.safetensors >together 2>log || fail "scoring an ensemble"
paste -d ' ' alone together | awk '/^perplexity/ { d = $3 - $6; exit d < -0.001 || d > 0.001 } /^BLEU/ && $3 != $(NF / 2 + 3) { exit 1 }' ||
    fail "an ensemble of one model twice changes scores: $(cat alone together)"
"${score[@]}" --model temporal.safetensors --model none.safetensors >together 2>log || fail "scoring two attentions"
"${score[@]}" --model temporal.safetensors >alone 2>log || fail "scoring"
cmp -s alone together && fail "one decides alone"

# N-best lists rescored by other models: the score of the same model equals that of its search.
run --n-best 3 --length-penalty 0 >list || fail "lists to score"
rescore=("$translate" rescore --threads 1 --source valid.a --n-best list)
"${rescore[@]}" --model model.safetensors >scored 2>log || fail "rescoring"
sed 's/ [^ ]*$//' scored | cmp - list || fail "rescoring changes the lists"
awk '{ d = $NF - $(NF - 1); if (d < -0.001 || d > 0.001) exit 1 } END { exit NR != 90 }' scored ||
    fail "not the log-probabilities of the search: $(head -n 6 scored)"
"${rescore[@]}" --model temporal.safetensors --model model.safetensors --batch 1 --output both >output 2>log || fail "two models"
[[ ! -s output ]] || fail "output was written to two places"
paste -d ' ' scored both | awk '{ d = $NF - $(NF / 2); if (d < -0.001 || d > 0.001) exit 1 }' || fail "the same model gives another score"
awk '$NF == $(NF - 1) { same++ } END { exit same == NR }' both || fail "two models give equal scores: the test is ineffective"
"$evaluate" tune --reference valid.b --output weights both >output 2>log || fail "tuning: $(cat log)"
grep -q '^weight of score3 ' output || fail "three scores: $(cat output)"
"$evaluate" rerank --weights weights --output - both | awk 'END { exit NR != 30 }' || fail "reranking"
head -n 29 valid.a >fewer
refused 'list:88: index 29, but fewer has 29 lines' "${rescore[@]}" --source fewer --model model.safetensors
refused 'plain.a:1: expected a line of an n-best list' "${rescore[@]}" --n-best plain.a --model model.safetensors
refused 'list: would overwrite' "${rescore[@]}" --output list --model model.safetensors

# Unknown words: all are replaced, by a source word or by its translation in a dictionary.
run --replace-unknown >output || fail "--replace-unknown"
grep -q '<unk>' output && fail "an unknown word is left"
paste -d '|' twelve output valid.a | awk -F '|' '{
        n = split($1, before, " ")
        if (split($2, after, " ") != n) exit 1
        for (i = 1; i <= n; ++i) if (before[i] == "<unk>" ? !index(" " $3 " ", " " after[i] " ") : before[i] != after[i]) exit 1
    }' || fail "replaced by a wrong word: $(head -n 5 twelve output)"
for word in one two three; do printf '%s a%s 0.25\n%s better 0.5\n' $word $word $word; done >words
run --replace-unknown words >output || fail "--replace-unknown DICTIONARY"
sed 's/<unk>/better/g' twelve | cmp - output || fail "not the best translation of the dictionary"
# Learned from text.
"$translate" dictionary --source plain.a --target plain.b --output learned --most 2 2>log || fail "learning a dictionary"
for pair in 'one eins' 'two zwei' 'three drei'; do
    grep "^${pair% *} " learned | head -n 1 | grep -q "^$pair 0\.[0-9]*$\|^$pair 1$" || fail "$pair: $(cat learned)"
done
(($(wc -l <learned) <= 6)) || fail "--most 2: $(cat learned)"
run --replace-unknown learned | cmp -s - twelve && fail "no word is replaced"

run --candidates all | cmp - twelve || fail "--candidates all"
run --candidates 1000:0 | cmp - twelve || fail "all words as candidates change translations, without a dictionary"

# Candidate lists: only the words that they allow. The four special words count as the most frequent.
run --candidates 1000:0 --dictionary learned | cmp - twelve || fail "all words as candidates change translations"
printf 'one eins\ntwo eins\n' >eins
run --candidates 4:1 --dictionary eins >output || fail "--candidates"
grep -q 'zwei' output && fail "a word that is not a candidate"
grep -q 'eins' output || fail "no candidate at all"
# Phrases: the words of the phrases in a sentence.
printf 'two one ||| zwei eins\nnever seen ||| drei\n' >few.phrases
printf 'two one\none two\n' >two.a
only() { "$translate" run "${model[@]}" --input two.a --batch 1 "$@" 2>log; }
only --candidates 4:2 --phrases few.phrases >output || fail "--phrases"
grep -q 'zwei' <(sed -n 1p output) || fail "no word of the phrase: $(cat output)"
grep -q 'eins\|zwei' <(sed -n 2p output) && fail "words of a phrase that does not occur: $(cat output)"
only --candidates 4:2 --dictionary eins --phrases few.phrases | grep -q eins || fail "a dictionary and phrases"
only --candidates 4:0 --phrases few.phrases | grep 'zwei' && fail "words of phrases although none were requested"
# Learned phrases: all words of the language occur in its phrases.
"$translate" dictionary --source plain.a --target plain.b --output again --phrases phrases --most 2 2>log || fail "learning phrases"
cmp learned again || fail "--phrases changes the dictionary"
grep -q '^[0-9]* phrases: phrases$' log || fail "$(cat log)"
grep -qx 'one ||| eins.*' phrases || fail "one: $(head phrases)"
grep -qx 'two one ||| \(eins zwei\|zwei eins\)' phrases || fail "two one: $(grep '^two one |' phrases)"
awk '{ for (i = 1; $i != "|||"; ++i); if (i < 2 || i > 5 || NF - i > 2 || NF == i) exit 1 }' phrases || fail "not phrases: $(head phrases)"
run --candidates 1000:2 --phrases phrases | cmp - twelve || fail "all words as candidates change translations, with phrases"
for line in 'one eins' '||| eins' 'a b c d e ||| eins' 'one|||eins'; do
    echo "$line" >bad
    refused 'bad:1: expected a line of phrases:' "$translate" run "${model[@]}" --input two.a --candidates 4:2 --phrases bad
done
echo 'cat ||| Katze' >bad
refused 'bad: no phrase is in the' \
    "$translate" run "${model[@]}" --input two.a --candidates 4:2 --phrases bad
contradicts '--phrases: applies to --candidates K:N' "$translate" run "${model[@]}" --input two.a --candidates all --phrases phrases
refused 'x: --output and --phrases are the same file' "$translate" dictionary --source plain.a --target plain.b --output x --phrases ./x

"$translate" score "${model[@]}" --source valid.a --target valid.b >greedy_scores 2>log || fail "scoring"
"$translate" score "${model[@]}" --source valid.a --target valid.b --beam 1 2>log | cmp - greedy_scores || fail "score --beam 1"
"$translate" score "${model[@]}" --source valid.a --target valid.b --beam 4 --max-length 1 >scores 2>log || fail "score --beam"
[[ $(grep '^perplexity' scores) == $(grep '^perplexity' greedy_scores) ]] || fail "the search changes the perplexity"
[[ $(grep '^BLEU = ' scores) != $(grep '^BLEU = ' greedy_scores) ]] || fail "the search does not change the BLEU"

# BLEU before and after unknown words are replaced, here by their translations.
printf 'three drei\none eins\ntwo zwei\n' >right
"$translate" score "${model[@]}" --source valid.a --target valid.b --beam 12 --replace-unknown right >scores 2>log || fail "--replace-unknown"
"$translate" score "${model[@]}" --source valid.a --target valid.b --beam 12 >plain_scores 2>/dev/null || fail "scoring"
grep -v '^with unknown words replaced: ' scores | cmp - plain_scores || fail "wrong BLEU before replacement: $(cat scores plain_scores)"
run --replace-unknown right >output || fail "replacing"
"$evaluate" bleu --reference valid.b output >evaluated 2>log || fail "evaluating"
after=$(sed -n 's/^with unknown words replaced: BLEU = \([0-9.]*\),.*/\1/p' scores)
grep -q "$after" evaluated || fail "wrong BLEU after replacement: $(cat scores evaluated)"
[[ $(sed -n 's/^BLEU = \([0-9.]*\),.*/\1/p' scores) != "$after" ]] || fail "no word is replaced"

# Decoding time and the number of words written.
for command in "run --input valid.a" "score --source valid.a --target valid.b --beam 12"; do
    # shellcheck disable=SC2086  # several words
    "$translate" $command "${model[@]}" >output 2>log || fail "$command"
    [[ $(grep -c "^decoded 30 sentences, $(wc -w <twelve) words in [0-9.]* s: [0-9]* words/s$" log) == 1 ]] || fail "$command: $(cat log)"
done

# Invalid options.
command=("$translate" run --model model.safetensors --input valid.a)
contradicts '--n-best 13 exceeds a beam of 12; use --beam 13' "${command[@]}" --n-best 13
contradicts '--min-length 5 is greater than --max-length 4' "${command[@]}" --min-length 5 --max-length 4
none=("$translate" run --model none.safetensors --input valid.a)
refused '--coverage-penalty: requires attention' "${none[@]}" --coverage-penalty 1
refused 'omit --replace-unknown' "${none[@]}" --replace-unknown
refused 'omit --replace-unknown' "$translate" score --model none.safetensors --source valid.a --target valid.b --replace-unknown
refused 'no alignments to draw' "${none[@]}" --page page.html
refused 'nowhere: cannot be opened' "${command[@]}" --replace-unknown nowhere
refused 'nowhere: cannot be opened' "${command[@]}" --model nowhere
refused 'valid.a: ' "${command[@]}" --model valid.a
refused 'valid.a:1: expected a source word' "${command[@]}" --replace-unknown valid.a
for line in one 'one eins zwei' 'one eins -1' 'one eins nan' 'one eins 1 1'; do
    echo "$line" >bad
    refused 'bad:1: expected a source word' "${command[@]}" --replace-unknown bad
done
: >bad
refused 'bad: is empty' "${command[@]}" --replace-unknown bad
echo 'cat Katze' >bad
refused 'no word of the dictionary is in the' "${command[@]}" --candidates 10:1 --dictionary bad
refused 'link: would overwrite' bash -c 'ln -sf words link; "$@"' - "${command[@]}" --replace-unknown words --page link
head -n 9 valid.b >short
refused 'short has 9; parallel files' "$translate" dictionary --source valid.a --target short --output never
[[ ! -e never && ! -e page.html ]] || fail "a rejected command wrote a file"
train --model other.safetensors --source plain.a --target plain.b --epochs 1 || fail "training another"
refused 'other.safetensors: does not read the same words' "${command[@]}" --model other.safetensors
train --model backwards.safetensors --epochs 1 --min-count 50 --system luong --reverse-source || fail "training backwards"
"${command[@]}" --model backwards.safetensors >output 2>log || fail "an ensemble of models that read in different directions"
for value in 0 -1 1.5 many 1025; do misused '--beam' "${command[@]:1}" --beam="$value"; done
for value in 0 -1 many; do misused '--n-best' "${command[@]:1}" --n-best="$value"; done
for option in length-penalty coverage-penalty; do
    for value in -1 nan inf much; do misused "--$option" "${command[@]:1}" --$option="$value"; done
done
for value in 5 5: :5 5:x 5:5:5 -5:5; do misused '--candidates' "${command[@]:1}" --candidates="$value" --dictionary words; done
misused '--dictionary' "${command[@]:1}" --candidates 5:5
misused '0:0 leaves no candidates' "${command[@]:1}" --candidates 0:0
contradicts '--dictionary: applies to --candidates K:N' "${command[@]}" --candidates all --dictionary words
no_temporaries
