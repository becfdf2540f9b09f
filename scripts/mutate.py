#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutation testing: changes one token of a header, and requires a test to fail.

usage: scripts/mutate.py [option...] OUT [HEADER...]

Draws mutants of the headers (default: kernels, normalize, score, ops and ad of include/heed). Each mutant is compiled
with the test file of its header (include/heed/A/B.hpp: tests/A/B.cpp), which must then fail. A mutant that survives is
compiled with the tests of --then as well. Appends a line per mutant to OUT/mutants.tsv and skips those that it has:
after an interruption, run the same command again. Prints the survivors that tests/mutants.txt does not explain.

  --sample N      number of mutants, spread over the headers by their size (default 100)
  --seed N        another sample (default 1)
  --all           all mutants of the headers
  --then FILE...  test files for survivors, separated by commas (default: tests/properties/*.cpp)
  --minutes N     ends after N minutes
  --list          prints the mutants and ends
  --summary       prints the shares by folder and ends
  --compiler C    default: clang++-14 if present, else c++
  --jobs N        parallel mutants (default 1)

OUT  folder for copies of the headers, programs and mutants.tsv

The status of a mutant is `killed` (a test failed, crashed or did not end), `survived`, or `invalid` (it does not
compile, so the compiler finds it). Exit status 1 if a survivor is not explained.
"""

import argparse
import collections
import concurrent.futures
import fcntl
import os
import random
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADERS = ROOT / "include" / "heed"
FOLDERS = ("kernels", "normalize", "score", "ops", "ad")
EXPLAINED = ROOT / "tests" / "mutants.txt"

# Binary operators have a space on each side (clang-format); so declarations such as `T* x` and `f<T>` do not match.
BINARY = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
          "&&": "||", "||": "&&", "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "%": "/"}
NAMES = {"min": "max", "max": "min", "true": "false", "false": "true", "begin": "end", "front": "back", "back": "front"}
STATEMENT = re.compile(r"^\s*(?!\s|[\w:<>]+[*&]?(?: const)? \w+(?:\[\w+\])? = |static|"  # no declaration or control
                       r"(?:return|using|const|constexpr|auto|throw|if|for|else|while|case|typename|template)\b)"
                       r"[\w.\[\]()*\->&:, +/]+(?:[-+*/]?= [^;{}]+|\([^;{}]*\)|\+\+);$")
TOKEN = re.compile(r"(?P<skip>//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|^\s*#[^\n]*(?:\\\n[^\n]*)*)"
                   r"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?:e[-+]?\d+)?f?(?![\w.']))|(?P<name>[A-Za-z_]\w*)"
                   r"|(?P<binary>(?<= )(?:\+=|-=|\*=|/=|<=|>=|==|!=|&&|\|\||[-+*/%<>])(?= ))|(?P<unary>(?<=[(,=?:\[{ ])[-!](?=[\w(]))"
                   r"|(?P<call>(?<=\w)\()|(?P<brace>[{}])|(?P<end>;)|(?P<other>.)", re.S | re.M)


class Mutant:
    """A replacement of text[at:to] in a header."""

    def __init__(self, header, text, at, to, new):
        self.header, self.at, self.to, self.new = header, at, to, new
        self.line = text.count("\n", 0, at) + 1
        self.before = text.splitlines()[self.line - 1].strip()
        start = text.rfind("\n", 0, at) + 1
        end = text.find("\n", to)
        self.after = " ".join((text[start:at] + new + text[to:end]).split())

    @property
    def name(self):
        """Independent of line numbers, which change: the header, the line before and after."""
        return f"{self.header.relative_to(HEADERS)}: {self.before}  =>  {self.after}"


def bodies(tokens):
    """For each token, whether it is inside the body of a function and not in a static_assert or a message."""
    inside, stack, previous, quiet = [], [], "", 0
    for kind, text in tokens:
        if kind == "brace" and text == "{":
            stack.append(previous == ")" or previous in ("const", "noexcept", "else", "do", "try", "mutable") or any(stack))
        elif kind == "brace" and stack:
            stack.pop()
        elif kind == "name" and text in ("static_assert", "throw", "requires", "require_shape", "require"):
            quiet = 1
        elif quiet and (text in ";{" or kind == "brace"):
            quiet = 0
        inside.append(any(stack) and not quiet)
        if kind != "skip" and not text.isspace():
            previous = text
    return inside


def mutants_of(header):
    """All mutants of a header, in the order of the text."""
    text = header.read_text(encoding="utf-8")
    matches = [match for match in TOKEN.finditer(text)]
    tokens = [(match.lastgroup, match.group()) for match in matches]
    found = []
    for match, (kind, token), inside in zip(matches, tokens, bodies(tokens)):
        if not inside:
            continue
        add = lambda new, at=match.start(), to=match.end(): found.append(Mutant(header, text, at, to, new))
        if kind == "binary":
            add(BINARY[token])
        elif kind == "unary":
            add("")
        elif kind == "name" and token in NAMES:
            add(NAMES[token])
        elif kind == "name" and token == "if" and text.startswith(" (", match.end()):
            end = closing(text, match.end() + 1)
            add(f"if (!({text[match.end() + 2:end]}))", to=end + 1)
        elif kind == "number":
            add({"0": "1", "1": "2"}.get(token, f"({token} + 1)"))
            if token == "1":
                add("0")
        elif kind == "call":
            arguments = re.match(r"\((\w[\w.]*(?:\[\w+\])?), (\w[\w.]*(?:\[\w+\])?)(?=[,)])", text[match.start():])
            symmetric = re.search(r"\b(?:min|max|gcd)$", text[:match.start()])
            if arguments and arguments.group(1) != arguments.group(2) and not symmetric:
                add(f"({arguments.group(2)}, {arguments.group(1)}", to=match.start() + arguments.end())
        elif kind == "end":
            start = text.rfind("\n", 0, match.start()) + 1
            if STATEMENT.match(text[start:match.end()]) and text[match.end():match.end() + 1] == "\n":
                add(";", at=start)
    return found


def closing(text, at):
    """The index of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
    raise ValueError("unbalanced parentheses")


def test_of(header):
    """The test file of a header, or None."""
    test = ROOT / "tests" / header.relative_to(HEADERS).with_suffix(".cpp")
    return test if test.is_file() else None


class Machine:
    """Compiles and runs tests on copies of the headers, one copy per worker."""

    def __init__(self, out, compiler):
        self.out, self.compiler, self.local = out, compiler, threading.local()
        self.flags = ["-std=c++20", "-O0", "-g0", "-march=native", "-w", f"-I{ROOT / 'tests'}", f"-I{ROOT}"]
        self.main = out / "main.o"
        self.workers, self.lock, self.seconds = 0, threading.Lock(), {}
        subprocess.run([compiler, *self.flags, "-c", ROOT / "tests" / "main.cpp", "-o", self.main], check=True)

    def copy(self):
        """This worker's copy of the headers."""
        if not hasattr(self.local, "copy"):
            with self.lock:
                self.workers += 1
                self.local.copy = self.out / f"copy{self.workers}"
            shutil.rmtree(self.local.copy, ignore_errors=True)
            shutil.copytree(ROOT / "include", self.local.copy / "include")
        return self.local.copy

    def run(self, test):
        """`passed`, `failed` or `invalid`, and the seconds of the program."""
        copy = self.copy()
        program = copy / "program"
        command = [self.compiler, *self.flags, f"-I{copy / 'include'}", test, self.main, "-o", program, "-lopenblas", "-lpthread"]
        if subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
            return "invalid", 0
        start = time.monotonic()
        try:
            status = subprocess.run([program], cwd=copy, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                                    timeout=10 * self.seconds.get(test, 60) + 10).returncode
        except subprocess.TimeoutExpired:
            status = 1
        return "failed" if status else "passed", time.monotonic() - start

    def usable(self, test):
        """Whether the test passes without a change; measures it."""
        if test not in self.seconds:
            result, seconds = self.run(test)
            if result != "passed":
                print(f"mutate.py: {test.relative_to(ROOT)} does not pass on its own ({result}): not used", file=sys.stderr)
            self.seconds[test] = seconds if result == "passed" else None
        return self.seconds[test] is not None

    def judge(self, mutant, then):
        """The status of a mutant, and the test that decided."""
        text = mutant.header.read_text(encoding="utf-8")
        target = self.copy() / "include" / "heed" / mutant.header.relative_to(HEADERS)
        for test in [test_of(mutant.header), *then]:
            if not test or not self.usable(test):
                continue
            target.write_text(text[:mutant.at] + mutant.new + text[mutant.to:], encoding="utf-8")
            try:
                result, _ = self.run(test)
            finally:
                target.write_text(text, encoding="utf-8")
            if result != "passed":
                return {"failed": "killed"}.get(result, result), test
        return "survived", None


def read_results(path):
    """name: (status, test), in the order of the file."""
    if not path.is_file():
        return {}
    lines = [line.rstrip("\n").split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return {line[2]: (line[0], line[1]) for line in lines if len(line) == 3}


def summary(results):
    """Shares by folder."""
    counts = collections.defaultdict(collections.Counter)
    for name, (status, _) in results.items():
        for folder in (name.split("/")[0], "all"):
            counts[folder][status] += 1
    print("| folder | mutants | invalid | killed | survived | killed, % of valid |\n|---|---|---|---|---|---|")
    for folder, count in sorted(counts.items(), key=lambda each: (each[0] == "all", each[0])):
        valid = count["killed"] + count["survived"]
        print(f"| {folder} | {sum(count.values())} | {count['invalid']} | {count['killed']} | {count['survived']} | "
              f"{100 * count['killed'] / valid if valid else 0:.1f} |")


def main():
    """Runs the command line."""
    if len(sys.argv) == 1 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    parser = argparse.ArgumentParser(add_help=False, usage="scripts/mutate.py [option...] OUT [HEADER...]; see --help")
    for option, default in (("--sample", 100), ("--seed", 1), ("--jobs", 1)):
        parser.add_argument(option, type=int, default=default)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--then")
    parser.add_argument("--compiler", default=shutil.which("clang++-14") or "c++")
    for option in ("--all", "--list", "--summary"):
        parser.add_argument(option, action="store_true")
    parser.add_argument("out", type=Path)
    parser.add_argument("headers", nargs="*", type=Path)
    given = parser.parse_args()

    headers = [each.resolve() for each in given.headers] or sorted(each for folder in FOLDERS for each in (HEADERS / folder).rglob("*.hpp"))
    for each in headers:
        if not each.is_relative_to(HEADERS) or not each.is_file():
            parser.error(f"{each} is not a header of include/heed")
    records = given.out / "mutants.tsv"
    if given.summary:
        summary(read_results(records))
        return 0
    mutants = list({each.name: each for header in headers for each in mutants_of(header)}.values())
    count = len(mutants)
    if not given.all:
        mutants = random.Random(given.seed).sample(mutants, min(given.sample, count))
    if given.list:
        print(*(each.name for each in mutants), sep="\n")
        return 0
    then = [Path(each).resolve() for each in given.then.split(",")] if given.then else sorted((ROOT / "tests" / "properties").glob("*.cpp"))

    given.out.mkdir(parents=True, exist_ok=True)
    results, machine, ends = read_results(records), Machine(given.out.resolve(), given.compiler), time.monotonic() + 60 * given.minutes
    names = {each.name for each in mutants}
    waiting = [each for each in mutants if each.name not in results]
    print(f"{count} mutants, {len(mutants)} drawn, {len(mutants) - len(waiting)} judged before", file=sys.stderr)

    def judge(mutant):
        if time.monotonic() > ends:
            return
        status, test = machine.judge(mutant, then)
        results[mutant.name] = (status, str(test.relative_to(ROOT)) if test else "-")
        with open(records, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{status}\t{results[mutant.name][1]}\t{mutant.name}\n")
        print(f"{len(results.keys() & names)} of {len(mutants)}: {status}, {mutant.name}", file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(judge, waiting))
    explained = EXPLAINED.read_text(encoding="utf-8").splitlines() if EXPLAINED.is_file() else []
    here = {name: each for name, each in results.items() if name in names}
    summary(here)
    left = [name for name, (status, _) in here.items() if status == "survived" and name not in explained]
    print(*left, f"{len(left)} survivors are not explained", sep="\n")
    return 1 if left else 0


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("\nmutate.py: run the same command again to continue")
