# SPDX-License-Identifier: BSD-3-Clause
"""Bahdanau, Cho, Bengio 2015: the alignment model of RNNsearch."""
import torch

from twin import Twin, real_words

twin = Twin("bahdanau2015", "additive")
W, U, v, h, queries, lengths = twin["W U v h s lengths"]  # [Q,A], [D,A], [A], [B,T,D], [S,B,Q]
real = real_words(lengths, h.shape[1])

contexts, weights = [], []
for s in queries:
    e = torch.tanh((s @ W)[:, None] + h @ U) @ v  # appendix A.1.2: e_j = vᵀ tanh(W s + U h_j)  [B,T]
    a = torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1)  # eq. 6
    contexts.append(torch.einsum("bt,btd->bd", a, h))  # eq. 5
    weights.append(a)
twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))
