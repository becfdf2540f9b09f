# SPDX-License-Identifier: BSD-3-Clause
"""Ainslie et al. 2023: grouped-query attention, here with one group for all heads."""
import torch

from twin import Twin
from vaswani2017 import attention, split

twin = Twin("ainslie2023", "grouped")
W_Q, W_K, W_V, W_O, x, n = twin["W_Q W_K W_V W_O x heads"]
seen = torch.ones(x.shape[1], x.shape[1]).tril().bool()  # no later keys
heads = attention(split(x @ W_Q, n), split(x @ W_K, 1), split(x @ W_V, 1), seen)  # section 2.2
twin.agrees(context=heads.transpose(1, 2).flatten(-2) @ W_O)
