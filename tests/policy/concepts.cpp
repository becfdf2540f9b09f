// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/concepts.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

using namespace heed;
using namespace normalize;

namespace {

using matrix = array<double, 2>;
using vector = array<double, 1>;
using additive = score::additive<matrix, vector>;

namespace mine {

/// A normalizer that wraps another one and declares no other member.
template <class Inner>
struct wrapping {
    Inner inner;
    using wraps = Inner;
};

struct without_state {
    auto operator()(const tensor auto& scores, const auto&) const { return scores; }
};
struct given_window {
    no_state window(const auto&, std::size_t) const { return {}; }
};
struct hidden_window : given_window {
    static constexpr normalizer_traits traits{.has_window = false};
};

}  // namespace mine

}  // namespace

TEST_CASE("concepts accept policies and reject other types")
{
    CHECK(scorer<score::dot>);
    CHECK(scorer<score::additive<array<float, 2>, array<float, 1>>>);
    CHECK(normalizer<softmax>);
    CHECK(normalizer<temporal>);
    CHECK(combiner<combine::weighted_sum>);
    CHECK(combiner<combine::elementwise_sum>);
    CHECK(!scorer<int>);
    CHECK(!scorer<softmax>);
    CHECK(!normalizer<lengths>);
    CHECK(!combiner<visited>);
}

TEST_CASE("wrapped policies determine whether there is state")
{
    CHECK(remembers<temporal>);
    CHECK(remembers<learned_temporal<vector>>);
    CHECK(remembers<decayed_temporal<>>);
    CHECK(remembers<local_m<temporal>>);
    CHECK(remembers<temperature<dropout<temporal>>>);
    CHECK(remembers<mine::wrapping<temporal>>);
    CHECK(remembers<score::with_word<score::with_location<additive, matrix>, matrix>>);
    CHECK(!remembers<softmax>);
    CHECK(!remembers<local_m<>>);
    CHECK(!remembers<temperature<dropout<softmax>>>);
    CHECK(!remembers<mine::wrapping<mine::without_state>>);
    CHECK(!remembers<additive>);
    CHECK(!remembers<score::with_word<additive, matrix>>);
}

TEST_CASE("a window limits the computation unless state is read outside it")
{
    CHECK(cuts_windows<local_m<>>);
    CHECK(cuts_windows<local_p<matrix, vector>>);
    CHECK(cuts_windows<temperature<dropout<local_m<>>>>);
    CHECK(cuts_windows<local_m<temporal, history::in_window>>);
    CHECK(cuts_windows<mine::given_window>);
    CHECK(!cuts_windows<mine::hidden_window>);
    CHECK(!cuts_windows<temperature<softmax>>);
    CHECK(!cuts_windows<local_m<temporal>>);
    CHECK(!cuts_windows<local_m<decayed_temporal<>, history::in_window>>);  // its state also decays outside the window
    CHECK(!cuts_windows<local_m<mine::wrapping<recent_temporal<>>, history::in_window>>);
    CHECK(!cuts_windows<decayed_temporal<local_m<>>>);
}

TEST_CASE("traits are inherited from the wrapped policy")
{
    CHECK(heed::rowwise<softmax>);
    CHECK(!heed::rowwise<temporal>);
    CHECK(!heed::rowwise<local_m<>>);
    CHECK(draws<dropout<softmax>>);
    CHECK(draws<learned_temporal<vector, dropout<softmax>>>);
    CHECK(!draws<learned_temporal<vector>>);
    CHECK(normalizer_traits_of<local_m<>>().differentiable);
    CHECK(!normalizer_traits_of<local_m<temperature<argmax>>>().differentiable);
    CHECK(normalizer_traits_of<recent_temporal<local_m<>>>().reads_length);
    CHECK(!normalizer_traits_of<softmax>().reads_length);
    CHECK(normalizer_traits_of<mine::wrapping<softmax>>().shift_invariant);
    CHECK(!normalizer_traits_of<decayed_temporal<softmax>>().shift_invariant);
    using conv_s2s = score::conv_s2s<matrix, vector>;
    CHECK(score_traits_of<score::with_location<conv_s2s, matrix>>().reads_word);
    CHECK(score_traits_of<score::with_coverage<additive, matrix, nn::coverage_gru<matrix, vector>>>().reads_word);
    using kernel = score::kernel<score::elu_plus_one>;
    CHECK(score_traits_of<kernel>().nonnegative);
    CHECK(!score_traits_of<score::dot>().nonnegative);
    CHECK(!score_traits_of<score::with_word<kernel, matrix>>().nonnegative);
    CHECK(score_traits_of<score::gated_decay<kernel, matrix, vector>>().nonnegative);
    // A score that wraps another inherits the traits that it does not declare, including whether `advance` reads the
    // context.
    CHECK(score_traits_of<score::with_word<additive, matrix>>().ignores_context);
    CHECK(combiner_traits_of<combine::weighted_sum>().linear);
    CHECK(!combiner_traits_of<combine::gated<combine::weighted_sum, matrix>>().linear);
}
