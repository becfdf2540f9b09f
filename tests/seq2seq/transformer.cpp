// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/papers/vaswani2017_translator.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <support/sentences.hpp>
#include <support/tensors.hpp>

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;
using support::random;

namespace {

// Different lengths, a repeated word, and a sentence without words: only its end is left to attend to.
const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

constexpr papers::vaswani2017::translator_sizes small{8, 8, 4, 5, 2, 2, 2, 30};

template <class... Parts>
auto translator(Parts... parts)
{
    return papers::vaswani2017::make_translator<double>(3, small, parts...);
}

void check_gradient(auto model)
{
    // Where all is 0, as new biases are, relu has a corner.
    std::uint64_t stream = 100;
    for_each_parameter(model, [&](const std::string&, auto& x) {
        const auto to = view_of(x);
        const auto noise = random({to.size()}, stream++);
        for (std::size_t i = 0; i < to.size(); ++i) to.data[i] += 0.1 * noise(i);
    });
    const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto result = ad::grad_check(model, [&](auto&, const auto& lifted) { return lifted.loss(examples, 0.1); });
    CHECK_MESSAGE(result, result.text());
    CHECK(result.entries == parameter_count(model));
}

}  // namespace

TEST_CASE("every parameter has the gradient of finite differences")
{
    check_gradient(translator());
    check_gradient(translator(new_separate_tables{}, nn::new_learned_positions{}, nn::new_pre_norm{}, ops::gelu));
}

TEST_CASE("step by step is all at once")
{
    const auto check = [](const auto& model) {
        const auto examples = make_training_batch<double>(pointers(sources), pointers(targets));
        const double loss = model.loss(examples).data()[0];
        double sum = 0;
        for (const auto& each : force<double>(model, examples.source, pointers(targets))) sum -= each.log_probability();
        CHECK(sum == doctest::Approx(loss).epsilon(1e-12));

        const auto several = beam<double>(model, examples.source, {.width = 5});
        std::vector<id_sentence> best;
        for (std::size_t b = 0; b < 4; ++b) best.push_back(several[b].front().words);
        // A hypothesis that lost a key on the way would have another probability than the one it is led through.
        const auto again = force<double>(model, examples.source, pointers(best));
        for (std::size_t b = 0; b < 4; ++b) {
            CHECK(again[b].log_probability() == doctest::Approx(several[b].front().log_probability).epsilon(1e-9));
        }
        const packed<double, std::remove_cvref_t<decltype(model)>> fast(model);
        CHECK(beam<double>(fast, examples.source, {.width = 5})[2].front().words == best[2]);
    };
    check(translator());
    check(translator(new_tied_tables{}, nn::new_learned_positions{}, nn::new_pre_norm{}, ops::gelu));
}
