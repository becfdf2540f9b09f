// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this recurrent cell has no `begin` that heed can call
// expect: heed: this recurrent cell has no `project` that heed can call
// expect: heed: this recurrent cell has no `step` that heed can call
#include <heed/heed.hpp>
#include <heed/nn/run.hpp>
#include <heed/seq2seq/encoder.hpp>
#include <heed/seq2seq/parts.hpp>

namespace mine {

template <class Matrix>
struct without_begin {
    Matrix W;
    auto project(const heed::tensor auto& x) const { return heed::ops::linear(x, W); }
    auto step(const heed::tensor auto& x, const heed::tensor auto& h, const heed::ops::sentence_ends& = {}) const
    {
        return heed::ops::tanh(heed::ops::add(x, h));
    }
    static auto parameters(auto& self, auto&& visit) { return mine::without_begin{visit("W", self.W)}; }
};
template <class Matrix>
without_begin(Matrix) -> without_begin<Matrix>;

struct with_begin_alone {
    auto init_state(const heed::tensor auto& h) const { return h; }
    static auto parameters(auto&, auto&&) { return mine::with_begin_alone{}; }
};

}  // namespace mine

auto use(const heed::array<float, 2>& W, const heed::seq2seq::source_batch& words, const heed::array<float, 3>& x,
         const heed::array<float, 2>& h)
{
    const heed::seq2seq::forward_encoder encoder{W, mine::without_begin{W}, heed::nn::zero_start{3}};
    (void)encoder.encode(words).start;
    return heed::nn::run(mine::with_begin_alone{}, h, x, heed::lengths{2}).last;
}
