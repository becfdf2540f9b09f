// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/tensors.hpp>

#include <limits>
#include <vector>

// Padding other than that of annotations: initial coverage, initial weights, the embedding of the padding word.

using namespace heed;
using support::random;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
constexpr std::size_t B = 2, T = 5, Q = 3, D = 4, E = 2, N = 2;
const lengths real{5, 2};

auto additive() { return score::additive{random({Q, D}, 1), random({D, D}, 2), random({D}, 3)}; }

/// The context of two steps from an initial state that the score makes from `first`, and its gradient.
template <class Attention, class First>
std::vector<array<double, 1>> outcome(const Attention& attend, const First& first, const auto& on_memory)
{
    ad::tape<double> on;
    const auto lifted = ad::lift(on, attend);
    const auto memory = on_memory(lifted, random({B, T, D}, 4));
    const auto given = on.parameter(first);
    auto state = lifted.start(memory, lifted.score.start_from(memory, given));
    std::vector<ad::var<double, 2>> contexts;
    for (std::uint64_t s = 0; s < 2; ++s) {
        auto next = lifted.step(memory, state_and_word{random({B, Q}, 5 + s), random({B, E}, 7 + s)}, state);
        contexts.push_back(next.context);
        state = next.state;
    }
    const auto all = ops::stack(contexts);
    on.backward(ops::dot(all, support::uneven(shape_of(all))));
    std::vector<array<double, 1>> found;
    const auto take = [&](const auto& x) {
        array<double, 1> row(shape_of_rank<1>{x.size()});
        std::copy_n(x.data, x.size(), row.data());
        found.push_back(std::move(row));
    };
    take(all.value());
    take(on.gradient(given));
    for_each_parameter(lifted, [&](const std::string&, const auto& x) { take(on.gradient(x)); });
    return found;
}

template <class Attention, class First>
void check_padding_of_first(const Attention& attend, const First& first)
{
    const auto by_length = [](const auto& a, const auto& h) { return a.on(h, real); };
    boolean_mask<2> shown(shape_of_rank<2>{B, T});
    for (std::size_t i = 0; i < B * T; ++i) shown[i] = i / T == 0 || i % T < 2 ? 1 : 0;
    const auto by_mask = [&shown](const auto& a, const auto& h) { return a.on(h, shown); };
    const std::size_t width = first.size() / (B * T);
    for (const double rubbish : {not_a_number, inf, -inf, 1e30, 0.3}) {
        auto other = first;
        std::fill_n(other.data() + (T + real[1]) * width, (T - real[1]) * width, rubbish);
        const auto is = outcome(attend, other, by_length), must = outcome(attend, first, by_length);
        const auto is_masked = outcome(attend, other, by_mask), must_masked = outcome(attend, first, by_mask);
        REQUIRE(is.size() == must.size());
        for (std::size_t i = 0; i < must.size(); ++i) {
            CHECK(support::all_finite(must[i]));
            CHECK(support::same_bits(is[i], must[i]));
            CHECK(support::same_bits(is_masked[i], must_masked[i]));
        }
    }
}

std::vector<const seq2seq::id_sentence*> pointers(const std::vector<seq2seq::id_sentence>& sentences)
{
    std::vector<const seq2seq::id_sentence*> result;
    for (const auto& each : sentences) result.push_back(&each);
    return result;
}

}  // namespace

TEST_CASE("the padding of an initial coverage changes no bit")
{
    const nn::coverage_gru cell{random({E, 3 * N}, 11), random({3 * N}, 12), random({N, 3 * N}, 13)};
    check_padding_of_first(attention{score::with_coverage{additive(), random({N, D}, 14), cell}, normalize::softmax{},
                                     combine::weighted_sum{}},
                           random({B, T, N}, 15));
}

TEST_CASE("initial weights: their padding changes no bit, and uniform initial weights may include padding")
{
    const attention attend{
        score::with_location{additive(), random({std::size_t{2}, std::size_t{3}}, 16), random({std::size_t{2}, D}, 17)},
        normalize::softmax{}, combine::weighted_sum{}};
    check_padding_of_first(attend, random({B, T}, 18));
    const auto h = random({B, T, D}, 4);
    const auto q = random({B, Q}, 5);
    const auto first_weights = [&](const array<double, 2>& alpha_0) {
        const auto memory = attend.on(h, real);
        return attend.step(memory, q, attend.start(memory, attend.score.start_from(memory, alpha_0))).weights;
    };
    const auto uniform = filled<double, 2>({B, T}, 0.2);
    auto cut = uniform;
    for (std::size_t t = real[1]; t < T; ++t) cut(1, t) = 0;
    CHECK(support::same_bits(first_weights(uniform), first_weights(cut)));
}

TEST_CASE("a NaN or infinite padding embedding changes no loss and no gradient")
{
    using namespace heed::seq2seq;
    const std::vector<id_sentence> sources{{4, 5, 6}, {4}, {}}, targets{{4}, {5, 4, 6}, {4}};
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto check = [&](auto make_attention) {
        auto model = make_translator<double>(3, sizes{7, 8, 4, 3, 5}, make_attention);
        const auto outcome = [&](double padding) {
            for (double& x : std::span(&model.encoder.embedding(0, 0), 4)) x = padding;
            for (double& x : std::span(&model.decoder.embedding(0, 0), 4)) x = padding;
            ad::tape<double> on;
            const auto lifted = ad::lift(on, model);
            const auto loss = lifted.loss(batch);
            on.backward(loss);
            std::vector<array<double, 1>> found;
            for_each_parameter(lifted, [&](const std::string&, const auto& x) {
                const auto g = on.gradient(x);
                array<double, 1> row(shape_of_rank<1>{g.size()});
                std::copy_n(g.data, g.size(), row.data());
                found.push_back(std::move(row));
            });
            found.push_back({*loss.data()});
            return found;
        };
        const auto must = outcome(0.5);
        for (const double rubbish : {not_a_number, inf, -1e30}) {
            const auto is = outcome(rubbish);
            REQUIRE(is.size() == must.size());
            for (std::size_t i = 0; i < must.size(); ++i) {
                CHECK(support::all_finite(must[i]));
                CHECK(support::same_bits(is[i], must[i]));
            }
        }
    };
    check(fixed_context{});
    check(attentions::additive_with_word_factory{});
    check(attentions::temporal_factory{});
}
