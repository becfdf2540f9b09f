# SPDX-License-Identifier: BSD-3-Clause
"""Yin et al. 2016: one block of BCNN and of ABCNN-1, 2 and 3. One pair of sentences at a time, without padding."""
import torch
from torch.nn.functional import pad

from twin import Twin


def block(x, y, W, b, w, maps=None, weighted=False):
    """x [S,D], y [T,D] -> [S,N], [T,N]"""

    def match(x, y):
        return 1 / (1 + (x[:, None] - y[None]).norm(dim=-1))  # section 4: A_ij = 1 / (1 + |x_i - y_j|)

    def convolved(x):  # wide convolution: S words give S + w - 1 columns
        windows = pad(x, (0, 0, w - 1, w - 1)).unfold(0, w, 1)  # [S+w-1,D,w]
        return torch.tanh(windows.transpose(1, 2).flatten(1) @ W + b)

    def pooled(columns, a):  # averages w columns per word
        return torch.stack([(a[j:j + w, None] * columns[j:j + w]).sum(0) for j in range(len(columns) - w + 1)])

    if maps:  # ABCNN-1: attention as a second channel
        A = match(x, y)
        x, y = torch.cat([x, A @ maps[0][:len(y)]], -1), torch.cat([y, A.T @ maps[1][:len(x)]], -1)
    x, y = convolved(x), convolved(y)
    if weighted:  # ABCNN-2: columns are weighted by their sums of A
        A = match(x, y)
        return pooled(x, A.sum(1)), pooled(y, A.sum(0))
    return pooled(x, torch.full([len(x)], 1 / w)), pooled(y, torch.full([len(y)], 1 / w))


for preset in ("bcnn", "abcnn1", "abcnn2", "abcnn3"):
    twin = Twin("yin2016", preset)
    maps = twin["W_0 W_1"] if preset in ("abcnn1", "abcnn3") else None
    W, b, w, x, y = twin["W b width x y"]
    first, second = [], []
    for x_i, y_i, S, T in zip(x, y, *twin["first_lengths second_lengths"]):
        next_x, next_y = block(x_i[:S], y_i[:T], W, b, w, maps, weighted=preset in ("abcnn2", "abcnn3"))
        first.append(pad(next_x, (0, 0, 0, len(x_i) - S)))  # 0 in padding
        second.append(pad(next_y, (0, 0, 0, len(y_i) - T)))
    twin.agrees(first=torch.stack(first), second=torch.stack(second))
