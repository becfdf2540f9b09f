# SPDX-License-Identifier: BSD-3-Clause
"""Shazeer et al. 2020: talking heads. Scores and weights are mixed over heads."""
import math

import torch

from twin import Twin
from vaswani2017 import split

twin = Twin("shazeer2020", "talking_heads")
W_Q, W_K, W_V, W_O, P_l, P_w, x, n = twin["W_Q W_K W_V W_O P_l P_w x heads"]
Q, K, V = split(x @ W_Q, n), split(x @ W_K, n), split(x @ W_V, n)
J = Q @ K.transpose(-1, -2) / math.sqrt(K.shape[-1])
L = torch.einsum("bhij,hg->bgij", J, P_l)
seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()  # no later keys; after the mixing
W = torch.softmax(L.masked_fill(~seen, -torch.inf), dim=-1)
U = torch.einsum("bgij,gv->bvij", W, P_w)
twin.agrees(context=(U @ V).transpose(1, 2).flatten(-2) @ W_O)
