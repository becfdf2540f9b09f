// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/concepts.hpp>

#include <heed/heed.hpp>

#include <doctest/doctest.h>

using namespace heed;
using namespace normalize;

namespace {

using matrix = array<double, 2>;
using vector = array<double, 1>;
using additive = score::additive<matrix, vector>;

namespace mine {

/// A normalizer over another one that declares nothing else.
template <class Inner>
struct wrapping {
    Inner inner;
    using wraps = Inner;
};

struct without_state {
    auto operator()(const tensor auto& scores, const auto&) const { return scores; }
};
struct final_window final {
    static constexpr bool cuts = true;
};

}  // namespace mine

}  // namespace

TEST_CASE("policies are told apart from what is none")
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

TEST_CASE("state, or that of the policy below")
{
    CHECK(remembers<temporal>);
    CHECK(remembers<connected<vector>>);
    CHECK(remembers<fading_temporal<>>);
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

TEST_CASE("windows, unless what is remembered lies outside")
{
    CHECK(cuts_windows<local_m<>>);
    CHECK(cuts_windows<local_p<matrix, vector>>);
    CHECK(cuts_windows<temperature<dropout<local_m<>>>>);
    CHECK(cuts_windows<local_m<temporal, history::in_window>>);
    CHECK(cuts_windows<mine::final_window>);
    CHECK(!cuts_windows<temperature<softmax>>);
    CHECK(!cuts_windows<local_m<temporal>>);
    CHECK(!cuts_windows<local_m<fading_temporal<>, history::in_window>>);  // it fades outside the window, too
    CHECK(!cuts_windows<local_m<mine::wrapping<recent_temporal<>>, history::in_window>>);
    CHECK(!cuts_windows<fading_temporal<local_m<>>>);
}

TEST_CASE("constants, or those of the policy below")
{
    CHECK(heed::row_by_row<softmax>);
    CHECK(!heed::row_by_row<temporal>);
    CHECK(!heed::row_by_row<local_m<>>);
    CHECK(draws<dropout<softmax>>);
    CHECK(draws<connected<vector, dropout<softmax>>>);
    CHECK(!draws<connected<vector>>);
    CHECK(detail::differentiable_of<local_m<>>());
    CHECK(!detail::differentiable_of<local_m<temperature<argmax>>>());
    CHECK(detail::reads_length_of<recent_temporal<local_m<>>>());
    CHECK(!detail::reads_length_of<softmax>());
    CHECK(detail::ignores_offset_of<mine::wrapping<softmax>>());
    CHECK(!detail::ignores_offset_of<fading_temporal<softmax>>());
    CHECK(detail::reads_word_of<
          score::with_coverage<score::conv_s2s<matrix, vector>, matrix, nn::coverage_gru<matrix, vector>>>());
    CHECK(detail::never_negative<score::kernel<score::elu_plus_one>>);
    CHECK(!detail::never_negative<score::dot>);
    CHECK(!detail::never_negative<score::with_word<score::kernel<score::elu_plus_one>, matrix>>);
}
