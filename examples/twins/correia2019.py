# SPDX-License-Identifier: BSD-3-Clause
"""Correia, Niculae, Martins 2019: entmax with a learned alpha."""
import math

import torch

from twin import Twin

twin = Twin("correia2019", "adaptive")
a, q, k = twin["a q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
x = torch.sigmoid(a) * e  # (alpha - 1) e
power = 1 / torch.sigmoid(a)


def above(tau):
    return torch.where(seen, (x - tau).clamp(min=0), torch.zeros_like(x))


with torch.no_grad():  # tau by bisection
    high = x.masked_fill(~seen, -torch.inf).amax(-1, keepdim=True)
    low = high - 1
    for _ in range(100):
        tau = (low + high) / 2
        more = (above(tau) ** power).sum(-1, keepdim=True) > 1
        low, high = torch.where(more, tau, low), torch.where(more, high, tau)
    slope = (power * above(low) ** (power - 1)).sum(-1, keepdim=True)
tau = low + ((above(low) ** power).sum(-1, keepdim=True) - 1) / slope  # a Newton step, for its derivative
twin.agrees(context=above(tau) ** power @ k)
