# SPDX-License-Identifier: BSD-3-Clause
"""Gehring et al. 2017: the attention of ConvS2S, of one decoder layer and of several."""
import torch

from twin import Twin, real_words


def layer(W, b, h, g, z, values, real):
    d = h @ W + b + g  # eq. 1
    e = torch.einsum("bd,btd->bt", d, z)  # eq. 2
    a = torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1)
    return torch.einsum("bt,btd->bd", a, values), a


# z are the encoder outputs; the values are z + x, with the embeddings x of the words.
twin = Twin("gehring2017", "layer")
W, b, z, x, states, words, lengths = twin["W b h x s y lengths"]
real = real_words(lengths, z.shape[1])
found = [layer(W, b, h, g, z, z + x, real) for h, g in zip(states, words)]
twin.agrees(context=torch.stack([c for c, a in found]), weights=torch.stack([a for c, a in found]))

# Two layers: the query of the second is the result of the first, h + c (section 3.3).
twin = Twin("gehring2017", "multi_step")
W, b, z, states, words, lengths = twin["W b h s y lengths"]
real = real_words(lengths, z.shape[1])
contexts = []
for h, g in zip(states, words):
    first, _ = layer(W[0], b[0], h, g, z, z, real)
    second, _ = layer(W[1], b[1], h + first, g, z, z, real)
    contexts.append(second)
twin.agrees(context=torch.stack(contexts))
