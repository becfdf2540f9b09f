# SPDX-License-Identifier: BSD-3-Clause
"""Qiu et al. 2025: multi-head attention with heads gated by the query."""
import torch

from twin import Twin
from vaswani2017 import attention, split

twin = Twin("qiu2025", "gated")
W_Q, W_K, W_V, W_O, W, x, n = twin["W_Q W_K W_V W_O W x heads"]
seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()  # no later keys
Y = attention(split(x @ W_Q, n), split(x @ W_K, n), split(x @ W_V, n), seen).transpose(1, 2).flatten(-2)
twin.agrees(context=(Y * torch.sigmoid(x @ W)) @ W_O)  # section 2.2, position G1
