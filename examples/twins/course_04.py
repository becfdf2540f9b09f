# SPDX-License-Identifier: BSD-3-Clause
"""Step 4 of the course: memory between steps. heed's state is a variable here."""
import torch

from twin import Step

step = Step("04")
h = torch.tensor([[1.0, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]])  # veni, vidi, vici
queries = torch.tensor([[4.0, 2, 0, 1], [4, 3, 0, 1], [4, 3, 1, 1]])


def softmax(e):
    return torch.softmax(e, dim=-1)


def temporal(e, state):
    """Sankaran et al. 2016: u_t = e_t - log Σ_{k<t} exp(e_k), in the first step e; and the new logarithm."""
    return (e, e) if past is None else (e - past, torch.logaddexp(state, e))


def window(t, e):
    """Luong et al. 2015, local-m: one word on each side of place t."""
    return e.masked_fill((torch.arange(3) - t).abs() > 1, -torch.inf)


past, covered = None, torch.zeros(3)
weights = {name: [] for name in ("softmax", "temporal", "coverage", "local", "local-temporal")}
for t, q in enumerate(queries):
    e = h @ q
    weights["softmax"].append(softmax(e))

    u, past = temporal(e, state)
    weights["temporal"].append(softmax(u))

    # Tu et al. 2016: Σ α / Φ, with the fertility Φ = N σ(U_f h_j) = 2 σ(0); v_c writes it, times -4, to feature 4.
    shown = h + torch.outer(covered, torch.tensor([0.0, 0, 0, -4]))
    weights["coverage"].append(softmax(shown @ q))
    covered = covered + weights["coverage"][-1] / (2 * torch.sigmoid(torch.tensor(0.0)))

    weights["local"].append(softmax(window(t, e)))
    weights["local-temporal"].append(softmax(window(t, u)))
for name, of_steps in weights.items():
    step.shows(name, torch.stack(of_steps))

_, past = temporal(h @ queries[0], None)  # from here, two alternatives
step.says("the state after step 1, veni", past[0])
u, after = temporal(h @ queries[1], state)
step.says("the state after step 2, veni", after[0])
step.says("one way: asked for vidi", softmax(u)[1])
u, _ = temporal(h @ queries[0], state)
step.says("other way: asked the same", softmax(u)[1])
