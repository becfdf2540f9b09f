# SPDX-License-Identifier: BSD-3-Clause
"""Shaw, Uszkoreit, Vaswani 2018: keys with relative positions."""
import math

import torch

from twin import Twin

twin = Twin("shaw2018", "relative")
q, k, distances = twin["q k distances"]  # [B,T,D] twice, [D,2R+1]
R, T = distances.shape[1] // 2, q.shape[1]
places = torch.arange(T)
a = distances.T[(places[None] - places[:, None]).clamp(-R, R) + R]  # a_ij = w_clip(j - i): [T,T,D]
e = torch.einsum("bid,bijd->bij", q, k[:, None] + a) / math.sqrt(q.shape[-1])  # eq. 4
seen = torch.ones(T, T).tril().bool()  # no later keys
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)
