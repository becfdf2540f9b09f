#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# With an empty path, or an output that cannot be written, `translate` and `evaluate` exit before they start to work.
evaluate=$(realpath -- "$2")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
sentences 50 1 train
sentences 10 2 valid

# empty COMMAND...: the command must reject its empty path.
checked=0
empty()
{
    local status=0
    "$@" >output 2>log </dev/null || status=$?
    ((status == 2)) || fail "ended with $status: ${*@Q}"
    grep -q 'the path is empty; name a file' log || fail "another message: ${*@Q}"
    checked=$((checked + 1))
}

# Every FILE in the help of a command, left empty. commands NAME...: the commands of a program.
commands() { "$@" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\) .*/\1/p'; }
refuses_empty_paths()
{
    local option help equals=  # one option of a command checks that "OPTION=" is parsed like "OPTION VALUE"
    help=$("$@" --help)
    while read -r option; do
        empty "$@" "$option" ''
        if [[ ! $equals ]]; then empty "$@" "$option="; fi
        equals=yes
    done < <(grep -o -e '^  --[a-z-]\+ \[\?FILE' <<<"$help" | sed 's/^ *\([^ ]*\).*/\1/')
    if sed -n '/^Usage:/p' <<<"$help" | grep -q -e ' FILE\| LOG\| BASELINE'; then empty "$@" ''; fi
}
mkdir empty
cd empty
for program in "$translate" "$evaluate"; do
    for command in $(commands "$program"); do
        refuses_empty_paths "$program" "$command"
        for part in $(commands "$program" "$command"); do refuses_empty_paths "$program" "$command" "$part"; done
    done
done
rm output log
[[ -z $(ls -A) ]] || fail "files were written: $(ls -A)"
cd ..
((checked >= 60)) || fail "only $checked command lines with an empty path"
# Values that need not be paths may be empty.
train --epochs 1 || fail "training"
"$translate" page --model model.safetensors --source valid.a --output page.html --title '' --name= 2>log || fail "--title ''"
"$translate" run --model model.safetensors --input valid.a --replace-unknown >output 2>log || fail "--replace-unknown alone"

# Outputs that cannot be written are rejected before any input is read.
unreadable=(--source missing --target missing)
refused 'none/model: cannot create a temporary' train --model none/model "${unreadable[@]}"
for page in --alignments --page --tokens; do
    refused 'none/x: cannot create a temporary' "$translate" run --model missing "$page" none/x
done
for out in --output --weights --tokens; do
    refused 'none/x: cannot create a temporary' "$translate" align --model missing "${unreadable[@]}" "$out" none/x
done
refused 'none/x: cannot create a temporary' "$translate" page --model missing --source missing --output none/x
refused 'none/x: cannot create a temporary' "$translate" dictionary "${unreadable[@]}" --output none/x
for input in '' '--input missing'; do
    # shellcheck disable=SC2086  # option and value, or nothing
    refused 'none/x: cannot create a temporary' "$translate" bpe learn $input --codes none/x <<<$'\xff'
done
printf '#version: 0.2\n' >codes
refused 'none/x: cannot create a temporary' "$translate" bpe apply --codes codes --input missing --output none/x
refused 'none/x: cannot create a temporary' "$translate" bpe undo --input missing --output none/x

# A link to a file that does not exist yet is followed; two names may therefore be one file.
ln -s to/a.svg picture.svg
mkdir to
"$translate" run --model model.safetensors --input valid.a --alignments picture.svg >output 2>log || fail "through a link"
[[ -L picture.svg && $(head -c 5 to/a.svg) == '<svg ' ]] || fail "the link was not followed"
ln -s to/b.svg other.svg
refused '--alignments and --page are the same file' "$translate" run --model model.safetensors --input valid.a \
    --alignments to/b.svg --page other.svg
ln -s loop.svg loop.svg
refused 'loop.svg: cannot follow its symbolic links: Too many levels' "$translate" run --model model.safetensors \
    --input valid.a --alignments loop.svg
no_temporaries
