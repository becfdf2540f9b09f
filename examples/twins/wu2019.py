# SPDX-License-Identifier: BSD-3-Clause
"""Wu et al. 2019: dynamic and lightweight convolution in a decoder, where kernels end at the word itself."""
import torch

from twin import Twin


def convolved(kernels, x):
    """Σ_k w_{i,k} x_{i+k-K+1} with k from 0 and zeros before the first word: kernels [B,T,K]."""
    K = kernels.shape[-1]
    windows = torch.nn.functional.pad(x, (0, 0, K - 1, 0)).unfold(1, K, 1)  # [B,T,D,K]
    return torch.einsum("btk,btdk->btd", torch.softmax(kernels, dim=-1), windows)


twin = Twin("wu2019", "dynamic")
W, q, x = twin["W q k"]
twin.agrees(context=convolved(q @ W, x))

twin = Twin("wu2019", "lightweight")
w, q, x = twin["w q k"]
twin.agrees(context=convolved(w.expand(*x.shape[:2], -1), x))
