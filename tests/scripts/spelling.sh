#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/spelling.sh (the argument): letters and phonemes side by side, references, a test set without training words,
# and rejected inputs.
set -euo pipefail

script=$1
directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cd "$directory"

# is FILE LINE...: the file has exactly these lines.
is()
{
    local file=$1
    shift
    if ! diff <(printf '%s\n' "$@") "$file"; then
        echo "FAILED: $file (expected <, found >)" >&2
        exit 1
    fi
}

printf 'ab\tEY1 B\nab\tAE1 B\nab\tEY1 B\n' >train.tsv
for i in {1..39}; do printf 'w%s\tW %s\n' "$i" "$i" >>train.tsv; done
printf 'read\tR IY1 D\nread\tR EH1 D\nécht\tEH0 K T\n' >dev.tsv
bash "$script" out train.tsv dev.tsv >log
is log "train: 39 lines" "valid: 2 lines, 2 references" "test: 2 lines, 1 references"
is out/valid.letters "r e a d" "é c h t"
is out/valid.phonemes "R IY1 D" "EH0 K T"
is out/valid.phonemes.1 "R IY1 D" "EH0 K T"
is out/valid.phonemes.2 "R EH1 D" "EH0 K T"
is out/test.letters "w 1 9" "w 3 9"  # the 20th and the 40th word
is out/test.phonemes "W 19" "W 39"
is <(head -n 3 out/train.letters) "a b" "a b" "w 1"
is <(head -n 3 out/train.phonemes) "EY1 B" "AE1 B" "W 1"
if grep -qx 'w 1 9' out/train.letters; then
    echo "FAILED: a word of the test set is in training" >&2
    exit 1
fi

# CMUdict's own format, a test set, no stress; two pronunciations that become equal
printf ';;; a comment\nread R IY1 D # verb\nread(2) R IY0 D\nread(3) R EH1 D\n' >cmudict.dict
STRESS=off bash "$script" out train.tsv dev.tsv cmudict.dict >log
is log "train: 41 lines" "valid: 2 lines, 2 references" "test: 1 lines, 2 references"
is out/test.letters "r e a d"
is out/test.phonemes.2 "R EH D"
is <(head -n 1 out/train.phonemes) "EY B"

# refused FILE WORDS: the script fails with this message.
refused()
{
    if bash "$script" out train.tsv "$1" 2>errors >log || ! grep -qF "$2" errors; then
        echo "FAILED: $1 must be rejected with: $2" >&2
        cat errors >&2
        exit 1
    fi
}
echo alone >bad.tsv
refused bad.tsv "bad.tsv:1: a word without phonemes"
refused none.tsv "none.tsv: cannot be read"
echo passed
