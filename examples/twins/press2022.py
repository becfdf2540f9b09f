# SPDX-License-Identifier: BSD-3-Clause
"""Press, Smith, Lewis 2022: attention with linear biases (ALiBi), with a single head."""
import math

import torch

from twin import Twin

twin = Twin("press2022", "alibi")
q, k = twin["q k"]
places = torch.arange(q.shape[1])
slope = 2 ** (-8 * 1 / 1)  # head 1 of 1: section 3
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) - slope * (places[:, None] - places)
seen = places <= places[:, None]  # no later keys
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)

twin = Twin("press2022", "alibi_of_program")
q, k = twin["q k"]
places = torch.arange(q.shape[1])


def get_slopes(n):
    """The slopes of n heads as in the authors' program."""
    def of_power(n):
        start = 2 ** (-2 ** -(math.log2(n) - 3))
        return [start * start ** i for i in range(n)]

    if math.log2(n).is_integer():
        return of_power(n)
    closest = 2 ** math.floor(math.log2(n))
    return of_power(closest) + get_slopes(2 * closest)[0::2][:n - closest]


e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) - get_slopes(3)[0] * (places[:, None] - places)
seen = places <= places[:, None]
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)
