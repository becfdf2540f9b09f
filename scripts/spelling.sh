#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END_OF_USAGE'
usage: scripts/spelling.sh OUT TRAIN VALID [TEST]
       scripts/spelling.sh --test OUT TEST

Converts pronunciation dictionaries to parallel text for `translate`: letters on one side, phonemes on the other.

TRAIN, VALID, TEST  dictionaries in UTF-8. A line is a word, a tab, and phonemes separated by spaces; a word may have
                    several lines (the format of the SIGMORPHON shared tasks). CMUdict's format is also supported: "word
                    phonemes" or "word(2) phonemes", with comments after "#" or ";;;".
                    A letter is a Unicode code point, unchanged: a combining mark is a letter; a phoneme may have several
                    code points. A space in a word is the letter "▁".
--test              converts only a test set
OUT                 the folder of these files:

    train.letters, train.phonemes   a line for each pronunciation
    valid.letters, valid.phonemes   a line for each word, with its first pronunciation
    test.letters, test.phonemes     a line for each word, with its first pronunciation
    valid.phonemes.1, .2, ...       references: line n of file k is the k-th pronunciation of word n, or the first if it
    test.phonemes.1, .2, ...        has fewer. The number of files is the maximum number of pronunciations of a word

A translation is correct if it is one of the references. STRESS=off removes the digits that mark stress in CMUdict.

    scripts/spelling.sh spelling train.tsv dev.tsv test.tsv
    translate train --source spelling/train.letters --target spelling/train.phonemes \
        --valid-source spelling/valid.letters --valid-target spelling/valid.phonemes --model spelling.safetensors
    translate run --model spelling.safetensors <spelling/test.letters >test.hypotheses
END_OF_USAGE
}

sets=(train valid test) least=3
if [[ ${1:-} == --test ]]; then
    sets=(test) least=2
    shift
fi
if (($# < least || $# > 1 + ${#sets[@]})) || [[ $1 == -* ]]; then
    usage
    [[ ${1:-} == -h || ${1:-} == --help ]] && exit 0
    exit 2
fi
out=$1
shift
for file; do
    if [[ ! -r $file || -d $file ]]; then
        echo "$file: cannot be read; give a pronunciation dictionary" >&2
        exit 1
    fi
done
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf -- "$scratch"' EXIT

# entries FILE: its words and phonemes separated by tabs, without repeated pronunciations, words in order of first occurrence
entries()
{
    LC_ALL=C awk -v stress="${STRESS:-on}" -v name="$1" '
        { sub(/\r$/, ""); sub(/[ \t]*(#|;;;).*/, "") }
        $0 == "" { next }
        {
            word = $1
            if (tab = index($0, "\t")) {
                word = substr($0, 1, tab - 1)
                $0 = "- " substr($0, tab + 1)
                gsub(/ /, "▁", word)
            }
            $1 = ""
            sub(/^ +/, "")
            if (stress == "off") gsub(/[0-9]/, "")
            sub(/\([0-9]+\)$/, "", word)
            if (word == "" || $0 == "") {
                printf "%s:%d: a word without phonemes; a line is a word, a tab, and phonemes\n", name, NR >"/dev/stderr"
                exit 1
            }
            if (seen[word "\t" $0]++) next
            if (!(word in count)) words[++n] = word
            all[word, ++count[word]] = $0
        }
        END { for (i = 1; i <= n; i++) for (k = 1; k <= count[words[i]]; k++) print words[i] "\t" all[words[i], k] }
    ' "$1"
}

# letters: "abc" becomes "a b c"
letters() { LC_ALL=C.UTF-8 sed 's/./& /g; s/ $//'; }

# one_each NAME <ENTRIES: writes a line per word, and the references
one_each()
{
    local file
    rm -f -- "$scratch/phonemes"*
    LC_ALL=C awk -F '\t' -v words="$scratch/words" -v to="$scratch/phonemes" '
        $1 "" != last { last = $1 ""; word[++n] = $1 }
        { reference[n, ++count[n]] = $2; if (count[n] > most) most = count[n] }
        END {
            printf "" >words
            printf "" >to
            for (i = 1; i <= n; i++) {
                print word[i] >words
                print reference[i, 1] >to
                for (k = 1; k <= most; k++) print reference[i, k <= count[i] ? k : 1] >(to "." k)
            }
        }'
    for file in "$scratch/phonemes"*; do heed_write "$out/$1.${file##*/}" cat "$file"; done
    for file in "$out/$1.phonemes".*; do [[ -e $scratch/${file#"$out/$1."} ]] || rm -f -- "$file"; done
    heed_write "$out/$1.letters" letters <"$scratch/words"
}

for set in "${sets[@]:0:$#}"; do
    entries "$1" >"$scratch/entries"
    shift
    if [[ $set == train ]]; then
        cut -f 1 "$scratch/entries" | heed_write "$out/train.letters" letters
        heed_write "$out/train.phonemes" cut -f 2 "$scratch/entries"
    else
        one_each "$set" <"$scratch/entries"
    fi
    printf '%s: %d lines' "$set" "$(wc -l <"$out/$set.letters")"
    references=("$out/$set.phonemes".[0-9]*)
    if [[ $set != train && -e ${references[0]} ]]; then printf ', %d references' "${#references[@]}"; fi
    echo
done
