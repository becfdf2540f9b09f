# SPDX-License-Identifier: BSD-3-Clause
"""Ramapuram et al. 2025: attention by sigmoids."""
import math

import torch

from twin import Twin

twin = Twin("ramapuram2025", "sigmoid")
length, q, k = twin["length q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
twin.agrees(context=torch.sigmoid(e - math.log(length)) * seen @ k)
