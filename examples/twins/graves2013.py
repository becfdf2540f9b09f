# SPDX-License-Identifier: BSD-3-Clause
"""Graves 2013, section 5.1: the soft window of handwriting synthesis. It moves along the text; characters are numbered from 1."""
import torch

from twin import Twin, real_words

twin = Twin("graves2013", "window")
W, b, W_kappa, b_kappa, c, queries, lengths = twin["W b W_kappa b_kappa h s lengths"]
real = real_words(lengths, c.shape[1])
u = torch.arange(1, c.shape[1] + 1)
K = W_kappa.shape[1]

kappa, windows, weights = 0, [], []
for h in queries:
    alpha, beta = torch.exp(h @ W + b).split(K, dim=-1)
    kappa = kappa + torch.exp(h @ W_kappa + b_kappa)
    phi = (alpha[..., None] * torch.exp(-beta[..., None] * (kappa[..., None] - u) ** 2)).sum(1) * real
    windows.append(torch.einsum("bu,bud->bd", phi, c))
    weights.append(phi)
twin.agrees(context=torch.stack(windows), weights=torch.stack(weights))
