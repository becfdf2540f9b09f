#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# scripts/spelling.sh (the argument): letters and phonemes side by side, Unicode, references, a test set alone, and
# rejected inputs.
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
printf 'read\tR IY1 D\nread\tR EH1 D\nécht\tEH0 K T\n' >dev.tsv
bash "$script" out train.tsv dev.tsv >log
is log "train: 2 lines" "valid: 2 lines, 2 references"
is out/train.letters "a b" "a b"
is out/train.phonemes "EY1 B" "AE1 B"
is out/valid.letters "r e a d" "é c h t"
is out/valid.phonemes "R IY1 D" "EH0 K T"
is out/valid.phonemes.1 "R IY1 D" "EH0 K T"
is out/valid.phonemes.2 "R EH1 D" "EH0 K T"

# A letter is a code point: combining marks are letters, and nothing is normalized. A phoneme is kept as it is. The words
# 10 and 1e1 differ.
printf 'e\xcc\x81t\tɛ\xcc\x83 t\xcd\xa1ʃ\nét\te t\nत्र\tt̪ r ə\nad hoc\ta d  ɔ k\n10\tt ɛ n\n1e1\tt ɛ n\n\xf0\x9f\x98\x80\tx\r\n' >marks.tsv
bash "$script" --test only marks.tsv >log
is log "test: 7 lines, 1 references"
[[ $(echo only/*) == 'only/test.letters only/test.phonemes only/test.phonemes.1' ]]
is only/test.letters $'e \xcc\x81 t' "é t" "त ् र" "a d ▁ h o c" "1 0" "1 e 1" $'\xf0\x9f\x98\x80'
is only/test.phonemes $'ɛ\xcc\x83 t\xcd\xa1ʃ' "e t" "t̪ r ə" "a d ɔ k" "t ɛ n" "t ɛ n" "x"

# CMUdict's own format, a test set, no stress; two pronunciations that become equal
printf ';;; a comment\nread R IY1 D # verb\nread(2) R IY0 D\nread(3) R EH1 D\n' >cmudict.dict
STRESS=off bash "$script" out train.tsv dev.tsv cmudict.dict >log
is log "train: 2 lines" "valid: 2 lines, 2 references" "test: 1 lines, 2 references"
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
