# SPDX-License-Identifier: BSD-3-Clause
"""Katharopoulos et al. 2020: linear attention in recurrent form. Keys are the values."""
import torch

from twin import Twin

twin = Twin("katharopoulos2020", "linear")
q, k = twin["q k"]


def phi(x):
    return torch.nn.functional.elu(x) + 1  # eq. 7


s, z, contexts = 0, 0, []
for i in range(q.shape[1]):  # eq. 18 to 20: the state has constant size
    s = s + torch.einsum("bf,bd->bfd", phi(k[:, i]), k[:, i])
    z = z + phi(k[:, i])
    contexts.append(torch.einsum("bf,bfd->bd", phi(q[:, i]), s) / (phi(q[:, i]) * z).sum(-1, keepdim=True))
twin.agrees(context=torch.stack(contexts, dim=1))
