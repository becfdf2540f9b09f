#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# whole_files.sh SCRIPTS: on a full disk, at every byte, the files that scripts write keep their content, and the error
# names the file and the reason.
set -Eeuo pipefail
export LC_ALL=C PYTHONDONTWRITEBYTECODE=1
scripts=$(realpath -- "$1")

directory=$(mktemp -d)
trap 'rm -rf -- "$directory"' EXIT
cd -- "$directory"
fail() { printf 'FAILED (line %s): %s\n' "${BASH_LINENO[0]}" "$*" >&2 && exit 1; }

PYTHONPATH=$scripts python3 - <<'END'
import os, resource
from pathlib import Path
from results import Problem, record
records, page = Path("records.tsv"), Path("page.md")


def full_after(size, path, write):
    """Whether write() succeeds if no file can have more bytes than this; if not, the file is unchanged."""
    before = path.read_bytes() if path.exists() else b""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        write()
        return True
    except Problem as problem:
        assert str(problem) == f"{path}: cannot write: File too large; the previous file is unchanged", problem
        assert (path.read_bytes() if path.exists() else b"") == before, f"{path} has changed: {path.read_bytes()}"
        return False
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


failed = 0
for text in ("head\nrow 1\n", "head\nrow 1\nrow 2\n"):
    line = text.splitlines()[-1]
    for size in range(len(text)):
        assert not full_after(size, records, lambda: record.append_whole(records, "head", line)), size
        failed += 1
    assert full_after(len(text), records, lambda: record.append_whole(records, "head", line))
    assert records.read_text() == text, records.read_text()
for text in (b"a page\n", b"a longer page\n"):
    for size in range(len(text)):
        assert not full_after(size, page, lambda: record.write_whole(page, text)), size
        failed += 1
    record.write_whole(page, text)
    assert page.read_bytes() == text
assert failed == 49, failed
assert sorted(os.listdir()) == ["page.md", "records.tsv"], os.listdir()
END

# The functions of setup.sh. The last line of the output does not fit.
cat >writes <<'END'
set -euo pipefail
source "$1/setup.sh"
lines() { head -c 1000 /dev/zero; sed 's/old/new/' old | head -c 100; }
heed_write file lines
echo written
END
echo old >old
bash writes "$scripts" >output || fail "a file is not written"
[[ $(wc -c <file) == 1004 ]] || fail "another file was written"
echo old >file
head -c 2000 /dev/zero >old
if (trap '' XFSZ && ulimit -f 1 && bash writes "$scripts" >output 2>log); then fail "a full disk is not noticed"; fi
grep -q 'File too large' log || fail "the message is: $(cat log)"
grep -q '^file: cannot write; the previous file is unchanged' log || fail "the message is: $(cat log)"
[[ $(cat file) == old && ! -s output && ! -e file.part ]] || fail "a partial file"

# The command fails, under a condition; a function fails in its middle; there is no folder.
cat >writes <<'END'
set -euo pipefail
source "$1/setup.sh"
fails_first() { false; echo new; }
case $2 in
command) if heed_write file bash -c 'echo new; exit 3'; then echo written; else exit 1; fi ;;
function) heed_write file fails_first ;;
folder) heed_write none/file echo new ;;
esac
echo written
END
for how in command function folder; do
    if bash writes "$scripts" $how >output 2>log; then fail "no error: $how"; fi
    grep -q 'file: cannot write; the previous file is unchanged' log || fail "the message is: $(cat log)"
    [[ $(cat file) == old && ! -s output && ! -e file.part ]] || fail "a partial file: $how"
done
