# SPDX-License-Identifier: BSD-3-Clause
"""DeepSeek-AI 2024 (DeepSeek-V2): latent heads. All keys and values are computed from one small vector per position."""
import torch

from su2021 import turned
from twin import Twin
from vaswani2017 import attention, split

twin = Twin("deepseek2024", "latent")
W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O, x, n = twin["W_Q W_QR W_DKV W_KR W_UK W_UV W_O x heads"]
c = x @ W_DKV  # eq. 9: the cache, with k_R
k_R = turned(x @ W_KR)  # eq. 15: shared by all heads
K = split(c @ W_UK.T, n)  # eq. 10
V = torch.einsum("btc,ncv->bntv", c, W_UV.unflatten(0, (n, -1)))  # eq. 11
Q = torch.cat([split(x @ W_Q, n), turned(split(x @ W_QR, n))], dim=-1)  # eq. 13, 14 and 16
K = torch.cat([K, k_R[:, None].expand(-1, n, -1, -1)], dim=-1)  # eq. 17
seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()  # no later keys
twin.agrees(context=attention(Q, K, V, seen).transpose(1, 2).flatten(-2) @ W_O)  # eq. 18 and 19
