#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Alignments by forced decoding, of words and of subwords; pages for the browser.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 400 1 train
sentences 30 2 valid
train --epochs 6 --learning-rate 0.02 || fail "training"

pairs=(--source valid.a --target valid.b --threads 1)
align() { "$translate" align --model model.safetensors "${pairs[@]}" "$@" 2>log; }

# in_order FILE: each target word of a pair occurs at most once, in increasing order, within both sentences.
in_order()
{
    paste -d '|' "$1" valid.a valid.b | awk -F '|' '{
            n = split($1, links, " ")
            last = -1
            for (k = 1; k <= n; ++k) {
                if (links[k] !~ /^[0-9]+-[0-9]+$/) exit 1
                split(links[k], at, "-")
                if (at[1] >= split($2, words, " ") || at[2] >= split($3, words, " ") || at[2] <= last) exit 1
                last = at[2]
            }
        }'
}

align >links || fail "aligning"
(($(wc -l <links) == 30)) || fail "30 pairs, $(wc -l <links) lines"
in_order links || fail "no links: $(head -n 5 links)"
align --output written >output || fail "--output"
[[ ! -s output ]] || fail "output was written to two places"
cmp written links || fail "a file and standard output differ"
align --batch 1 | cmp - links || fail "the size of a batch changes links"
align --model model.safetensors | cmp - links || fail "an ensemble of one model twice changes links"
# Links every target word; existing links are unchanged.
align --link-all >all || fail "--link-all"
in_order all || fail "no links: $(head -n 5 all)"
[[ $(wc -w <all) == $(wc -w <valid.b) ]] || fail "--link-all does not link every word"
paste -d '|' links all | awk -F '|' '{ n = split($1, some, " "); for (k = 1; k <= n; ++k) if (!index(" " $2 " ", " " some[k] " ")) exit 1 }' ||
    fail "--link-all changes links"

# weights_fit FILE LINKS: the numbers of lines and columns match the words, each line's sum is 1, and links are at the
# maxima.
weights_fit()
{
    paste -d '|' valid.a valid.b "$2" | awk -v weights="$1" -F '|' '{
            columns = split($1, words, " ") + 1
            rows = split($2, words, " ")
            line = ""
            for (j = 0; j < rows; ++j) {
                getline text < weights
                if (split(text, w, " ") != columns) exit 1
                best = 1
                sum = 0
                for (i = 1; i <= columns; ++i) { sum += w[i]; if (w[i] > w[best]) best = i }
                if (sum < 0.999 || sum > 1.001) exit 1
                if (best < columns) line = line (line == "" ? "" : " ") best - 1 "-" j
            }
            if ((getline text < weights) != 1 || text != "" || line != $3) exit 1
        }
        END { if ((getline text < weights) == 1) exit 1 }'
}
align --weights weights >output || fail "--weights"
weights_fit weights links || fail "weights do not match the links: $(head -n 5 weights)"

# near ONE OTHER: the numbers of two files differ by at most 1e-4.
near()
{
    paste -d '|' "$1" "$2" | awk -F '|' '{
            if (split($1, one, " ") != (n = split($2, other, " "))) exit 1
            for (i = 1; i <= n; ++i) { d = one[i] - other[i]; if (d < -1e-4 || d > 1e-4) exit 1 }
        }'
}

# --shift 1: each word has the weights of the next step. The step that outputs the end of a translation has the same
# weights as the step that outputs one more word.
align --shift 0 --weights unshifted | cmp - links || fail "--shift 0"
cmp weights unshifted || fail "--shift 0 changes weights"
sed 's/$/ eins/' valid.b >longer.b
"$translate" align --model model.safetensors --source valid.a --target longer.b --threads 1 --weights longer >output 2>log || fail "longer"
align --shift 1 --weights shifted >shifted_links || fail "--shift 1"
near shifted weights && fail "--shift 1 changes nothing: the test is ineffective"
# The rows of the longer translations from the second on.
awk '$0 == "" { print; first = 0; next } first++ { print }' longer >expected
near shifted expected || fail "--shift 1 does not show the weights of the next steps"
weights_fit shifted shifted_links || fail "shifted links do not match their weights"
align --shift 1 --picture shifted.svg >output || fail "--picture with --shift"
align --picture picture.svg >output || fail "--picture"
cmp -s shifted.svg picture.svg && fail "the picture does not show shifted weights"

# A picture in which gold links are marked.
sed 's/.*/0-0/' valid.a >by_hand
align --picture picture.svg --gold by_hand --pictures 2 >output || fail "--picture"
[[ $(grep -c '<svg' picture.svg) -ge 1 && $(grep -o 'class="gold"' picture.svg | wc -l) -ge 2 ]] || fail "gold links are missing in the picture"
! grep -q 'class="gold"' <(align --picture picture.svg >output && cat picture.svg) || fail "the picture has gold links although none were given"
head -n 1 by_hand >short
! align --picture picture.svg --gold short >output 2>log || fail "too few lines of links by hand"
grep -q 'expected the links of each pair' log || fail "it does not report the expected input: $(cat log)"
! align --gold by_hand >output 2>log || fail "--gold without a picture"

# Subwords: all words are split into characters, but links are still between words. A model trained on text that was
# split beforehand knows nothing of words, but is the same model: its weights of a source word's subwords add up to that
# word's weight, and are averaged over the subwords of a target word. Also with reversed sources.
printf '#version: 0.2\n' >codes
sentences 60 3 few
for file in {few,valid}.{a,b}; do "$translate" bpe apply --codes codes --input "$file" --output "split.$file" || fail "splitting"; done
for more in '' '--system luong --reverse-source'; do
    # shellcheck disable=SC2086  # no word at first
    {
        train --model pieces.safetensors --source few.a --target few.b --bpe-codes codes --epochs 1 $more || fail "training on characters"
        train --model split.safetensors --source split.few.a --target split.few.b --epochs 1 $more || fail "training on split text"
    }
    for shift in 0 1; do
        "$translate" align --model pieces.safetensors "${pairs[@]}" --shift $shift --weights weights >output 2>log || fail "aligning subwords"
        in_order output || fail "links of subwords: $(head -n 5 output)"
        weights_fit weights output || fail "weights of subwords: $(head -n 5 weights)"
        "$translate" align --model split.safetensors --source split.valid.a --target split.valid.b --shift $shift \
            --weights split >output 2>log || fail "split text"
        paste -d '|' split.valid.a split.valid.b | awk -F '|' '{
            columns = split($1, source, " ")
            rows = split($2, target, " ")
            split("", sum)
            pieces = 0
            for (j = 1; j <= rows; ++j) {
                getline text < "split"
                split(text, w, " ")
                word = 1
                for (i = 1; i <= columns; ++i) {
                    sum[word] += w[i]
                    if (source[i] !~ /@@$/) ++word
                }
                sum[word] += w[columns + 1]
                ++pieces
                if (target[j] ~ /@@$/) continue
                getline text < "weights"
                if (split(text, w, " ") != word) exit 1
                for (i = 1; i <= word; ++i) { d = w[i] - sum[i] / pieces; if (d < -1e-4 || d > 1e-4) exit 1 }
                split("", sum)
                pieces = 0
            }
            getline text < "split"
            getline text < "weights"
        }' || fail "weights of words do not match those of their subwords $more --shift $shift"
    done
    rm {pieces,split}.safetensors.checkpoint
done

# With a reversed source, positions are still those of the text: target word j attends to its window, words j - 1 to j +
# 1.
paste -d ' ' train.a train.a train.a train.a | awk 'NF >= 8' >long.a
paste -d ' ' train.b train.b train.b train.b | awk 'NF >= 8' >long.b
for attention in dot general; do
    train --system luong --attention local-m-$attention --window 1 --reverse-source --epochs 1 --source long.a --target long.b \
        --model local.safetensors || fail "training on local attention"
    "$translate" align --model local.safetensors --source long.a --target long.b --weights weights >output 2>log ||
        fail "local attention"
    awk '$0 == "" { j = 0; next }
        { ++j; for (i = 1; i <= NF; ++i) if (i < j - 1 || i > j + 1 ? $i != 0 : 0) exit 1 }
        j == 1 && $1 + $2 < 0.999 { exit 1 }' weights || fail "local-m-$attention attends outside its window: $(head -n 3 weights)"
    rm local.safetensors*
done

# Unknown words are also replaced by words of the window.
for ((i = 0; i < 40; ++i)); do echo 'a b c d e f g h' >&3 && echo "$i.1 $i.2 $i.3 $i.4 $i.5 $i.6 $i.7 $i.8" >&4; done 3>rare.a 4>rare.b
printf 'a b c d e f g h\nx x\nx x\n' >common.a
printf 'known known\nknown known\nknown known\n' >common.b
cat common.a >>rare.a && cat common.b >>rare.b
train --system luong --attention local-m-dot --window 1 --reverse-source --epochs 6 --learning-rate 0.02 --min-count 2 \
    --source rare.a --target rare.b --model rare.safetensors || fail "training on rare words"
echo 'a b c d e f g h' | "$translate" run --model rare.safetensors --replace-unknown --beam 1 --max-length 8 \
    --page page.html --alignments picture.svg >output 2>log || fail "replacing"
awk 'NF < 3 { exit 1 }
    { for (j = 1; j <= NF; ++j) { i = index("abcdefgh", $j); if ($j != "known" && (i < j - 1 || i > j + 1)) exit 1 } }' output ||
    fail "unknown words are replaced by wrong words: $(cat output)"
rm rare.safetensors*

# Empty lines, as `run` reads and writes them: no links, no weights, and no effect on the other lines.
printf 'one two\n\nthree one\n\nthree\n' >gap.a
printf 'zwei eins\neins\n\n\ndrei\n' >gap.b
gaps=(--model model.safetensors --source gap.a --target gap.b --threads 1)
"$translate" align "${gaps[@]}" --link-all --weights weights >output 2>log || fail "empty lines"
sed -n '1p;5p' output >some
"$translate" align --model model.safetensors --threads 1 --link-all --source <(sed -n '1p;5p' gap.a) \
    --target <(sed -n '1p;5p' gap.b) 2>log | cmp - some || fail "empty lines change the others: $(cat output)"
[[ $(wc -l <output) == 5 && -z $(sed -n 2,4p output) ]] || fail "links of empty lines: $(cat output)"
[[ $(awk '{ print NF }' weights | paste -sd ' ') == '3 3 0 1 0 0 0 2 0' ]] || fail "weights of empty lines: $(cat weights)"
"$translate" score "${gaps[@]}" >scores 2>log || fail "scoring empty lines"
hypothesis=$("$translate" run --model model.safetensors --beam 1 --input gap.a 2>log | wc -w)
grep -q "hyp_len=$hypothesis, ref_len=4)" scores || fail "not $hypothesis and 4 words: $(cat scores)"
"$translate" run --model model.safetensors --input gap.a >gap.b 2>log || fail "translating empty lines"
"$translate" align "${gaps[@]}" >output 2>log || fail "the output of run cannot be aligned"

# Interrupted: no output is written, existing files stay.
for side in a b; do
    for ((i = 0; i < 300; ++i)); do cat train.$side; done >many.$side
done
for ending in 'align --target many.b' 'page --sentences 120000'; do
    echo before >kept
    # shellcheck disable=SC2086  # several words
    "$translate" $ending --model model.safetensors --source many.a --output kept --batch 1 --threads 1 \
        2>log >output &
    process=$!
    sleep 0.3
    kill -TERM $process 2>/dev/null || true
    status=0
    wait $process || status=$?
    ((status == 143)) || fail "$ending: exit code $status after SIGTERM"
    [[ $(cat kept) == before ]] || fail "$ending: output was written after SIGTERM"
    no_temporaries
done

# Invalid options.
command=("$translate" align --model model.safetensors)
train --attention none --model none.safetensors --epochs 1 || fail "training without attention"
head -n 9 valid.b >short
: >empty
refused 'none.safetensors: trained with --attention none' "$translate" align --model none.safetensors "${pairs[@]}"
refused 'short has 9; parallel files' "${command[@]}" --source valid.a --target short
refused 'empty has 0 lines, valid.b has 30' "${command[@]}" --source empty --target valid.b
refused 'empty: is empty' "${command[@]}" --source empty --target empty
refused 'nowhere: cannot be opened' "${command[@]}" --source valid.a --target nowhere
refused 'codes: ' "$translate" align --model codes "${pairs[@]}"
refused 'nowhere/links: cannot' "${command[@]}" "${pairs[@]}" --output nowhere/links
refused 'valid.a: would overwrite' "${command[@]}" "${pairs[@]}" --output valid.a
refused 'model.safetensors: would overwrite' "${command[@]}" "${pairs[@]}" --weights model.safetensors
refused 'x: --output and --weights are the same file' "${command[@]}" "${pairs[@]}" --output x --weights ./x
refused 'standard output' bash -c '"$@" >/dev/full' - "${command[@]}" "${pairs[@]}"
refused 'x: cannot write: File too large' bash -c 'ulimit -f 1; "$@"' - "${command[@]}" "${pairs[@]}" --weights x --output links
[[ ! -e x ]] || fail "a rejected command wrote a file"
misused 'shift' align --model model.safetensors "${pairs[@]}" --shift 2
misused '--target is required' align --model model.safetensors --source valid.a
no_temporaries
