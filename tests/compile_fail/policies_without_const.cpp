// SPDX-License-Identifier: BSD-3-Clause
// expect-first: heed: this score cannot be called with this query and these keys: declare its `auto operator
// expect: has a member `match`, which heed cannot call: declare it .* keys. const`
// expect: heed: this normalizer cannot be called: declare its `auto operator
// expect: heed: this combiner cannot be called: declare its `auto operator
#include <heed/heed.hpp>

using namespace heed;

struct score_of_mine {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) { return ops::dot_per_position(query, keys); }
    static auto parameters(auto&, auto&&) { return score_of_mine{}; }
};
struct matching_score {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::dot_per_position(query, keys);
    }
    auto match(const tensor auto& query, const tensor auto& keys) { return ops::dot_per_position(query, keys); }
    static auto parameters(auto&, auto&&) { return matching_score{}; }
};
struct normalizer_of_mine {
    auto operator()(const tensor auto& scores, const auto& at) { return ops::softmax(scores, at.real); }
    static auto parameters(auto&, auto&&) { return normalizer_of_mine{}; }
};
struct combiner_of_mine {
    static constexpr combiner_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& a, const tensor auto& values) { return ops::weighted_sum(a, values); }
    static auto parameters(auto&, auto&&) { return combiner_of_mine{}; }
};

void use(const array<float, 3>& x, const array<float, 2>& query)
{
    const auto ask = [&](const auto& attend) {
        const auto memory = attend.on(x);
        (void)attend.compose(memory, query, attend.start(memory)).context;
    };
    ask(attention{score_of_mine{}, normalize::softmax{}, combine::weighted_sum{}});
    ask(attention{matching_score{}, normalize::softmax{}, combine::weighted_sum{}});
    ask(attention{score::dot{}, normalizer_of_mine{}, combine::weighted_sum{}});
    ask(attention{score::dot{}, normalize::softmax{}, combiner_of_mine{}});
}
