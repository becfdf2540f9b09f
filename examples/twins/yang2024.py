# SPDX-License-Identifier: BSD-3-Clause
"""Yang et al. 2024: gated linear attention, in its parallel form, with one gate for each position."""
import math

import torch

from twin import Twin

twin = Twin("yang2024", "gated_linear")
w, b, q, x = twin["w b q k"]
F = torch.nn.functional.logsigmoid(x @ w + b).squeeze(-1).cumsum(-1)  # F_i = Σ_{l≤i} log α_l: [B,T]
seen = torch.ones(q.shape[1], x.shape[1]).tril().bool()  # no later keys
D = (F[:, :, None] - F[:, None]).masked_fill(~seen, -torch.inf).exp()  # Π_{l=j+1..i} α_l
twin.agrees(context=(q @ x.transpose(-1, -2) / math.sqrt(q.shape[-1]) * D) @ x)
