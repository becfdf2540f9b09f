// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/nn/lstm.hpp>
#include <heed/papers/transformer.hpp>
#include <heed/seq2seq/systems/gehring2017.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/second_order.hpp>
#include <support/sentences.hpp>

// Hessian-vector products of complete translators, with respect to all parameters at once, from words to the loss.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

/// `h`: small where relu and maxout have corners.
void check(auto model, double h = 1e-4)
{
    // New biases are 0, which would hide some terms, and relu has a corner there.
    std::uint64_t stream = 100;
    for_each_parameter(model, [&](const std::string&, auto& x) {
        const auto to = view_of(x);
        const auto noise = support::random({to.size()}, stream++);
        for (std::size_t i = 0; i < to.size(); ++i) to.data[i] += 0.1 * noise(i);
    });
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    CHECK_SECOND_ORDER(
        model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); }, h);
}

}  // namespace

TEST_CASE("RNNsearch")
{
    check(make_translator<double>(3, sizes{7, 8, 4, 3, 5}, attentions::additive_factory{}), 1e-6);
}
TEST_CASE("temporal attention, long short-term memory")
{
    check(make_translator<double>(3, sizes{7, 8, 4, 3, 5}, attentions::temporal_factory{}, nullptr, nn::lstm_factory{}),
          1e-6);
}
TEST_CASE("weights per dimension")
{
    check(make_translator<double>(3, sizes{7, 8, 4, 3, 5}, attentions::per_dimension_factory{}), 1e-6);
}
TEST_CASE("Transformer")
{
    constexpr papers::vaswani2017::translator_sizes small{8, 8, 4, 5, 2, 2, 2, 30};
    check(papers::vaswani2017::translator<double>(3, small), 1e-6);
}
