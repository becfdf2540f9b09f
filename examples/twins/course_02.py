# SPDX-License-Identifier: BSD-3-Clause
"""Step 2 of the course: three policies. Another normalizer, another score, another combiner, and all combinations."""
import torch

from twin import Step

step = Step("02")
h = torch.tensor([[0.5, 0], [1, 0], [0, 1]])  # small, cats, dream
q = torch.tensor([2.0, 0])
swap = torch.tensor([[0.0, 1], [1, 0]])  # W: thing to action, action to thing


def sparsemax(e):
    """Martins and Astudillo 2016: the point of the simplex nearest to e."""
    falling = e.sort(descending=True).values
    support = 1 + torch.arange(1, len(e) + 1) * falling > falling.cumsum(0)
    threshold = (falling[support].sum() - 1) / support.sum()
    return (e - threshold).clamp(min=0)


scores = {"dot": h @ q, "cosine": 2 * torch.cosine_similarity(h, q, dim=-1), "general": h @ (q @ swap)}
normalizers = {"softmax": lambda e: torch.softmax(e, dim=-1), "warm": lambda e: torch.softmax(e / 2, dim=-1),
               "sparsemax": sparsemax, "sigmoid": torch.sigmoid}

for score, e in scores.items():
    for normalizer, normalize in normalizers.items():
        step.shows(f"{score} {normalizer}", normalize(e))
for name in "softmax", "sparsemax", "sigmoid":
    step.shows(f"dot, {name}", normalizers[name](scores["dot"]))
step.shows("dot, temperature 2", torch.softmax(scores["dot"] / 2, dim=-1))
step.shows("dot, temperature 0.5", torch.softmax(scores["dot"] / 0.5, dim=-1))
step.says("the sum of the last three", torch.sigmoid(scores["dot"]).sum())
for name in "cosine", "general":
    step.shows(f"{name}, softmax", torch.softmax(scores[name], dim=-1))

c = torch.softmax(scores["dot"], dim=-1) @ h
joined = torch.nn.Linear(4, 2, bias=False)  # W_c takes half of each
joined.load_state_dict({"weight": torch.tensor([[0.5, 0, 0.5, 0], [0, 0.5, 0, 0.5]])})
for name, x in ("context", c), ("joined", torch.tanh(joined(torch.cat([c, q])))):
    step.says(f"{name}, thing", x[0])
    step.says(f"{name}, action", x[1])
