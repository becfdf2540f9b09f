#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"

usage()
{
    cat <<'END'
usage: scripts/en_fr.sh MULTI30K TATOEBA GOLD OUT [baseline...]

Trains translators between English and French in both directions, aligns manually aligned sentences (forced decoding),
and prints the table of docs/results/alignment.md: precision, recall, F1 and AER of each direction and of their
combinations, for all pairs and for those with at most 20 words.

MULTI30K  a folder with train.en train.fr val.en val.fr, tokenized (the *.lc.norm.tok.* files)
TATOEBA   a folder with train.en train.fr, raw
GOLD      a folder with src (English), tgt (French), gold (i-j sure, ipj possible): the Hansards of the NAACL 2003 task
OUT       folder for text, models and links. After an interruption, run again: finished parts are kept
baseline  link files (i-j) of other aligners for the same pairs, added to the table

Environment: THREADS=2, and TRAIN to replace the training options of the table:
END
    printf 'TRAIN="%s"\n' "$train"
}

train=${TRAIN:-"--attention additive --bpe 10000 --embedding 256 --hidden 256 --dropout 0.2 --label-smoothing 0.1 --batch 128 --epochs 5"}
if (($# < 4)) || [[ $1 == -* ]]; then
    usage
    exit $(($# < 4 ? 2 : 0))
fi
multi30k=$1 tatoeba=$2 gold=$3 out=$4
shift 4
for file in "$multi30k"/{train,val}.{en,fr} "$tatoeba"/train.{en,fr} "$gold"/{src,tgt,gold} "$@"; do
    [[ -r $file ]] || heed_fail "$file: cannot be read" "" "$(usage)"
done

heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
heed_build tools translate >&2
heed_build tools evaluate >&2
heed_environment
mkdir -p "$out"
export LC_ALL=C.UTF-8  # \L and \b below must handle é

# ---- text: spelled like the gold text, with contractions undone and hyphens split off, but in lower case
# ------------------

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

for language in en fr; do
    if [[ ! -e $out/train.$language ]]; then
        heed_write "$out/val.$language" normalize "$language" "$multi30k/val.$language"
        heed_write "$out/train.$language" normalize "$language" "$multi30k/train.$language" "$tatoeba/train.$language"
    fi
done
# The gold text is already tokenized, and its links depend on that.
sed -E 's/.*/\L&/' "$gold/src" >"$out/gold.en"
sed -E 's/.*/\L&/' "$gold/tgt" >"$out/gold.fr"

# ---- one model per direction, and its weights when forced through the gold text
# --------------------------------------

translate=("$heed_builds/tools/tools/translate" --threads "${THREADS:-2}")
evaluate=$heed_builds/tools/tools/evaluate

for pair in en-fr fr-en; do
    source=${pair%-*} target=${pair#*-} model=$out/$pair.safetensors
    if [[ ! -e $model.done ]]; then
        resume=()
        [[ -e $model.checkpoint ]] && resume=(--resume)
        heed_say "training $pair" >&2
        # shellcheck disable=SC2086  # $train is a list of options
        "${translate[@]}" train --source "$out/train.$source" --target "$out/train.$target" --valid-source "$out/val.$source" \
            --valid-target "$out/val.$target" --model "$model" --log "$out/$pair.csv" $train "${resume[@]}"
        touch "$model.done"
    fi
    "${translate[@]}" align --model "$model" --source "$out/gold.$source" --target "$out/gold.$target" --output "$out/$pair.links"
done
sed -E 's/([0-9]+)-([0-9]+)/\2-\1/g' "$out/fr-en.links" >"$out/en-fr.reverse.links"  # links of French-English, with English first
files=("$out"/{en-fr,en-fr.reverse}.links)
for method in intersection union grow-diag grow-diag-strict grow-diag-final-and; do
    "$evaluate" align "$out/en-fr.links" "$out/en-fr.reverse.links" --symmetrize "$method" --output "$out/$method.links" \
        >/dev/null
    files+=("$out/$method.links")
done
files+=("$@")

echo "All pairs:"
"$evaluate" align --gold "$gold/gold" --source "$out/gold.en" --target "$out/gold.fr" "${files[@]}"
echo
echo "Pairs of at most 20 words on each side:"
"$evaluate" align --gold "$gold/gold" --source "$out/gold.en" --target "$out/gold.fr" --max-length 20 "${files[@]}"
