// SPDX-License-Identifier: BSD-3-Clause
//
// catalogue: common functions of scores and masks, each in at most five lines, computed tile by tile and trained.
//
// `catalogue` computes attention with each function and mask, forward and backward, and compares with scalar loops;
// `catalogue --draw` shows the visible blocks of each mask. Copy the functions you need from scores.hpp and masks.hpp.
//
// test:
// test: --draw

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/heed.hpp>
#include <heed/nn/init.hpp>
#include <heed_kit/view/blocks.hpp>

#include "masks.hpp"
#include "scores.hpp"

using namespace heed;

namespace {

constexpr std::size_t B = 2, L = catalogue::positions, D = 4;

/// Queries, keys with their values, and the factors of the contexts in the loss.
struct problem {
    array<double, 3> queries, annotations, weights;
};

/// Σ weights · contexts by scalar loops: the definition of a function and a mask. `divides`: the weights of a query are
/// divided by their sum.
double by_loops(const problem& x, const auto& f, const auto& mask, bool divides = true)
{
    double loss = 0;
    score_index p;
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t s = 0; s < L; ++s) {
            p.batch = static_cast<std::int32_t>(b);
            p.query = p.diagonal = static_cast<std::int32_t>(s);
            double sum = 0, of = 0;
            for (std::size_t t = 0; t < L; ++t) {
                p.key = static_cast<std::int32_t>(t);
                if (lane_mask(mask(p)).at[0] == 0) continue;
                double e = 0, value = 0;
                for (std::size_t i = 0; i < D; ++i) {
                    e += x.queries(b, s, i) * x.annotations(b, t, i) / std::sqrt(double{D});
                    value += x.annotations(b, t, i) * x.weights(b, s, i);
                }
                const double weight = std::exp(pack<double>(f(pack<double>(e), p)).at[0]);
                sum += weight;
                of += weight * value;
            }
            if (sum > 0) loss += divides ? of / sum : of;
        }
    }
    return loss;
}

/// The difference between heed's loss and that of the loops, and between its derivative along a direction and finite
/// differences of the loops.
struct distance {
    double forward, backward;
};

/// Values with a 1 appended to each.
template <class Values>
auto with_one(const Values& values)
{
    auto shape = shape_of(values);
    shape[2] = 1;
    return ops::concat(values, constant_like(values, shape, 1));
}

template <bool divides = true, class Score, class Mask>
distance compare(problem x, const Score& score, const auto& f, const Mask& mask, array<double, 1>* table = nullptr)
{
    const auto normalize = [] {
        if constexpr (divides) {
            return normalize::softmax{};
        } else {
            return normalize::softmax_with_sink{array<double, 1>{0}};
        }
    }();
    const attention attend{score, normalize, combine::weighted_sum{}};
    ad::tape<double> on;
    const auto q = on.parameter(x.queries), h = on.parameter(x.annotations);
    const auto lifted = ad::lift(on, attend);
    const auto loss = [&] {
        if constexpr (divides) {
            return ops::dot(lifted(lifted.on(h), q, mask), x.weights);
        } else {
            return ops::dot(catalogue::undone(lifted(lifted.on(h, with_one(h)), q, mask)), x.weights);
        }
    }();
    on.backward(loss);

    random_source random{7};
    double slope = 0;
    constexpr double step = 1e-5;
    problem ahead = x, behind = x;
    const auto go = [&](const auto& gradient, auto& up, auto& down) {
        const auto direction = nn::gaussian<double>(random, 1, gradient.size(), 1);
        for (std::size_t i = 0; i < gradient.size(); ++i) {
            slope += gradient.data[i] * direction.data()[i];
            up.data()[i] += step * direction.data()[i];
            down.data()[i] -= step * direction.data()[i];
        }
    };
    go(on.gradient(q), ahead.queries, behind.queries);
    go(on.gradient(h), ahead.annotations, behind.annotations);
    const double here = by_loops(x, f, mask, divides);
    double above = 0, below = 0;
    if constexpr (requires { lifted.score.table.size(); }) {  // f looks up numbers in *table
        const array<double, 1> kept = *table;
        array<double, 1> up = kept, down = kept;
        go(on.gradient(lifted.score.table), up, down);
        *table = up;
        above = by_loops(ahead, f, mask);
        *table = down;
        below = by_loops(behind, f, mask);
        *table = kept;
    } else {
        above = by_loops(ahead, f, mask, divides);
        below = by_loops(behind, f, mask, divides);
    }
    return {std::abs(loss.value().data[0] - here), std::abs(slope - (above - below) / (2 * step))};
}

int run(bool draw)
{
    random_source random{1};
    const auto drawn = [&] {
        const auto x = nn::gaussian<double>(random, B * L, D, 1);
        array<double, 3> shaped(shape_of_rank<3>{B, L, D});
        std::copy(x.begin(), x.end(), shaped.begin());
        return shaped;
    };
    const problem x{drawn(), drawn(), drawn()};
    const catalogue::known known;
    catalogue::tables<double> tables;
    tables.q_rope = drawn();
    tables.k_rope = drawn();

    if (draw) {
        for (const auto& [name, mask] : catalogue::masks(known))
            fmt::print("{}\n{}\n", name, view::blocks(mask, L, L, 8));
        return 0;
    }

    bool right = true;
    const auto show = [&](const std::string& name, const distance& is) {
        const bool good = is.forward < 1e-10 && is.backward < 1e-6;
        right = right && good;
        fmt::print("{:<36} contexts {:8.1e}   gradients {:8.1e}{}\n", name, is.forward, is.backward,
                   good ? "" : "   WRONG");
    };
    const auto unchanged = [](auto e, score_index) { return e; };
    const catalogue::any_mask everything{[](score_index) { return true; }};

    fmt::print("Functions of scores: difference from scalar loops\n\n");
    for (const auto& [name, f] : catalogue::functions(tables))
        show(name, compare(x, score::modified{score::scaled_dot{}, f}, f, everything));
    const auto with_table = [&](const char* name, const auto& f) {
        const auto some = nn::gaussian<double>(random, 1, 48, 0.5);
        array<double, 1> table(shape_of_rank<1>{48});
        std::copy(some.begin(), some.end(), table.begin());
        const auto looking_up = [&](auto e, score_index p) { return f(e, p, looked_up(table)); };
        show(name, compare(x, score::modified{score::scaled_dot{}, table, f}, looking_up, everything, &table));
    };
    with_table("T5's relative bias, learned", catalogue::relative);
    with_table("Graphormer's distances, learned", catalogue::spatial);
    with_table("Graphormer's edges, learned", catalogue::edges);

    show("unnormalized weights", compare<false>(x, score::modified{score::scaled_dot{}, catalogue::log_of_function},
                                                catalogue::log_of_function, everything));

    fmt::print("\nMasks\n\n");
    for (const auto& [name, mask] : catalogue::masks(known))
        show(name, compare(x, score::scaled_dot{}, unchanged, mask));
    return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Common functions of scores and masks: forward and backward, compared with scalar loops."};
    bool draw = false;
    app.add_flag("--draw", draw, "show the visible blocks of 8 queries and 8 keys of each mask");
    CLI11_PARSE(app, argc, argv);
    try {
        return run(draw);
    } catch (const std::exception& problem) {
        fmt::print(stderr, "catalogue: {}\n", problem.what());
        return 1;
    }
}
