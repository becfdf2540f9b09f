// SPDX-License-Identifier: BSD-3-Clause

// The gain of a window: attention to a whole long sentence and to 2 · 10 + 1 of its positions. Measured with additive
// scores and with inner products, which do not multiply the query before the window.

#include <cmath>
#include <memory>
#include <utility>

#include <heed/heed.hpp>

#include "floor.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;
using bench::attention_size;

constexpr std::size_t reach = 10;         // D
constexpr std::size_t middle_step = 500;  // its window is inside the sentence

std::size_t size_of(long n) { return static_cast<std::size_t>(n); }

template <std::size_t N>
array<float, N> random_array(const shape_of_rank<N>& shape, unsigned seed, float scale)
{
    array<float, N> result(shape);
    bench::fill(result.data(), result.size(), seed, scale);
    return result;
}

array<float, 2> random_weight(long in, long out, unsigned seed)
{
    return random_array<2>({size_of(in), size_of(out)}, seed, std::sqrt(3.0F / static_cast<float>(in)));
}

array<float, 1> random_vector(long n, unsigned seed)
{
    return random_array<1>({size_of(n)}, seed, std::sqrt(3.0F / static_cast<float>(n)));
}

/// One step of inference in the middle of the sentence, into reused results.
template <class Score, class Normalize>
bench::work forward_of(const attention_size& z, const Score& score, const Normalize& normalize)
{
    const auto attend = attention{score, normalize, combine::weighted_sum{}};
    const memory<array<float, 3>, array<float, 3>> source{
        random_array<3>({size_of(z.batch), size_of(z.positions), size_of(z.value)}, 3, 1.0F),
        random_array<3>({size_of(z.batch), size_of(z.positions), size_of(z.alignment)}, 2, 1.0F),
        lengths::full(size_of(z.batch), size_of(z.positions))};
    const auto query = random_array<2>({size_of(z.batch), size_of(z.query)}, 1, 1.0F);
    auto state = attend.start(source);
    state.step = middle_step;
    auto result = attend.step(source, query, state);
    struct storage {
        decltype(attend) mechanism;
        decltype(source) attended_to;
        decltype(query) asked;
        decltype(state) before;
        decltype(result) answer;
    };
    const auto s = std::make_shared<storage>(storage{attend, source, query, state, result});
    return {[s] {
                s->mechanism.step_into(s->answer, s->attended_to, s->asked, s->before);
                benchmark::DoNotOptimize(s->answer.context.data());
            },
            [s] { return bench::sum_of_absolutes(s->answer.context.data(), s->answer.context.size()); }};
}

template <class Normalize>
bench::work forward(const attention_size& z, const Normalize& normalize)
{
    // Keys are already prepared here, so U is never used: one row is enough.
    return forward_of(z,
                      score::additive{random_weight(z.query, z.alignment, 4), array<float, 2>(shape_of_rank<2>{1, 1}),
                                      random_vector(z.alignment, 5)},
                      normalize);
}

/// The floor of a window with additive scores: s W, which no window reduces.
bench::work product_of_query(const attention_size& z, const bench::floor::gemm& multiply)
{
    const auto query = std::make_shared<bench::floor::product>(z.batch, z.query, z.alignment);
    return {[query, multiply] {
        multiply.begin();
        query->forward(multiply);
        multiply.end();
        benchmark::ClobberMemory();
    }};
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    for (const long batch : {1L, 12L}) {
        const attention_size z{256, 512, 256, batch, 1000};
        using normalize::temporal, normalize::history::in_window, normalize::local_m, normalize::local_p;
        bench::add(bench::name_of("windows", "global", z), [z] { return forward(z, normalize::softmax{}); });
        bench::add(bench::name_of("windows", "local", z), [z] { return forward(z, local_m{reach}); });
        bench::add(bench::name_of("windows", "local_p", z), [z] {
            return forward(z, local_p{random_weight(z.query, z.query, 6), random_vector(z.query, 7), reach});
        });
        bench::add(bench::name_of("windows", "global_temporal", z), [z] { return forward(z, temporal{}); });
        bench::add(bench::name_of("windows", "local_temporal", z), [z] {
            return forward(z, local_m{reach, temporal{}, in_window{}});
        });
        bench::add(bench::name_of("windows", "global_dot", z),
                   [z] { return forward_of(z, score::dot{}, normalize::softmax{}); });
        bench::add(bench::name_of("windows", "local_dot", z),
                   [z] { return forward_of(z, score::dot{}, local_m{reach}); });
        bench::floor::add(bench::name_of("windows", "products", z), chosen,
                          [z](const bench::floor::gemm& multiply) { return product_of_query(z, multiply); });
    }
    return bench::run(argc, argv, chosen);
}
