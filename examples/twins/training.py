# SPDX-License-Identifier: BSD-3-Clause
"""Steps of the course that train: the same model in PyTorch, from the same parameters, on the same batches.

    learning = Training("06", "copy")                     # runs `twin_course_06`, which is next to `twins`
    model = learning.begin(Writer(), names)               # heed's parameters; names: those with other names
    for words in learning.batches: …                      # learning.sees(loss) after loss.backward()
    learning.ends()
    learning.agrees(weights=a)                            # the answers of the model to learning.questions

Losses, the gradients of the first batch, the parameters after the last one and the answers are compared, in double.
"""
import json
import pathlib

import torch

from as_heed import in_torch
from twin import PROGRAM, NotBuilt, compared, computed_by, known, tensor

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)  # the matrices are small


class Training:
    def __init__(self, number, name):
        program = pathlib.Path(PROGRAM).parent / f"twin_course_{number}"
        if not program.exists():
            raise NotBuilt(f"{program} is not there")
        printed = computed_by(str(program))
        all_of_heed = json.loads(printed[printed.index("{\n"):])  # after the output of the step
        known.update(f"course_{number}::{each}" for each in all_of_heed)
        self.name, of_heed = f"course_{number}::{name}", all_of_heed[name]
        self.parameters, self.gradients, self.after, self.results = (
            {key: tensor(x) for key, x in of_heed[kind].items()}
            for kind in ("parameters", "gradients", "after", "results"))
        self.losses, self.losses_of_heed, self.worst = [], tensor(of_heed["losses"]["loss"]), 0
        given = [{key: tensor(x).long() for key, x in each.items()} for each in of_heed["given"]]
        self.batches, self.questions = given[:len(self.losses_of_heed)], given[len(self.losses_of_heed):]

    def begin(self, model, names={}):
        self.model, self.names = model, names
        model.load_state_dict(self.in_torch(self.parameters))  # strict: exactly these parameters
        return model

    def in_torch(self, of_heed):
        return in_torch(self.model, of_heed, self.names)

    def sees(self, loss):
        """A loss, after loss.backward()."""
        if not self.losses:
            for name, gradient in self.in_torch(self.gradients).items():
                self.compare(f"the first gradient by {name}", self.model.get_parameter(name).grad, gradient)
        self.losses.append(loss.detach())

    def ends(self):
        self.compare("losses", torch.stack(self.losses), self.losses_of_heed)
        for name, values in self.in_torch(self.after).items():
            self.compare(f"{name} in the end", self.model.get_parameter(name), values)

    def agrees(self, within=1e-10, **answers):
        assert answers.keys() == self.results.keys(), f"{self.name}: heed has the results {list(self.results)}"
        for name, answer in answers.items():
            self.compare(name, answer, self.results[name], within)
        compared.add(self.name)
        print(f"{self.name}: {len(self.losses)} updates, {len(answers)} answers, at most {self.worst:.0e} apart")

    def compare(self, name, is_, must, within=1e-10):
        is_ = torch.zeros_like(must) if is_ is None else is_  # a gradient that was not reached
        assert is_.shape == must.shape, f"{self.name}, {name}: {list(is_.shape)}, and heed has {list(must.shape)}"
        apart = ((is_ - must).abs() / (1 + must.abs())).max().item() if must.numel() else 0
        assert apart <= within, f"{self.name}, {name}: {apart:.1e} apart:\n{is_}\nand in heed\n{must}"
        self.worst = max(self.worst, apart)
