# SPDX-License-Identifier: BSD-3-Clause
"""Dao and Gu 2024: state-space duality (Mamba-2), as the recurrence. Queries are C, keys B, values X."""
import torch

from twin import Twin

twin = Twin("dao2024", "state_space")
w, b, C, x = twin["w b q k"]
a = torch.exp(-torch.nn.functional.softplus(-(x @ w + b)))  # [B,T,1]
h, outputs = torch.zeros_like(x[:, 0, :, None] * x[:, 0, None]), []
for t in range(C.shape[1]):
    h = a[:, t, :, None] * h + x[:, t, :, None] * x[:, t, None]  # h_t = a_t h_{t-1} + B_t x_tᵀ
    outputs.append(torch.einsum("bn,bnd->bd", C[:, t], h))
twin.agrees(context=torch.stack(outputs, dim=1))
