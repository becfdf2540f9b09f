# SPDX-License-Identifier: BSD-3-Clause
"""Yang, Kautz, Hatamizadeh 2025: the gated delta rule as its recurrence, with keys and queries of length 1."""
import torch

from twin import Twin

twin = Twin("yang2025", "gated_delta_net")
w_a, b_a, w, b, q, x = twin["w_a b_a w b q k"]
alpha, beta = torch.sigmoid(x @ w_a + b_a), torch.sigmoid(x @ w + b)  # [B,T,1]
k, q = (each / each.norm(dim=-1, keepdim=True) for each in (x, q))
S = torch.zeros(x.shape[0], x.shape[-1], x.shape[-1], dtype=x.dtype)
contexts = []
for t in range(x.shape[1]):
    kk = k[:, t, :, None] @ k[:, t, None]
    S = alpha[:, t, None] * (S - beta[:, t, None] * S @ kk) + beta[:, t, None] * x[:, t, :, None] @ k[:, t, None]
    contexts.append((S @ q[:, t, :, None]).squeeze(-1))
twin.agrees(context=torch.stack(contexts, 1))
