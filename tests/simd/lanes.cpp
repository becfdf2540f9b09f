// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

#include <heed/simd/lanes.hpp>
#include <heed/simd/place.hpp>

using namespace heed;

namespace {

/// A place far away: queries first, first + 1, ...
place place_at(std::int32_t query, std::int32_t key)
{
    place p;
    p.query = detail::counted_from(query);
    p.key = pack<std::int32_t>(key);
    return p;
}

/// f(score, place) beside plain(query, key), which computes the same with plain numbers, relative to `size`.
template <class T>
double worst(const auto& f, const auto& plain, double size = 1)
{
    double most = 0;
    for (const std::int32_t query : {0, 7, 1000, 65521, 16777213}) {
        for (const std::int32_t key : {0, 3, 999, 70001}) {
            const pack<T> y(f(pack<T>(0), place_at(query, key)));
            for (std::size_t i = 0; i < lane_count; ++i) {
                const double expected = plain(static_cast<double>(query) + static_cast<double>(i), key);
                const double off = std::abs(static_cast<double>(y[i]) - expected) / std::max(size, std::abs(expected));
                if (!(off <= most)) most = std::isnan(off) ? std::numeric_limits<double>::infinity() : off;
            }
        }
    }
    return most;
}

template <class T>
constexpr double last_place = static_cast<double>(std::numeric_limits<T>::epsilon());

}  // namespace

TEST_CASE_TEMPLATE("numbers of places are of the scores' kind where they meet one", T, float, double)
{
    const pack<T> e(1);
    const place p = place_at(5, 2);
    static_assert(std::is_same_v<decltype(e + 0.5 * p.key), pack<T>>);
    static_assert(std::is_same_v<decltype(0.5 * (p.query - p.key) * e), pack<T>>);
    static_assert(std::is_same_v<decltype(select(p.key > 1, 0.5 * p.key, e)), pack<T>>);
    static_assert(std::is_same_v<decltype(dual<T>() + 0.5 * p.key), dual<T>>);
    static_assert(std::is_same_v<decltype(cos(0.5 * p.key) - 1), decltype(0.5 * p.key)>);
    static_assert(std::is_same_v<decltype(p.query * 2), pack<std::int32_t>>);
    CHECK((e + 0.5 * p.key)[0] == T(2));
    CHECK((e - (p.query - p.key) / 4.0)[1] == T(0));
    CHECK((2 / (1.0 * p.key) * e)[0] == T(1));
    CHECK((dual<T>(e, e) * (0.5 * p.key)).slope[0] == T(1));
    CHECK((pack<dual_number<T>>(dual_number<T>(3, 1)) * (0.5 * p.key))[0].slope == T(1));
    const pack<double> doubles = 0.1 * p.key;
    CHECK(doubles[0] == 0.1 * 2);
    CHECK(pack<std::int32_t>(0.9 * p.query)[0] == 4);
    const lane_mask more = 0.5 * p.query > 2.4;
    CHECK(int{more.at[0]} == -1);
}

TEST_CASE_TEMPLATE("a constant has the precision of the score that it meets", T, float, double)
{
    const place p = place_at(5, 2);
    const pack<T> e(1);
    static_assert(std::is_same_v<decltype(0.5F * p.key), decltype(0.5 * p.key)>);
    static_assert(std::is_same_v<decltype(p.key / 3.0F), decltype(p.key / 3.0)>);
    static_assert(std::is_same_v<decltype(e - 0.5F * p.key), pack<T>>);
    static_assert(std::is_same_v<decltype(e - 0.5 * p.key), pack<T>>);
    static_assert(std::is_same_v<decltype(0.5F * e), pack<T>> && std::is_same_v<decltype(e * 0.5), pack<T>>);
    static_assert(std::is_same_v<decltype(max(e, 0.5F)), pack<T>> && std::is_same_v<decltype(max(0.5, e)), pack<T>>);
    static_assert(std::is_same_v<decltype(dual<T>() - 0.5F * p.key), dual<T>>);
    using learning = pack<dual_number<T>>;
    static_assert(std::is_same_v<decltype(learning() - 0.5F * p.key), learning>);
    static_assert(std::is_same_v<decltype(learning() * pack<float>()), learning>);
    // Lanes of two kinds meet in the wider one, whichever comes first.
    static_assert(std::is_same_v<decltype(pack<float>() * pack<double>()), pack<double>>);
    static_assert(std::is_same_v<decltype(pack<double>() - pack<float>()), pack<double>>);
    static_assert(std::is_same_v<decltype(select(p.key > 1, pack<float>(), pack<double>())), pack<double>>);
    static_assert(std::is_same_v<decltype(p.key + pack<std::int64_t>()), pack<std::int64_t>>);
    static_assert(std::is_same_v<decltype(pack<std::int64_t>() + p.key), pack<std::int64_t>>);
    const pack<float> floats = 0.5F * p.key;
    CHECK(floats[0] == 1.0F);

    // Beside plain doubles: what the constant was rounded to is all that is lost.
    const double near = 2 * last_place<T>;
    CHECK(worst<T>([](auto x, place at) { return x - 0.3F * (at.query - at.key); },
                   [](double q, double k) { return -double{0.3F} * (q - k); }) <= near);
    CHECK(worst<T>([](auto x, place at) { return x + 0.7F * at.query * (0.1 * at.key) + at.query / 3.0F; },
                   [](double q, double k) { return double{0.7F} * q * (0.1 * k) + q / 3; }) <= 4 * near);
    CHECK(worst<T>([](auto x, place at) { return x + cos(0.2F * (at.query - at.key)); },
                   [](double q, double k) { return std::cos(double{0.2F} * (q - k)); }) <= near + 16777216 * 1.2e-16);
}

TEST_CASE_TEMPLATE("functions of numbers of places, beside plain ones", T, float, double)
{
    const double near = 2 * last_place<T>;
    CHECK(worst<T>([](auto e, place p) { return e + 0.1 * (p.query - p.key); },
                   [](double q, double k) { return 0.1 * (q - k); }) <= near);
    CHECK(worst<T>([](auto e, place p) { return e - abs(0.3 * (p.key - p.query)) / 7; },
                   [](double q, double k) { return -std::abs(0.3 * (k - q)) / 7; }) <= 2 * near);
    CHECK(worst<T>([](auto e, place p) { return e + log(abs(p.query - p.key) + 1.5); },
                   [](double q, double k) { return std::log(std::abs(q - k) + 1.5); }) <= 2 * near);
    CHECK(worst<T>([](auto e, place p) { return e + sqrt(0.5 * p.query) - tanh(0.001 * p.key); },
                   [](double q, double k) { return std::sqrt(0.5 * q) - std::tanh(0.001 * k); }) <= 4 * near);
    CHECK(worst<T>([](auto e, place p) { return e + exp(-0.0001 * p.key) * sigmoid(0.01 * p.key - 3); },
                   [](double, double k) { return std::exp(-0.0001 * k) / (1 + std::exp(3 - 0.01 * k)); }) <= 40 * near);
    CHECK(worst<T>([](auto e, place p) { return e + max(0.1 * p.key, 4) - min(p.key * 0.2, 5.5); },
                   [](double, double k) { return std::max(0.1 * k, 4.0) - std::min(0.2 * k, 5.5); }) <= 2 * near);
    CHECK(worst<T>([](auto e, place p) { return e + select(0.5 * p.key < 2, -(0.25 * p.key), 1.5 * p.query); },
                   [](double q, double k) { return 0.5 * k < 2 ? -0.25 * k : 1.5 * q; }) <= near);
}

TEST_CASE_TEMPLATE("sines of places are exact far from 0, too", T, float, double)
{
    const double near = 2.5 * last_place<T>;
    for (const double omega : {1.0, 0.2, 0.01, 3.14159265358979, 1e-7, 12345.678}) {
        // A double's last place of the angle is what may be lost.
        const double bound = near + 16777216 * omega * 1.2e-16;
        CHECK(worst<T>([=](auto e, place p) { return e + sin(omega * (p.query - p.key)); },
                       [=](double q, double k) { return std::sin(omega * (q - k)); }) <= bound);
        CHECK(worst<T>([=](auto e, place p) { return e + cos(omega * (p.query - p.key)); },
                       [=](double q, double k) { return std::cos(omega * (q - k)); }) <= bound);
    }
    const auto far = [](double omega) {
        const place p = place_at(1, 3);
        return pack<T>(sin(omega * p.key) + pack<T>(0))[0] - static_cast<T>(std::sin(omega * 3)) +
               pack<T>(cos(omega * p.key) + pack<T>(0))[0] - static_cast<T>(std::cos(omega * 3));
    };
    CHECK(std::abs(far(1e17)) <= near);
    CHECK(std::abs(far(-1e200)) <= near);
    CHECK(std::isnan(far(std::numeric_limits<double>::infinity())));
    CHECK(std::isnan(far(std::numeric_limits<double>::quiet_NaN())));
    CHECK((cos(0.0 * place_at(0, 0).key) - pack<T>(1))[0] == 0);
}

TEST_CASE("functions of places that go on from key to key are those of each place")
{
    // The same function, with and without what is known of the steps: bit by bit.
    const auto check = [](const auto& f) {
        std::vector<float> room(detail::lane_memo::room_for(64, 300));
        detail::lane_memo memo(room.data(), 64, 300);
        std::size_t different = 0, calls = 0;
        for (const std::int32_t query : {0, 5, 1000, 16777213}) {
            for (std::int32_t key = 0; key < 300; key += key == 120 ? 70 : 1) {
                detail::lane_memo::call call{memo};
                place known;
                known.query = detail::stepping({true, query, 1, 0, &call});
                known.key = detail::stepping({true, key, 0, 1, &call});
                const auto a = f(known), b = f(place_at(query, key));
                for (std::size_t i = 0; i < lane_count; ++i) different += a[i] == b[i] ? 0u : 1u;
                CHECK(call.next <= 4);
                ++calls;
            }
        }
        CHECK(different == 0);
        CHECK(calls > 800);
    };
    const auto score = [](const auto& x) { return pack<float>(0.0F) + x; };
    check([&](place p) { return score(sin(0.2 * (p.query - p.key))); });
    check([&](place p) { return score(cos(0.3 * (p.key - p.query)) + cos(0.01 * p.key)); });
    check([&](place p) { return score(sin(p.query * 1e-3) - sin(-0.7 * (p.query + p.key))); });
    check([&](place p) { return score(sin(0.2 * (2 * p.query - p.key))); });
    check([](place p) { return (p.query - p.key) % 7 + (p.key - 3 - p.query) % 5; });
    check([](place p) { return (p.query + p.key) / 3 - p.key / 4 + p.key % 6; });
    check([](place p) { return -(p.query - p.key) / 5 + (p.query * 3 + p.key) % 11; });
    check([](place p) {
        auto x = p.query - p.key;  // as before: one type, whatever is known
        x = abs(x) % 4;
        return x;
    });
}

TEST_CASE("numbers of one function are never taken for those of another one")
{
    // One memo for all of them: what a call asks for changes from key to key.
    std::vector<float> room(detail::lane_memo::room_for(64, 300));
    detail::lane_memo memo(room.data(), 64, 300);
    const auto score = [](const auto& x) { return pack<float>(0.0F) + x; };
    const auto f = [&](const place& p, std::int32_t which) {
        const auto distance = p.query - p.key;
        switch (which) {
        case 0:
            return score(sin(2.0 * distance));
        case 1:
            return score(cos(2.0 * distance));
        case 2:
            return score(sin(-2.0 * distance));
        case 3:
            return score(cos(0.0 * distance));
        case 4:
            return score(cos(-2.0 * p.query));
        case 5:
            return score(distance / 5);
        case 6:
            return score(distance % 5);
        case 7:
            return score(sin(0.5 * p.key));
        case 8:
            return score(p.key % 3);
        default:
            return score((p.query + p.key) % 7);
        }
    };
    std::size_t different = 0;
    for (std::int32_t run = 0; run < 60; ++run) {
        const std::int32_t query = run % 4 * static_cast<std::int32_t>(lane_count) + run / 20 * 64;
        for (std::int32_t key = 0; key < 200; ++key) {
            detail::lane_memo::call call{memo};
            place known;
            known.query = detail::stepping({true, query, 1, 0, &call});
            known.key = detail::stepping({true, key, 0, 1, &call});
            const std::int32_t which = run < 30 ? (key * key / 7 + run) % 10 : run % 10;
            const auto a = f(known, which), b = f(place_at(query, key), which);
            for (std::size_t i = 0; i < lane_count; ++i) different += a[i] == b[i] ? 0u : 1u;
        }
    }
    CHECK(different == 0);
    detail::lane_memo::call call{memo};
    const auto far = detail::stepping({true, 1, 1, 0, &call});
    CHECK(std::isnan(score(sin(std::numeric_limits<double>::quiet_NaN() * far))[0]));
    CHECK(std::isnan(score(cos(std::numeric_limits<double>::infinity() * far))[0]));
}

TEST_CASE("a function with more calls than are kept is computed")
{
    std::vector<float> room(detail::lane_memo::room_for(64, 300));
    detail::lane_memo memo(room.data(), 64, 300);
    for (std::int32_t key = 0; key < 40; ++key) {
        detail::lane_memo::call call{memo};
        place p;
        p.query = detail::stepping({true, 3, 1, 0, &call});
        p.key = detail::stepping({true, key, 0, 1, &call});
        pack<float> sum(0.0F), expected(0.0F);
        for (int i = 0; i < 40; ++i) {
            sum = sum + sin(0.01 * i * (p.query - p.key));
            expected = expected + sin(0.01 * i * (place_at(3, key).query - place_at(3, key).key));
        }
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(sum[i] == expected[i]);
    }
}
