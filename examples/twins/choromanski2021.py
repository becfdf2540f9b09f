# SPDX-License-Identifier: BSD-3-Clause
"""Choromanski et al. 2021 (Performer): softmax by positive random features. Keys are the values."""
import math

import torch

from twin import Twin

twin = Twin("choromanski2021", "performer")
Omega, q, k = twin["Omega q k"]  # [D,m]


def phi(x):  # lemma 1, of x / D^¼
    x = x / x.shape[-1] ** 0.25
    return torch.exp(x @ Omega - (x**2).sum(-1, keepdim=True) / 2) / math.sqrt(Omega.shape[1])


seen = torch.ones(q.shape[1], k.shape[1]).tril()  # no later keys
w = phi(q) @ phi(k).transpose(-1, -2) * seen
twin.agrees(context=w / w.sum(-1, keepdim=True) @ k)
