# SPDX-License-Identifier: BSD-3-Clause
"""Vaswani et al. 2017: scaled dot-product attention and multi-head attention."""
import math

import torch

from twin import Twin, real_words


def attention(q, k, v, seen):
    """Eq. 1: softmax(Q Kᵀ / √d_k) V. From version 2 on, torch.nn.functional.scaled_dot_product_attention computes it."""
    e = q @ k.transpose(-1, -2) / math.sqrt(k.shape[-1])
    return torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ v


def split(x, heads):
    """[B,T,nK] -> [B,n,T,K]"""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


if __name__ == "__main__":  # used by other files
    twin = Twin("vaswani2017", "scaled_dot")
    q, k, v, lengths = twin["q k v lengths"]
    twin.agrees(context=attention(q, k, v, real_words(lengths, k.shape[1])[:, None]))

    twin = Twin("vaswani2017", "multi_head")
    W_Q, W_K, W_V, W_O, q, h, n, lengths = twin["W_Q W_K W_V W_O q h heads lengths"]
    seen = real_words(lengths, h.shape[1])[:, None, None]
    heads = attention(split(q @ W_Q, n), split(h @ W_K, n), split(h @ W_V, n), seen)  # section 3.2.2
    context = heads.transpose(1, 2).flatten(-2) @ W_O
    twin.agrees(context=context)

    # With torch.nn: its matrices are transposed, and its mask is true for invisible keys.
    mha = torch.nn.MultiheadAttention(q.shape[-1], n, bias=False, batch_first=True, dtype=q.dtype)
    mha.load_state_dict({"in_proj_weight": torch.cat([W_Q.T, W_K.T, W_V.T]), "out_proj.weight": W_O.T})
    out, _ = mha(q, h, h, key_padding_mask=~real_words(lengths, h.shape[1]))
    assert (out - context).abs().max() < 1e-12
