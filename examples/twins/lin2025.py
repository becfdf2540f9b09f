# SPDX-License-Identifier: BSD-3-Clause
"""Lin et al. 2025: the Forgetting Transformer. A gate at each word determines how much of the past is kept."""
import math

import torch

from twin import Twin

twin = Twin("lin2025", "forgetting")
w, b, q, x = twin["w b q k"]
F = torch.nn.functional.logsigmoid(x @ w + b).squeeze(-1).cumsum(-1)  # F_i = Σ_{l≤i} log f_l: [B,T]
D = F[:, :, None] - F[:, None]  # Σ_{l=j+1..i} log f_l
seen = torch.ones(q.shape[1], x.shape[1]).tril().bool()  # no later keys
e = q @ x.transpose(-1, -2) / math.sqrt(q.shape[-1]) + D
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ x)
