#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/pronunciation.sh trains systems and an ensemble, and scores them; finished parts are kept; --score scores a model
# on other words.
evaluate=$(realpath -- "$2")
pronunciation=$(realpath -- "$(dirname "${BASH_SOURCE[0]}")/../../scripts/pronunciation.sh")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
export PROGRAMS=$directory/programs TRAIN_OPTIONS='--embedding 16 --hidden 16 --learning-rate 0.02 --batch 4 --epochs 12'
mkdir programs
ln -s "$translate" programs/translate
ln -s "$evaluate" programs/evaluate

# words COUNT SEED FILE: a dictionary of words of three letters; "e" is a letter and a combining accent.
words()
{
    local -a letters=(a b $'e\xcc\x81') phonemes=('aː' b 'e x')
    local i first second third state=$2
    for ((i = 0; i < $1; ++i)); do
        state=$(((state * 1103515245 + 12345) % 2147483648))
        first=$((state / 65536 % 3)) second=$((state / 262144 % 3)) third=$((state / 1048576 % 3))
        printf '%s\t%s\n' "${letters[first]}${letters[second]}${letters[third]}" "${phonemes[first]} ${phonemes[second]} ${phonemes[third]}"
    done >"$3"
}
words 60 1 train.tsv
words 20 2 dev.tsv
# pronounce ARGUMENT...: messages are in `log`.
pronounce() { "$pronunciation" "$@" >output 2>log; }
# refuses TEXT ARGUMENT...: it must fail with this message.
refuses()
{
    ! pronounce "${@:2}" || fail "not refused: ${*:2}"
    grep -q -- "$1" log || fail "the message has no '$1'"
}

refuses 'unknown row "additve"; rows are additive, additive-y, temporal' train.tsv dev.tsv out additve
refuses 'unknown option --ensembles' --ensembles 2 train.tsv dev.tsv out
refuses 'requires a number of models' --ensemble train.tsv dev.tsv out
refuses 'usage: ' train.tsv dev.tsv
refuses 'none.tsv: cannot be read' none.tsv dev.tsv out

rate='[0-9.]*% \[[0-9.]*, [0-9.]*\]'
pronounce --ensemble 2 train.tsv dev.tsv out additive transformer || fail "training"
[[ $(wc -l <output) == 8 ]] || fail "the table: $(cat output)"
for row in 'additive | 1' 'additive | 2' 'transformer | 1' 'transformer | 2'; do
    grep -q "^| $row | [0-9]* | [0-9]* | [0-9]* s | $rate | $rate |\$" output || fail "the row $row: $(cat output)"
done
for row in additive transformer; do
    grep -q "^| $row | ensemble | | | | $rate | $rate |\$" output || fail "the ensemble: $(cat output)"
done
# rates ROW: the cells of the error rates.
rates() { grep -F "| $1 |" output.of.training | grep -o "$rate | $rate |\$"; }
cp output output.of.training
expected=$("$evaluate" wer --reference out/valid.phonemes.1 out/additive.2.phonemes | awk 'NR == 2 { print $2 }')
[[ $expected != 100.00 ]] || fail "nothing was learned"
[[ $(rates 'additive | 2') == "$expected% "* ]] || fail "the error rate is not that of the pronunciations: $expected"

pronounce --ensemble 2 train.tsv dev.tsv out additive transformer || fail "the same command again"
cmp output output.of.training || fail "another table"
if grep -q '== training' log; then fail "a finished model was trained again"; fi
pronounce train.tsv dev.tsv out additive || fail "one seed"
[[ $(wc -l <output) == 3 ]] || fail "the table of one seed: $(cat output)"
TRAIN_OPTIONS+=' --seed 5' refuses 'additive.1.*: was begun with another program, text or other options' train.tsv dev.tsv out additive
refuses 'additive.1.*: was begun with another program, text or other options' dev.tsv train.tsv out additive

pronounce --score dev.tsv out/additive.2.safetensors || fail "scoring"
[[ $(tail -n 1 output) == "| 1 | $(rates 'additive | 2')" ]] || fail "another score: $(cat output output.of.training)"
pronounce --score dev.tsv out/additive.1.safetensors out/additive.2.safetensors || fail "scoring an ensemble"
[[ $(tail -n 1 output) == "| 2 | $(rates 'additive | ensemble')" ]] || fail "another score: $(cat output output.of.training)"
printf 'ab\taː b\nab\tb\nx\taː\n' >test.tsv
pronounce --score test.tsv out/additive.1.safetensors || fail "a test set with two pronunciations of a word and an unknown letter"
refuses 'none.safetensors' --score test.tsv none.safetensors
