# SPDX-License-Identifier: BSD-3-Clause
"""Ye et al. 2024: differential attention. Heads are paired, and the second is subtracted from the first."""
import torch

from twin import Twin
from vaswani2017 import attention, split

twin = Twin("ye2024", "differential")
W_Q, W_K, W_V, W_O, x, n = twin["W_Q W_K W_V W_O x heads"]
q1, k1, q2, k2, gain, lambda_init = twin["q1 k1 q2 k2 gain lambda_init"]
seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()  # no later keys
Q, K = (split(x @ W, 2 * n).unflatten(1, (n, 2)) for W in (W_Q, W_K))  # [B,n,2,T,d]
V = split(x @ W_V, n)
lambda_ = torch.exp(q1 @ k1) - torch.exp(q2 @ k2) + lambda_init  # eq. 2
head = attention(Q[:, :, 0], K[:, :, 0], V, seen) - lambda_ * attention(Q[:, :, 1], K[:, :, 1], V, seen)  # eq. 1
norm = gain * head / torch.sqrt((head**2).mean(-1, keepdim=True) + 1e-5)  # eq. 3; each head alone, without its mean
twin.agrees(context=((1 - lambda_init) * norm).transpose(1, 2).flatten(-2) @ W_O)
