#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/alignment.sh [--commit] MULTI30K TATOEBA GOLD OUT [row...]

How well does attention align words? Trains the systems of the tables of runs alignment (English to French) and
alignment-reverse (French to English) with scripts/papers.sh, forces them through manually aligned sentences, and prints
precision, recall, F1 and AER at the step that outputs a word (.0.links) and one step later (.1.links).
The rows `guided` learn from the symmetrized links of the rows `conditional` on the training text.

MULTI30K  a folder with train, val and test2016 in English and French, tokenized (the *.lc.norm.tok.* files)
TATOEBA   a folder with train.en and train.fr, raw
GOLD      a folder with src (English), tgt (French) and gold (i-j sure, ipj possible): the Hansards of the NAACL 2003 task
OUT       folder for text, models and links. After an interruption, run again: finished parts are kept
row       rows of both tables to train; default: all. All finished rows are evaluated

--commit  commits each finished run

Environment: BASELINES="FILE..." adds link files (i-j) of other aligners for the same pairs. PROGRAMS as for papers.sh.
END
}

options=()
while [[ ${1:-} == -* ]]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --commit) options+=("$1") ;;
        *) heed_fail "unknown option $1" "" "$(usage)" ;;
    esac
    shift
done
if (($# < 4)); then
    usage >&2
    exit 2
fi
multi30k=$1 tatoeba=$2 gold=$3 out=$4
shift 4
read -r -a baselines <<<"${BASELINES:-}"
for file in "$multi30k"/{train,val,test2016}.{en,fr} "$tatoeba"/train.{en,fr} "$gold"/{src,tgt,gold} "${baselines[@]}"; do
    [[ -r $file ]] || heed_fail "$file: cannot be read" "" "$(usage)"
done
mkdir -p "$out"
gold=$(realpath -- "$gold") out=$(realpath -- "$out")
if [[ ${PROGRAMS:-} ]]; then
    translate=$PROGRAMS/translate evaluate=$PROGRAMS/evaluate
else
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
    heed_build tools translate >&2
    heed_build tools evaluate >&2
    translate=$heed_builds/tools/tools/translate evaluate=$heed_builds/tools/tools/evaluate
fi
heed_environment
export LC_ALL=C.UTF-8  # \L and \b below must handle é

# ---- text: spelled like the gold text, with contractions undone and hyphens split off, but in lower case ------------------

normalize() # language text... > text
{
    local language=(-e '')
    case $1 in
    fr) language=(
        -e "s/\baujourd' ?hui\b/aujourd'hui/g"
        -e "s/\b(d|l|n|s|c|j|m|t|qu|lorsqu|puisqu|jusqu|quoiqu)' */\1e /g"
        -e 's/\bdu\b/de le/g; s/\bdes\b/de les/g; s/\bau\b/à le/g; s/\baux\b/à les/g'
        -e "s/aujourd'hui/aujourd' hui/g") ;;
    en) language=(
        -e "s/\bcan't\b/cannot/g; s/\bwon't\b/will not/g; s/\bshan't\b/shall not/g; s/n't\b/ not/g"
        -e "s/'re\b/ are/g; s/'ll\b/ will/g; s/'ve\b/ have/g; s/\bi'm\b/i am/g; s/'d\b/ would/g"
        -e "s/\b(it|that|he|she|what|there|here|where|who)'s\b/\1 is/g; s/\blet's\b/let us/g; s/'s\b/ 's/g") ;;
    esac
    sed -E -e 's/.*/\L&/' -e 's/&quot;/"/g; s/&apos;/'"'"'/g; s/&amp;/\&/g; s/[’‘]/'"'"'/g; s/[“”]/"/g' \
        -e "s/ '(s|re|ll|ve|m|d)\b/'\1/g" \
        -e $'s/[\u00a0\u202f\t\r]/ /g' -e 's/\.\.\.|…/ … /g; s/[].,;:!?()"«»$%&@[-]/ & /g; s/([0-9]) ([.,]) ([0-9])/\1\2\3/g' \
        "${language[@]}" -e 's/ +/ /g; s/^ //; s/ $//' "${@:2}"
}

mkdir -p "$out/text"
for language in en fr; do
    if [[ ! -e $out/text/train.$language ]]; then
        for part in val test2016; do heed_write "$out/text/$part.$language" normalize "$language" "$multi30k/$part.$language"; done
        heed_write "$out/text/train.$language" normalize "$language" "$multi30k/train.$language" "$tatoeba/train.$language"
    fi
done
# The gold text is already tokenized, and its links depend on that.
heed_write "$out/gold.en" sed -E 's/.*/\L&/' "$gold/src"
heed_write "$out/gold.fr" sed -E 's/.*/\L&/' "$gold/tgt"

# ---- training ----------------------------------------------------------------------------------------------------------

# train TABLE ROW...: those of the rows that the user chose.
chosen=" $* "
train()
{
    local table=$1 row rows=()
    shift
    for row; do [[ $chosen == '  ' || $chosen == *" $row "* ]] && rows+=("$row"); done
    ((${#rows[@]} == 0)) || (cd "$out" && "$heed_root/scripts/papers.sh" ${options[@]+"${options[@]}"} "$table" "$out/text" "$out/$table" "${rows[@]}")
}
rows_of() { "$heed_root/scripts/papers.sh" --list "$1" | sed 's/\..*//' | grep -v '^guided$'; }

# links TABLE ROW SHIFT SOURCE TARGET: the file of the links that a model gives to a text.
links()
{
    local name=$out/$1/$2.1 links=$out/$1/$2.$(basename "$4").$3.links
    if [[ ! -e $links ]]; then
        "$translate" align --threads 1 --model "$name.safetensors" --source "$4" --target "$5" --shift "$3" --output "$links.part" 2>"$name.messages" ||
            heed_fail "$name: $(tail -n 1 "$name.messages")"
        mv "$links.part" "$links"
    fi
    echo "$links"
}

# shellcheck disable=SC2046  # names without spaces
{
    train alignment-reverse $(rows_of alignment-reverse)
    train alignment $(rows_of alignment)
}
if [[ -e $out/alignment/conditional.1.safetensors.done && -e $out/alignment-reverse/conditional.1.safetensors.done ]]; then
    if [[ ! -e $out/train.links ]]; then
        heed_say "aligning the training text"
        there=$(links alignment conditional 1 "$out/text/train.en" "$out/text/train.fr")
        back=$(links alignment-reverse conditional 1 "$out/text/train.fr" "$out/text/train.en")
        "$evaluate" align "$there" "$back" --flip --symmetrize grow-diag --output "$out/train.links.part" >/dev/null
        heed_write "$out/train.reverse.links" sed -E 's/([0-9]+)-([0-9]+)/\2-\1/g' "$out/train.links.part"
        mv "$out/train.links.part" "$out/train.links"
    fi
    train alignment-reverse guided
    train alignment guided
fi

# ---- links of the gold text --------------------------------------------------------------------------------------------

files=() both=()
for row in $(rows_of alignment) guided; do
    [[ -e $out/alignment/$row.1.safetensors.done ]] || continue
    for shift in 0 1; do
        files+=("$(links alignment "$row" $shift "$out/gold.en" "$out/gold.fr")")
        [[ -e $out/alignment-reverse/$row.1.safetensors.done ]] || continue
        back=$(links alignment-reverse "$row" $shift "$out/gold.fr" "$out/gold.en")
        heed_write "$out/$row.reverse.$shift.links" sed -E 's/([0-9]+)-([0-9]+)/\2-\1/g' "$back"
        files+=("$out/$row.reverse.$shift.links")
        ((shift == 0)) || both+=("$row")
    done
done
for row in ${both[@]+"${both[@]}"}; do
    for method in intersection union grow-diag grow-diag-strict grow-diag-final-and; do
        "$evaluate" align "$out/alignment/$row.gold.en.1.links" "$out/$row.reverse.1.links" --symmetrize "$method" \
            --output "$out/$row.$method.links" >/dev/null
        files+=("$out/$row.$method.links")
    done
done
files+=(${baselines[@]+"${baselines[@]}"})
echo "All pairs:"
"$evaluate" align --gold "$gold/gold" --source "$out/gold.en" --target "$out/gold.fr" "${files[@]}"
echo
echo "Pairs of at most 20 words on each side:"
"$evaluate" align --gold "$gold/gold" --source "$out/gold.en" --target "$out/gold.fr" --max-length 20 "${files[@]}"
