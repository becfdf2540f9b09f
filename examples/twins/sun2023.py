# SPDX-License-Identifier: BSD-3-Clause
"""Sun et al. 2023: retention, and multi-scale retention (RetNet)."""
import math

import torch

from su2021 import turned
from twin import Twin
from vaswani2017 import split


def retention(q, k, v, gamma):
    """Eq. 5: (Q Kᵀ ⊙ D) V, D_nm = γ^(n-m) for n ≥ m, with rotated Q and K, and keys divided by √d."""
    places = torch.arange(q.shape[-2])
    n_minus_m = places[:, None] - places
    D = torch.where(n_minus_m >= 0, gamma ** n_minus_m.clamp(min=0).double(), 0.0)
    return (turned(q) @ turned(k).transpose(-1, -2) / math.sqrt(q.shape[-1]) * D) @ v


twin = Twin("sun2023", "retention")
q, k, gamma = twin["q k gamma"]
twin.agrees(context=retention(q, k, k, gamma))

twin = Twin("sun2023", "multi_scale")
W_Q, W_K, W_V, W_O, x, n = twin["W_Q W_K W_V W_O x heads"]
gamma = (1 - 2 ** (-5 - torch.arange(n).double()))[:, None, None]  # eq. 8
heads = retention(split(x @ W_Q, n), split(x @ W_K, n), split(x @ W_V, n), gamma)
twin.agrees(context=heads.transpose(1, 2).flatten(-2) @ W_O)
