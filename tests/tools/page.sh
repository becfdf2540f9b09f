#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Pages for the browser, of translations and of references; learning curves.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 100 1 train
sentences 12 2 valid
printf '#version: 0.2\n' >codes
train --epochs 2 --log log.csv || fail "training"
train --model dimensions.safetensors --attention per-dimension --epochs 1 --bpe-codes codes || fail "training per dimension"
train --model none.safetensors --attention none --epochs 1 || fail "training without attention"

# data FILE: the page's data; checks that the page makes no external request.
data()
{
    [[ $(head -n 1 "$1") == '<!DOCTYPE html>' && $(tail -n 1 "$1") == '</html>' ]] || fail "$1 is not a page"
    grep -q "default-src 'none'" "$1" || fail "$1 may send requests"
    grep -qi '<link\|src=\|@import\|url(' "$1" && fail "$1 needs other files"
    sed -n '/<script type="application\/json"/,/<\/script>/p' "$1"
}

# The dimensions that follow a word, for words split into subwords, on either side.
dimensions=("$translate" dimensions --model dimensions.safetensors --source valid.a --target valid.b --least 5 --threads 1)
for side in source target; do
    "${dimensions[@]}" --side $side --dimensions 4 --classes 2 >output 2>log || fail "dimensions of the $side"
    words=valid.$([[ $side == source ]] && echo a || echo b)
    awk -v words=$words 'BEGIN { while ((getline line < words) == 1) { ++lines; n = split(line, w, " "); for (i = 1; i <= n; ++i) ++count[w[i]] }
            count["</s>"] = lines }
        NR == 1 { next }
        NF != 5 || $2 < 0 || $2 > 1 || $4 != count[$5] { exit 1 }
        $1 != last { if (shown > 0 && $2 > best) exit 1; best = $2; last = $1; ++shown }
        END { exit shown != 4 || NR != 9 }' output || fail "dimensions of the $side: $(cat output)"
    "${dimensions[@]}" --side $side --dimensions 4 --classes 2 --tags $words --output tagged >printed 2>log || fail "tags"
    cmp output tagged || fail "using words as tags changes the classes"
    [[ ! -s printed ]] || fail "output was written to two places"
done
sed 's/[a-z]*[nr]e[a-z]*/E/g; s/two/W/g' valid.a >tags
"${dimensions[@]}" --tags tags >output 2>log || fail "tags"
grep -q ' E$' output || fail "no tag: $(cat output)"
"${dimensions[@]}" --by-class --dimensions 2 --picture drawn.svg >output 2>log || fail "--by-class"
awk 'NR > 1 { if (!($5 in n)) ++classes; if (++n[$5] > 2) exit 1 } END { exit classes != 4 }' output || fail "two dimensions of each of 4 classes: $(cat output)"
(($(grep -c 'dimension [0-9]*: ' drawn.svg) >= 1)) || fail "no picture"
refused 'no class has 100 words' "${dimensions[@]}" --least 100
"${dimensions[@]}" --dimensions 3 --of-sentence 2 --picture sentence.svg >output 2>log || fail "--of-sentence"
[[ ! -s output ]] || fail "--of-sentence prints: $(cat output)"
(($(grep -o '>[0-2]</text>' sentence.svg | wc -l) == 5)) || fail "not three dimensions and the legend, 0 and 1"
refused '--of-sentence 99: valid.a has 12 lines' "${dimensions[@]}" --of-sentence 99 --picture sentence.svg
refused 'model.safetensors: trained with --attention additive, which has no weight per dimension' \
    "${dimensions[@]}" --model model.safetensors
head -n 5 valid.a >short.tags
refused 'short.tags has 5 lines, valid.a has 12' "${dimensions[@]}" --tags short.tags
sed '3s/$/ X/' valid.a >more.tags
refused 'more.tags:3: has ' "${dimensions[@]}" --tags more.tags

"$translate" run --model model.safetensors --input valid.a --min-length 1 >plain 2>log || fail "translating"
printf 'one <b>\n\n' | cat - valid.a >some
"$translate" run --model model.safetensors --input some --min-length 1 --page run.html --page-sentences 5 --threads 1 >output 2>log ||
    fail "--page"
tail -n +3 output | cmp - plain || fail "a page changes translations"
data run.html >run.data
(($(grep -c '^{"source"' run.data) == 5)) || fail "not 5 sentences"
grep -q '"systems":\["model"\]' run.data || fail "no system"
grep -q '"source":\["one","\\u003cb\\u003e","</s>"\]' run.data || grep -q '"source":\["one","\\u003cb\\u003e","\\u003c/s\\u003e"\]' run.data ||
    fail "the first sentence is wrong or not escaped: $(head -n 2 run.data)"
(($(grep -c '"mean":"' run.data) == 5)) || fail "translations without weights"
# `translate page` also reports the log-probability, for any ranking of the search.
"$translate" page --model model.safetensors --source valid.a --min-length 1 --output same.html --threads 1 2>log || fail "translate page"
notes() { data "$1" | grep -o '"note":"[^"]*"' | sed -n "$2"; }
[[ $(notes run.html 2,5p) == "$(notes same.html 1,4p)" && $(notes run.html 2p) == '"note":"log p -'* ]] ||
    fail "the notes of one translation differ: $(notes run.html 2,5p) $(notes same.html 1,4p)"
"$translate" run --model model.safetensors --model model.safetensors --input valid.a --page both.html >output 2>log ||
    fail "a page of an ensemble"
grep -q '"systems":\["model + model"\]' both.html || fail "an ensemble should be one system"

# Systems side by side: words, subwords with weights per dimension, and a system without attention.
models=(--model model.safetensors --model dimensions.safetensors --model none.safetensors)
"$translate" page "${models[@]}" --source valid.a --reference valid.b --gold <(awk '{ print NR % 2 ? "0-0 0p0" : "" }' valid.a) \
    --output page.html --sentences 10 --dimensions 3 --min-length 1 --threads 1 2>log || fail "translate page"
data page.html >page.data
(($(grep -c '^{"source"' page.data) == 10)) || fail "not 10 sentences"
grep -q '"systems":\["model","dimensions","none"\]' page.data || fail "not three systems"
(($(grep -c '"sure":\[\[0,0\]\],"possible":\[\[0,0\]\]' page.data) == 5)) || fail "no gold links"
[[ $(grep -o '"words":' page.data | wc -l) == 30 ]] || fail "not three translations per sentence"
grep -q '"dimensions":16,"kept":3,' page.data || fail "no dimensions"

# Empty lines keep their positions and have no attention.
printf 'one two\n\nthree\n' >gap.a
printf 'zwei eins\neins\n\n' >gap.b
for how in '' --forced; do
    # shellcheck disable=SC2086  # no word at first
    "$translate" page "${models[@]}" --source gap.a --reference gap.b $how --min-length 1 --output gap.html --threads 1 2>log ||
        fail "empty lines $how"
    data gap.html | grep '^{"source"' >gap.data
    (($(wc -l <gap.data) == 3)) || fail "not 3 sentences"
    sed -n 2p gap.data | grep -q '^{"source":\["\(<\|\\u003c\)/s[^,]*\],"reference":\["eins"\]' || fail "the second sentence is wrong"
    empty=$([[ $how ]] && echo 3 || echo 2)
    (($(sed -n "${empty}p" gap.data | grep -o '"words":\[\]' | wc -l) == 3)) || fail "words of an empty line: $(cat gap.data)"
done

# Forced decoding of the reference: all systems have its words, and all but one have weights.
"$translate" page "${models[@]}" --name A --name B --name 'C <i>' --source valid.a --reference valid.b --forced --title 'a & b' --output forced.html \
    2>log || fail "--forced"
data forced.html >forced.data
grep -q '<title>a &amp; b</title>' forced.html || fail "no title"
grep -q '"systems":\["A","B","C \\u003ci\\u003e"\]' forced.data || fail "wrong names"
(($(grep -o '"mean":"' forced.data | wc -l) == 24)) || fail "weights of 12 sentences by two systems"
first='["'$(head -n 1 valid.b | sed 's/ /","/g')'"]'
[[ $(grep -m 1 '^{"source"' forced.data | grep -F -o "\"words\":$first" | wc -l) == 3 ]] || fail "the words are not those of the reference"
# One row per word: 16 dimensions instead of 1.
(($(grep -o '"kept":16,' forced.data | wc -l) == 12)) || fail "dimensions of each sentence"

page=("$translate" page --model model.safetensors --source valid.a --output never.html)
head -n 9 valid.b >short
echo '0-0' >gold
refused 'short has 9; parallel files' "${page[@]}" --reference short
refused 'gold has 1 line, valid.a has 12' "${page[@]}" --reference valid.b --gold gold
for ((i = 0; i < 12; ++i)); do echo 0-99; done >gold
refused 'gold:1: a link of words 0 and 99' "${page[@]}" --reference valid.b --gold gold
refused 'valid.a:1: "' "${page[@]}" --reference valid.b --gold valid.a
contradicts '2 names for 1 model; expected one per' "${page[@]}" --name A --name B
refused 'codes: ' "${page[@]}" --model codes
refused 'nowhere: cannot be opened' "${page[@]}" --reference nowhere
refused 'valid.a: would overwrite' "$translate" page --model model.safetensors --source valid.a --output valid.a
refused 'nothing: is empty' bash -c ': >nothing; "$@"' - "${page[@]}" --source nothing
refused 'page.html: cannot write: File too large' bash -c 'ulimit -f 1; "$@"' - "$translate" page --model model.safetensors \
    --source valid.a --output page.html
data page.html | cmp - page.data || fail "the page was changed"
[[ ! -e never.html ]] || fail "a rejected command wrote a page"
misused '--reference' "${page[@]:1}" --forced
misused '--reference' "${page[@]:1}" --gold gold
misused '--sentences' "${page[@]:1}" --sentences 0

# Curves.
header=$(head -n 1 log.csv)
mkdir other
{
    echo "$header"
    echo '1,10,0.5,2,0.001,1.5,20.5,'
    echo '2,20,1,1,0.001,1.25,30.5,800.1'
} >other/log.csv
"$translate" curves log.csv other/log.csv --output curves.svg 2>log || fail "curves"
[[ $(head -c 5 curves.svg) == '<svg ' && $(tail -n 1 curves.svg) == '</svg>' ]] || fail "no SVG"
for name in log.csv other/log.csv; do grep -q ">$name<" curves.svg || fail "no curve is called $name"; done
grep -q 'other/log.csv: 30.5 at 2<' curves.svg || fail "a point is missing"
# drawn TEXT OPTION...: the picture contains the text.
drawn() { "$translate" curves other/log.csv --name mine --output curves.svg "${@:2}" 2>log && grep -q -- "$1" curves.svg; }
drawn 'mine: 20.5 at 10<' --x updates || fail "updates"
drawn 'mine: 30.5 at 1<' --x minutes --y bleu || fail "minutes"
drawn 'mine: 1.25 at 2<' --y loss || fail "loss"
drawn 'mine: 4.482 at 1<' --y perplexity || fail "perplexity"
drawn 'mine: 2 at 1<' --y training-loss || fail "training loss"
drawn '>a &amp; b<' --title 'a & b' || fail "the title"
if command -v xmllint >/dev/null; then xmllint --noout curves.svg || fail "xmllint on the SVG"; fi

curves=("$translate" curves --output never.svg)
refused 'valid.a: not a log' "${curves[@]}" log.csv valid.a
refused 'nowhere: cannot be opened' "${curves[@]}" nowhere
for row in '1,2' '1,10,0.5,2,0.001,1.5,much,' '1,10,0.5,2,0.001,1.5,20.5,,' ''; do
    printf '%s\n%s\n' "$header" "$row" >bad
    refused 'bad:2: ' "${curves[@]}" bad
done
echo "$header" >bad
refused 'bad: has no epoch yet' "${curves[@]}" bad
contradicts '1 name for 2 logs; expected one per' "${curves[@]}" log.csv other/log.csv --name one
refused 'log.csv: would overwrite' "$translate" curves log.csv --output log.csv
for wrong in much:'is not a number' 1e999:'is out of the range of a double' 1e-400:'is out of the range of a double'; do
    printf '%s\n1,10,0.5,2,0.001,1.5,20.5,\n2,20,1,1,0.001,%s,30,\n' "$header" "${wrong%:*}" >bad
    refused "bad:3: validation_loss: \"${wrong%:*}\" ${wrong#*:}" "${curves[@]}" bad
done
[[ ! -e never.svg ]] || fail "a rejected command wrote a picture"
# Any finite number is drawn, in a picture of ordinary size; missing and non-finite values leave a gap.
for values in '1.7e18' '1e308 -1e308 5e-324' 'nan 3 inf' '5e-324 1e-323 -1e-310' 'nan nan '; do
    echo "$header"
    epoch=0
    for value in $values; do echo "$((epoch += 1)),10,$value,2,0.001,$value,$value,"; done
done | awk -v header="$header" '$0 == header { close(name); name = "any" ++n ".csv" } { print >name }'
for n in 1 2 3 4 5; do
    for axes in '--x epochs --y bleu' '--x minutes --y loss'; do
        # shellcheck disable=SC2086  # several words
        timeout 60 "$translate" curves $axes "any$n.csv" --output any.svg 2>log || fail "curves of any numbers: any$n.csv"
        (($(wc -c <any.svg) < 10000)) || fail "a large picture: any$n.csv $axes"
        if grep -q '"[-a-z]*nan\|"-*inf' any.svg; then fail "a position is not a number: any$n.csv $axes"; fi
    done
done
[[ $(grep -c 'class="hit' any.svg) == 0 ]] || fail "points without a value"
"$translate" curves any3.csv --output any.svg 2>log && [[ $(grep -c 'class="hit' any.svg) == 1 ]] || fail "one point, two gaps"
misused '--x' "${curves[@]:1}" log.csv --x hours
misused '--y' "${curves[@]:1}" log.csv --y ter
misused 'LOG' "${curves[@]:1}"
# Repeatable options take one value each time, at any position.
for arguments in '--name A --name B log.csv other/log.csv' 'log.csv --name A other/log.csv --name B'; do
    # shellcheck disable=SC2086  # several words
    "$translate" curves $arguments --output curves.svg 2>log || fail "$arguments"
    for name in A B; do grep -q ">$name<" curves.svg || fail "no curve is called $name: $arguments"; done
done
contradicts '1 name for 2 logs' "$translate" curves log.csv --name A B --output never.svg  # B is a log
no_temporaries
