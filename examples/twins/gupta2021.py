# SPDX-License-Identifier: BSD-3-Clause
"""Gupta et al. 2021: softmax over the k largest scores."""
import math

import torch

from twin import Twin

twin = Twin("gupta2021", "top_k")
best, q, k = twin["k_best q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
e = e.masked_fill(~seen, -torch.inf)
least = e.topk(best, dim=-1).values[..., -1:]  # -inf where there are fewer
twin.agrees(context=torch.softmax(e.masked_fill(e < least, -torch.inf), dim=-1) @ k)
