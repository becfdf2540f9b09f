# SPDX-License-Identifier: BSD-3-Clause
"""OpenAI 2025 (gpt-oss): a learned sink."""
import math

import torch

from twin import Twin

twin = Twin("openai2025", "with_sink")
s, q, k = twin["s q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
p = torch.exp(e) * seen
twin.agrees(context=p / (torch.exp(s) + p.sum(-1, keepdim=True)) @ k)
