# SPDX-License-Identifier: BSD-3-Clause
"""Step 7 of the course: a translator in one file."""
import torch
import torch.nn.functional as F
from torch import nn

from as_heed import GRU, Adam, Additive
from training import Training


class Translator(nn.Module):
    def __init__(self, english, german, attend, E=32, H=64):  # english, german: numbers of words
        super().__init__()
        self.english, self.german, self.attend = nn.Embedding(english, E), nn.Embedding(german, E), attend
        self.to_right, self.to_left, self.decoder = GRU(E, H), GRU(E, H), GRU(E + 2 * H, H)
        self.W_o = nn.Linear(3 * H, german)

    def read(self, cell, x, state, real, order):
        states = {}
        for t in order:  # in padding, the state is kept
            state = states[t] = torch.where(real[:, t, None], cell(x[t], state), state)
        return torch.stack([states[t] for t in sorted(states)], dim=1), state

    def encode(self, words, lengths, starts=None):  # [T,B], [B] -> annotations [B,T,2H], mask of words, initial state
        x, real, T = self.english(words), torch.arange(len(words)) < lengths[:, None], range(len(words))
        right, left = starts or [torch.zeros(len(lengths), self.decoder.U_h.in_features)] * 2
        to_right, _ = self.read(self.to_right, x, right, real, T)
        to_left, last = self.read(self.to_left, x, left, real, reversed(T))
        return torch.cat([to_right, to_left], dim=-1), real, last

    def step(self, y, s, h, real):  # previous word [B,E], previous state [B,H]
        a = self.attend(s, h, real)
        c = torch.einsum("bt,btd->bd", a, h)
        s = self.decoder(torch.cat([y, c], dim=-1), s)
        return s, self.scores(s, y, c), a

    def scores(self, s, y, c):  # of the next word; step 10 has others
        return self.W_o(torch.cat([s, c], dim=-1))

    def loss(self, batch):
        h, real, s = self.encode(batch["source"], batch["lengths"])
        scores = []
        for y in self.german(batch["previous"]):
            s, score, _ = self.step(y, s, h, real)
            scores.append(score)
        right = torch.arange(len(scores))[:, None] < batch["expected lengths"]
        return F.cross_entropy(torch.stack(scores)[right], batch["expected"][right])

    def translate(self, words, lengths):  # greedy search
        h, real, s = self.encode(words, lengths)
        written, weights, word = [], [], 0
        while len(written) < 50:
            s, score, a = self.step(self.german.weight[word][None], s, h, real)
            word = score.argmax().item()
            if word == 0:
                break
            written.append(word)
            weights.append(a[0, :-1])
        return written, weights


names = {"to_right": "forward", "to_left": "backward", "attend": "attend.score"}


def learn(learning, model, names=names):
    model = learning.begin(model, names)
    adam = Adam(model, lr=0.005)
    for batch in learning.batches:
        loss = model.loss(batch)
        adam.zero_grad()
        loss.backward()
        learning.sees(loss)
        adam.step(clip=1.0)
    learning.ends()


def learn_and_translate(name, attend, number="07"):
    learning = Training(number, name)
    model = Translator(len(learning.parameters["english"]), len(learning.parameters["german"]), attend)
    learn(learning, model)
    question, = learning.questions
    words, weights = model.translate(question["source"], question["lengths"])
    learning.agrees(words=torch.tensor(words), weights=torch.stack(weights), within=1e-7)  # the step writes floats


if __name__ == "__main__":  # steps 8 and 10 use this translator as well
    learn_and_translate("translator", Additive(64))
