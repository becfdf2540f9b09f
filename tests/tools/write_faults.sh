#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Each call that writes, in each command, fails once: every output is the former file or the whole new one, and an error
# names the file and the reason.
evaluate=$(realpath -- "$2") faults=$(realpath -- "${4:-/nowhere}")
# shellcheck source=tests/tools/common.bash
source "$(dirname "${BASH_SOURCE[0]}")/common.bash"
[[ -e $faults ]] || exit 77
export ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
sentences 16 1 train
sentences 5 2 valid
train --model dimensions --attention per-dimension --epochs 1 || fail "training"
train --epochs 1 --log course.csv || fail "training"
mv model.safetensors model
mv course.csv course
rm model.safetensors.checkpoint dimensions.checkpoint

# faulty FAULT COMMAND...: with a fault as described in write_faults.cpp; `seen` exists if it occurred.
faulty()
{
    rm -f seen
    env LD_PRELOAD="$faults" WRITE_FAULT="$1" WRITE_FAULT_SEEN=seen "${@:2}"
}
reason_of() { case $1 in 28) echo 'No space left on device' ;; 5) echo 'Input/output error' ;; 24) echo 'Too many open files' ;; 13) echo 'Permission denied' ;; esac; }

# torn FILE...: a file that is neither the former nor the new one.
torn()
{
    local file
    for file; do
        if [[ -e former/$file ]]; then
            cmp -s "former/$file" "$file" || cmp -s "new/$file" "$file" || echo "$file"
        elif [[ -e $file ]]; then
            cmp -s "new/$file" "$file" || echo "$file"
        fi
    done
}

count=0
# each_fault OUTPUT... -- COMMAND...: standard output is an output, too.
each_fault()
{
    local -a outputs=()
    while [[ $1 != -- ]]; do outputs+=("$1") && shift; done
    shift
    local fault number reason status file bad
    rm -rf new former
    mkdir new former
    "$@" >stdout 2>log || fail "$*"
    for file in "${outputs[@]}"; do cp "$file" new && echo "the former $file" >"former/$file"; done
    cp stdout new
    for fault in 'write %d 28 /' 'write %d 0 /' 'open %d 24 /' 'rename %d 5 /' 'write %d kill /'; do
        for ((number = 1;; ++number)); do
            for file in "${outputs[@]}"; do cp "former/$file" "$file"; done
            status=0
            # shellcheck disable=SC2059  # the fault is a format
            faulty "$(printf "$fault" $number)" "$@" >stdout 2>log || status=$?
            [[ -e seen ]] || break
            read -r _ _ reason _ <<<"$fault"
            bad=$(torn "${outputs[@]}")
            [[ ! $bad ]] || fail "$bad is torn: $fault $number: $*"
            count=$((count + 1))
            if [[ $reason == kill ]]; then
                ((status == 137)) || fail "not killed: $fault $number: $*"
                rm -f .*.tmp
                continue
            fi
            no_temporaries
            if ((status == 0)); then
                for file in stdout "${outputs[@]}"; do cmp -s "new/$file" "$file" || fail "$file is not the new one, without an error: $fault $number: $*"; done
                [[ $reason == 0 ]] || fail "no error: $fault $number: $*"
            else
                ((status == 1)) || fail "status $status: $fault $number: $*"
                grep -q ": cannot .*: $(reason_of "$reason")\|^[a-z]*: cannot write to standard output: $(reason_of "$reason")" log ||
                    fail "no reason: $fault $number: $*"
            fi
        done
        ((status == 0)) || fail "without a fault: status $status: $*"
        for file in stdout "${outputs[@]}"; do cmp -s "new/$file" "$file" || fail "$file differs without a fault: $*"; done
    done
}

one=(--model model --threads 1)
each_fault tokens a.svg page.html -- "$translate" run "${one[@]}" --input valid.a --tokens tokens --alignments a.svg --page page.html
each_fault weights tokens a.svg -- "$translate" align "${one[@]}" --source valid.a --target valid.b --weights weights --tokens tokens --picture a.svg
each_fault links -- "$translate" align "${one[@]}" --source valid.a --target valid.b --output links
each_fault page.html -- "$translate" page "${one[@]}" --source valid.a --reference valid.b --output page.html
each_fault small -- "$translate" quantize --model model --output small
each_fault codes -- "$translate" bpe learn --input train.a --codes codes --merges 3
each_fault -- "$translate" bpe apply --codes codes --input train.a
each_fault dictionary phrases -- "$translate" dictionary --source train.a --target train.b --output dictionary --phrases phrases
each_fault curves.svg -- "$translate" curves course --output curves.svg
each_fault -- "$translate" score "${one[@]}" --source valid.a --target valid.b
show=("$translate" dimensions --model dimensions --threads 1 --source valid.a --target valid.b --least 1)
each_fault classes a.svg -- "${show[@]}" --output classes --picture a.svg
# shellcheck disable=SC2016  # for the inner shell
each_fault -- sh -c 'exec "$@" <valid.a' - "$translate" serve "${one[@]}" --stdin
"$translate" run "${one[@]}" --input valid.a --n-best 2 >lists 2>log
each_fault scored -- "$translate" rescore "${one[@]}" --source valid.a --n-best lists --output scored
each_fault weights -- "$evaluate" tune --reference valid.b --output weights scored
cp weights tuned
each_fault best -- "$evaluate" rerank --weights tuned --output best scored
each_fault both -- "$evaluate" align links links --symmetrize union --output both
each_fault lengths.svg -- "$evaluate" lengths --source valid.a --reference valid.b --picture lengths.svg valid.b

# One output that cannot be written does not lose the others.
"$evaluate" tune --reference valid.b --output weights scored >new/stdout 2>log || fail "tuning"
if faulty 'write 1 28 .weights.' "$evaluate" tune --reference valid.b --output weights scored >stdout 2>log; then fail "no error"; fi
grep -q '^evaluate: weights: cannot write: No space left on device' log || fail "the message is another"
cmp new/stdout stdout || fail "the report is lost"
rm -f weights tokens a.svg
align=("$translate" align "${one[@]}" --source valid.a --target valid.b)
"${align[@]}" --weights new/weights --tokens new/tokens --picture new/a.svg >new/stdout 2>log || fail "aligning"
if faulty 'write 1 28 tokens' "${align[@]}" --weights weights --tokens tokens --picture a.svg >stdout 2>log; then fail "no error"; fi
grep -q '^translate: tokens: cannot write: No space left on device' log || fail "the message is another"
for file in weights a.svg stdout; do cmp "new/$file" $file || fail "$file is lost"; done
[[ ! -e tokens ]] || fail "a partial file"
rm -f a.svg classes
"${show[@]}" --output new/classes --picture new/a.svg 2>log || fail "dimensions"
if faulty 'write 1 28 .classes' "${show[@]}" --output classes --picture a.svg 2>log; then fail "no error"; fi
cmp new/a.svg a.svg || fail "a.svg is lost"
words=("$translate" dictionary --source train.a --target train.b)
rm -f dictionary phrases
"${words[@]}" --output new/dictionary --phrases new/phrases 2>log || fail "a dictionary"
if faulty 'write 1 28 .dictionary' "${words[@]}" --output dictionary --phrases phrases 2>log; then fail "no error"; fi
cmp new/phrases phrases || fail "phrases is lost"
if compgen -G 'classes*' || compgen -G 'dictionary*'; then fail "a partial file"; fi

# Manual pages and completions, which the build writes.
mkdir bash zsh fish
for fault in 'write 1 28 translate-align.1' 'rename 1 28 fish/translate.fish'; do
    case $fault in *fish*) kind=completion ;; *) kind=man ;; esac
    if faulty "$fault" "$translate" --generate $kind . 2026-01-01 2>log; then fail "no error: $fault"; fi
    grep -q "${fault##* }: cannot .*: No space left on device" log || fail "no reason: $fault"
    if find . -name "*${fault##*[ /]}*" | grep .; then fail "a file remains: $fault"; fi
    count=$((count + 1))
done

# Examples and benchmarks, by tools/support/checked_output.cpp.
snippet=$(dirname "$translate")/../examples/snippet
if [[ -x $snippet ]]; then
    if "$snippet" >/dev/full 2>log; then fail "an example does not notice a full disk"; fi
    grep -q '^cannot write to standard output: No space left on device' log || fail "no reason"
fi

# Training: if the log or the model cannot be written, the epoch is saved, and the resumed run is the same.
how=(--epochs 3 --patience 9 --optimizer sgd --learning-rate 0.5 --log log.csv)
train "${how[@]}" || fail "training"
mv model.safetensors whole
cut -d , -f 1,2,4-7 log.csv >rows
for fault in 'write 2 28 log.csv' 'rename 1 5 model.safetensors' 'rename 2 28 log.csv'; do
    rm -f model.safetensors* log.csv
    status=0
    faulty "$fault" "${training[@]}" "${how[@]}" 2>log || status=$?
    ((status == 1)) || fail "status $status: $fault"
    grep -q '^epoch 1 is saved before its validation' log || fail "the epoch is lost: $fault"
    tail -n 1 log | grep -q "^translate: ${fault##* }: cannot .*: $(reason_of "$(cut -d ' ' -f 3 <<<"$fault")")" || fail "the message is another: $fault"
    no_temporaries
    train "${how[@]}" --resume || fail "resuming after $fault"
    cmp whole model.safetensors || fail "the resumed model is another: $fault"
    cut -d , -f 1,2,4-7 log.csv | cmp - rows || fail "the resumed log is another: $fault"
    count=$((count + 1))
done
# A checkpoint that cannot be written: the former one stays, and the run can be resumed from it.
for fault in 'write 3 28 .checkpoint' 'write 40 28 .checkpoint' 'fsync 2 5 .checkpoint' 'rename 2 28 .checkpoint' 'open 3 24 .checkpoint' 'rename 2 kill .checkpoint'; do
    rm -f model.safetensors* log.csv
    if faulty "$fault" "${training[@]}" "${how[@]}" 2>log; then fail "no error: $fault"; fi
    [[ -e seen ]] || fail "no fault: $fault"
    [[ $fault == *kill* ]] || no_temporaries
    again=''  # the fault was in the first checkpoint
    [[ ! -e model.safetensors.checkpoint ]] || again=--resume
    train "${how[@]}" $again || fail "resuming after $fault"
    cmp whole model.safetensors || fail "the resumed model is another: $fault"
    count=$((count + 1))
done
# The shards of a large text, or the lock, cannot be written: there is no training, and no file remains.
for fault in 'pwrite 1 28 .corpus' 'fsync 1 5 .corpus' 'rename 1 28 .corpus' 'open 2 24 .corpus' 'open 1 13 .lock'; do
    rm -f model.safetensors* log.csv seen
    status=0
    faulty "$fault" "${training[@]}" "${how[@]}" --shard 6 2>log || status=$?
    [[ -e seen ]] || fail "no fault: $fault"
    ((status == 1)) || fail "status $status: $fault"
    tail -n 1 log | grep -q "^translate: .*${fault##* }: cannot .*: $(reason_of "$(cut -d ' ' -f 3 <<<"$fault")")" || fail "no reason: $fault"
    if compgen -G '*model.safetensors*' || compgen -G '.*model.safetensors*'; then fail "a file remains: $fault"; fi
    count=$((count + 1))
done
echo "$count faults"
