// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/init.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include <support/tensors.hpp>

using namespace heed;

namespace {

/// The mean square and the maximum magnitude.
struct spread {
    double square = 0, most = 0;

    explicit spread(const auto& x)
    {
        for (std::size_t i = 0; i < x.size(); ++i) {
            const double v = static_cast<double>(x.data()[i]);
            square += v * v / static_cast<double>(x.size());
            most = std::max(most, std::abs(v));
        }
    }
};

}  // namespace

TEST_CASE("new parameters have the documented distribution")
{
    random_source source{1};
    const double bound = std::sqrt(6.0 / 500);
    const spread uniform(nn::glorot<double>(source, 200, 300));
    CHECK(uniform.most <= bound);
    CHECK(uniform.most > 0.99 * bound);
    CHECK(uniform.square == doctest::Approx(bound * bound / 3).epsilon(0.02));
    const spread normal(nn::gaussian<double>(source, 200, 300, 0.1));
    CHECK(normal.square == doctest::Approx(0.01).epsilon(0.02));
    const spread small(nn::small_vector<double>(source, 10000));
    CHECK(small.most <= 0.01);
    CHECK(small.square == doctest::Approx(1e-4 / 3).epsilon(0.05));
    CHECK(nn::zeros<float>(3) == array<float, 1>{0, 0, 0});
}

TEST_CASE("each call uses its own random stream, and the seed determines all values")
{
    random_source one{5}, other{5}, third{6};
    const auto first = nn::glorot<double>(one, 4, 3), second = nn::glorot<double>(one, 4, 3);
    CHECK(support::distance(first, second) > 0);
    CHECK(support::same_bits(nn::glorot<double>(other, 4, 3), first));
    CHECK(support::same_bits(nn::glorot<double>(other, 4, 3), second));
    CHECK(support::distance(nn::glorot<double>(third, 4, 3), first) > 0);
}

TEST_CASE("a size limit is checked before allocation, and ends with its scope")
{
    random_source source{1};
    {
        const nn::limited_numbers limit(20);
        CHECK_NOTHROW(nn::glorot<float>(source, 3, 4));
        CHECK_NOTHROW(nn::zeros<float>(0));  // counts as one
        try {
            nn::glorot<float>(source, 2, 4);
            FAIL("8 numbers where 7 are left");
        } catch (const nn::too_many_numbers& found) {
            CHECK(support::contains(found.what(), "[2,4] is too large"));
            CHECK(support::contains(found.what(), "may have only 7 more numbers"));
        }
        CHECK_THROWS_AS(nn::gaussian<float>(source, std::size_t{1} << 40, std::size_t{1} << 40, 1),
                        nn::too_many_numbers);
    }
    CHECK_NOTHROW(nn::glorot<float>(source, 20, 20));
}
