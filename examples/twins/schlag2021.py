# SPDX-License-Identifier: BSD-3-Clause
"""Schlag, Irie, Schmidhuber 2021: DeltaNet as its recurrence, with keys and queries of length 1."""
import torch

from twin import Twin

twin = Twin("schlag2021", "delta_net")
w, b, q, x = twin["w b q k"]
beta = torch.sigmoid(x @ w + b)  # [B,T,1]
k, q = (each / each.norm(dim=-1, keepdim=True) for each in (x, q))
W = torch.zeros(x.shape[0], x.shape[-1], x.shape[-1], dtype=x.dtype)
contexts = []
for t in range(x.shape[1]):
    known = (W @ k[:, t, :, None]).squeeze(-1)
    W = W + (beta[:, t] * (x[:, t] - known))[:, :, None] * k[:, t, None]
    contexts.append((W @ q[:, t, :, None]).squeeze(-1))
twin.agrees(context=torch.stack(contexts, 1))
