// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <heed/heed.hpp>
#include <products/products.hpp>
#include <support/tensors.hpp>

/// The normalizers and combiners of the table, with parameters of the given sizes.
namespace composition {

using support::random;

/// Calls f(name, function from sizes to the normalizer) for each normalizer.
template <class F>
void each_normalizer(const F& f)
{
    using namespace heed::normalize;
    static constexpr auto w = [] { return random({1}, 53); };
    f("softmax", [](const extents&) { return softmax{}; });
    f("temporal", [](const extents&) { return temporal{}; });
    f("recent_temporal", [](const extents&) { return recent_temporal{1}; });
    f("decayed_temporal", [](const extents&) { return decayed_temporal{0.7, 0.3}; });
    f("learned_temporal", [](const extents&) { return learned_temporal{w()}; });
    f("local_m", [](const extents&) { return local_m{1}; });
    f("local_m{D, temporal}", [](const extents&) { return local_m{1, temporal{}}; });
    f("local_p", [](const extents& of) { return local_p{random({of.width, 3}, 51), random({3}, 52), 2}; });
    f("sparsemax", [](const extents&) { return sparsemax{}; });
    f("entmax15", [](const extents&) { return entmax15{}; });
    f("entmax", [](const extents&) { return entmax{w()}; });
    f("top_k", [](const extents&) { return top_k{2}; });
    f("softmax_with_sink", [](const extents&) { return softmax_with_sink{w()}; });
    f("sigmoid", [](const extents&) { return sigmoid{-0.5}; });
    f("stick_breaking", [](const extents&) { return stick_breaking{}; });
    f("monotonic", [](const extents&) { return monotonic{w()}; });
    f("monotonic_hard", [](const extents&) { return monotonic_hard{w()}; });
    f("chunkwise{w, s, monotonic}", [](const extents&) { return chunkwise{2, w(), monotonic{w()}}; });
    f("ratio", [](const extents&) { return ratio{0.8}; });
    f("retention", [](const extents&) { return retention{0.9}; });
    f("temperature", [](const extents&) { return temperature{0.5}; });
    f("hard", [](const extents&) { return hard{7}; });
    f("gumbel", [](const extents&) { return gumbel{8}; });
    f("argmax", [](const extents&) { return argmax{}; });
    f("dropout", [](const extents&) { return dropout{0.4, 9, softmax{}, {.at_inference = true}}; });
    f("noisy", [](const extents&) { return noisy{0.5, 10, softmax{}, {.at_inference = true}}; });
}

/// Calls f(name, function from sizes to the combiner) for each combiner over `Sum`.
template <class Sum, class F>
void each_combiner_over(const char* name, const F& f)
{
    using namespace heed::combine;
    const std::string inside = std::string("{…, ") + name + "}";
    f(std::string(name), [](const extents&) { return Sum{}; });
    f("attentional" + inside, [](const extents& of) {
        return attentional{random({2 * of.width, of.width}, 61), Sum{}};
    });
    f("gated" + inside, [](const extents& of) {
        return gated{random({of.width, of.width}, 62), random({of.width}, 63), Sum{}};
    });
}

template <class F>
void each_combiner(const F& f)
{
    each_combiner_over<heed::combine::weighted_sum>("weighted_sum", f);
    each_combiner_over<heed::combine::elementwise_sum>("elementwise_sum", f);
    each_combiner_over<heed::combine::grouped_sum>("grouped_sum", f);
}

/// The type of the policy that a function of sizes returns.
template <class Make>
using made_by = std::invoke_result_t<const Make&, const extents&>;

template <class Score>
inline constexpr bool plain_score = false;
template <class... T>
inline constexpr bool plain_score<heed::score::additive<T...>> = true;
template <class... T>
inline constexpr bool plain_score<heed::score::additive_per_dimension<T...>> = true;
template <class... T>
inline constexpr bool plain_score<heed::score::additive_grouped<T...>> = true;

template <class... T>
inline constexpr bool grown<heed::score::additive<T...>, heed::normalize::softmax, heed::combine::weighted_sum> = true;
template <class... T>
inline constexpr bool grown<heed::score::additive<T...>, heed::normalize::temporal, heed::combine::weighted_sum> = true;
template <class... T>
inline constexpr bool
    grown<heed::score::additive_per_dimension<T...>, heed::normalize::softmax, heed::combine::elementwise_sum> = true;
template <class... T>
inline constexpr bool grown<heed::score::with_coverage<T...>, heed::normalize::softmax, heed::combine::weighted_sum> =
    true;

template <class Score>
inline constexpr bool most_plain_score = false;
template <class... T>
inline constexpr bool most_plain_score<heed::score::additive<T...>> = true;

/// A number for a type, from its name: equal in every file of this program.
template <class T>
consteval std::size_t number_of()
{
    std::size_t hash = 14695981039346656037u;  // FNV-1a
    for (const char letter : std::string_view(__PRETTY_FUNCTION__))
        hash = (hash ^ static_cast<unsigned char>(letter)) * 1099511628211u;
    return hash >> 32;
}

/// The sum itself, attentional around it, or gated around it: 0, 1 or 2.
template <class Combine>
inline constexpr std::size_t form_of = 0;
template <class... T>
inline constexpr std::size_t form_of<heed::combine::attentional<T...>> = 1;
template <class... T>
inline constexpr std::size_t form_of<heed::combine::gated<T...>> = 2;

/// Whether to judge a legal product. A covering array of strength 2: every legal pair of score and normalizer, with one
/// of its three combiners, in rotation, so that every legal pair of policies is judged (main.cpp checks this).
/// HEED_TEST_ALL_PRODUCTS judges all; HEED_TEST_EACH_POLICY judges each policy among plain ones.
template <class Score, class Normalize, class Combine>
consteval bool to_be_judged()
{
#if defined(HEED_TEST_ALL_PRODUCTS)
    return true;
#elif defined(HEED_TEST_EACH_POLICY)
    constexpr bool softmax = std::same_as<Normalize, heed::normalize::softmax>;
    const bool plain[] = {most_plain_score<Score> || (plain_score<Score> && softmax) ||
                              std::same_as<Normalize, heed::normalize::ratio>,  // legal with few scores
                          softmax, form_of<Combine> == 0};
    return std::count(std::begin(plain), std::end(plain), false) <= 1;
#else
    // Few scores have weights per dimension or group: too few to cover every pair of the others in rotation.
    // plain_score covers every pair of normalizer and combiner, since the rotation differs between compilers; `ratio`
    // is legal with few scores, but not with plain_score.
    return Score::traits.weights != heed::weight_kind::per_position || plain_score<Score> ||
           std::same_as<Normalize, heed::normalize::ratio> ||
           form_of<Combine> == (number_of<Score>() + number_of<Normalize>()) % 3;
#endif
}

template <bool with_word, class Score, class Normalize, class Combine>
consteval many many_of()
{
    using mechanism = heed::attention<Score, Normalize, Combine>;
    using tensor = heed::array<double, 3>;
    using queries = std::conditional_t<with_word, heed::state_and_word<tensor, tensor>, tensor>;
    using memory = std::remove_cvref_t<decltype(std::declval<const mechanism&>().on(
        std::declval<const tensor&>(), std::declval<const heed::lengths&>()))>;
    using projected =
        std::remove_cvref_t<decltype(std::declval<const mechanism&>().project(std::declval<const queries&>()))>;
    using plan = heed::detail::plan<mechanism, projected, memory, heed::no_mask>;
    if constexpr (heed::detail::plan<mechanism, projected, memory, heed::causal>::linear) {
        return many::linear;
    } else if constexpr (plan::tiled) {
        return many::tiles;
    } else if constexpr (plan::blocked) {
        return many::products;
    } else {
        return many::in_turn;
    }
}

/// Adds the products of the score that make(sizes) returns.
template <bool with_word, class Make>
void add_products(table& to, const std::string& name, const Make& make)
{
    using Score = made_by<Make>;
    each_normalizer([&]<class Normalizer>(const char* normalizer, const Normalizer& normalize) {
        each_combiner([&]<class Combiner>(const std::string& combiner, const Combiner& combine) {
            using Normalize = made_by<Normalizer>;
            using Combine = made_by<Combiner>;
            constexpr heed::composition_fault fault = heed::fault_of<Score, Normalize, Combine>();
            many queries{};
            std::unique_ptr<product> judged;
            if constexpr (fault == heed::composition_fault::none) {
                queries = many_of<with_word, Score, Normalize, Combine>();
                if constexpr (to_be_judged<Score, Normalize, Combine>()) {
                    using made = of<with_word, Score, Normalize, Combine>;
                    judged = std::make_unique<made>(typename made::makers{make, normalize, combine});
                }
            }
            add_row(to, name, normalizer, combiner, Score::traits.weights, fault, queries, std::move(judged));
        });
    });
}

inline auto additive(const extents& of)
{
    return heed::score::additive{random({of.width, of.hidden}, 11), random({of.width, of.hidden}, 12),
                                 random({of.hidden}, 13)};
}

}  // namespace composition
