# SPDX-License-Identifier: BSD-3-Clause
"""Raffel et al. 2017: monotonic attention: the expectation for training, and the scan of the trained model."""
import torch

from twin import Twin, real_words


def choosing(e, real):
    """p_{i,j}, 0 at padding."""
    return torch.sigmoid(e) * real


def expected(p, before):
    """α_{i,j} = p_{i,j} Σ_{k≤j} α_{i-1,k} Π_{l=k}^{j-1} (1 - p_{i,l}), summed position by position, as in eq. 10 to 14."""
    still, alpha = torch.zeros_like(p[:, 0]), []
    for j in range(p.shape[1]):
        still = (1 - p[:, j - 1]) * still + before[:, j] if j else before[:, 0]
        alpha.append(p[:, j] * still)
    return torch.stack(alpha, dim=-1)


def scanned(p, before):
    """Section 2.2: the first position with p above 1/2 from the last stop on; if none, no position from then on."""
    alpha = torch.zeros_like(p)
    for b, row in enumerate(before):
        for j in range(int(row.argmax()) if row.any() else p.shape[1], p.shape[1]):
            if p[b, j] > 0.5:
                alpha[b, j] = 1
                break
    return alpha


if __name__ == "__main__":  # used by other files
    for preset, align in (("monotonic", expected), ("monotonic_hard", scanned)):
        twin = Twin("raffel2017", preset)
        W, U, v, r, h, queries, lengths = twin["W U v r h s lengths"]
        real = real_words(lengths, h.shape[1])
        alpha = torch.zeros(h.shape[:2], dtype=h.dtype)
        alpha[:, 0] = 1  # before the first step: the first word
        contexts, weights = [], []
        for s in queries:
            e = torch.tanh((s @ W)[:, None] + h @ U) @ v + r  # section 2.4, without its weight normalization
            alpha = align(choosing(e, real), alpha)
            contexts.append(torch.einsum("bt,btd->bd", alpha, h))
            weights.append(alpha)
        twin.agrees(context=torch.stack(contexts), weights=torch.stack(weights))
