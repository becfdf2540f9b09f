# SPDX-License-Identifier: BSD-3-Clause
"""Step 8 of the course: Luong, Bahdanau and no attention. The translator of step 7 with three attentions."""
import torch
import torch.nn.functional as F
from torch import nn

from as_heed import Additive
from course_07 import learn_and_translate

H = 64


class General(nn.Module):
    """Luong et al. 2015: e_j = sᵀ W h_j."""

    def __init__(self):
        super().__init__()
        self.W = nn.Linear(H, 2 * H, bias=False)

    def forward(self, s, h, real):  # [B,H], [B,T,2H], [B,T] -> weights [B,T]
        e = torch.einsum("bd,btd->bt", self.W(s), h)
        return torch.softmax(e.masked_fill(~real, -torch.inf), dim=-1)


class LastWord(General):  # scores are unused: W does not learn
    def forward(self, s, h, real):
        return F.one_hot(real.sum(dim=-1) - 1, real.shape[1]).to(h.dtype)


learn_and_translate("Bahdanau", Additive(H), "08")
learn_and_translate("Luong", General(), "08")
learn_and_translate("none", LastWord(), "08")
