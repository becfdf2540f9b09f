// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/simd/lookup_table.hpp>
#include <support/approx.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using namespace heed;

namespace {

using lanes_of_places = pack<std::int32_t>;

/// Registers of indices as functions of the indices request them, around `first`, also beyond both ends of a table.
std::vector<lanes_of_places> registers_of_indices(std::int32_t first)
{
    const auto each = [](auto f) {
        lanes_of_places all(0);
        for (std::size_t i = 0; i < lane_count; ++i) all.at[i] = static_cast<std::int32_t>(f(static_cast<int>(i)));
        return all;
    };
    const int n = static_cast<int>(lane_count);
    return {each([&](int i) { return first + i; }),
            each([&](int i) { return first - i; }),
            each([&](int) { return first; }),
            each([&](int i) { return first + i / 3; }),
            each([&](int i) { return first + 3 * i; }),
            each([&](int i) { return first - 4 * i; }),
            each([&](int i) { return first + (i + 1 == n ? 4 * n - 1 : i); }),
            each([&](int i) { return first + (i + 1 == n ? 4 * n : 2 * i); }),
            each([&](int i) { return first + std::abs(i - n / 2); }),
            each([&](int i) { return first + i * 7 % n; }),
            each([&](int i) {
                return first + (i == 0 ? 0 : i % 2 == 0 ? -n : n - 1);
            }),                                                              // at the range of two loads
            each([&](int i) { return first + (i + 1 == n ? -n - 1 : 0); }),  // and one lane farther
            each([&](int i) { return first + (i + 1 == n ? n : 0); }),
            each([&](int i) { return first + 37 * i; }),
            each([&](int i) { return i % 2 == 0 ? -5 : 1000000; })};
}

std::size_t inside(std::int32_t index, std::size_t n)
{
    return static_cast<std::size_t>(std::clamp(index, 0, static_cast<std::int32_t>(n) - 1));
}

template <class T>
void check_lookups()
{
    for (const std::size_t size : {1u, 2u, 3u, 5u, 8u, 15u, 16u, 17u, 31u, 32u, 33u, 47u, 70u, 200u}) {
        std::vector<T> numbers;
        for (std::size_t i = 0; i < size; ++i) numbers.push_back(static_cast<T>(1 + static_cast<int>(i)));
        const lane_table<T, 1> table{numbers.data(), {size}};
        std::size_t wrong = 0;
        for (std::int32_t first = -40; first < static_cast<std::int32_t>(size) + 40; ++first) {
            for (const auto& at : registers_of_indices(first)) {
                const auto found = table(at);
                for (std::size_t i = 0; i < lane_count; ++i)
                    wrong += found[i] == numbers[inside(at.at[i], size)] ? 0u : 1u;
            }
            const auto one = table(first);  // one number for all lanes
            wrong += one[0] == numbers[inside(first, size)] ? 0u : 1u;
            wrong += one[lane_count - 1] == numbers[inside(first, size)] ? 0u : 1u;
        }
        CAPTURE(size);
        CHECK(wrong == 0);
    }
    std::vector<T> numbers;
    for (int i = 0; i < 3 * 21; ++i) numbers.push_back(static_cast<T>(i));
    const lane_table<T, 2> table{numbers.data(), {3, 21}};
    std::size_t wrong = 0;
    for (std::int32_t first = -25; first < 45; ++first) {
        for (const auto& at : registers_of_indices(first)) {
            for (const std::int32_t row : {-1, 0, 2, 3}) {
                const auto behind = table(row, at), before = table(at, row);
                for (std::size_t i = 0; i < lane_count; ++i) {
                    wrong += behind[i] == numbers[inside(row, 3) * 21 + inside(at.at[i], 21)] ? 0u : 1u;
                    wrong += before[i] == numbers[inside(at.at[i], 3) * 21 + inside(row, 21)] ? 0u : 1u;
                }
            }
        }
    }
    CHECK(wrong == 0);
}

/// Checks lookups as in the scores of a tile, at indices that continue from lane to lane and from key to key, with
/// numbers kept between calls, against plain lookups.
template <class T>
void check_lookups_of_a_tile()
{
    unsigned seed = 1;
    const auto some = [&](int n) {
        seed = seed * 1664525U + 1013904223U;
        return static_cast<std::int32_t>((seed >> 16) % static_cast<unsigned>(n));
    };
    std::vector<T> numbers;
    for (int i = 0; i < 4000; ++i) numbers.push_back(static_cast<T>(1 + i));
    std::size_t wrong = 0, looked = 0;
    for (const int rows : {1, 3, 40, 130}) {
        for (const int columns : {1, 7, 16, 30}) {
            const lane_table<T, 1> line{numbers.data(), {static_cast<std::size_t>(rows * columns)}};
            const lane_table<T, 2> table{numbers.data(),
                                         {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns)}};
            std::vector<float> room(detail::lane_memo::room_for(64, 300));
            detail::lane_memo memo(room.data(), 64, 300);
            for (int run = 0; run < 200; ++run) {
                const std::int32_t per_lane = some(8) == 0 ? 37 : some(3) - 1, per_key = some(4) - 1;
                std::int32_t first = some(3 * rows * columns) - rows * columns, row = some(2 * rows) - rows / 2;
                for (int k = 0; k < 1 + some(80); ++k, first += per_key) {
                    detail::lane_memo::call call{memo};
                    const auto at = detail::stepping({true, first, per_lane, per_key, &call});
                    const auto down = detail::stepping({true, row, 1, 0, &call});
                    const pack<T> found[] = {line(at), table(down, at), table(row, at), table(down, row), line(at * 3)};
                    for (std::size_t i = 0; i < lane_count; ++i) {
                        const auto lane = static_cast<std::int32_t>(i);
                        const std::size_t n = static_cast<std::size_t>(columns), size = line.shape[0],
                                          r = inside(row + lane, table.shape[0]);
                        const std::int32_t j = first + per_lane * lane;
                        wrong += found[0][i] == numbers[inside(j, size)] ? 0u : 1u;
                        wrong += found[1][i] == numbers[r * n + inside(j, n)] ? 0u : 1u;
                        wrong += found[2][i] == numbers[inside(row, table.shape[0]) * n + inside(j, n)] ? 0u : 1u;
                        wrong += found[3][i] == numbers[r * n + inside(row, n)] ? 0u : 1u;
                        wrong += found[4][i] == numbers[inside(3 * j, size)] ? 0u : 1u;
                        ++looked;
                    }
                }
            }
        }
    }
    CHECK(wrong == 0);
    CHECK(looked > 100000);
}

/// Integers, with sums that are exact in any order.
template <class T>
void check_sums()
{
    constexpr std::size_t size = 300;
    std::vector<T> table(size, T(0)), wanted = table;
    unsigned seed = 1;
    const auto some = [&](unsigned n) {
        seed = seed * 1664525U + 1013904223U;
        return static_cast<std::int32_t>((seed >> 16) % n);
    };
    std::vector<T> square(lane_count * lane_count);
    detail::table_sums<T> sums(table.data(), square.data());
    for (int run = 0; run < 400; ++run) {
        const std::int32_t first = some(size);
        const auto kinds = registers_of_indices(first);
        auto at = kinds[static_cast<std::size_t>(some(static_cast<unsigned>(kinds.size())))];
        const std::int32_t how = some(5);  // the next registers: unchanged, one lane forward or back, random,
                                           // or each lane to its next index
        for (int step = 0; step < 1 + some(40); ++step) {
            pack<T> x(T(0));
            T each[lane_count];
            for (std::size_t i = 0; i < lane_count; ++i) {
                at.at[i] = static_cast<std::int32_t>(inside(at.at[i], size));
                each[i] = T(static_cast<double>(some(9) - 4));
                wanted[static_cast<std::size_t>(at.at[i])] += each[i];
            }
            x = detail::load_lanes(each);
            sums.add(at, x);
            const auto before = at;
            for (std::size_t i = 0; i < lane_count; ++i) {
                if (how == 1) at.at[i] = i == 0 ? some(size) : before.at[i - 1];
                if (how == 2) at.at[i] = i + 1 == lane_count ? some(size) : before.at[i + 1];
                if (how == 3) at.at[i] = some(size);
                if (how == 4) at.at[i] = before.at[i] + (step % 7 == 3 ? 0 : 1);
            }
        }
    }
    sums.finish();
    for (std::size_t i = 0; i < size; ++i) CHECK(table[i] == wanted[i]);
}

/// Contexts and the gradient of the table, in T.
template <class T>
std::pair<std::vector<double>, std::vector<double>> answers(const auto& f, std::size_t size, std::size_t S,
                                                            std::size_t positions)
{
    const auto drawn = [](const auto& shape, unsigned seed) {
        array<T, 3> x(shape);
        for (std::size_t i = 0; i < x.size(); ++i) {
            seed = seed * 1664525U + 1013904223U;
            x.data()[i] = static_cast<T>(static_cast<float>(seed >> 16) / 32768.0F - 1.0F);
        }
        return x;
    };
    const auto h = drawn(shape_of_rank<3>{2, positions, 5}, 1), q = drawn(shape_of_rank<3>{2, S, 5}, 2),
               d = drawn(shape_of_rank<3>{2, S, 5}, 3);
    array<T, 1> bias(shape_of_rank<1>{size});
    for (std::size_t i = 0; i < size; ++i) bias.data()[i] = static_cast<T>(static_cast<float>(i * 31 % 17) / 16.0F);
    const attention attend{score::modified{score::scaled_dot{}, bias, f}, normalize::softmax{},
                           combine::weighted_sum{}};
    ad::tape<T> on;
    const auto lifted = ad::lift(on, attend);
    const auto contexts = lifted(lifted.on(on.parameter(h)), on.parameter(q), causal{});
    on.backward(ops::dot(contexts, d));
    const auto c = contexts.value();
    const auto g = on.gradient(lifted.score.table);
    return {{c.data, c.data + c.size()}, {g.data, g.data + g.size()}};
}

double distance(const std::vector<double>& a, const std::vector<double>& b)
{
    double worst = a.size() == b.size() ? 0 : 1;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
    return worst;
}

}  // namespace

TEST_CASE("a register of lookups equals single lookups, at the edges and beyond them")
{
    SUBCASE("floats") { check_lookups<float>(); }
    SUBCASE("integers") { check_lookups<std::int32_t>(); }
    SUBCASE("doubles") { check_lookups<double>(); }
    SUBCASE("dual numbers") { check_lookups<dual_number<float>>(); }
}

TEST_CASE("lookups from key to key equal single lookups, for any sequence of indices")
{
    SUBCASE("floats") { check_lookups_of_a_tile<float>(); }
    SUBCASE("integers") { check_lookups_of_a_tile<std::int32_t>(); }
    SUBCASE("doubles") { check_lookups_of_a_tile<double>(); }
    SUBCASE("dual numbers") { check_lookups_of_a_tile<dual_number<float>>(); }
}

TEST_CASE("gradients of a table are sums over each element's lookups, in any order")
{
    SUBCASE("floats") { check_sums<float>(); }
    SUBCASE("doubles") { check_sums<double>(); }
    SUBCASE("dual numbers") { check_sums<dual_number<float>>(); }
}

namespace {

/// Adds the table element at an index that is linear in query and key.
struct of_line {
    std::int32_t per_query, per_key, first;

    auto operator()(auto e, score_index p, const auto& b) const
    {
        return e + b(per_query * p.query + per_key * p.key + first);
    }
};

}  // namespace

TEST_CASE("functions with a table in float match those in double, and are reproducible")
{
    const auto check = [](const auto& f, std::size_t size) {
        for (const std::size_t S : {7u, 67u}) {
            const auto [c, g] = answers<float>(f, size, S, 150);
            const auto [more_c, more_g] = answers<double>(f, size, S, 150);
            CHECK(distance(c, more_c) < 1e-5);
            CHECK(distance(g, more_g) < 1e-4);
            CHECK(std::any_of(g.begin(), g.end(), [](double x) { return std::abs(x) > 1e-2; }));
            CHECK(answers<float>(f, size, S, 150) == std::pair(c, g));
        }
    };
    check(of_line{-1, 1, 149}, 299);
    check(of_line{1, -1, 0}, 150);
    check(of_line{-1, 1, 16}, 33);
    check(of_line{37, 1, 0}, 3000);
    check(of_line{151, 1, 0}, 130 * 151);
    check([](auto e, score_index p, const auto& b) { return e * b(abs(p.query / 2 - p.key / 2)); }, 20);
    check([](auto e, score_index p, const auto& b) { return e + b(p.key) * b(p.query) + b(p.head); }, 140);
    check([](auto e, score_index p, const auto& b) { return tanh(e * b(p.query % 7)) + b((p.query + p.key) % 7 + 7); },
          14);
    check([](auto e, score_index p, const auto& b) { return e + b(p.query + p.key) + b(p.key % 7); }, 290);
    check([](auto e, score_index p,
             const auto& b) { return e + b(40 * p.query + min(max(p.key - p.query + 16, 0), 32)); },
          130 * 40);
}

TEST_CASE_TEMPLATE("looked-up numbers have the precision of the score that they are combined with", T, float, double)
{
    const std::vector<float> floats{0.1F, 0.3F, 0.7F};
    const std::vector<double> doubles{0.1, 0.3, 0.7};
    const std::vector<std::int32_t> whole{3, 1, 2};
    const array<float, 2> rows{{0.1F, 0.3F}, {0.7F, 0.9F}};
    const auto f = looked_up(floats);
    const auto d = looked_up(doubles);
    const auto r = looked_up(rows);
    score_index p;
    p.query = pack<std::int32_t>(1001);
    p.key = pack<std::int32_t>(1);
    p.head = 2;
    const pack<T> e(T(0.2));
    static_assert(std::is_same_v<decltype(e + f(p.key)), pack<T>> && std::is_same_v<decltype(e + d(p.key)), pack<T>>);
    static_assert(std::is_same_v<decltype(e * f(p.head)), pack<T>> && std::is_same_v<decltype(d(p.head) * e), pack<T>>);
    static_assert(std::is_same_v<decltype(dual<T>() * f(p.head)), dual<T>>);
    static_assert(std::is_same_v<decltype(looked_up(whole)(p.key)), pack<std::int32_t>>);
    const auto near = [](const pack<T>& is, double must) { return is[0] == support::approx(static_cast<T>(must)); };
    CHECK(near(e - f(p.head) * (p.query - p.key), 0.2 - double{0.7F} * 1000));
    CHECK(near(e - d(p.head) * (p.query - p.key), 0.2 - 0.7 * 1000));
    CHECK(near(e - r(p.key, 0) * (0.1 * p.query), 0.2 - double{0.7F} * 0.1 * 1001));
    CHECK((dual<T>(e, pack<T>(1)) * f(p.key)).slope[0] == static_cast<T>(0.3F));
}
