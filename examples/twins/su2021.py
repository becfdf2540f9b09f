# SPDX-License-Identifier: BSD-3-Clause
"""Su et al. 2021: rotary positions."""
import torch

from twin import Twin
from vaswani2017 import attention


def turned(x):
    """R_p x: the pair m of numbers, 2m and 2m + 1, is rotated by p · 10000^(-2m/d). Eq. 15 and 34."""
    pairs = torch.arange(x.shape[-1] // 2, dtype=x.dtype)
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * 10000 ** (-2 * pairs / x.shape[-1])  # [T,d/2]
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], dim=-1).flatten(-2)


if __name__ == "__main__":  # used by other files
    twin = Twin("su2021", "rotary")
    q, k = twin["q k"]
    seen = torch.ones(q.shape[1], k.shape[1]).tril().bool()  # no later keys
    twin.agrees(context=attention(turned(q), turned(k), k, seen))  # eq. 16
