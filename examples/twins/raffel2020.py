# SPDX-License-Identifier: BSD-3-Clause
"""Raffel et al. 2020 (T5): a learned bias for each range of distances, and no scale."""
import math

import torch

from twin import Twin

twin = Twin("raffel2020", "relative_bias")
table, q, k, buckets, longest = twin["table q k buckets longest"]  # [heads, buckets]; one head


def bucket(distance):
    """The first half of the buckets cover one distance each, the others growing ranges up to `longest`."""
    exact = buckets // 2
    far = exact + torch.log(distance.clamp(min=1) / exact) / math.log(longest / exact) * (buckets - exact)
    return torch.where(distance < exact, distance, (far + 1e-9).long().clamp(max=buckets - 1))


places = torch.arange(q.shape[1])
bias = table[0][bucket((places[:, None] - places).clamp(min=0))]
seen = places <= places[:, None]  # no later keys
e = q @ k.transpose(-1, -2) + bias
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)
