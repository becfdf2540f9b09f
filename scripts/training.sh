# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# Trains several systems on one text; sourced by papers.sh, numbers.sh and pronunciation.sh, which set:
#
#   translate     the program                          out      the folder of models and logs
#   text          its options for the text             names    the systems, in order
#   options_of    the other options, by system         TRAIN, JOBS: from the user's environment

# heed_choose_rows <rows> [<name>...]: sets options_of from lines "name option...", and names to those given, or to all.
heed_choose_rows()
{
    local rows=$1 name options
    shift
    names=()
    declare -gA options_of=()
    while read -r name options; do
        [[ $name ]] || continue
        options_of[$name]=$options
        if (($# == 0)) || [[ " $* " == *" $name "* ]]; then names+=("$name"); fi
    done <<<"$rows"
    for name; do
        [[ ${options_of[$name]+there} ]] ||
            heed_fail "unknown row \"$name\"; rows are $(awk '{ printf "%s%s", (NR > 1 ? ", " : ""), $1 }' <<<"$rows")"
    done
}

# heed_started <name> <description>: a run that was begun before must have the same description: program, text, options.
heed_started()
{
    local before=$out/$1.run
    if [[ ! -e $before ]]; then
        heed_write "$before" echo "$2"
    elif [[ $(<"$before") != "$2" ]]; then
        heed_fail "$out/$1.*: was begun with another program, text or other options; remove these files to start over, or use another OUT" \
            "    before: $(<"$before")" "    now:    $2"
    fi
}

# heed_train <name>: trains a system; its model, log and messages are in $out. Resumes after an interruption, and skips a
# finished model.
heed_train()
{
    local model=$out/$1.safetensors resume=() options
    [[ ! -e $model.done ]] || return 0
    read -r -a options <<<"${options_of[$1]} ${TRAIN:-}"
    [[ ! -e $model.checkpoint ]] || resume=(--resume)
    heed_say "training $1: ${options[*]}" >&2
    "$translate" train --threads 1 "${text[@]}" --model "$model" --log "$out/$1.csv" "${options[@]}" "${resume[@]}" \
        2>>"$out/$1.log" || heed_fail "$1: $(tail -n 1 "$out/$1.log")"
    touch "$model.done"
}

# heed_train_all: trains all names, JOBS in parallel.
heed_train_all()
{
    local name
    for name in "${names[@]}"; do
        while (($(jobs -rp | wc -l) >= ${JOBS:-1})); do wait -n; done
        heed_train "$name" &
    done
    while (($(jobs -rp | wc -l) > 0)); do wait -n; done
}

# heed_course <name>: "epoch | time" of the best model.
heed_course()
{
    local last
    last=$(grep '^best validation BLEU' "$out/$1.log" | tail -n 1)
    [[ $last =~ after\ epoch\ ([0-9]+)\ of.*\((.*)\) ]] && echo "${BASH_REMATCH[1]} | ${BASH_REMATCH[2]}"
}

# heed_parameters <name>
heed_parameters()
{
    local line
    line=$(grep -o '[0-9]* parameters' "$out/$1.log" | tail -n 1)
    echo "${line% *}"
}
