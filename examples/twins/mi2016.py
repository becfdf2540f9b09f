# SPDX-License-Identifier: BSD-3-Clause
"""Mi et al. 2016: a coverage embedding for each source word, as printed in Sankaran et al. 2016, section 4.1."""
import torch

from twin import Twin, real_words

twin = Twin("mi2016", "coverage")
W, U, v, C, W_y, U_c, a, h, states, words, lengths = twin["W U v C W_y U_c a h s y lengths"]
real = real_words(lengths, h.shape[1])
N = C.shape[0]


def gru(c, y, alpha):
    """c' = z ⊙ c + (1 - z) ⊙ c̃: unlike in nn.GRUCell, the reset gate acts after the product, and there is no bias."""
    x = (y @ W_y)[:, None] + alpha[..., None] * a  # [B,T,3N]
    u = c @ U_c
    z = torch.sigmoid(x[..., :N] + u[..., :N])
    r = torch.sigmoid(x[..., N:2 * N] + u[..., N:2 * N])
    return z * c + (1 - z) * torch.tanh(x[..., 2 * N:] + r * u[..., 2 * N:])


c = torch.zeros(*h.shape[:2], N, dtype=h.dtype)
contexts, weights = [], []
for s, y in zip(states, words):  # y was emitted after the previous step, whose weights were weights[-1]
    if weights:
        c = gru(c, y, weights[-1])
    e = torch.tanh((s @ W)[:, None] + h @ U + c @ C) @ v
    weights.append(torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1))
    contexts.append(torch.einsum("bt,btd->bd", weights[-1], h))
twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))
