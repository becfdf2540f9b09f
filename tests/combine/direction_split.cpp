// SPDX-License-Identifier: BSD-3-Clause
#include <heed/combine/direction_split.hpp>
#include <support/combiners.hpp>

#include <limits>
#include <string>
#include <type_traits>
#include <vector>

using namespace heed;
using namespace support::combiners;
using support::random;
namespace scalar = support::scalar;

TEST_CASE("direction_split: equal weights for both directions give the weighted sum of the concatenated annotations")
{
    static_assert(std::is_same_v<combine::direction_split, combine::weighted_sum>);
    const auto backward = random({2, 4, 3}, 1), forward = random({2, 4, 3}, 2);
    const attention attend{score::dot{}, normalize::softmax{}, combine::direction_split{}};
    const auto memory = attend.on(ops::concat(backward, forward), lengths{4, 2});
    const auto now = attend.step(memory, random({2, 6}, 3), attend.start(memory));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t d = 0; d < 3; ++d) {
            double left = 0, right = 0;
            for (std::size_t j = 0; j < 4; ++j) {
                left += now.weights(b, j) * backward(b, j, d);
                right += now.weights(b, j) * forward(b, j, d);
            }
            CHECK(now.context(b, d) == doctest::Approx(left).epsilon(1e-14));
            CHECK(now.context(b, 3 + d) == doctest::Approx(right).epsilon(1e-14));
        }
    }
}
