# SPDX-License-Identifier: BSD-3-Clause
"""Golovneva et al. 2024: contextual positions (CoPE), as in the paper's program, except for the scale of z."""
import math

import torch

from twin import Twin

twin = Twin("golovneva2024", "contextual")
z, q, x = twin["positions q k"]
seen = torch.ones(q.shape[1], x.shape[1]).tril().bool()  # no later keys
e = (q @ x.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(~seen, -torch.inf)
p = torch.sigmoid(e).flip(-1).cumsum(-1).flip(-1).clamp(max=z.shape[-1] - 1)  # Σ_{l≥j} g_il
low, high = p.floor().long(), p.ceil().long()
of_positions = q @ z / math.sqrt(q.shape[-1])
part = p - low
e = e + of_positions.gather(-1, low) * (1 - part) + of_positions.gather(-1, high) * part
twin.agrees(context=torch.softmax(e, dim=-1) @ x)
