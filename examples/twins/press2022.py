# SPDX-License-Identifier: BSD-3-Clause
"""Press, Smith, Lewis 2022: attention with linear biases (ALiBi), the only head of one."""
import math

import torch

from twin import Twin

twin = Twin("press2022", "alibi")
q, k = twin["q k"]
places = torch.arange(q.shape[1])
slope = 2 ** (-8 * 1 / 1)  # of head 1 of 1: section 3
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) - slope * (places[:, None] - places)
seen = places <= places[:, None]  # no later keys
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)
