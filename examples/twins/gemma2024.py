# SPDX-License-Identifier: BSD-3-Clause
"""Gemma Team 2024: soft-capped scores."""
import math

import torch

from twin import Twin

twin = Twin("gemma2024", "capped")
cap, q, k = twin["cap q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
e = cap * torch.tanh(e / cap)
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)
