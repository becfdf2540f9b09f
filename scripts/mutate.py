#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mutation testing: changes one token of a header, and requires a test to fail.

usage: scripts/mutate.py [option...] OUT [HEADER...]

Draws mutants of the headers (default: kernels, normalize, score, ops and ad of include/heed), and runs the test file of
each header (include/heed/A/B.hpp: tests/A/B.cpp) with each of its mutants: it must fail. The tests of the other headers
that were drawn, and of --then, run with the mutants that survive. Appends a line per mutant to OUT/mutants.tsv and
skips those that it has: after an interruption, run the same command again. Prints the survivors that tests/mutants.txt
does not explain.

The tests of 32 headers are compiled in one program, with all mutants: `a + b` becomes `a + mutants::at(7) + b`, which
subtracts if the environment variable HEED_MUTANT is 7. Mutants that do not compile so (a number that is a template
argument, operands without that operator) and those that no test reaches are compiled one by one, with the test of the
header.

  --sample N      number of mutants, spread over the headers by their size (default 100)
  --headers N     the sample comes from N headers, as many mutants from each: compiling takes less time. A header is
                  drawn with a probability proportional to its mutants, so each mutant has the same chance
  --seed N        another sample (default 1)
  --all           all mutants of the headers
  --then FOLDER.. folders of tests for survivors, separated by commas (default: properties)
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
import resource
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
# Headers without a test file of their name.
TESTS = {"ops/linear_attention.hpp": "attention/execute/linear.cpp", "ops/mix_heads.hpp": "heads/talking_heads.cpp",
         "ops/tiles_in_order.hpp": "attention/execute/tiled_with_state.cpp"}

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
    """A replacement of text[at:to] in a header. switch(id): its insertions (begin, end, before, after), or None."""

    def __init__(self, header, text, at, to, new, switch=None):
        self.header, self.at, self.to, self.new, self.switch = header, at, to, new, switch
        self.line = text.count("\n", 0, at) + 1
        self.lines = set(range(self.line, text.count("\n", 0, to) + 2))
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
        def add(new, switch=None, at=match.start(), to=match.end()):
            found.append(Mutant(header, text, at, to, new, switch))
        if kind == "binary":
            add(BINARY[token], switch_operator(text, match.start(), match.end(), token))
        elif kind == "unary":
            word = {"-": "minus", "!": "negation"}[token]
            add("", lambda id, at=match.start(), word=word: [(at, at + 1, f"mutants::{word}({id}) ->* /*", "*/ ")])
        elif kind == "name" and token in NAMES:
            add(NAMES[token], switch_name(text, match.start(), match.end(), token))
        elif kind == "name" and token == "if" and text.startswith(" (", match.end()):
            end = closing(text, match.end() + 1)
            add(f"if (!({text[match.end() + 2:end]}))", to=end + 1, switch=lambda id, at=match.end() + 2, end=end:
                [(at, end, "static_cast<bool>(", f") != mutants::active({id})")])
        elif kind == "number":
            def switch_number(new):
                return lambda id, at=match.start(), to=match.end(): [(at, to, f"mutants::choose({id}, ", f", {new})")]
            for new in ({"0": "1", "1": "2"}.get(token, f"({token} + 1)"), *("0" for _ in range(token == "1"))):
                add(new, switch_number(new))
        elif kind == "call":
            arguments = re.match(r"\((\w[\w.]*(?:\[\w+\])?), (\w[\w.]*(?:\[\w+\])?)(?=[,)])", text[match.start():])
            symmetric = re.search(r"\b(?:min|max|gcd)$", text[:match.start()])
            if arguments and arguments.group(1) != arguments.group(2) and not symmetric:
                spans = [[match.start() + each for each in arguments.span(i)] for i in (1, 2)]
                add(f"({arguments.group(2)}, {arguments.group(1)}", to=match.start() + arguments.end(),
                    switch=lambda id, spans=spans, a=arguments.group(1), b=arguments.group(2): [
                        (*spans[0], f"mutants::same({id}, ", f", {b})"), (*spans[1], f"mutants::same({id}, ", f", {a})")])
        elif kind == "end":
            start = text.rfind("\n", 0, match.start()) + 1
            if STATEMENT.match(text[start:match.end()]) and text[match.end():match.end() + 1] == "\n":
                start += len(text[start:]) - len(text[start:].lstrip())
                add(";", at=start, switch=lambda id, start=start, end=match.end(): [
                    (start, end, f"{{ if (!mutants::active({id})) ", " }")])
    return found


def sample(mutants, size, seed, headers):
    """Mutants ({header: list}), drawn at random; if headers > 0, from that number of headers."""
    draw, everything = random.Random(seed), [each for some in mutants.values() for each in some]
    if not headers or headers >= len(mutants):
        return draw.sample(everything, min(size, len(everything)))
    step = len(everything) / headers
    start = draw.uniform(0, step)
    drawn = collections.Counter(everything[int(start + i * step)].header for i in range(headers))
    return [each for header, times in drawn.items()
            for each in draw.sample(mutants[header], min(times * (size // headers), len(mutants[header])))]


def switch_operator(text, at, to, token):
    """The switch of a binary operator: a + mutants::at(id) + b; for && and ||, De Morgan's law."""
    if token not in ("&&", "||"):
        return lambda id: [(to, to, f" mutants::at({id}) {token}", "")]
    begin, end = operand(text, at - 1, -1), operand(text, to, 1)
    if begin is None or end is None:
        return None
    return lambda id: [(begin, end, "((", f") != mutants::active({id}))"),
                       (begin, at - 1, "(static_cast<bool>(", f") != mutants::active({id}))"),
                       (to + 1, end, "(static_cast<bool>(", f") != mutants::active({id}))")]


def operand(text, at, step):
    """Where the operand of && or || that ends (step -1) or begins (step 1) at `at` begins or ends."""
    depth, start = 0, at
    i = at if step > 0 else at - 1
    while 0 < i < len(text) - 1:
        c = text[i]
        if c in ("([{" if step > 0 else ")]}"):
            depth += 1
        elif c in (")]}" if step > 0 else "([{"):
            if depth == 0:
                break
            depth -= 1
        elif depth == 0:
            pair = text[i - 1:i + 1] if step < 0 else text[i:i + 2]
            if c in ";,?" or pair == "||":
                break
            if c in "\"'" or text.startswith("//", i):
                return None
            if c == ":" and ":" not in (text[i - 1], text[i + 1]):
                break
            if c == "=" and text[i - 1] not in "=!<>" and text[i + 1] != "=":
                break
            if step < 0 and re.search(r"\b(?:return|case)$", text[max(0, i - 6):i + 1]):
                break
        i += step
    if step > 0:
        return i - (len(text[at:i]) - len(text[at:i].rstrip()))
    i += 1
    return i + (len(text[i:start]) - len(text[i:start].lstrip()))


def switch_name(text, at, to, token):
    """The switch of min, max, true, false, begin, end, front and back."""
    new = NAMES[token]
    if token in ("true", "false"):
        return lambda id: [(at, to, f"mutants::choose({id}, ", f", {new})")]
    if token in ("min", "max"):
        scope = re.search(r"(?:\w+(?:<\w+>)?::)+$", text[:at])
        explicit = re.match(r"<[\w:]+>", text[to:])
        end = to + (explicit.end() if explicit else 0)
        start = scope.start() if scope else at
        name = f"{scope.group() if scope else ''}{new}{explicit.group() if explicit else ''}"
        if text[start - 1] == "." or not text.startswith("(", end):
            return None
        return lambda id: [(start, end, f"[](const auto&... x) {{ return mutants::active({id}) ? {name}(x...) : ", "(x...); }")]
    chain = re.search(r"(?:[A-Za-z_]\w*(?:\(\)|\[\w+\])?(?:\.|->))*$", text[:at])
    call = 2 if text.startswith("()", to) else 0
    if text[chain.start() - 1] in ".>:)" or text.startswith("(", to + call):
        return None
    return lambda id: [(chain.start(), to + call, f"mutants::same({id}, ", f", {chain.group()}{new}{'()' if call else ''})")]


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
    name = header.relative_to(HEADERS)
    test = ROOT / "tests" / TESTS.get(str(name), name.with_suffix(".cpp"))
    return test if test.is_file() else None


def is_combined(test):
    """Does tests/CMakeLists.txt combine this test with others?"""
    separate = re.search(r"set\(own_program\s([^)]*)\)", (ROOT / "tests" / "CMakeLists.txt").read_text(encoding="utf-8")).group(1).split()
    return str(test.relative_to(ROOT / "tests").with_suffix("")) not in separate


def tests_of(folder):
    """The test files of a folder that can be combined in one program."""
    return [each for each in sorted((ROOT / "tests" / folder).rglob("*.cpp")) if is_combined(each)]


# Included before each test whose headers have switches.
SWITCHES = r"""
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <type_traits>
namespace mutants {
inline const int number = std::getenv("HEED_MUTANT") ? std::atoi(std::getenv("HEED_MUTANT")) : 0;
inline bool reached[COUNT + 1];
inline const struct report {
    ~report()
    {
        std::FILE* const file = std::getenv("HEED_REACHED") ? std::fopen(std::getenv("HEED_REACHED"), "w") : nullptr;
        for (int id = 1; file && id <= COUNT; ++id)
            if (reached[id]) std::fprintf(file, "%d\n", id);
        if (file) std::fclose(file);
    }
} at_end;
constexpr bool active(int id)
{
    if (std::is_constant_evaluated()) return false;
    reached[id] = true;
    return id == number;
}
template <class T> constexpr T choose(int id, T a, T b) { return active(id) ? b : a; }
template <class A, class B> constexpr decltype(auto) same(int id, A&& a, B&& b)
{
    using T = std::remove_cvref_t<A>;
    constexpr bool one_type = std::same_as<T, std::remove_cvref_t<B>>;
    static_assert(one_type || (std::is_arithmetic_v<T> && std::is_arithmetic_v<std::remove_cvref_t<B>>));
    if constexpr (one_type && std::is_lvalue_reference_v<A> && std::is_lvalue_reference_v<B>) return (active(id) ? b : a);
    else return active(id) ? static_cast<T>(b) : static_cast<T>(a);
}
struct marker { int id; };
constexpr marker at(int id) { return {id}; }
template <class L> struct left { L value; int id; };
template <class R> struct right { R value; int id; };
#define MUTANTS_OPERATOR(X, Y)                                                                                        \
    template <class L> constexpr left<L&&> operator X(L&& l, marker m) { return {static_cast<L&&>(l), m.id}; }       \
    template <class L, class R> constexpr auto operator X(left<L> l, R&& r)                                         \
    {                                                                                                               \
        using result = std::decay_t<decltype(l.value X r)>;                                                         \
        if constexpr (requires { static_cast<result>(l.value Y r); })                                               \
            if (active(l.id)) return static_cast<result>(l.value Y r);                                              \
        return static_cast<result>(l.value X r);                                                                    \
    }
MUTANTS_OPERATOR(+, -) MUTANTS_OPERATOR(-, +) MUTANTS_OPERATOR(*, /) MUTANTS_OPERATOR(/, *) MUTANTS_OPERATOR(%, /)
MUTANTS_OPERATOR(<, <=) MUTANTS_OPERATOR(<=, <) MUTANTS_OPERATOR(>, >=) MUTANTS_OPERATOR(>=, >)
MUTANTS_OPERATOR(==, !=) MUTANTS_OPERATOR(!=, ==)
#define MUTANTS_ASSIGNMENT(X, Y)                                                                                      \
    template <class R> constexpr right<R&&> operator X(marker m, R&& r) { return {static_cast<R&&>(r), m.id}; }      \
    template <class L, class R> constexpr L& operator X(L& l, right<R> r)                                           \
    {                                                                                                               \
        if constexpr (requires { l Y r.value; })                                                                    \
            if (active(r.id)) return l Y r.value, l;                                                                \
        return l X r.value, l;                                                                                      \
    }
MUTANTS_ASSIGNMENT(+=, -=) MUTANTS_ASSIGNMENT(-=, +=) MUTANTS_ASSIGNMENT(*=, /=) MUTANTS_ASSIGNMENT(/=, *=)
#define MUTANTS_UNARY(name, X)                                                                                        \
    struct name { int id; constexpr explicit name(int of) : id{of} {} };                                            \
    template <class R> constexpr auto operator->*(name m, R&& r)                                                    \
    {                                                                                                               \
        using result = std::decay_t<decltype(X r)>;                                                                 \
        return active(m.id) ? static_cast<result>(r) : static_cast<result>(X r);                                    \
    }
MUTANTS_UNARY(minus, -) MUTANTS_UNARY(negation, !)
}
"""


def switched(text, mutants):
    """The text with the switches of mutants ({id: mutant}), and the mutants without a place in it."""
    wraps, left = [], {}
    for id, mutant in mutants.items():
        mine = mutant.switch(id) if mutant.switch else []
        if not mine or any(a[0] < b[0] < a[1] < b[1] or b[0] < a[0] < b[1] < a[1] for a in mine for b in wraps):
            left[id] = mutant
        else:
            wraps += mine
    before, after = collections.defaultdict(str), collections.defaultdict(str)
    for begin, end, open, close in sorted(wraps, key=lambda each: (each[0], -each[1])):  # outer ones first
        if begin == end:
            after[begin] += open
        else:
            before[begin] += open
            after[end] = close + after[end]
    places = sorted({0, len(text), *before, *after})
    return "".join(after[a] + before[a] + text[a:b] for a, b in zip(places, [*places[1:], len(text)])), left


class Machine:
    """Compiles and runs tests on copies of the headers, one copy per worker."""

    def __init__(self, out, compiler):
        self.out, self.compiler, self.local = out, compiler, threading.local()
        self.flags = ["-std=c++20", "-O0", "-g0", "-march=native", "-w", "-Wno-narrowing", f"-I{ROOT / 'tests'}", f"-I{ROOT}"]
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

    def compile(self, test, *options):
        """Makes the program of a test; returns the compiler's exit status and messages."""
        command = [self.compiler, *self.flags, f"-I{self.copy() / 'include'}", *options, test, self.main, "-o",
                   self.copy() / "program", "-lopenblas", "-lpthread"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
        return done.returncode, done.stderr

    def unit(self, tests):
        """A source file with these tests, each in a namespace, after the headers of all (see heed_unit_source)."""
        headers, bodies = {}, ""
        for test in tests:
            for line in re.findall(r"^#include.*", test.read_text(encoding="utf-8"), re.M):
                headers[re.sub(r'"(\.\./.*)"', rf'"{test.parent}/\1"', line)] = None
            space = re.sub(r"\W", "_", str(test.relative_to(ROOT).with_suffix("")))
            bodies += f'namespace {space} {{\n#include "{test}"\n}}\n'
        file = self.out / f"{tests[0].relative_to(ROOT / 'tests').parts[0]}.cpp"
        file.write_text("\n".join(headers) + "\n\n" + bodies, encoding="utf-8")
        return file

    def passes(self, program, id=0, only=None):
        """Whether the program, just compiled, passes with this mutant; `only`: one of its tests."""
        seconds = self.seconds.get((program, only)) or 60  # of the processor

        def limit():
            resource.setrlimit(resource.RLIMIT_CPU, (int(5 * seconds) + 1,) * 2)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_DATA, (1 << 32, 1 << 32))
        start = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        command = [self.copy() / "program", "--abort-after=1", *([f"--source-file=*/{only.relative_to(ROOT)}"] if only else [])]
        try:
            status = subprocess.run(command, cwd=self.copy(), stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, check=False, timeout=500 * seconds + 60, preexec_fn=limit,
                                    env={**os.environ, "HEED_MUTANT": str(id), "HEED_REACHED": "" if id else "reached"}).returncode
        except subprocess.TimeoutExpired:
            status = 1
        if not id and not status:
            self.seconds.setdefault((program, only), sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - start)
        return status == 0

    def usable(self, test):
        """Whether the test passes without a change; measures it."""
        if (test, None) not in self.seconds:
            passed = not self.compile(test)[0] and self.passes(test)
            if not passed:
                print(f"mutate.py: {test.relative_to(ROOT)} does not pass on its own: not used", file=sys.stderr)
            self.seconds.setdefault((test, None), None)
        return self.seconds[test, None] is not None

    def target(self, header):
        """This worker's copy of a header."""
        return self.copy() / "include" / "heed" / header.relative_to(HEADERS)

    def run_all(self, program, tests, mutants, killed):
        """Compiles these mutants at once, and runs the tests, which are files of the program, that reach them: that of
        their header first. Calls killed(mutant, test). Returns the mutants that a test reaches, and those without a switch."""
        unswitched, known, reached = [], dict(enumerate(mutants, 1)), set()
        headers = {each.header for each in mutants}
        (self.copy() / "mutants.hpp").write_text(SWITCHES.replace("COUNT", str(len(mutants))), encoding="utf-8")
        include = ("-include", self.copy() / "mutants.hpp")
        options = ("-fno-caret-diagnostics", "-ferror-limit=0") if "clang" in self.compiler else ()
        try:
            while known:
                for header in headers:
                    text, left = switched(header.read_text(encoding="utf-8"), {id: each for id, each in known.items() if each.header == header})
                    self.target(header).write_text(text, encoding="utf-8")
                    for id in left:
                        unswitched.append(known.pop(id))
                status, messages = self.compile(program, *include, *options)
                if not status:
                    break
                places = wrong_lines(messages, self.copy() / "include" / "heed")
                wrong = ({id for id, each in known.items() for file, lines in places.items() if each.header == HEADERS / file and each.lines & lines}
                         or {id for id, each in known.items() if each.header.relative_to(HEADERS) in places} or set(known))
                unswitched += [known.pop(id) for id in wrong]
            self.run_switched(program, tests, known, killed, reached)
            return reached, unswitched
        finally:
            for header in headers:
                self.target(header).write_text(header.read_text(encoding="utf-8"), encoding="utf-8")

    def run_switched(self, program, tests, known, killed, reached):
        """Runs the compiled program with the mutants {id: mutant}."""
        left, found = set(known), {}
        for own in (True, False):
            for test in tests:
                ids = {id for id in left if (test_of(known[id].header) == test) == own}
                if ids and test not in found:
                    passed = self.passes(program, 0, test)
                    if not passed:
                        print(f"mutate.py: {test.relative_to(ROOT)} fails without a mutant: not used", file=sys.stderr)
                    lines = (self.copy() / "reached").read_text(encoding="utf-8").split() if passed else []
                    found[test] = {int(id) for id in lines} & known.keys()
                    reached |= {known[id] for id in found[test]}
                for id in sorted(ids & found.get(test, set())):
                    if not self.passes(program, id, test):
                        left.remove(id)
                        killed(known[id], test)

    def run_one(self, test, mutant):
        """The status of a mutant, compiled alone."""
        text = mutant.header.read_text(encoding="utf-8")
        self.target(mutant.header).write_text(text[:mutant.at] + mutant.new + text[mutant.to:], encoding="utf-8")
        try:
            if self.compile(test)[0]:
                return "invalid"
            return "survived" if self.passes(test) else "killed"
        finally:
            self.target(mutant.header).write_text(text, encoding="utf-8")


def wrong_lines(messages, folder):
    """The lines with errors, by header: of each error the first of its places (the error or a note) in the folder."""
    found, searching = collections.defaultdict(set), False
    for place in re.finditer(r"^(?:In file included from )?(\S+?):(\d+):(?:\d+:)? (error|note|fatal error)?", messages, re.M):
        searching = searching or "error" in (place.group(3) or "")
        file = Path(place.group(1))
        if searching and place.group(3) and file.is_relative_to(folder):
            found[file.relative_to(folder)].add(int(place.group(2)))
            searching = False
    return found


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
    parser.add_argument("--headers", type=int, default=0, dest="drawn_headers")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--then", default="properties")
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
    by_header = {header: list({each.name: each for each in mutants_of(header)}.values()) for header in headers}
    mutants = [each for some in by_header.values() for each in some]
    count = len(mutants)
    if not given.all:
        mutants = sample(by_header, given.sample, given.seed, given.drawn_headers)
    if given.list:
        print(*(each.name for each in mutants), sep="\n")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    results, machine, ends = read_results(records), Machine(given.out.resolve(), given.compiler), time.monotonic() + 60 * given.minutes
    names = {each.name for each in mutants}
    waiting = [each for each in mutants if each.name not in results]
    print(f"{count} mutants, {len(mutants)} drawn, {len(mutants) - len(waiting)} judged before", file=sys.stderr)

    def record(mutant, status, test=None):
        results[mutant.name] = (status, str(test.relative_to(ROOT)) if test else "-")
        with open(records, "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{status}\t{results[mutant.name][1]}\t{mutant.name}\n")
        print(f"{len(results.keys() & names)} of {len(mutants)}: {status}, {mutant.name}", file=sys.stderr)

    def judge_all(tests, mutants):
        """Records the mutants that these tests kill, of those that compile at once."""
        mutants = [each for each in mutants if each not in without_switch]
        if time.monotonic() > ends or not mutants or not tests:
            return
        program = machine.unit(tests) if len(tests) > 1 else tests[0]
        here, unswitched = machine.run_all(program, tests, mutants, lambda mutant, test: record(mutant, "killed", test))
        without_switch.update(unswitched)
        reached.update(here)
        for each in mutants:
            if each.name not in results:
                how = "alone" if each in unswitched else "survives" if each in here else "not reached by"
                print(f"{how} {program.name}: {each.name}", file=sys.stderr)

    def judge_one(mutant):
        """Records the mutant, compiled alone, if the test of its header kills it."""
        test = test_of(mutant.header)
        if time.monotonic() < ends and test and machine.usable(test):
            status = machine.run_one(test, mutant)
            if status != "survived":
                record(mutant, status, test)

    without_switch, reached = set(), set()
    tests = list(dict.fromkeys(filter(None, map(test_of, (each.header for each in waiting)))))
    combined = [each for each in tests if is_combined(each)]
    programs = [[each] for each in tests if each not in combined] + [combined[i:i + 32] for i in range(0, len(combined), 32)]
    begun = set()
    for program in programs + [tests_of(folder) for folder in filter(None, given.then.split(","))]:
        begun.update(program)  # the survivors of the earlier programs, too
        judge_all(program, [each for each in waiting if each.name not in results and (test_of(each.header) in begun or program not in programs)])
    left = [each for each in waiting if each.name not in results]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        list(pool.map(judge_one, [each for each in left if each in without_switch or each not in reached]))
    left = [each for each in left if each.name not in results]
    for each in left if time.monotonic() < ends else []:
        record(each, "survived")
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
