# SPDX-License-Identifier: BSD-3-Clause
"""Luong, Pham, Manning 2015: global and local attention, and the attentional vector. Annotations h̄, query h_t."""
import torch

from twin import Twin, real_words


def compare(preset, align, output=lambda twin, c, h_t: c):
    """align(twin, h_t, t, h, real) -> weights [B,T] of step t; output(twin, c, h_t): the output of a step."""
    twin = Twin("luong2015", preset)
    h, queries, lengths = twin["h s lengths"]
    real = real_words(lengths, h.shape[1])
    weights, outputs = [], []
    for t, h_t in enumerate(queries):
        weights.append(align(twin, h_t, t, h, real))
        outputs.append(output(twin, torch.einsum("bt,btd->bd", weights[-1], h), h_t))
    twin.agrees(context=torch.stack(outputs), weights=torch.stack(weights))


def softmax(e, seen):
    return torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1)  # eq. 7


def dot(twin, h_t, h):  # section 3.1, the three scores
    return torch.einsum("bd,btd->bt", h_t, h)


def general(twin, h_t, h):
    return torch.einsum("bq,qd,btd->bt", h_t, twin["W_a"], h)


def concat(twin, h_t, h):
    both = torch.cat([h_t[:, None].expand(-1, h.shape[1], -1), h], dim=-1)
    return torch.tanh(both @ twin["W_a"]) @ twin["v_a"]


compare("global_dot", lambda twin, h_t, t, h, real: softmax(dot(twin, h_t, h), real))
compare("global_general", lambda twin, h_t, t, h, real: softmax(general(twin, h_t, h), real))
compare("global_concat", lambda twin, h_t, t, h, real: softmax(concat(twin, h_t, h), real))
compare("global_location", lambda twin, h_t, t, h, real: softmax((h_t @ twin["W_a"])[:, :h.shape[1]], real))  # eq. 8


def local_m(twin, h_t, t, h, real):  # section 3.2: the window [t - D, t + D]
    window = (torch.arange(h.shape[1]) - t).abs() <= twin["reach"]
    return softmax(general(twin, h_t, h), real & window)


def local_p(twin, h_t, t, h, real):
    p = twin["lengths"] * torch.sigmoid(torch.tanh(h_t @ twin["W_p"]) @ twin["v_p"])  # eq. 9
    far = torch.arange(h.shape[1]) - p[:, None]
    a = softmax(general(twin, h_t, h), real & (far.abs() <= twin["reach"]))
    return a * torch.exp(-far**2 / (2 * (twin["reach"] / 2) ** 2))  # eq. 10


compare("local_m", local_m)
compare("local_p", local_p)
compare("attentional", lambda twin, h_t, t, h, real: softmax(general(twin, h_t, h), real),
        lambda twin, c, h_t: torch.tanh(torch.cat([c, h_t], dim=-1) @ twin["W_c"]))  # eq. 5
