// SPDX-License-Identifier: BSD-3-Clause
#include <heed/simd/strided_index.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <support/score_indices.hpp>

namespace {

using namespace heed;
using namespace heed::test;

}  // namespace

TEST_CASE("functions of strided indices equal functions of single indices")
{
    // The same function with and without known strides: bitwise equal.
    const auto check = [](const auto& f) {
        std::vector<float> room(detail::lane_memo::room_for(64, 300));
        detail::lane_memo memo(room.data(), 64, 300);
        std::size_t different = 0, calls = 0;
        for (const std::int32_t query : {0, 5, 1000, 16777213}) {
            for (std::int32_t key = 0; key < 300; key += key == 120 ? 70 : 1) {
                detail::lane_memo::call call{memo};
                score_index known;
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
    check([&](score_index p) { return score(sin(0.2 * (p.query - p.key))); });
    check([&](score_index p) { return score(cos(0.3 * (p.key - p.query)) + cos(0.01 * p.key)); });
    check([&](score_index p) { return score(sin(p.query * 1e-3) - sin(-0.7 * (p.query + p.key))); });
    check([&](score_index p) { return score(sin(0.2 * (2 * p.query - p.key))); });
    check([](score_index p) { return (p.query - p.key) % 7 + (p.key - 3 - p.query) % 5; });
    check([](score_index p) { return (p.query + p.key) / 3 - p.key / 4 + p.key % 6; });
    check([](score_index p) { return -(p.query - p.key) / 5 + (p.query * 3 + p.key) % 11; });
    check([](score_index p) {
        auto x = p.query - p.key;  // as before: one type, with and without known strides
        x = abs(x) % 4;
        return x;
    });
}

TEST_CASE("cached numbers of one function are not used for another")
{
    // One memo for all functions: the requests of a call change from key to key.
    std::vector<float> room(detail::lane_memo::room_for(64, 300));
    detail::lane_memo memo(room.data(), 64, 300);
    const auto score = [](const auto& x) { return pack<float>(0.0F) + x; };
    const auto f = [&](const score_index& p, std::int32_t which) {
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
            score_index known;
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

TEST_CASE("a function with more calls than the memo holds is computed")
{
    std::vector<float> room(detail::lane_memo::room_for(64, 300));
    detail::lane_memo memo(room.data(), 64, 300);
    for (std::int32_t key = 0; key < 40; ++key) {
        detail::lane_memo::call call{memo};
        score_index p;
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
