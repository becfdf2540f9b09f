# SPDX-License-Identifier: BSD-3-Clause
"""Choi, Cho, Bengio 2018: fine-grained attention. The score reads the previous target word y."""
import torch

from twin import Twin, real_words

# One weight per annotation (AttY)
twin = Twin("choi2018", "att_y")
W, U, v, Y, h, states, words, lengths = twin["W U v Y h s y lengths"]
real = real_words(lengths, h.shape[1])
contexts, weights = [], []
for s, y in zip(states, words):
    e = torch.tanh((s @ W + y @ Y)[:, None] + h @ U) @ v  # eq. 6
    a = torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1)  # eq. 4
    contexts.append(torch.einsum("bt,btd->bd", a, h))  # eq. 5
    weights.append(a)
twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))

# One weight per dimension of each annotation (AttY2D): V [A,D] replaces v [A]
twin = Twin("choi2018", "att_y_2d")
W, U, V, Y, h, states, words, lengths = twin["W U V Y h s y lengths"]
real = real_words(lengths, h.shape[1])
contexts, weights = [], []
for s, y in zip(states, words):
    e = torch.tanh((s @ W + y @ Y)[:, None] + h @ U) @ V  # eq. 7: [B,T,D]
    a = torch.softmax(e.masked_fill(~real[..., None], -torch.inf), dim=1)  # eq. 8
    contexts.append((a * h).sum(1))  # eq. 9
    weights.append(a)
twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))
