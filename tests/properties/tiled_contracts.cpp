// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/heed.hpp>
#include <support/exhaustive.hpp>
#include <support/many_queries.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

// Properties of many queries tile by tile, for any score and normalizer: memory, bitwise reproducibility, checkpoints.

namespace {

/// Gradients of a loss of S causal queries over two sentences with T and T/2 annotations.
template <class Attention>
std::vector<double> gradients(const Attention& attend, std::size_t S, std::size_t T, bool checked = false)
{
    const auto h = random({2, T, 4}, 1), q = random({2, S, 4}, 2);
    ad::tape<double> on;
    const auto H = on.parameter(h), Q = on.parameter(q);
    const auto lifted = ad::lift(on, attend);
    const lengths real({T, T / 2});
    const auto answers = [real](const auto& with, const auto& annotations, const auto& queries) {
        return with(with.on(annotations, real), queries, causal{});
    };
    const auto contexts = checked ? ad::checkpoint(answers, lifted, H, Q) : answers(lifted, H, Q);
    const auto loss = ops::dot(contexts, random({2, S, 4}, 3));
    on.backward(loss);
    return support::gradients_after(on, loss.value().data[0], lifted, H, Q);
}

void each_mechanism(const auto& use)
{
    const auto relative = [](auto e, score_index p, const auto& b) { return e + b(p.key - p.query + 10); };
    const score::modified score{score::scaled_dot{}, random({21}, 4), relative};
    const auto with = [&](const auto& normalize) { use(attention{score, normalize, combine::weighted_sum{}}); };
    with(normalize::softmax_with_sink{array<double, 1>{0.3}});
    with(normalize::entmax15{});
    with(normalize::top_k{5});
    with(normalize::stick_breaking{});
    with(normalize::decayed_temporal{0.7, 0.2});
    use(attention{score::additive{random({4, 4}, 5), random({4, 4}, 6), random({4}, 7)}, normalize::softmax{},
                  combine::weighted_sum{}});
}

/// Calls use(mechanism) for these and for other executors of many queries at once.
void each_of_all(const auto& use)
{
    each_mechanism(use);
    const auto with = [&](const auto& score, const auto& normalize) {
        use(attention{score, normalize, combine::weighted_sum{}});
    };
    const array<double, 1> number{0.3};
    with(score::scaled_dot{}, normalize::softmax{});
    with(score::scaled_dot{}, normalize::sigmoid{-1});
    with(score::scaled_dot{}, normalize::sigmoid{number});
    with(score::scaled_dot{}, normalize::sparsemax{});
    with(score::scaled_dot{}, normalize::entmax{number});
    with(score::kernel{score::elu_plus_one{}}, normalize::ratio{});
    use(multi_head{std::vector(2, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}}),
                   random({4, 4}, 8), random({4, 2}, 9), random({4, 2}, 10), random({4, 4}, 11)});
}

/// Checks that compute(through a checkpoint?) gives the same result with one thread and with `threads` threads, or with
/// two and with three if exhaustive.
void check_bits(heed::detail::function_ref<std::vector<double>, bool> compute, std::size_t threads)
{
    std::vector<double> one;
    for (const std::size_t count : {1u, 2u, 3u}) {
        if (count > 1 && count != threads && !support::exhaustive()) continue;
        set_threads(count);
        const auto is = compute(false);
        if (count == 1) one = is;
        CHECK(compute(false) == is);
        CHECK(compute(true) == is);
        double worst = 0;
        for (std::size_t i = 0; i < is.size(); ++i) worst = std::max(worst, std::abs(is[i] - one[i]));
        CHECK(worst < 1e-11);
    }
    set_threads(1);
}

}  // namespace

TEST_CASE("long attention keeps at most a megabyte at any length")
{
    each_mechanism([](const auto& attend) {
        release_workspace();
        gradients(attend, 16, 10000);  // all weights would take 1.3 MB
        CHECK(workspace_size() <= std::size_t{1} << 20);
    });
    release_workspace();
}

TEST_CASE("gradients are the same bits in every run, with any number of threads, and through a checkpoint")
{
    // Whole tiles and blocks, and a partial tile and block.
    const std::size_t S = support::exhaustive() ? 150 : 100, T = support::exhaustive() ? 200 : 130;
    std::size_t nth = 0;
    each_of_all([&](const auto& attend) {
        const auto compute = [&](bool checked) { return gradients(attend, S, T, checked); };
        check_bits(compute, 2 + nth++ % 2);
    });
}
