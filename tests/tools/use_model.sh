#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A trained model in a custom program: the commands and the program of docs/how_to/trained_models.md.
here=$(cd -- "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/tools/common.bash
source "$here/common.bash"
use_model=$(dirname "$translate")/../examples/use_model
[[ -x $use_model ]] || fail "$use_model is missing"

# The page's command, for a small model.
sentences 600 1 train
sentences 40 2 valid
for part in train valid; do ln -s $part.a $part.en && ln -s $part.b $part.de; done
command=$(grep '^translate train ' "$here/../../docs/how_to/trained_models.md") || fail "the page trains no model"
translate() { "$translate" "$@"; }
eval "$command ${tiny[*]} --epochs 6 --learning-rate 0.02" 2>log || fail "the page's command: $command"

# The program describes the model, and translates as `translate run` does.
printf 'one two\nthree\ntwo two one\n' >some
"$use_model" en-de.safetensors <some >output 2>log || fail "use_model"
[[ $(head -n 1 output) == "rnnsearch (Bahdanau et al. 2015), additive attention, "*" parameters" ]] || fail "$(head -n 1 output)"
translate run --model en-de.safetensors --n-best 3 --input some >lists 2>log || fail "translate run"
sed -n '2,13p' output >found
awk -F ' [|][|][|] ' -v last=none '$1 != last { print $2; last = $1 } { printf "    %s\n", $2 }' lists >expected
sed -E 's/^    -?[0-9.e-]+  /    /' found | cmp - expected || fail "the translations differ from those of translate run: $(cat found lists)"
[[ $(sed -n 2p output) == "zwei eins" ]] || fail "one two is $(sed -n 2p output)"

# The source of each word, in reverse order. Then the score, and the threads' answers.
[[ $(grep -c ' <- ' output) == 2 ]] || fail "two words have no alignment"
grep -q '^log p = -[0-9.e-]* nats, of 2 subwords$' output || fail "no score"
translate run --model en-de.safetensors --beam 4 --input some >expected 2>log || fail "translate run --beam 4"
tail -n 3 output | cmp - expected || fail "threads translate differently"

# An ensemble, and a file that is not a model.
"$use_model" en-de.safetensors en-de.safetensors <some >both 2>log || fail "an ensemble"
[[ $(sed -n 2p both) == "zwei eins" ]] || fail "the ensemble translates one two as $(sed -n 2p both)"
if echo one | "$use_model" some >output 2>log; then fail "a text is accepted as a model"; fi
grep -q '^use_model: some: ' log || fail "no reason: $(cat log)"
if printf 'a \xff\n' | "$use_model" en-de.safetensors >output 2>log; then fail "invalid UTF-8 is accepted"; fi
grep -q 'line 1: byte 3, 0xff, is not valid UTF-8' log || fail "no reason: $(cat log)"
