#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
set -euo pipefail
# shellcheck source=scripts/setup.sh
source "$(dirname "${BASH_SOURCE[0]}")/setup.sh"
# shellcheck source=scripts/training.sh
source "$(dirname "${BASH_SOURCE[0]}")/training.sh"

usage()
{
    cat <<'END'
usage: scripts/papers.sh [--commit] TABLE DATA OUT [row...]
       scripts/papers.sh --list TABLE

Trains the systems of a table of runs one after the other, with one thread, and tests the epoch with the best BLEU on val
of each on test2016. A finished run appends a line to TABLE.tsv next to the table, and its training log and the
statistics of each sentence to the folder TABLE. scripts/results.py makes the tables of docs/results from these files.
A run that is in TABLE.tsv is skipped: after an interruption, run the same command again.

TABLE  a name of docs/results/runs, or a path to a file NAME.runs:
           languages en de                source and target
           common OPTION...               options of `translate train` for all rows
           NAME SEED,SEED... OPTION...    a system: first all systems with their first seeds, then with the second
           NAME + NAME.SEED...            an ensemble of runs
DATA   a folder with train, val and test2016 in both languages, such as train.en, tokenized: Multi30k, task 1, the
       *.lc.norm.tok.* files
OUT    folder for models, logs and translations
row    a system, or a run such as base.2; default: all

--commit  commits each finished run
--list    prints the runs and their options, without training

Environment: GOLD=FOLDER, with src, tgt and gold of manual German-English alignments, also evaluates the alignments of
the weights, if the languages are these. PROGRAMS=FOLDER contains `translate` and `evaluate`; by default they are built
from this checkout, which must have no uncommitted changes to its programs: a row names their commit.
END
}

commit=no list=no
while [[ ${1:-} == -* ]]; do
    case $1 in
        -h | --help) usage && exit 0 ;;
        --commit) commit=yes ;;
        --list) list=yes ;;
        *) heed_fail "unknown option $1" "" "$(usage)" ;;
    esac
    shift
done
if [[ $list == yes ]]; then (($# == 1)) || heed_fail "--list requires exactly one table" "" "$(usage)"; fi
if (($# < 3)) && [[ $list == no ]]; then
    usage >&2
    exit 2
fi
table=$1
[[ $table == *.runs ]] || table=$heed_root/docs/results/runs/$table.runs
if [[ ! -r $table ]]; then
    heed_fail "$table: no such table of runs; tables are $(cd "$heed_root/docs/results/runs" && echo *.runs | sed 's/\.runs//g')"
fi
table=$(realpath -- "$table")
records=${table%.runs}

# ---- the table of runs: names such as base.1 in order, and their options -----------------------------------------------

read_table()
{
    local name seeds options number=0 common='' round seed more
    local -a parts rows=() all_seeds=() all_options=() ensembles=()
    local -A known=()
    source_language='' target_language=''
    while read -r name seeds options || [[ $name ]]; do
        ((++number))
        wrong() { heed_fail "$table:$number: $*"; }
        case $name in
            '' | '#'*) ;;
            languages)
                [[ $seeds && $options && $options != *' '* ]] || wrong "expected \"languages SOURCE TARGET\""
                source_language=$seeds target_language=$options
                ;;
            common) common="$seeds $options" ;;
            *)
                [[ $name =~ ^[a-z0-9-]+$ ]] || wrong "\"$name\" is not a name of lowercase letters, digits and hyphens"
                [[ ! ${known[$name]+there} ]] || wrong "a second row \"$name\""
                known[$name]=yes
                if [[ $seeds == + ]]; then
                    [[ $options ]] || wrong "an ensemble without members"
                    ensembles+=("$name.+ $options")
                else
                    [[ $seeds =~ ^[0-9]+(,[0-9]+)*$ ]] || wrong "\"$seeds\" is not a list of seeds such as 1,2,3"
                    [[ " $options " != *' --seed '* ]] || wrong "the seeds are in the second column; omit --seed"
                    rows+=("$name") all_seeds+=("$seeds") all_options+=("$options")
                fi
                ;;
        esac
    done <"$table"
    [[ $source_language ]] || heed_fail "$table: \"languages SOURCE TARGET\" is missing"
    ((${#rows[@]})) || heed_fail "$table: has no runs"
    runs=()
    declare -gA options_of=()
    for ((round = 0, more = 1; more; ++round)); do
        more=0
        for number in "${!rows[@]}"; do
            IFS=, read -r -a parts <<<"${all_seeds[number]}"
            seed=${parts[round]:-}
            [[ $seed ]] || continue
            more=1
            name=${rows[number]}.$seed
            [[ ! ${options_of[$name]+there} ]] || heed_fail "$table: seed $seed twice in row \"${rows[number]}\""
            runs+=("$name")
            read -r -a parts <<<"$common ${all_options[number]}"
            options_of[$name]=${parts[*]}
        done
    done
    for name in ${ensembles[@]+"${ensembles[@]}"}; do
        read -r name options <<<"$name"
        for seed in $options; do
            [[ ${options_of[$seed]+there} ]] || heed_fail "$table: \"${name%.+}\": there is no run \"$seed\""
        done
        runs+=("$name")
        options_of[$name]=$options
    done
}

# choose <row>...: sets names to the runs of these rows, in the order of the table.
choose()
{
    local run row
    names=()
    for row; do
        [[ " ${runs[*]} ${runs[*]%.*} " == *" $row "* ]] ||
            heed_fail "unknown row \"$row\"; rows are $(printf '%s\n' "${runs[@]%.*}" | awk '!seen[$0]++' | paste -sd' ')"
    done
    for run in "${runs[@]}"; do
        if (($# == 0)) || [[ " $* " == *" $run "* || " $* " == *" ${run%.*} "* ]]; then names+=("$run"); fi
    done
}

read_table
if [[ $list == yes ]]; then
    for name in "${runs[@]}"; do echo "$name ${options_of[$name]}"; done
    exit
fi
data=$2 out=$3
shift 3
choose "$@"
for part in train val test2016; do
    for language in "$source_language" "$target_language"; do
        [[ -r $data/$part.$language ]] || heed_fail "$data/$part.$language: cannot be read" "" "$(usage)"
    done
done
data=$(cd "$data" && pwd)
if [[ ${GOLD:-} ]]; then
    for file in src tgt gold; do
        [[ -r $GOLD/$file ]] || heed_fail "$GOLD/$file: cannot be read" "" "$(usage)"
    done
    GOLD=$(cd "$GOLD" && pwd)
fi

# ---- programs ----------------------------------------------------------------------------------------------------------

if [[ ${PROGRAMS:-} ]]; then
    translate=$PROGRAMS/translate evaluate=$PROGRAMS/evaluate program=unknown
    for file in "$translate" "$evaluate"; do [[ -x $file ]] || heed_fail "$file: cannot be executed"; done
else
    parts=(CMakeLists.txt CMakePresets.json cmake include src tools)
    in_project() { git -C "$heed_root" "$@" -- "${parts[@]}"; }
    program=$(in_project log -1 --abbrev=12 --format=%h) || heed_fail "$heed_root is not a git checkout: rows name a commit; set PROGRAMS"
    [[ ! $(in_project status --porcelain) ]] ||
        heed_fail "these files have uncommitted changes, but a row names the commit of its programs:" "$(in_project status --porcelain)"
    heed_setup "${heed_packages_build[@]}" "${heed_packages_examples[@]}"
    heed_build tools translate >&2
    heed_build tools evaluate >&2
    translate=$heed_builds/tools/tools/translate evaluate=$heed_builds/tools/tools/evaluate
fi
heed_environment
mkdir -p "$out"
out=$(cd "$out" && pwd)
# shellcheck disable=SC2034
TRAIN=''  # for heed_train: the options of a row are those of the table

# ---- one run -----------------------------------------------------------------------------------------------------------

test_source=$data/test2016.$source_language test_target=$data/test2016.$target_language
# shellcheck disable=SC2034  # for heed_train
text=(--source "$data/train.$source_language" --target "$data/train.$target_language"
    --valid-source "$data/val.$source_language" --valid-target "$data/val.$target_language")
data_sum=$(cat "${text[1]}" "${text[3]}" "${text[5]}" "${text[7]}" "$test_source" "$test_target" | sha256sum | head -c 12)

# assess <run> <model option>...: translations, and the files of all metrics.
assess()
{
    local name=$1 base=$out/$1 options=${options_of[$1]} metric
    local -a model=("${@:2}") replace=()
    local reads=yes
    case $name in *.+) options=${options_of[${options%% *}]} ;; esac
    [[ $options != *'--attention none'* ]] || reads=no
    if [[ $options != *--bpe* && $options != *--recipe* && $reads == yes ]]; then  # whole words: unknown ones are replaced
        [[ -e $out/dictionary ]] ||
            "$translate" dictionary "${text[@]:0:4}" --output "$out/dictionary" 2>"$out/dictionary.log" || heed_fail "$(tail -n 1 "$out/dictionary.log")"
        replace=(--replace-unknown "$out/dictionary")
    fi
    tool() { "$@" 2>"$base.messages" || heed_fail "$name: $(tail -n 1 "$base.messages")"; }
    speed() { heed_write "$1" sed -n 's/.*[^0-9]\([0-9]* words\/s\).*/\1/p' "$base.messages"; }
    tool "$translate" score --threads 1 "${model[@]}" --source "$test_source" --target "$test_target" >"$base.score"
    tool "$translate" run --threads 1 "${model[@]}" --beam 1 --input "$test_source" >"$base.greedy"
    speed "$base.greedy.speed"
    tool "$translate" run --threads 1 "${model[@]}" --beam 12 --input "$test_source" >"$base.beam"
    speed "$base.beam.speed"
    rm -f "$base.replaced" "$base".*.json
    if ((${#replace[@]})); then
        tool "$translate" run --threads 1 "${model[@]}" --beam 12 "${replace[@]}" --input "$test_source" >"$base.replaced"
        tool "$evaluate" bleu --json --resamples 0 --reference "$test_target" "$base.replaced" >"$base.replaced.json"
    fi
    for metric in bleu ter ribes chrf; do
        tool "$evaluate" $metric --json --resamples 0 --reference "$test_target" "$base.beam" >"$base.$metric.json"
    done
    tool "$evaluate" repetition --json "$base.beam" >"$base.repetition.json"
    for metric in greedy beam; do
        tool "$evaluate" sentences --json --reference "$test_target" "$base.$metric" >"$base.$metric.sentences.json"
    done
    [[ $reads == yes && ${#model[@]} == 2 ]] || return 0
    tool "$translate" align --threads 1 "${model[@]}" --source "$test_source" --target "$base.beam" --weights "$base.weights" --output "$base.links"
    tool "$evaluate" adequacy --json --resamples 0 --source "$test_source" "$base.weights" >"$base.adequacy.json"
    rm -f "$base.weights" "$base.links"
    [[ ${GOLD:-} ]] || return 0
    case $source_language-$target_language in  # German is the source of the gold links
        en-de)
            tool "$translate" align --threads 1 "${model[@]}" --source "$GOLD/tgt" --target "$GOLD/src" --output "$base.links"
            sed -Ei 's/([0-9]+)-([0-9]+)/\2-\1/g' "$base.links"
            ;;
        de-en) tool "$translate" align --threads 1 "${model[@]}" --source "$GOLD/src" --target "$GOLD/tgt" --output "$base.links" ;;
        *) return 0 ;;
    esac
    tool "$evaluate" align --json --gold "$GOLD/gold" "$base.links" >"$base.align.json"
}

finished=$("$heed_root/scripts/results.py" finished "$table")

done_before=0
for name in "${names[@]}"; do
    if [[ $'\n'$finished$'\n' == *$'\n'$name$'\n'* ]]; then
        ((++done_before))
        continue
    fi
    heed_say "$(date -u '+%F %T') $name, $((done_before + 1)) of ${#names[@]}"
    if [[ $name == *.+ ]]; then
        members=()
        for member in ${options_of[$name]}; do
            [[ -e $out/$member.safetensors.done ]] || heed_fail "$name: the model $out/$member.safetensors is missing; run $member first"
            members+=(--model "$out/$member.safetensors")
        done
        assess "$name" "${members[@]}"
        parameters=-
    else
        heed_started "$name" "$program $data_sum ${options_of[$name]}"
        options_of[$name]+=" --seed ${name##*.}"
        heed_train "$name"
        parameters=$(heed_parameters "$name")
        assess "$name" --model "$out/$name.safetensors"
    fi
    "$heed_root/scripts/results.py" record "$table" "$name" "$out" "$program" "$data_sum" "$test_source" "$parameters"
    if [[ $commit == yes ]]; then
        git -C "$heed_root" add -- "$records.tsv" "$records"
        git -C "$heed_root" commit -q -m "$(basename "$records"): ${name%.*}, seed ${name##*.}" -- "$records.tsv" "$records"
    fi
    ((++done_before))
done
heed_say "$(date -u '+%F %T') ${#names[@]} runs are in $records.tsv"
