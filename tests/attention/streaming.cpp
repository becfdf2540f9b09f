// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/streaming.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>
#include <support/many_queries.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;
using support::random;
using support::words_of;

namespace {

constexpr std::size_t D = 4;

}  // namespace

TEST_CASE("a stream of words: in chunks and one by one as all at once, and it trains")
{
    const std::size_t T = 23;
    const auto h = random({2, T, D}, 1), q = random({2, T, D}, 2);
    const auto each = [&](const auto& attend) {
        const auto must = attend(attend.on(h), q, causal{});
        for (const std::size_t chunk : {std::size_t{1}, std::size_t{7}}) {
            const streaming generate{attend};
            auto sums = generate.start(attend.on(words_of(h, 0, 0)));
            double worst = 0;
            for (std::size_t t = 0; t < T; t += chunk) {
                const std::size_t n = std::min(chunk, T - t);
                sums = generate.extend(sums, attend.on(words_of(h, t, n)));
                const auto context = generate.answer(sums, ops::step_of(q, t + n - 1));
                for (std::size_t b = 0; b < 2; ++b)
                    for (std::size_t i = 0; i < D; ++i)
                        worst = std::max(worst, std::abs(context(b, i) - must(b, t + n - 1, i)));
            }
            CHECK(worst < 1e-12);
        }
        const auto trained = [&](const auto& words, const auto& query) {
            const streaming generate{attend};
            const auto sums = generate.start(attend.on(words, lengths{5, 3}));
            return generate.answer(generate.extend(sums, attend.on(words)), query);
        };
        CHECK_GRADIENT(trained, random({2, 5, D}, 1), random({2, D}, 2));
    };
    each(attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{0.9}, combine::weighted_sum{}});
    each(attention{score::kernel{score::positive_random{random({D, 6}, 9)}}, normalize::ratio{},
                   combine::weighted_sum{}});
    each(attention{score::scaled_dot{}, normalize::retention{0.8}, combine::weighted_sum{}});
}

TEST_CASE("sums and their reading: by hand, with padding, and what does not fit")
{
    const array<double, 3> none(shape_of_rank<3>{1, 2, 2}, 0.0);
    const array<double, 3> keys{{{1, 2}, {3, 0}, {9, 9}}}, values{{{5}, {7}, {9}}};
    const auto sums = ops::add_to_sums(none, keys, values, lengths{2}, 0.5);  // the first key is one word older
    CHECK(support::same_bits(sums, array<double, 3>{{{0.5 * 5 + 3 * 7, 0.5 + 3}, {0.5 * 10, 1}}}));
    CHECK(support::same_bits(ops::add_to_sums(sums, keys, values, lengths{0}, 0.5), sums));
    const array<double, 2> query{{1, 2}};
    CHECK(support::same_bits(ops::read_sums(query, sums, false), array<double, 2>{{33.5}}));
    CHECK(ops::read_sums(query, sums, true)(0, 0) == support::approx(33.5 / 5.5));
    CHECK(ops::read_sums(query, none, true)(0, 0) == 0);
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::add_to_sums(none, random({1, 3, 5}, 1), values, lengths{2}, 1.0);
          }).find("the sums") != std::string::npos);
    CHECK(support::message_of<shape_error>([&] {
              (void)ops::read_sums(random({1, 3}, 1), sums, true);
          }).find("the query") != std::string::npos);
}
