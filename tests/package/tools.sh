#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# tools.sh CMAKE BUILD SCRATCH: installs the component `tools` and checks the installation: programs that run from
# another folder, a manual page for every command, working completion.
set -euo pipefail

cmake=$1 build=$2 scratch=$3
prefix=$scratch/moved
rm -rf "$scratch"
mkdir -p "$scratch/empty"
"$cmake" --install "$build" --component tools --prefix "$scratch/installed" >"$scratch/log"
mv "$scratch/installed" "$prefix"
cd "$scratch/empty"
PATH=$prefix/bin:$PATH
export OPENBLAS_NUM_THREADS=1

fail()
{
    printf '%s\n' "FAILED: $*" >&2
    exit 1
}

# commands PROGRAM [COMMAND]: the subcommands listed in --help.
commands() { "$@" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z]\+\)  .*/\1/p'; }
# options PROGRAM [COMMAND...]: the options listed in --help.
options() { "$@" --help | grep -o '^  \(-[a-z],\)\?--[a-z0-9-]\+' | sed 's/.*--/--/' | sort -u; }

# ---- every command has a page with all of its options and without formatter warnings -----------------------------------

checked=0
# check_page WORD...: checks the page of a command.
check_page()
{
    local words=("$@") page text option name
    name=$(IFS=-; echo "${words[*]}")
    page=$prefix/share/man/man1/$name.1
    [[ -s $page ]] || fail "the page $name.1 is missing"
    if command -v groff >/dev/null; then
        [[ -z $(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null) ]] ||
            fail "$name.1: $(groff -man -ww -Tutf8 "$page" 2>&1 >/dev/null | head -n 3)"
        text=$(groff -man -Tascii -P-cbou "$page" 2>/dev/null)
    elif command -v mandoc >/dev/null; then
        text=$(mandoc -Tascii "$page" | sed 's/.\x08//g')
    else
        text=$(sed 's/\\-/-/g; s/^\.SH "\?//' "$page")  # no formatter: reads the source
    fi
    if command -v mandoc >/dev/null; then
        mandoc -Tlint -Wwarning "$page" >../lint || fail "$name.1: $(head -n 3 ../lint)"
    fi
    for option in $(options "${words[@]}"); do
        grep -q -- "$option" <<<"$text" || fail "$name.1 does not explain $option"
    done
    grep -q "^NAME" <<<"$text" || fail "$name.1 has no NAME"
    for title in SYNOPSIS DESCRIPTION OPTIONS 'EXIT STATUS' ENVIRONMENT 'SEE ALSO'; do
        grep -q "^$title" <<<"$text" || fail "$name.1 has no $title"
    done
    checked=$((checked + 1))
}
for program in translate evaluate; do
    [[ $("$program" --version) == "$program (heed) "* ]] || fail "$program --version"
    check_page $program
    for command in $(commands $program); do
        check_page $program "$command"
        for further in $(commands $program "$command"); do check_page $program "$command" "$further"; done
    done
done
pages=("$prefix"/share/man/man1/*.1)
((checked > 20 && ${#pages[@]} == checked)) || fail "$checked commands, but ${#pages[@]} pages"
grep -rl -e "$build" -e "$scratch" "$prefix/share" && fail "a page or a completion names a folder of this build"

# ---- recipes have names, and the program finds them after it was moved ---------------------------------------------------

recipes=("$prefix"/share/heed/recipes/*.ini)
((${#recipes[@]} >= 4)) || fail "${#recipes[@]} recipes"
for recipe in "${recipes[@]}"; do
    translate train --recipe "$(basename "$recipe" .ini)" --help >../help 2>../log || fail "$recipe: $(cat ../log)"
done
if translate train --recipe nowhere --help >../help 2>../log; then fail "a missing recipe is accepted"; fi
grep -q 'there is bahdanau2015, luong2015, ' ../log || fail "the recipes are not named: $(cat ../log)"

# ---- bash completes ----------------------------------------------------------------------------------------------------

# completed WORD...: the completions that bash offers for the last word, sorted.
completed()
{
    bash --norc -c '
        source "$1"
        shift
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        "_heed_$1"
        printf "%s\n" "${COMPREPLY[@]}"' - "$prefix/share/bash-completion/completions/$1" "$@" | sort | tr '\n' ' '
}
# expect TEXT WORD...: TEXT lists all completions.
expect()
{
    local offered
    offered=$(completed "${@:2}")
    [[ ${offered% } == "$1" ]] || fail "bash: '${*:2}' is completed to '$offered', not to '$1'"
}
mkdir models
touch en-de.safetensors 'my model'
expect 'choi convs2s luong rnnsearch sankaran transformer' translate train --system ''
expect 'choi convs2s' translate train --system c
expect 'choi convs2s' translate train --system = c
expect 'adadelta adam sgd' translate train --optimizer ''
expect 'en-de.safetensors models my model' translate run --model ''
expect 'en-de.safetensors' translate run --model = en
expect 'en-de.safetensors' translate run --beam 5 --model e
expect '' translate run --beam ''
expect '--beam' translate run --be
expect '--merges' translate --threads 2 bpe learn --mer
expect 'learn' translate bpe l
expect 'train' translate tr
expect '--smoothing' evaluate bleu --sm
expect '13a none' evaluate bleu --tokenize ''
expect 'en-de.safetensors' evaluate bleu --tokenize 13a en
for program in translate evaluate; do
    for command in $(commands $program); do
        # shellcheck disable=SC2046  # one word each
        expect "$(printf '%s ' $(options $program "$command") | sed 's/ $//')" $program "$command" --
    done
done

# ---- zsh and fish, if installed -----------------------------------------------------------------------------------------

for program in translate evaluate; do
    if command -v zsh >/dev/null; then
        zsh -n "$prefix/share/zsh/site-functions/_$program" || fail "zsh cannot read _$program"
        [[ $(head -n 1 "$prefix/share/zsh/site-functions/_$program") == "#compdef $program" ]] || fail "zsh: #compdef"
    fi
done
if command -v fish >/dev/null; then
    # fished TEXT LINE: checks the completions that fish offers for the end of a command line.
    fished()
    {
        local offered
        # shellcheck disable=SC2016  # fish expands it
        offered=$(HOME=$scratch fish --no-config -c 'for file in $argv[1]/*.fish; source $file; end; complete -C $argv[2]' \
            "$prefix/share/fish/vendor_completions.d" "$2" 2>/dev/null | cut -f 1 | sort | tr '\n' ' ')
        [[ ${offered% } == "$1" ]] || fail "fish: '$2' is completed to '$offered', not to '$1'"
    }
    fished 'choi convs2s' 'translate train --system c'
    fished 'learn' 'translate bpe l'
    fished '--beam' 'translate run --be'
    fished '13a none' 'evaluate bleu --tokenize '
    fished 'en-de.safetensors' 'translate run --model en'
fi
echo "$checked manual pages, completion: as declared"
