# SPDX-License-Identifier: BSD-3-Clause
"""Chiu, Raffel 2018: monotonic chunkwise attention. From where the scan stops, a softmax over the last w positions."""
import torch

from raffel2017 import choosing, expected, scanned
from twin import Twin, real_words

for preset, align in (("chunkwise", expected), ("chunkwise_hard", scanned)):
    twin = Twin("chiu2018", preset)
    W, U, v, r, sharpness, h, queries, lengths, w = twin["W U v r sharpness h s lengths width"]
    real, T = real_words(lengths, h.shape[1]), h.shape[1]
    alpha = torch.zeros(h.shape[:2], dtype=h.dtype)
    alpha[:, 0] = 1
    contexts, weights = [], []
    for s in queries:
        e = torch.tanh((s @ W)[:, None] + h @ U) @ v
        alpha = align(choosing(e + r, real), alpha)
        u = sharpness * e  # a separate score in the paper
        beta = torch.zeros_like(alpha)
        for k in range(T):  # the scan stops at k with probability α_k, and a softmax covers k-w+1 … k
            chunk = range(max(0, k - w + 1), k + 1)
            share = torch.softmax(u[:, chunk.start:chunk.stop], dim=-1)
            beta = beta + alpha[:, k, None] * torch.nn.functional.pad(share, (chunk.start, T - chunk.stop))
        contexts.append(torch.einsum("bt,btd->bd", beta, h))
        weights.append(beta)
    twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))
