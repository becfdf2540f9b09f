# SPDX-License-Identifier: BSD-3-Clause
"""Compares heed's results with PyTorch. Each other file in this folder is one paper in PyTorch:

    python3 bahdanau2015.py build/demo/examples/twins     # the program `twins`, or $HEED_TWINS
    python3 twin.py build/demo/examples/twins             # all presets

    twin = Twin("bahdanau2015", "additive")               # runs `twins bahdanau2015`
    W, U, v, h, s = twin["W U v h s"]                     # inputs: doubles with gradients; settings: numbers
    twin.agrees(context=c, weights=a)                     # prints the difference; AssertionError if above 1e-10

`agrees` compares the results, and then the gradient of sum(factors * results) with respect to every input, with factors
from heed. Exits with status 77, "skipped", without PyTorch.

A step of the course has a twin course_NN.py, which is skipped if its program is not built. For steps that only print:

    step = Step("01")
    step.says("weight of cats", a[1])                     # every line "weight of cats: 0.665" of the program
    step.shows("dot softmax", a)                          # the numbers after "dot softmax"

For steps that train, see training.py.
"""
import functools
import json
import os
import pathlib
import re
import runpy
import subprocess
import sys

try:
    import torch
except ImportError:
    print("PyTorch is not available for", sys.executable, "(Debian: apt install python3-torch, and /usr/bin/python3)")
    sys.exit(77)


PROGRAM = os.environ.get("HEED_TWINS") or (sys.argv[1] if len(sys.argv) > 1 else "build/demo/examples/twins")
known, compared = set(), set()


@functools.lru_cache
def computed_by(program, *arguments):
    return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout


def tensor(numbers):
    return torch.tensor(numbers["values"], dtype=torch.float64).reshape(numbers["shape"])


def real_words(lengths, positions):
    """[B] -> [B,T], true at words and false at padding."""
    return torch.arange(positions) < lengths[:, None]


class Twin:
    def __init__(self, paper, preset):
        self.name, of_heed = f"{paper}::{preset}", json.loads(computed_by(PROGRAM, paper))[preset]
        self.inputs = {name: tensor(x).requires_grad_() for name, x in of_heed["inputs"].items()}
        self.settings, self.results, self.factors, self.gradients = (
            {name: tensor(x) for name, x in of_heed[kind].items()}
            for kind in ("settings", "results", "factors", "gradients"))

    def __getitem__(self, names):
        found = [self.inputs[name] if name in self.inputs else self.setting(name) for name in names.split()]
        return found[0] if len(found) == 1 else found

    def setting(self, name):
        x = self.settings[name]
        return x.long() if x.dim() else int(x) if x == x.long() else float(x)

    def agrees(self, within=1e-10, **results):
        assert results.keys() == self.results.keys(), f"{self.name}: heed has the results {list(self.results)}"
        loss = sum((self.factors[name] * y).sum() for name, y in results.items())
        gradients = torch.autograd.grad(loss, list(self.inputs.values()), allow_unused=True)
        pairs = [(name, y, self.results[name]) for name, y in results.items()]
        for (name, x), d in zip(self.inputs.items(), gradients):
            pairs.append(("gradient by " + name, torch.zeros_like(x) if d is None else d, self.gradients[name]))
        worst = 0
        for name, is_, must in pairs:
            assert is_.shape == must.shape, f"{self.name}, {name}: {list(is_.shape)}, and heed has {list(must.shape)}"
            apart = ((is_ - must).abs() / (1 + must.abs())).max().item()
            assert apart <= within, f"{self.name}, {name}: {apart:.1e} apart:\n{is_}\nand in heed\n{must}"
            worst = max(worst, apart)
        compared.add(self.name)
        print(f"{self.name}: {len(results)} results and {len(gradients)} gradients, at most {worst:.0e} apart")


class NotBuilt(Exception):
    pass


class Step:
    """A step of the course with a program that prints lines `what: number`; course_01.py is the twin of course_01."""

    def __init__(self, number):
        self.name, program = f"course_{number}", pathlib.Path(PROGRAM).parent / "course" / f"course_{number}"
        if not program.exists():
            raise NotBuilt(f"{program} is not there")
        self.printed = computed_by(str(program))
        self.lines = [line.rpartition(": ") for line in self.printed.splitlines()]

    def says(self, what, value):
        """Checks that every line `what: number` has this number, to the printed digits."""
        found = [number for text, _, number in self.lines if text.strip() == what]
        assert found, f"{self.name} prints no line \"{what}: …\""
        for number in found:
            self.same(what, float(value), number)
        print(f"{self.name}, {what}: {found[0]}")

    def shows(self, what, values):
        """Checks the numbers after the name, on its line or the following lines, to the printed digits."""
        found = re.search(rf"^{re.escape(what)}(?=\s)((?:\s+(?:step \d+:)?\s*-?\d+\.\d+)+)", self.printed, re.MULTILINE)
        assert found, f"{self.name} prints no numbers after \"{what}\""
        numbers = [x for x in found[1].split() if "." in x]
        assert len(numbers) == values.numel(), f"{self.name}, {what}: {len(numbers)} numbers, not {values.numel()}"
        for number, value in zip(numbers, values.flatten().tolist()):
            self.same(what, value, number)
        print(f"{self.name}, {what}: {' '.join(numbers)}")

    def same(self, what, value, number):
        digits = len(number.partition(".")[2])
        assert abs(value - float(number)) <= 0.5000001 * 10**-digits, \
            f"{self.name}, {what}: {value}, and heed has {number}"


if __name__ == "__main__":
    here, failed = pathlib.Path(__file__).parent, 0
    sys.path.insert(0, str(here))
    sys.modules["twin"] = sys.modules["__main__"]
    for file in sorted(here.glob("*.py")):
        if file.name in ("twin.py", "training.py", "as_heed.py"):  # used by other files
            continue
        try:
            runpy.run_path(str(file), run_name="__main__")
        except NotBuilt as what:
            print(f"{file.name}: skipped, {what}")
        except Exception as error:
            print(f"{file.name}: {str(error) or repr(error)}")
            failed += 1
    for paper in computed_by(PROGRAM).split():
        known.update(f"{paper}::{preset}" for preset in json.loads(computed_by(PROGRAM, paper)))
    for each in sorted(known - compared):
        print(f"{each} is not compared")
        failed += 1
    sys.exit(1 if failed else 0)
