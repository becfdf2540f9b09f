# SPDX-License-Identifier: BSD-3-Clause
"""Step 6 of the course: a model that learns to copy words, and to reverse them."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from as_heed import Adam
from training import Training

alphabet, longest, D = 26, 10, 32


class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.letter = nn.Embedding(alphabet, D)
        self.front, self.back, self.step = (nn.Embedding(longest, D) for _ in range(3))  # a vector for each position
        self.W = nn.Linear(D, alphabet)

    def forward(self, letters, lengths):  # [B,S], [B]
        place = torch.arange(letters.shape[1])
        real = place < lengths[:, None]
        from_front, from_back = place * real, (lengths[:, None] - 1 - place) * real  # 0 in padding
        h = self.letter(letters) + self.front(from_front) + self.back(from_back)  # annotations [B,S,D]
        q = self.step(from_front)
        e = q @ h.transpose(1, 2) / math.sqrt(D)
        a = torch.softmax(e.masked_fill(~real[:, None], -torch.inf), dim=-1)  # [B,S,S]
        return self.W(a @ h), a, real


for task in ("copy", "reverse"):
    learning = Training("06", task)
    model = learning.begin(Writer())
    adam = Adam(model, lr=0.01)
    for words in learning.batches:
        scores, _, real = model(words["letters"].T, words["lengths"])
        loss = F.cross_entropy(scores[real], words["expected"].T[real])
        adam.zero_grad()
        loss.backward()
        learning.sees(loss)
        adam.step(clip=1.0)
    learning.ends()

    lemon, = learning.questions
    scores, weights, real = model(lemon["letters"].T, lemon["lengths"])
    written = "".join(chr(ord("a") + letter) for letter in scores[0, :lemon["lengths"][0]].argmax(-1))
    print(f"{task}: lemon, {written}")
    learning.agrees(scores=scores.transpose(0, 1), weights=weights)
