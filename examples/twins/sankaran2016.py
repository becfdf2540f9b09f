# SPDX-License-Identifier: BSD-3-Clause
"""Sankaran et al. 2016: temporal attention. The scores of the steps before divide those of this step."""
import torch

from twin import Twin, real_words

for preset in ("temporal", "recent_temporal", "learned_temporal"):
    twin = Twin("sankaran2016", preset)
    W, U, v, h, queries, lengths = twin["W U v h s lengths"]
    real = real_words(lengths, h.shape[1])
    contexts, weights, scores = [], [], []
    for s in queries:
        e = torch.tanh((s @ W)[:, None] + h @ U) @ v  # r of eq. 5
        if preset == "learned_temporal":  # footnote 3 in heed's form: one number times the weights so far
            b = torch.exp(e + twin["w"] * sum(weights)) if weights else torch.exp(e)
        else:
            past = scores[-twin["steps"]:] if preset == "recent_temporal" else scores  # the last n steps: section 3
            b = torch.exp(e) / torch.stack(state).exp().sum(0) if past else torch.exp(e)  # eq. 6 and 7
        b = b * real
        weights.append(b / b.sum(-1, keepdim=True))  # eq. 8
        contexts.append(torch.einsum("bt,btd->bd", weights[-1], h))  # eq. 4, for both directions at once
        scores.append(e)
    twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))
