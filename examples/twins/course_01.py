# SPDX-License-Identifier: BSD-3-Clause
"""Step 1 of the course: attention computed manually, and for a whole sentence."""
import torch

from twin import Step

step = Step("01")
annotations = torch.tensor([[0.5, 0], [1, 0], [0, 1]])  # small, cats, dream: how much a thing, and how much an action
words = ("small", "cats", "dream")


def attend(query):
    e = annotations @ query
    a = torch.softmax(e, dim=0)
    return e, a, a @ annotations


e, a, c = attend(torch.tensor([2.0, 0]))
for word, score, weight in zip(words, e, a):
    step.says(f"score of {word}", score)
    step.says(f"weight of {word}", weight)
step.says("context, thing", c[0])
step.says("context, action", c[1])
step.says("weight of cats, if the query is 2.1", attend(torch.tensor([2.1, 0]))[1][1])
