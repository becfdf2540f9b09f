// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: the reset gate of PyTorch's nn.GRU acts after the product: load it into an nn::gru_reset_after
#include <heed/heed.hpp>
#include <heed/seq2seq/torch.hpp>

using namespace heed;

void use(const io::archive& file, nn::gru<array<float, 2>, array<float, 1>>& unit)
{
    io::load_torch(file, unit, "rnn");
}
