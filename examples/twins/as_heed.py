# SPDX-License-Identifier: BSD-3-Clause
"""Parts that differ from PyTorch: the layout of parameters, heed's GRU, additive attention, heed's Adam."""
import torch
import torch.nn.functional as F
from torch import nn


def in_torch(model, heed, names):
    """heed's parameters as a state_dict of `model`. nn.Linear has x Wᵀ where heed has x W; W_o goes with b_o.

    `names`: parameters with other names in heed, {"to_right": "forward"}; several matrices of heed may be one:
    {"W": ["W", "C"]}.
    """

    def called(path):
        for ours, theirs in names.items():
            if path == ours or path.startswith(ours + "."):
                return [each + path[len(ours):] for each in ([theirs] if isinstance(theirs, str) else theirs)]
        return [path]

    made = {}
    for path, module in model.named_modules():
        name, *more = called(path)
        if isinstance(module, nn.Embedding):
            made[path + ".weight"] = heed[name]
        elif isinstance(module, nn.LayerNorm):
            made[path + ".weight"], made[path + ".bias"] = heed[name + ".gain"], heed[name + ".bias"]
        elif isinstance(module, nn.MultiheadAttention):
            made[path + ".in_proj_weight"] = torch.cat([heed[f"{name}.{W}"].T for W in ("W_Q", "W_K", "W_V")])
            made[path + ".out_proj.weight"] = heed[name + ".W_O"].T
        elif isinstance(module, nn.Linear) and not path.endswith("out_proj"):
            W = torch.cat([heed[each] for each in (name, *more)])
            made[path + ".weight"] = W.T if W.dim() == 2 else W[None]  # vᵀ x uses a matrix of one row there
            if module.bias is not None:
                before, _, last = name.rpartition(".")
                bias = names.get(path + ".bias", f"{before}.b{last[1:]}".lstrip("."))
                made[path + ".bias"] = heed[bias]
    for path, _ in model.named_parameters():
        if path not in made:  # a direct parameter of the model
            made[path] = heed[called(path)[0]]
    return made


class GRU(nn.Module):
    """heed's GRU. In nn.GRUCell, r acts after the product with the state, and z keeps the state (docs/learn/gru.md)."""

    def __init__(self, inputs, hidden):
        super().__init__()
        self.W, self.U = nn.Linear(inputs, 3 * hidden), nn.Linear(hidden, 2 * hidden, bias=False)
        self.U_h = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, h):
        z, r, new = (self.W(x) + F.pad(self.U(h), (0, h.shape[-1]))).chunk(3, dim=-1)
        z, r = torch.sigmoid(z), torch.sigmoid(r)
        return (1 - z) * h + z * torch.tanh(new + self.U_h(r * h))


class Additive(nn.Module):
    """Bahdanau et al. 2015: e_j = vᵀ tanh(W s + U h_j), α = softmax(e)."""

    def __init__(self, hidden):
        super().__init__()
        self.W, self.U = nn.Linear(hidden, hidden, bias=False), nn.Linear(2 * hidden, hidden, bias=False)
        self.v = nn.Linear(hidden, 1, bias=False)

    def forward(self, s, h, real):  # [B,H], [B,T,2H], [B,T] -> weights [B,T]
        e = self.v(torch.tanh(self.W(s)[:, None] + self.U(h)))[..., 0]
        return torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1)


class Adam(torch.optim.Adam):
    """heed's Adam. Two differences from PyTorch: table rows that the batch does not touch are unchanged, while
    torch.optim.Adam updates them by their moments; and nn.utils.clip_grad_norm_ adds 1e-6 to the norm."""

    def __init__(self, model, lr):
        super().__init__(model.parameters(), lr=lr)
        self.parameters = list(model.parameters())
        self.tables = [m.weight for m in model.modules() if isinstance(m, nn.Embedding)]

    @torch.no_grad()
    def step(self, clip):
        gradients = [x.grad for x in self.parameters if x.grad is not None]
        norm = torch.stack([g.norm() for g in gradients]).norm()
        for g in gradients:
            g *= torch.clamp(clip / norm, max=1)
        waiting = []
        for table in self.tables:
            rows = (table.grad == 0).all(dim=-1)
            for x in (table, *(x for x in self.state[table].values() if x.shape == table.shape)):
                waiting.append((x, rows, x[rows]))
        super().step()
        for x, rows, before in waiting:
            x[rows] = before
