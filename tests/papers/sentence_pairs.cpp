// SPDX-License-Identifier: BSD-3-Clause
#include <heed/papers/sentence_pairs.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

#include <support/recurrent_presets.hpp>
#include <support/tensors.hpp>

using namespace heed;
namespace paper = heed::papers;
using support::random;
using support::same_bits;
using namespace support::recurrent_presets;

TEST_CASE("Yin et al. 2016")
{
    namespace yin = paper::yin2016;
    const auto W_0 = random({T, D}, 90), W_1 = random({T, D}, 91), alone = random({2 * D, 3}, 92),
               with_maps = random({4 * D, 3}, 93);
    const auto b = random({3}, 94);
    const abcnn::sentences pair{random({B, T, D}, 95), some, random({B, 3, D}, 96), lengths{1, 3}};
    const auto check = [&pair](const auto& preset, const auto& composition) {
        static_assert(std::is_same_v<decltype(preset), decltype(composition)>);
        const auto is = preset(pair), must = composition(pair);
        CHECK(same_bits(is.first, must.first));
        CHECK(same_bits(is.second, must.second));
    };
    using namespace heed::abcnn;
    check(yin::bcnn(alone, b, 2), block{words_alone{}, alone, b, 2, average_pooling{}});
    check(yin::abcnn1(W_0, W_1, with_maps, b, 2), block{feature_maps{W_0, W_1}, with_maps, b, 2, average_pooling{}});
    check(yin::abcnn2(alone, b, 2), block{words_alone{}, alone, b, 2, attention_pooling{}});
    check(yin::abcnn3(W_0, W_1, with_maps, b, 2), block{feature_maps{W_0, W_1}, with_maps, b, 2, attention_pooling{}});

    // Sentences of one word each, 0 and 1: A = 1/2. The feature of the second sentence:
    const abcnn::sentences words{filled<double, 3>({1, 1, 1}, 0.0), lengths{1}, filled<double, 3>({1, 1, 1}, 1.0),
                                 lengths{1}};
    const auto second = [&words](const auto& block) { return block(words).second(0, 0, 0); };
    const auto ones = filled<double, 2>({2, 1}, 1.0);
    const double apart = std::tanh(1.5) - std::tanh(0.5);
    CHECK(second(yin::bcnn(number(1), single(0), 1)) == about(std::tanh(1.0)));
    CHECK(second(yin::abcnn1(number(1), number(1), ones, single(0), 1)) == about(std::tanh(1.5)));
    CHECK(second(yin::abcnn2(number(1), single(0), 1)) == about(std::tanh(1.0) / (1 + std::tanh(1.0))));
    CHECK(second(yin::abcnn3(number(1), number(1), ones, single(0), 1)) == about(std::tanh(1.5) / (1 + apart)));
}
