#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Training with penalties of attention and with guided alignment: of words and of subwords, with skipped pairs, resumed,
# and with invalid links.
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 300 1 train
sentences 40 2 valid

# numbers FILE: the parameters of a model.
numbers() { tail -c +$((9 + $(od -An -tu8 -N8 "$1"))) "$1"; }
fresh() { rm -f model.safetensors*; }
# links_of FILE: word i of each line is translated as the word with the same distance from the end.
links_of() { awk '{ line = ""; for (i = 0; i < NF; ++i) line = line (i ? " " : "") i "-" NF - 1 - i; print line }' "$1"; }
links_of train.a >links
# agreement LINKS [OPTION...]: the share of the words of the validation text whose links are right, in percent.
links_of valid.a >expected
agreement()
{
    "$translate" align --model model.safetensors --source valid.a --target valid.b --threads 1 --link-all "$@" >found 2>log || fail "aligning"
    paste -d '|' expected found | awk -F '|' '{ n = split($1, want, " "); all += n
            for (k = 1; k <= n; ++k) if (index(" " $2 " ", " " want[k] " ")) ++right }
        END { printf "%d\n", 100 * right / all }'
}

# Attention learns the links, at the step that outputs a word or at the next one.
brief=(--epochs 4 --learning-rate 0.02 --patience 9 --seed 3)
train "${brief[@]}" --guided-alignment links --guided-weight 2 || fail "guided training"
(($(agreement) >= 90)) || fail "only $(agreement)% of the links"
fresh
train "${brief[@]}" --guided-alignment links --guided-weight 2 --guided-shift 1 || fail "guided training of the next step"
(($(agreement --shift 1) >= 90)) || fail "only $(agreement --shift 1)% of the links of the next step"
(($(agreement) < 80)) || fail "--guided-shift 1 guides the step itself"
fresh

# The Transformer and Luong et al.
for how in '--system transformer --heads 2 --layers 1' '--system luong --layers 1 --input-feeding'; do
    # shellcheck disable=SC2086  # several words
    "$translate" train --source train.a --target train.b --valid-source valid.a --valid-target valid.b --threads 1 --batch 8 \
        --embedding 8 --hidden 8 --model model.safetensors --epochs 1 --guided-alignment links --penalty coverage:0.1 $how 2>log ||
        fail "guided training: $how"
    fresh
done

# The reported loss is the cross-entropy: that of the first update is the same with and without objectives.
first=(--max-updates 1 --dropout 0 --batch 8)
loss() { cut -d , -f 4 "$1" | tail -n 1; }
train "${first[@]}" --log plain.csv || fail "one update"
mv model.safetensors plain
for objective in '--penalty coverage:5,monotone:5,doubly-stochastic:5' '--guided-alignment links'; do
    fresh
    # shellcheck disable=SC2086  # several words
    train "${first[@]}" $objective --log with.csv || fail "one update $objective"
    awk -v one="$(loss plain.csv)" -v other="$(loss with.csv)" 'BEGIN { d = one - other; exit !(d < 1e-4 && d > -1e-4) }' ||
        fail "the loss is $(loss with.csv), not $(loss plain.csv): $objective"
    if cmp -s plain model.safetensors; then fail "no effect: $objective"; fi
done
fresh

# The penalty of coverage reduces attention to words that were already attended to.
repeated()
{
    "$translate" align --model model.safetensors --source valid.a --target valid.b --threads 1 --weights weights >found 2>log || fail "aligning"
    awk '$0 == "" { split("", all); next }
        { for (i = 1; i <= NF; ++i) { sum += $i < all[i] ? $i : all[i]; all[i] += $i } } END { printf "%d\n", 100 * sum }' weights
}
train "${brief[@]}" || fail "training"
before=$(repeated)
fresh
train "${brief[@]}" --penalty coverage:3 || fail "a penalty"
(($(repeated) < before)) || fail "$(repeated) instead of $before with a penalty of coverage"
fresh

# Subwords: a link of words links all their subwords. The model trained on text that was split beforehand is the same.
printf '#version: 0.2\n' >codes
for side in a b; do "$translate" bpe apply --codes codes --input train.$side --output split.$side || fail "splitting"; done
paste -d '|' split.a split.b links | awk -F '|' '{
        n = split($1, source, " ")
        m = split($2, target, " ")
        for (i = word = 0; i < n; ++i) { word_of[i] = word; if (source[i + 1] !~ /@@$/) ++word }
        for (j = word = 0; j < m; ++j) { translation_of[j] = word; if (target[j + 1] !~ /@@$/) ++word }
        line = ""
        for (i = 0; i < n; ++i) for (j = 0; j < m; ++j)
            if (index(" " $3 " ", " " word_of[i] "-" translation_of[j] " ")) line = line (line == "" ? "" : " ") i "-" j
        print line
    }' >split.links
[[ $(wc -w <split.links) -gt $(wc -w <links) ]] || fail "no subwords: the test is ineffective"
some=(--epochs 1 --valid-source train.a --valid-target train.b --max-updates 30)
train "${some[@]}" --bpe-codes codes --guided-alignment links || fail "guided subwords"
mv model.safetensors subwords
fresh
train "${some[@]}" --source split.a --target split.b --valid-source split.a --valid-target split.b --guided-alignment split.links ||
    fail "guided text that was split"
cmp <(numbers subwords) <(numbers model.safetensors) || fail "a link of words is not a link of all their subwords"
fresh

# Skipped pairs: the others keep their links.
paste -d '|' train.a links | awk -F '|' '{ print (split($1, words, " ") > 3 ? "" : $2) }' >links.short
train --epochs 1 --max-length 3 --guided-alignment links || fail "guided training with skipped pairs"
grep -q '^skipped [1-9]' log || fail "no pair was skipped"
mv model.safetensors all.links
fresh
train --epochs 1 --max-length 3 --guided-alignment links.short || fail "without the links of skipped pairs"
cmp all.links model.safetensors || fail "links of skipped pairs have an effect"
fresh
train --epochs 1 --max-length 3 || fail "without links"
if cmp -s <(numbers all.links) <(numbers model.safetensors); then fail "links have no effect: the test is ineffective"; fi
fresh

# Resumed with the same result; with other links or none it is refused.
how=(--guided-alignment links --guided-weight 0.7 --penalty monotone:0.50)
train --epochs 2 "${how[@]}" || fail "two epochs"
mv model.safetensors whole
fresh
train --epochs 1 "${how[@]}" || fail "one epoch"
sed '1s/.*/0-0/' links >other
refused 'started on another text' train --epochs 2 --resume "${how[@]}" --guided-alignment other
refused 'started with --guided-weight 0.7, not 0.5' train --epochs 2 --resume --guided-alignment links --penalty monotone:0.5
refused 'started with --penalty monotone:0.5, not ' train --epochs 2 --resume --guided-alignment links --guided-weight 0.7
train --epochs 2 --resume "${how[@]}" --penalty monotone:0.5 || fail "resuming"
cmp whole model.safetensors || fail "the resumed model differs"
[[ $(metadata options.penalty whole) == monotone:0.5 ]] || fail "the model file has the penalty $(metadata options.penalty whole)"
fresh

# Invalid links and options.
head -n 9 links >short
refused 'short has 9 lines, train.a has 300; expected the links of each pair' train --guided-alignment short
{ cat links; echo 0-0; } >long
refused 'long has 301 lines, train.a has 300' train --guided-alignment long
printf '9-0\n' | cat - <(tail -n +2 links) >outside
length=$(head -n 1 train.a | wc -w)
refused "outside:1: the link 9-0, but the sentences have $length word" train --guided-alignment outside
printf '0-9\n' | cat - <(tail -n +2 links) >outside
refused 'outside:1: the link 0-9, but' train --guided-alignment outside
refused 'outside:1: the link 0-9, but' train --guided-alignment outside --bpe-codes codes
for wrong in 0 0-x 0--1 -1-0 0-0-0 0p0 99999999999-0 'zero-one'; do
    { head -n 1 links; echo "$wrong"; tail -n +3 links; } >strange
    refused 'strange:2: ' train --guided-alignment strange
done
refused 'nowhere: cannot be opened' train --guided-alignment nowhere
refused 'links: the text has more pairs than --shard 100, and links' train --guided-alignment links --shard 100
[[ ! -e model.safetensors.corpus ]] || fail "a refused text was written in shards"
train --epochs 1 --shard 100 || fail "shards"
rm model.safetensors model.safetensors.checkpoint
refused 'links: the text has more pairs than --shard 100, and links' train --guided-alignment links --shard 100
fresh
refused 'links: would overwrite an input' train --guided-alignment links --model links
for attention in none per-dimension; do
    contradicts "--guided-alignment: requires one attention weight per source word, which --attention $attention does not" \
        train --guided-alignment links --attention $attention
    contradicts "--penalty: requires one attention weight per source word, which --attention $attention does not" \
        train --penalty coverage:1 --attention $attention
done
arguments=(train --source train.a --target train.b --valid-source valid.a --valid-target valid.b --model model.safetensors)
misused 'requires --guided-alignment' "${arguments[@]}" --guided-weight 1
misused 'guided-shift' "${arguments[@]}" --guided-alignment links --guided-shift 2
misused 'is not a number above 0' "${arguments[@]}" --guided-alignment links --guided-weight 0
misused 'there is no penalty "covered"; choose doubly-stochastic, coverage or monotone' "${arguments[@]}" --penalty covered:1
misused 'has no weight above 0' "${arguments[@]}" --penalty coverage
misused 'is given twice' "${arguments[@]}" --penalty coverage:1,coverage:2
misused '--r-drop: cannot be combined with --penalty' "${arguments[@]}" --r-drop 5 --penalty coverage:1
misused '--r-drop: both passes are equal without --dropout' "${arguments[@]}" --r-drop 5 --dropout 0
[[ ! -e model.safetensors ]] || fail "a rejected command wrote a model"

# Raw text: links are between words and symbols, as those of `translate align`.
if ! "${training[@]}" --raw --epochs 1 --model raw.safetensors 2>log; then
    grep -q 'SentencePiece' log || fail "training on raw text"
    exit 0
fi
sed 's/$/./' train.a >raw.a
sed 's/$/!/' train.b >raw.b
raw=(--raw --source raw.a --target raw.b --subword-vocab 30 --epochs 1 --guided-alignment)
paste -d '|' train.a links | awk -F '|' '{ n = split($1, words, " "); print $2 " " n "-" n }' >raw.links
train "${raw[@]}" raw.links || fail "guided training on raw text"
"$translate" align --model model.safetensors --source raw.a --target raw.b >raw.found 2>log || fail "aligning raw text"
fresh
train "${raw[@]}" raw.found || fail "links of translate align"
fresh
sed '1s/.*/9-0/' raw.links >outside
refused "outside:1: the link 9-0, but the sentences have $((length + 1)) word" train "${raw[@]}" outside
no_temporaries
