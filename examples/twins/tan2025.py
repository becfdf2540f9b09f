# SPDX-License-Identifier: BSD-3-Clause
"""Tan et al. 2025: stick-breaking attention, including the position of the query."""
import math

import torch

from twin import Twin

twin = Twin("tan2025", "stick_breaking")
q, k = twin["q k"]
e = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
left = torch.nn.functional.logsigmoid(-e) * seen
later = left.flip(-1).cumsum(-1).flip(-1) - left  # over the keys after each
twin.agrees(context=torch.exp(torch.nn.functional.logsigmoid(e) + later) * seen @ k)
