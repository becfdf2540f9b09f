# SPDX-License-Identifier: BSD-3-Clause
"""Step 5 of the course: the backward pass. The same loss, with autograd instead of the tape."""
import torch

from twin import Step

step = Step("05")
q = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
h = torch.tensor([1.0, -1.0], dtype=torch.float64, requires_grad=True)  # annotations of one number each


def loss(q, keys, values):
    return (torch.softmax(q * keys, dim=0) @ values - 1) ** 2  # the context should be 1


value = loss(q, h, h)
d_q, d_h = torch.autograd.grad(value, (q, h))
step.says("loss", value)
for text in ("∂ℓ/∂q", "heed: ∂ℓ/∂q", "by hand", "a dual number", "finite differences"):
    step.says(text, d_q)
step.says("∂ℓ/∂h₁", d_h[0])
step.says("heed: ∂ℓ/∂h₁", d_h[0])
step.says("as a key", torch.autograd.grad(loss(q, h, h.detach()), h)[0][0])
step.says("as a value", torch.autograd.grad(loss(q, h.detach(), h), h)[0][0])
