# SPDX-License-Identifier: BSD-3-Clause
"""Xiao et al. 2024: softmax off by one: a sink with score 0."""
import math

import torch

from twin import Twin

twin = Twin("xiao2024", "zero_sink")
q, k = twin["q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
p = torch.exp(e) * seen
twin.agrees(context=p / (1 + p.sum(-1, keepdim=True)) @ k)
