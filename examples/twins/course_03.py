# SPDX-License-Identifier: BSD-3-Clause
"""Step 3 of the course: a custom score, e_j = -Σ_d w_d (q_d - h_{j,d})²."""
import torch

from twin import Step

step = Step("03")
annotations = torch.tensor([[0.5, 0], [1, 0], [0, 1]])  # small, cats, dream
query = torch.tensor([0.5, 0])


def nearness(w):
    return torch.softmax(-(w * (query - annotations) ** 2).sum(-1), dim=0)


for name, weights in (("dot", torch.softmax(annotations @ query, dim=0)), ("nearness", nearness(torch.ones(2))),
                      ("nearness, w = 10", nearness(torch.full([2], 10.0)))):
    step.says(f"{name}: small", weights[0])
    step.says(f"{name}: cats", weights[1])
