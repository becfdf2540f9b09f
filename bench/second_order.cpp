// SPDX-License-Identifier: BSD-3-Clause

// The cost of a product with the Hessian, compared with one gradient.
//
//     build-bench/bench/second_order [--threads=N] [--rounds=N] [--work=NAME]
//
// Both take turns, round after round; the ratio is the median of the ratios within a round. The gradient is forward and
// backward on a reused tape. So is the product, which also returns loss, gradient and product as new tensors. Seconds
// are CPU time with one thread, wall time with more.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/seq2seq/translator.hpp>

#include "decoder_steps.hpp"
#include "harness.hpp"
#include "rounds.hpp"
#include "search.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;

struct random_leaf {
    std::uint64_t& stream;

    template <class X>
    auto operator()(const X& x) const
    {
        array<float, rank_of<X>> way(shape_of(x));
        bench::fill(way.data(), way.size(), static_cast<unsigned>(++stream), 1.0F);
        return way;
    }
};

/// Prints one line, for the loss of a module: loss(tape, lifted module).
template <class Module, class Loss>
void compare(const bench::choices& with, const std::string& name, const Module& module, const Loss& loss)
{
    if (!with.wants(name)) return;
    std::uint64_t stream = 50;
    const auto direction = map_parameters(module, random_leaf{stream});
    ad::tape<float> plain;
    ad::tape<dual_number<float>> dual;
    const auto seconds = [&](const auto& f) {
        const double begin = bench::search::now(with.threads);
        f();
        return bench::search::now(with.threads) - begin;
    };
    const auto gradient = [&] {
        plain.clear();
        std::vector<ad::named_variable<float>> all;
        const auto lifted = ad::lift(plain, module, all);
        plain.backward(loss(plain, lifted));
        for (const auto& x : all) benchmark::DoNotOptimize(plain.gradient(x.numbers).data);
    };
    const auto product = [&] {
        const auto found = ad::hessian_vector(dual, loss, module, direction);
        benchmark::DoNotOptimize(found.loss);
    };
    std::vector<double> one, both, ratios;
    for (int round = -1; round < with.rounds; ++round) {
        const double a = seconds(gradient), b = seconds(product);
        if (round < 0) continue;  // warm-up
        one.push_back(1e3 * a);
        both.push_back(1e3 * b);
        ratios.push_back(b / a);
    }
    std::printf("%-44s gradient %8.2f ms  Hessian-vector %8.2f ms (%.2f)\n", name.c_str(), bench::median(one),
                bench::median(both), bench::median(ratios));
    std::fflush(stdout);
}

array<float, 3> numbers(std::size_t B, std::size_t S, std::size_t N, unsigned seed)
{
    array<float, 3> x(shape_of_rank<3>{B, S, N});
    bench::fill(x.data(), x.size(), seed, 1.0F);
    return x;
}

/// Queries, keys and values, all differentiable.
struct three_of {
    template <class X>
    struct module {
        X q, k, v;

        static auto parameters(auto& self, auto&& visit)
        {
            return std::apply([](auto... x) { return of(std::move(x)...); },
                              std::tuple{visit("q", self.q), visit("k", self.k), visit("v", self.v)});
        }
        template <class Y>
        static module<Y> of(Y q, Y k, Y v)
        {
            return {q, k, v};
        }
    };
};

void tiles(const bench::choices& with)
{
    const std::size_t heads = 4, width = 64;
    for (const std::size_t L : {std::size_t{512}, std::size_t{1024}}) {
        const ops::heads_of how{heads, heads, 1 / std::sqrt(static_cast<double>(width))};
        const three_of::module<array<float, 3>> x{numbers(1, L, heads * width, 1), numbers(1, L, heads * width, 2),
                                                  numbers(1, L, heads * width, 3)};
        const auto weights = numbers(1, L, heads * width, 4);
        const auto of = [&](const auto& operation) {
            return [&, operation](auto&, const auto& m) {
                return ops::dot(ops::square(operation(m.q, m.k, m.v, lengths::full(1, L), how)), weights);
            };
        };
        const std::string size = "/" + std::to_string(L);
        compare(with, "tiles/softmax" + size, x, of(ops::attend_tiled));
        const auto alibi = [](auto e, score_index p) { return e - 0.01 * abs(p.query - p.key); };
        compare(with, "tiles/ALiBi" + size, x,
                of(ops::attend_tiled_op<decltype(alibi)>{alibi, kernels::tiles::unmasked{}}));
    }
}

void steps(const bench::choices& with)
{
    for (const bench::attention_size z :
         {bench::attention_size{256, 512, 256, 1, 50}, {256, 512, 256, 12, 50}, {512, 512, 512, 80, 50}}) {
        const auto size = [](long n) { return static_cast<std::size_t>(n); };
        const attention attend{score::additive{bench::random_weight(z.query, z.alignment, 4),
                                               bench::random_weight(z.value, z.alignment, 5),
                                               bench::random_vector(z.alignment, 6)},
                               normalize::softmax{}, combine::weighted_sum{}};
        const auto h = numbers(size(z.batch), size(z.positions), size(z.value), 1);
        const auto q = numbers(8, size(z.batch), size(z.query), 2);
        compare(with, bench::name_of("steps", "additive", z), attend, [&](auto& tape, const auto& m) {
            const auto memory = m.on(tape.constant(h), lengths::full(size(z.batch), size(z.positions)));
            auto state = m.start(memory);
            auto total = ops::dot(ops::square(m.score.v), filled<float, 1>({size(z.alignment)}, 0.1F));
            for (std::size_t s = 0; s < 8; ++s) {
                auto next = m.step(memory, tape.constant(ops::step_of(ops::swap_axes(q), s)), state);
                state = next.state;
                total =
                    ops::add(total, ops::dot(ops::square(next.context), filled<float, 2>(next.context.shape(), 0.1F)));
            }
            return total;
        });
    }
}

void rnnsearch(const bench::choices& with)
{
    const bench::training_size z;
    for (const std::size_t batch : {std::size_t{1}, std::size_t{16}, std::size_t{64}}) {
        const auto size = [](long n) { return static_cast<std::size_t>(n); };
        const auto model = seq2seq::make_translator<float>(
            1, {size(z.vocabulary), size(z.vocabulary), size(z.embedding), size(z.hidden), size(z.alignment)},
            seq2seq::attentions::additive_factory{});
        std::vector<seq2seq::id_sentence> sentences(batch);
        const auto ids = bench::words(batch * 14, z.vocabulary, 11);
        for (std::size_t i = 0; i < ids.size(); ++i) sentences[i / 14].push_back(static_cast<std::uint32_t>(ids[i]));
        std::vector<const seq2seq::id_sentence*> all;
        for (const auto& each : sentences) all.push_back(&each);
        const auto examples = seq2seq::make_training_batch<float>(all, all);
        compare(with, "RNNsearch, training batch of " + std::to_string(batch), model,
                [&](auto&, const auto& m) { return m.loss(examples); });
    }
}

}  // namespace

int main(int argc, char** argv)
{
    const bench::choices with = bench::take_choices(argc, argv, 9);
    set_threads(static_cast<std::size_t>(with.threads));
    tiles(with);
    steps(with);
    rnnsearch(with);
    return 0;
}
