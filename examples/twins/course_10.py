# SPDX-License-Identifier: BSD-3-Clause
"""Step 10 of the course: real text. RNNsearch: the translator of step 7 with all parts of Bahdanau et al. 2015."""
import torch
from torch import nn

from as_heed import Additive
from course_07 import Translator, learn
from training import Training

size, begin, end = 48, 2, 3


class RNNsearch(Translator):
    def __init__(self, english, german):
        super().__init__(english, german, Additive(size), E=size, H=size)
        self.right_start, self.left_start = nn.Parameter(torch.zeros(size)), nn.Parameter(torch.zeros(size))
        self.W_s = nn.Linear(size, size)
        self.readout = nn.Linear(4 * size, 2 * size)
        self.W_o = nn.Linear(size, german)

    def encode(self, words, lengths):
        starts = [start.expand(len(lengths), -1) for start in (self.right_start, self.left_start)]
        h, real, last = super().encode(words, lengths, starts)
        return h, real, torch.tanh(self.W_s(last))

    def scores(self, s, y, c):  # t = maxout(U_o s + V_o y + C_o c + b_o), p = softmax(W_o t + b)
        t = self.readout(torch.cat([s, y, c], dim=-1)).unflatten(-1, (-1, 2)).max(dim=-1).values
        return self.W_o(t)

    def beam(self, words, lengths, width=5, alpha=0.6):
        """Extends all open translations and keeps the most probable. Sorts complete ones as Wu et al. 2016, eq. 14."""
        h, real, s = self.encode(words, lengths)
        live, ended = [(0.0, [], [], s)], []  # log p, words, weights, the decoder's state
        for words_left in reversed(range(2 * len(words) + 11)):  # at the limit, a translation must end
            candidates = []
            for log_p, written, weights, s in live:
                y = self.german.weight[written[-1] if written else begin]
                s, scores, a = self.step(y[None], s, h, real)
                log_ps = torch.log_softmax(scores[0], dim=-1)
                for word in log_ps.topk(width).indices.tolist() if words_left else [end]:
                    candidates.append((log_p + log_ps[word].item(), [*written, word], [*weights, a[0]], s))
            candidates.sort(key=lambda each: each[0], reverse=True)
            live, places = [], width - len(ended)  # a complete translation keeps its place in the beam
            for each in candidates[:places]:
                (ended if each[1][-1] == end else live).append(each)
        scored = [(log_p / ((5 + len(words)) / 6) ** alpha, words[:-1], weights) for log_p, words, weights, _ in ended]
        return sorted(scored, key=lambda each: each[0], reverse=True)


names = {"english": "encoder.embedding", "to_right": "encoder.forward", "to_left": "encoder.backward",
         "right_start": "encoder.forward_start.value", "left_start": "encoder.backward_start.value",
         "german": "decoder.embedding", "attend": "decoder.attention.score",
         "decoder.W": ["decoder.cell.W", "decoder.C"], "decoder": "decoder.cell",  # of [y; c]
         "readout": ["decoder.U_o", "decoder.V_o", "decoder.C_o"],
         "W_s": "decoder.W_s", "W_o": "decoder.W_o", "W_o.bias": "decoder.b"}


def new(learning):
    return RNNsearch(*(len(learning.parameters[f"{side}.embedding"]) for side in ("encoder", "decoder")))


learning = Training("10", "updates")
learn(learning, new(learning), names)
learning.agrees()

learning = Training("10", "beam")  # parameters that heed learned in three epochs
model, found = learning.begin(new(learning), names), {}
with torch.no_grad():
    for i, question in enumerate(learning.questions):
        for k, (score, words, weights) in enumerate(model.beam(question["source"], question["lengths"])):
            found |= {f"words {i}.{k}": torch.tensor(words), f"score {i}.{k}": torch.tensor(score),
                      f"weights {i}.{k}": torch.stack(weights).squeeze(0)}  # one word: without an axis for words
learning.agrees(**found)
