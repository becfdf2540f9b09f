// SPDX-License-Identifier: BSD-3-Clause
#include <support/gradients.hpp>

#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/pairs/abcnn.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

// ABCNN-1, -2 and -3 (SPEC C7-C9) against scalar loops over the paper's formulas, one pair of sentences at a time.

using namespace heed;
using support::random;

namespace {

using numbers = std::vector<double>;
using matrix = std::vector<numbers>;  // one row per word

constexpr std::size_t D = 3, N = 4, longest = 6;

matrix rows_of(const array<double, 3>& x, std::size_t b, std::size_t count)
{
    matrix rows(count);
    for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t d = 0; d < x.shape()[2]; ++d) rows[i].push_back(x(b, i, d));
    }
    return rows;
}

matrix alike(const matrix& x, const matrix& y)
{
    matrix A(x.size(), numbers(y.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t j = 0; j < y.size(); ++j) {
            double sum = 0;
            for (std::size_t d = 0; d < x[i].size(); ++d) sum += (x[i][d] - y[j][d]) * (x[i][d] - y[j][d]);
            A[i][j] = 1 / (1 + std::sqrt(sum));
        }
    }
    return A;
}

matrix flipped(const matrix& A, std::size_t columns)
{
    matrix T(columns, numbers(A.size()));
    for (std::size_t i = 0; i < A.size(); ++i) {
        for (std::size_t j = 0; j < columns; ++j) T[j][i] = A[i][j];
    }
    return T;
}

/// The parameters of a block, for the loops.
struct parts {
    bool maps, attention_pooling;
    std::size_t w;
    array<double, 2> W_0, W_1, W;
    array<double, 1> b;
};

/// [x_i; Σ_j A_ij W_j] for each word i
matrix with_map(matrix x, const matrix& A, const array<double, 2>& W)
{
    for (std::size_t i = 0; i < x.size(); ++i) {
        for (std::size_t d = 0; d < D; ++d) {
            double sum = 0;
            for (std::size_t j = 0; j < A[i].size(); ++j) sum += A[i][j] * W(j, d);
            x[i].push_back(sum);
        }
    }
    return x;
}

/// Column i covers the words i-w+1 … i.
matrix convolve(const matrix& x, const parts& p)
{
    matrix y(x.empty() ? 0 : x.size() + p.w - 1, numbers(N));
    for (std::size_t i = 0; i < y.size(); ++i) {
        for (std::size_t n = 0; n < N; ++n) {
            double sum = p.b(n);
            for (std::size_t k = 0; k < p.w; ++k) {
                const std::ptrdiff_t word = static_cast<std::ptrdiff_t>(i + k + 1) - static_cast<std::ptrdiff_t>(p.w);
                if (word < 0 || word >= static_cast<std::ptrdiff_t>(x.size())) continue;
                const numbers& channels = x[static_cast<std::size_t>(word)];
                for (std::size_t c = 0; c < channels.size(); ++c) sum += channels[c] * p.W(k * channels.size() + c, n);
            }
            y[i][n] = std::tanh(sum);
        }
    }
    return y;
}

matrix pool(const matrix& columns, const matrix& A, const parts& p)
{
    matrix y(columns.empty() ? 0 : columns.size() + 1 - p.w, numbers(N, 0.0));
    for (std::size_t j = 0; j < y.size(); ++j) {
        for (std::size_t k = j; k < j + p.w; ++k) {
            double a = 1 / static_cast<double>(p.w);
            if (p.attention_pooling) {
                a = 0;
                for (const double x : A[k]) a += x;
            }
            for (std::size_t n = 0; n < N; ++n) y[j][n] += a * columns[k][n];
        }
    }
    return y;
}

std::pair<matrix, matrix> loops(const parts& p, matrix x, matrix y)
{
    if (p.maps) {
        const matrix A = alike(x, y), At = flipped(A, y.size());
        x = with_map(x, A, p.W_0);
        y = with_map(y, At, p.W_1);
    }
    const matrix fx = convolve(x, p), fy = convolve(y, p), A = alike(fx, fy);
    return {pool(fx, A, p), pool(fy, flipped(A, fy.size()), p)};
}

parts made_of(bool maps, bool attention_pooling, std::size_t w)
{
    return {maps,
            attention_pooling,
            w,
            random({longest, D}, 1),
            random({longest, D}, 2),
            random({w * (maps ? 2 * D : D), N}, 3, 0.5),
            random({N}, 4)};
}

/// f(block, parts, name) for ABCNN-1, 2, 3 and BCNN.
template <class F>
void each_form(std::size_t w, F&& f)
{
    const auto build = [w, &f](const char* name, auto before, const parts& p, auto pooling) {
        INFO(name);
        INFO(w);
        f(abcnn::block{before, p.W, p.b, w, pooling}, p);
    };
    const parts one = made_of(true, false, w), two = made_of(false, true, w), three = made_of(true, true, w),
                none = made_of(false, false, w);
    build("ABCNN-1", abcnn::feature_maps{one.W_0, one.W_1}, one, abcnn::average_pooling{});
    build("ABCNN-2", abcnn::words_alone{}, two, abcnn::attention_pooling{});
    build("ABCNN-3", abcnn::feature_maps{three.W_0, three.W_1}, three, abcnn::attention_pooling{});
    build("BCNN", abcnn::words_alone{}, none, abcnn::average_pooling{});
}

auto some_pairs(lengths first, lengths second, std::size_t S, std::size_t T)
{
    const std::size_t B = first.batch();
    return abcnn::sentences{random({B, S, D}, 10), std::move(first), random({B, T, D}, 11), std::move(second)};
}

void check_rows(const array<double, 3>& is, std::size_t b, const matrix& must)
{
    for (std::size_t i = 0; i < is.shape()[1]; ++i) {
        for (std::size_t n = 0; n < N; ++n) {
            if (i < must.size()) {
                CHECK(is(b, i, n) == doctest::Approx(must[i][n]).epsilon(1e-13));
            } else {
                CHECK(is(b, i, n) == 0);
            }
        }
    }
}

/// A block and its inputs, to be lifted together.
template <class Block, class Tensor>
struct problem {
    Block block;
    Tensor first, second;

    static auto parameters(auto& self, auto&& visit)
    {
        auto block = visit("block", self.block);
        auto first = visit("first", self.first);
        auto second = visit("second", self.second);
        return problem<decltype(block), decltype(first)>{block, first, second};
    }
};
template <class Block, class Tensor>
problem(Block, Tensor, Tensor) -> problem<Block, Tensor>;

auto loss_of(const auto& pair)
{
    const auto [x, y] = abcnn::average(pair);
    return ops::add(ops::add(ops::dot(pair.first, support::uneven(shape_of(pair.first))),
                             ops::dot(pair.second, support::uneven(shape_of(pair.second)))),
                    ops::dot(ops::multiply(x, y), support::uneven(shape_of(x))));
}

}  // namespace

TEST_CASE("values of the three forms, and of the form without attention, equal scalar loops")
{
    for (const std::size_t w : {1u, 2u, 3u}) {
        each_form(w, [&](const auto& block, const parts& p) {
            const auto check = [&](const lengths& first, const lengths& second, std::size_t S, std::size_t T) {
                const auto pairs = some_pairs(first, second, S, T);
                const auto is = block(pairs);
                CHECK(is.first.shape() == shape_of_rank<3>{first.batch(), S, N});
                CHECK(is.second.shape() == shape_of_rank<3>{first.batch(), T, N});
                ad::tape<double> on;
                problem m{block, pairs.first, pairs.second};
                const auto lifted = ad::lift(on, m);
                const auto taped = lifted.block(abcnn::sentences{lifted.first, first, lifted.second, second});
                CHECK(support::distance(taped.first, is.first) < 1e-14);
                CHECK(support::distance(taped.second, is.second) < 1e-14);
                for (std::size_t b = 0; b < first.batch(); ++b) {
                    const auto [x, y] =
                        loops(p, rows_of(pairs.first, b, first[b]), rows_of(pairs.second, b, second[b]));
                    check_rows(is.first, b, x);
                    check_rows(is.second, b, y);
                }
            };
            check({5, 2, 0, 1, 3}, {6, 1, 4, 2, 0}, 5, 6);
            check({1}, {1}, 1, 1);
            check({0}, {0}, 0, 0);
        });
    }
}

TEST_CASE("inputs of 1e4 match scalar loops and have finite gradients")
{
    each_form(2, [](const auto& block, const parts& p) {
        const lengths first{4, 2, 0}, second{3, 5, 2};
        auto pairs = some_pairs(first, second, 4, 5);
        for (double& x : pairs.first) x *= 1e4;
        for (double& x : pairs.second) x *= -1e4;
        const auto is = block(pairs);
        for (std::size_t b = 0; b < 3; ++b) {
            const auto [x, y] = loops(p, rows_of(pairs.first, b, first[b]), rows_of(pairs.second, b, second[b]));
            check_rows(is.first, b, x);
            check_rows(is.second, b, y);
        }
        ad::tape<double> on;
        problem m{block, pairs.first, pairs.second};
        const auto lifted = ad::lift(on, m);
        on.backward(loss_of(lifted.block(abcnn::sentences{lifted.first, first, lifted.second, second})));
        for_each_parameter(lifted, [&](const std::string& name, const auto& v) {
            INFO(name);
            CHECK(support::all_finite(on.gradient(v)));
        });
    });
}

TEST_CASE("gradients of words, feature maps, convolution and bias are correct")
{
    each_form(2, [](const auto& block, const parts&) {
        const auto check = [&](const lengths& first, const lengths& second, std::size_t S, std::size_t T) {
            const auto pairs = some_pairs(first, second, S, T);
            problem m{block, pairs.first, pairs.second};
            const auto found = ad::grad_check(m, [&](auto&, const auto& lifted) {
                return loss_of(lifted.block(abcnn::sentences{lifted.first, first, lifted.second, second}));
            });
            CHECK_MESSAGE(bool(found), found.text());
        };
        check({4, 2, 0}, {3, 5, 2}, 4, 5);
        check({1}, {1}, 1, 1);
    });
}

TEST_CASE("with two equal sentences the distance has a kink at 0, but no gradient is NaN")
{
    each_form(2, [](const auto& block, const parts&) {
        const auto x = random({1, 4, D}, 12);
        ad::tape<double> on;
        problem m{block, x, x};
        const auto lifted = ad::lift(on, m);
        on.backward(loss_of(lifted.block(abcnn::sentences{lifted.first, lengths{4}, lifted.second, lengths{3}})));
        for_each_parameter(lifted, [&](const std::string& name, const auto& v) {
            INFO(name);
            CHECK(support::all_finite(on.gradient(v)));
        });
    });
}

TEST_CASE("blocks are stacked; the result is one vector per sentence")
{
    const parts p = made_of(true, true, 3);
    const abcnn::block first{abcnn::feature_maps{p.W_0, p.W_1}, p.W, p.b, 3, abcnn::attention_pooling{}};
    const abcnn::block second{abcnn::feature_maps{random({longest, N}, 20), random({longest, N}, 21)},
                              random({2 * 2 * N, 2}, 22), random({2}, 23), 2, abcnn::average_pooling{}};
    const auto pairs = some_pairs({4, 0, 2}, {3, 5, 1}, 4, 5);
    const auto result = second(first(pairs));
    CHECK(result.first.shape() == shape_of_rank<3>{3, 4, 2});
    const auto [x, y] = abcnn::average(result);
    CHECK(x.shape() == shape_of_rank<2>{3, 2});
    for (std::size_t n = 0; n < 2; ++n) {
        double sum = 0;
        for (std::size_t s = 0; s < 4; ++s) sum += result.first(0, s, n);
        CHECK(x(0, n) == doctest::Approx(sum / 4).epsilon(1e-14));
        CHECK(x(1, n) == 0);  // no words
        CHECK(y(2, n) == result.second(2, 0, n));
    }
    std::vector<std::string> names;
    for_each_parameter(first, [&](const std::string& name, const auto&) { names.push_back(name); });
    CHECK(names == std::vector<std::string>{"before.W_0", "before.W_1", "W", "b"});
}

TEST_CASE("swapped sentences give swapped results")
{
    each_form(3, [](const auto& block, const parts&) {
        auto fair = block;
        if constexpr (requires { fair.before.W_0; }) fair.before.W_1 = fair.before.W_0;
        const auto pairs = some_pairs({5, 2, 0}, {6, 1, 4}, 5, 6);
        const auto is = fair(pairs);
        const auto swapped = fair(abcnn::sentences{pairs.second, pairs.second_real, pairs.first, pairs.first_real});
        CHECK(support::distance(swapped.first, is.second) < 1e-14);
        CHECK(support::distance(swapped.second, is.first) < 1e-14);
        if constexpr (requires { fair.before.W_0; }) {
            // Different maps must be swapped as well.
            const auto one_way = block(pairs);
            CHECK(support::distance(one_way.second, is.second) > 1e-3);
            auto other = block;
            std::swap(other.before.W_0, other.before.W_1);
            const auto back = other(abcnn::sentences{pairs.second, pairs.second_real, pairs.first, pairs.first_real});
            CHECK(support::distance(back.first, one_way.second) < 1e-14);
        }
    });
}

TEST_CASE("padding changes no bit, and a pair has the same result alone and in a batch")
{
    each_form(3, [](const auto& block, const parts&) {
        const lengths first{5, 2, 0}, second{4, 6, 3};
        const auto pairs = some_pairs(first, second, 5, 6);
        const auto is = block(pairs);
        for (const double rubbish : {std::nan(""), std::numeric_limits<double>::infinity(), 1e30}) {
            auto other = pairs;
            for (std::size_t b = 0; b < 3; ++b) {
                for (std::size_t d = 0; d < D; ++d) {
                    for (std::size_t s = first[b]; s < 5; ++s) other.first(b, s, d) = rubbish;
                    for (std::size_t t = second[b]; t < 6; ++t) other.second(b, t, d) = rubbish;
                }
            }
            const auto same = block(other);
            CHECK(support::same_bits(same.first, is.first));
            CHECK(support::same_bits(same.second, is.second));
            const auto slopes = [&](const auto& given) {
                ad::tape<double> on;
                problem m{block, given.first, given.second};
                const auto lifted = ad::lift(on, m);
                on.backward(loss_of(lifted.block(abcnn::sentences{lifted.first, first, lifted.second, second})));
                std::vector<double> all;
                for_each_parameter(lifted, [&](const std::string&, const auto& x) {
                    const auto gradient = on.gradient(x);
                    all.insert(all.end(), gradient.data, gradient.data + gradient.size());
                });
                return all;
            };
            CHECK(slopes(other) == slopes(pairs));
        }
        array<double, 3> x(shape_of_rank<3>{1, 2, D}), y(shape_of_rank<3>{1, 6, D});
        std::copy_n(pairs.first.data() + 5 * D, 2 * D, x.data());
        std::copy_n(pairs.second.data() + 6 * D, 6 * D, y.data());
        const auto alone = block(abcnn::sentences{x, lengths{2}, y, lengths{6}});
        for (std::size_t n = 0; n < N; ++n) {
            for (std::size_t s = 0; s < 2; ++s) {
                CHECK(alone.first(0, s, n) == doctest::Approx(is.first(1, s, n)).epsilon(1e-13));
            }
            for (std::size_t t = 0; t < 6; ++t) {
                CHECK(alone.second(0, t, n) == doctest::Approx(is.second(1, t, n)).epsilon(1e-13));
            }
        }
    });
}

TEST_CASE("the attention of a block can be read")
{
    const parts p = made_of(false, true, 3);
    const abcnn::block block{abcnn::words_alone{}, p.W, p.b, 3, abcnn::attention_pooling{}};
    const auto pairs = some_pairs({4, 2}, {3, 5}, 4, 5);
    const auto before = abcnn::match_matrix(pairs), behind = abcnn::match_matrix(block.convolved(pairs));
    CHECK(before.shape() == shape_of_rank<3>{2, 4, 5});
    CHECK(behind.shape() == shape_of_rank<3>{2, 6, 7});
    for (std::size_t b = 0; b < 2; ++b) {
        const auto A =
            alike(rows_of(pairs.first, b, pairs.first_real[b]), rows_of(pairs.second, b, pairs.second_real[b]));
        for (std::size_t i = 0; i < 4; ++i) {
            for (std::size_t j = 0; j < 5; ++j) {
                const bool real = i < A.size() && j < A[i].size();
                CHECK(before(b, i, j) == doctest::Approx(real ? A[i][j] : 0).epsilon(1e-14));
            }
        }
    }
}

TEST_CASE("float")
{
    each_form(2, [](const auto& block, const parts&) {
        const auto pairs = some_pairs({4, 2, 0}, {3, 5, 2}, 4, 5);
        const auto single =
            transform_parameters(block, [](const std::string&, const auto& x) { return support::converted<float>(x); });
        const auto is = single(abcnn::sentences{support::converted<float>(pairs.first), pairs.first_real,
                                                support::converted<float>(pairs.second), pairs.second_real});
        const auto must = block(pairs);
        CHECK(support::distance(is.first, must.first) < 1e-5);
        CHECK(support::distance(is.second, must.second) < 1e-5);
    });
}

TEST_CASE("shape errors name arguments and sizes")
{
    const parts p = made_of(true, true, 2);
    const abcnn::block block{abcnn::feature_maps{p.W_0, p.W_1}, p.W, p.b, 2, abcnn::attention_pooling{}};
    const auto message = [](auto&& f) { return support::message_of<shape_error>(f); };
    CHECK(message([&] { block(some_pairs({7}, {3}, 7, 3)); }) ==
          "abcnn::feature_maps: W_1 is [6,3], which allows 6 words, but the other sentences have up to 7");
    CHECK(support::contains(message([&] { block(some_pairs({3}, {7}, 3, 7)); }), "abcnn::feature_maps: W_0 is [6,3]"));
    auto narrow = block;
    narrow.W = random({2 * D, N}, 1);
    CHECK(message([&] { narrow(some_pairs({3}, {3}, 3, 3)); }) ==
          "abcnn::block: W is [6,4] but must be [12,4] (one row for each channel of 2 words)");
    auto nothing = block;
    nothing.width = 0;
    CHECK(message([&] { nothing(some_pairs({3}, {3}, 3, 3)); }) ==
          "abcnn::block: a window of 0 words; it must have at least 1");
    CHECK(support::contains(message([&] { block(some_pairs({4}, {3}, 3, 3)); }), "the length of row 0 is 4"));
}

TEST_CASE("the operations have correct values and gradients")
{
    const auto x = random({2, 3, 2}, 1);
    const auto y = ops::unfold(x, 2u);
    CHECK(y.shape() == shape_of_rank<3>{2, 4, 4});
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t i = 0; i < 4; ++i) {
            for (std::size_t d = 0; d < 2; ++d) {
                CHECK(y(b, i, d) == (i > 0 ? x(b, i - 1, d) : 0));
                CHECK(y(b, i, 2 + d) == (i < 3 ? x(b, i, d) : 0));
            }
        }
    }
    CHECK(ops::unfold(random({2, 1, 2}, 1), 4u).shape() == shape_of_rank<3>{2, 4, 8});  // wider than the sentence
    for (const std::size_t w : {1u, 2u, 5u}) {
        CHECK_GRADIENT([w](const auto& z) { return ops::unfold(z, w); }, x);
    }
    CHECK_GRADIENT([](const auto& z, const auto& a) { return ops::pool_windows(z, a, 2u); }, x, random({2, 3}, 2));
    CHECK_GRADIENT([](const auto& z, const auto& a) { return ops::pool_windows(z, a, 3u); }, x, random({2, 3}, 2));
    CHECK_GRADIENT([](const auto& z) { return ops::transpose(z); }, x);
    CHECK(ops::transpose(x)(1, 1, 2) == x(1, 2, 1));
    const auto message = [](auto&& f) { return support::message_of<shape_error>(f); };
    CHECK(support::contains(message([&] {
                                ops::pool_windows(x, random({2, 3}, 2), 5u);
                            }),
                            "windows of 5 columns in x [2,3,2]; give at most 4"));
    CHECK(support::contains(message([&] { ops::pool_windows(x, random({2, 2}, 2), 1u); }), "the weights are [2,2]"));
    CHECK(support::contains(message([&] { ops::unfold(x, 0u); }), "unfold: a window of 0"));
}
