# SPDX-License-Identifier: BSD-3-Clause
#
# Sourced first by each test of the `translate` program, the script's first argument: creates a directory for the test
# with a small language to learn, and defines helpers. The language has three words; its sentences are translated word
# by word, in reverse order.

set -Eeu
export LC_ALL=C OPENBLAS_NUM_THREADS=1
# A sanitizer report must not look like an error of the program.
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:exitcode=99 UBSAN_OPTIONS=${UBSAN_OPTIONS:-}:exitcode=99
translate=$(realpath -- "$1")
directory=$(mktemp -d)
trap 'status=$?; rm -rf -- "$directory"; ((status)) || echo passed' EXIT
cd -- "$directory"

# sanitized: whether the program has AddressSanitizer, and is slow.
sanitized() { grep -q -a __asan_init "$translate"; }

fail()
{
    {
        printf 'FAILED (line %s): %s\n' "${BASH_LINENO[*]: -2:1}" "$*"
        [[ -s log ]] && echo "--- the program's messages:" && tail -n 12 log
    } >&2
    exit 1
}

# sentences COUNT SEED FILE: FILE.a in one language, FILE.b in the other.
sentences()
{
    local -a words=(one two three) meanings=(eins zwei drei)
    local i j length word line back state=$2
    for ((i = 0; i < $1; ++i)); do
        line='' back=''
        state=$(((state * 1103515245 + 12345) % 2147483648))
        length=$((1 + state / 65536 % 4))
        for ((j = 0; j < length; ++j)); do
            state=$(((state * 1103515245 + 12345) % 2147483648))
            word=$((state / 65536 % 3))
            line+=" ${words[word]}" back=" ${meanings[word]}$back"
        done
        echo "${line# }" >&3
        echo "${back# }" >&4
    done 3>"$3.a" 4>"$3.b"
}

trap 'fail "$BASH_COMMAND"' ERR

tiny=(--embedding 8 --hidden 8 --alignment 8 --batch 8 --threads 1)
training=("$translate" train --source train.a --target train.b --valid-source valid.a --valid-target valid.b
    --model model.safetensors "${tiny[@]}")
# train OPTION...: trains a small model from train.a to train.b; its messages are in `log`.
train() { "${training[@]}" "$@" 2>log; }

# ends_with STATUS TEXT COMMAND...: the command must exit with this status and one message, which contains TEXT.
ends_with()
{
    local status=0
    "${@:3}" >output 2>log || status=$?
    ((status == $1)) || fail "exit code $status instead of $1: ${*:3}"
    grep -v '^note: \|^      OPENBLAS' log >messages || true
    grep -q '^translate: ' messages || fail "no message: ${*:3}"
    [[ $(tail -n 1 messages) == *"$2"* ]] || fail "the message has no '$2': ${*:3}"
}
# refused TEXT COMMAND...: the command must reject its input.
refused() { ends_with 1 "$@"; }
# contradicts TEXT COMMAND...: the command must reject conflicting options.
contradicts() { ends_with 2 "$@"; }

# misused TEXT ARGUMENT...: the arguments must be rejected, with a message that contains TEXT.
misused()
{
    local status=0
    "$translate" "${@:2}" >output 2>log || status=$?
    ((status == 2)) || fail "exit code $status: ${*:2}"
    grep -q -- "$1" log || fail "the message has no '$1': ${*:2}"
}

# Only a killed program may leave a temporary, until the same file is written again.
no_temporaries() { if compgen -G '.*.tmp'; then fail "a temporary is left"; fi; }

# metadata NAME FILE: a metadata value of a safetensors file.
metadata() { head -c 200000 "$2" | grep -a -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4; }

# poisoned NAME NUMBER BYTES FILE: the safetensors file with one float of a tensor replaced by these four bytes, in
# printf notation.
poisoned()
{
    local begin at
    begin=$(head -c 200000 "$4" | grep -a -o "\"$1\":{[^}]*" | sed 's/.*"data_offsets":\[\([0-9]*\).*/\1/')
    [[ $begin ]] || fail "$4 has no tensor $1"
    at=$((8 + $(od -An -tu8 -N8 "$4") + begin + 4 * $2))
    head -c $at "$4"
    # shellcheck disable=SC2059  # the format is the bytes
    printf "$3"
    tail -c +$((at + 5)) "$4"
}

# edited OLD NEW FILE: the safetensors file with this text of its header replaced.
edited()
{
    local size header i
    size=$(od -An -tu8 -N8 "$3")
    header=$(tail -c +9 "$3" | head -c "$size")
    [[ $header == *"$1"* ]] || fail "the header of $3 has no $1"
    header=${header/"$1"/"$2"}
    for ((i = 0; i < 8; ++i)); do
        # shellcheck disable=SC2059  # the format is the byte
        printf "\\x$(printf %02x $((${#header} >> 8 * i & 255)))"
    done
    printf %s "$header"
    tail -c +$((9 + size)) "$3"
}
