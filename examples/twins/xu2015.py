# SPDX-License-Identifier: BSD-3-Clause
"""Xu et al. 2015, "Show, Attend and Tell": soft attention, its gate, and the penalty. a are the annotations."""
import torch

from twin import Twin, real_words

for preset in ("soft", "gated"):
    twin = Twin("xu2015", preset)
    W, U, v, a, queries, lengths = twin["W U v h s lengths"]
    real = real_words(lengths, a.shape[1])
    contexts, weights = [], []
    for h in queries:
        e = torch.tanh((h @ W)[:, None] + a @ U) @ v  # eq. 4, with one hidden layer
        alpha = torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1)  # eq. 5
        z = torch.einsum("bt,btd->bd", alpha, a)  # eq. 13
        if preset == "gated":
            z = torch.sigmoid(h @ twin["W_beta"] + twin["b_beta"]) * z  # section 4.2.1
        contexts.append(z)
        weights.append(alpha)
    twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))

twin = Twin("xu2015", "doubly_stochastic")
alpha, source, target = twin["alpha source target"]  # [S,B,T]
steps = real_words(target, alpha.shape[0]).T[..., None]  # captions include the end
missed = 1 - (alpha * steps).sum(0)
twin.agrees(penalty=twin["lambda"] * (missed**2)[real_words(source, alpha.shape[2])].sum())  # eq. 14
