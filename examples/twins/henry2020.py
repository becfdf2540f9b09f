# SPDX-License-Identifier: BSD-3-Clause
"""Henry et al. 2020: normalized queries and keys, with a learned scale."""
import torch

from twin import Twin

twin = Twin("henry2020", "normalized")
g, q, k = twin["g q k"]
e = g * (torch.nn.functional.normalize(q, dim=-1) @ torch.nn.functional.normalize(k, dim=-1).transpose(-1, -2))
seen = torch.ones(q.shape[1], q.shape[1]).tril().bool()  # no later keys
twin.agrees(context=torch.softmax(e.masked_fill(~seen, -torch.inf), dim=-1) @ k)
