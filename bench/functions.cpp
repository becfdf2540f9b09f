// SPDX-License-Identifier: BSD-3-Clause

// The cost of score functions in attention of many queries, compared with none: every function of the catalogue
// (examples/catalogue/scores.hpp), learned tables, and scores that read positions.
//
//     build-bench/bench/functions [--threads=N] [--rounds=N] [--work=NAME]
//
// In each round, attention runs with and without the function; the ratio is the median of the rounds' ratios. Seconds
// are CPU time with one thread, wall time with more. Names are `forward/…` or `forward+backward/…`.

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/papers/positions.hpp>

#include "../examples/catalogue/scores.hpp"
#include "columns.hpp"
#include "harness.hpp"

namespace {

using namespace heed;
using bench::made;

constexpr bench::size sizes{4, 1, 1024, 64};
constexpr auto L = static_cast<std::int32_t>(sizes.length);
constexpr std::int32_t reach = 64;  // distances with a separate number

/// Prints a line for each pass.
void compare(const bench::choices& with, const std::string& what, const auto& score)
{
    for (const bool backward : {false, true}) {
        const std::string name = (backward ? "forward+backward/" : "forward/") + what;
        if (!with.wants(name)) continue;
        const bench::timings took =
            bench::in_turn({bench::mechanism(with.threads, "none", sizes, backward, made(), no_mask{}),
                            bench::mechanism(with.threads, what, sizes, backward, made(score), no_mask{})},
                           with.rounds);
        std::printf("%-52s none %6.1f ms  changed %6.1f ms (%.2f)\n", name.c_str(),
                    1e3 * bench::median(took.seconds[0]), 1e3 * bench::median(took.seconds[1]),
                    bench::median(took.ratios[1]));
        std::fflush(stdout);
    }
}

template <std::size_t N>
array<float, N> table_of(const shape_of_rank<N>& shape)
{
    array<float, N> x(shape);
    bench::fill(x.data(), x.size(), 9, 0.1F);
    return x;
}

void functions(const bench::choices& with)
{
    catalogue::tables<float> at;
    at.q_rope = table_of<3>({sizes.batch, sizes.length, 4});
    at.k_rope = table_of<3>({sizes.batch, sizes.length, 4});
    catalogue::each_function(at, [&](const char* name, const auto& f) {
        compare(with, name, score::modified{score::scaled_dot{}, f});
    });
}

/// Functions with a learned table.
template <std::size_t N>
void learned(const bench::choices& with, const char* name, const shape_of_rank<N>& shape, const auto& f)
{
    compare(with, name, score::modified{score::scaled_dot{}, table_of<N>(shape), f});
}

void tables(const bench::choices& with)
{
    learned<1>(with, "T5's relative bias, up to 16", {33}, catalogue::relative);
    learned<1>(with, "a bias for each distance", {2 * sizes.length - 1},
               [](auto e, score_index p, const auto& b) { return e + b(p.key - p.query + (L - 1)); });
    std::vector<std::int32_t> bucket_of;  // of query − key
    const papers::raffel2020::buckets buckets{32, 128, true};
    for (std::int32_t i = 1 - L; i < L; ++i) bucket_of.push_back(buckets(pack<std::int32_t>(i))[0]);
    learned<1>(with, "T5's buckets, looked up", {32},
               [buckets_at = looked_up(bucket_of)](auto e, score_index p, const auto& b) {
                   return e + b(buckets_at(p.query - p.key + (L - 1)));
               });
    learned<2>(with, "T5's buckets, computed", {1, 32}, papers::raffel2020::bias_of_distance{buckets});
    learned<1>(with, "Graphormer's distances", {L / 2}, catalogue::spatial);
    learned<1>(with, "Graphormer's edges", {21}, catalogue::edges);
    learned<2>(with, "a bias for each query and distance", {sizes.length, 2 * reach + 1},
               [](auto e, score_index p, const auto& b) { return e + b(p.query, p.key - p.query + reach); });
    learned<2>(with, "a bias for each query and key", {sizes.length, sizes.length},
               [](auto e, score_index p, const auto& b) { return e + b(p.query, p.key); });
    compare(with, "Shaw's distances (score::relative)",
            score::relative{score::scaled_dot{}, table_of<2>({sizes.width, 2 * reach + 1})});
    compare(with, "rotary positions (score::rotary)", score::rotary{score::scaled_dot{}});
}

}  // namespace

int main(int argc, char** argv)
{
    const bench::choices with = bench::take_choices(argc, argv, 7);
    set_threads(static_cast<std::size_t>(with.threads));
    functions(with);
    tables(with);
    return 0;
}
