# SPDX-License-Identifier: BSD-3-Clause
"""Step 9 of the course: self-attention. A small Transformer that sorts digits."""
import torch
import torch.nn.functional as F
from torch import nn

from as_heed import Adam
from training import Training

D, N, equals, symbols = 32, 6, 10, 11


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.before_heads, self.before_network = nn.LayerNorm(D), nn.LayerNorm(D)
        self.heads = nn.MultiheadAttention(D, 2, bias=False, batch_first=True)
        self.network = nn.Sequential(nn.Linear(D, 4 * D), nn.ReLU(), nn.Linear(4 * D, D))

    def forward(self, x):  # [B,S,D]
        y = self.before_heads(x)
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)  # true if not visible
        seen, self.weights = self.heads(y, y, y, attn_mask=later, average_attn_weights=False)
        x = x + seen
        return x + self.network(self.before_network(x))


class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.E, self.W = nn.Embedding(symbols, D), nn.Linear(D, symbols, bias=False)
        self.first, self.second, self.last = Layer(), Layer(), nn.LayerNorm(D)

    def forward(self, given):  # [B,S]
        p, k = torch.arange(given.shape[1])[:, None], torch.arange(0, D, 2)
        angle = p / 10000 ** (k / D)
        places = torch.stack([torch.sin(angle), torch.cos(angle)], dim=-1).flatten(-2)  # alternating sine and cosine
        return self.W(self.last(self.second(self.first(self.E(given) + places))))


learning = Training("09", "transformer")
model = learning.begin(Transformer(), {f"{layer}.network.{ours}": f"{layer}.network.{heeds}"
                                       for layer in ("first", "second") for ours, heeds in ((0, "W_1"), (2, "W_2"))})
adam = Adam(model, lr=0.003)
for some in learning.batches:
    scores, expected = model(some["given"].T), some["expected"].T
    loss = F.cross_entropy(scores[:, N:].flatten(0, 1), expected[:, N:].flatten())  # only after the =
    adam.zero_grad()
    loss.backward()
    learning.sees(loss)
    adam.step(clip=1.0)
learning.ends()

question, = learning.questions
written = question["given"].T  # 5 2 9 0 7 3 =
while written.shape[1] < 2 * N + 1:  # the output is read at the next step
    written = torch.cat([written, model(written)[:, -1:].argmax(dim=-1)], dim=1)
model(written)
weights = model.second.weights[:, :, N:2 * N].transpose(1, 2)[0]  # of both heads, from = on
learning.agrees(written=written[0], weights=weights[:, None])
