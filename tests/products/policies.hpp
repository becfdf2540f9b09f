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

/// The normalizers and combiners of the table, with parameters that fit composition::batch.
namespace composition {

using support::random;

inline constexpr std::size_t D = batch::width, A = batch::hidden;

template <class F>
void each_normalizer(const F& f)
{
    using namespace heed::normalize;
    const auto W_p = random({D, 3}, 51);
    const auto v_p = random({3}, 52), w = random({1}, 53);
    f("softmax", softmax{});
    f("temporal", temporal{});
    f("recent_temporal", recent_temporal{1});
    f("decayed_temporal", decayed_temporal{0.7, 0.3});
    f("learned_temporal", learned_temporal{w});
    f("local_m", local_m{1});
    f("local_m{D, temporal}", local_m{1, temporal{}});
    f("local_p", local_p{W_p, v_p, 2});
    f("sparsemax", sparsemax{});
    f("entmax15", entmax15{});
    f("entmax", entmax{w});
    f("top_k", top_k{2});
    f("softmax_with_sink", softmax_with_sink{w});
    f("sigmoid", sigmoid{-0.5});
    f("stick_breaking", stick_breaking{});
    f("monotonic", monotonic{w});
    f("monotonic_hard", monotonic_hard{w});
    f("chunkwise{w, s, monotonic}", chunkwise{2, w, monotonic{w}});
    f("ratio", ratio{0.8});
    f("retention", retention{0.9});
    f("temperature", temperature{0.5});
    f("hard", hard{7});
    f("gumbel", gumbel{8});
    f("argmax", argmax{});
    f("dropout", dropout{0.4, 9, softmax{}, {.at_inference = true}});
    f("noisy", noisy{0.5, 10, softmax{}, {.at_inference = true}});
}

/// Calls f(name, combiner) for each combiner over `sum`.
template <class Sum, class F>
void each_combiner_over(const Sum& sum, const char* name, const F& f)
{
    using namespace heed::combine;
    const std::string inside = std::string("{…, ") + name + "}";
    f(std::string(name), sum);
    f("attentional" + inside, attentional{random({2 * D, D}, 61), sum});
    f("gated" + inside, gated{random({D, D}, 62), random({D}, 63), sum});
}

template <class F>
void each_combiner(const F& f)
{
    using namespace heed::combine;
    each_combiner_over(weighted_sum{}, "weighted_sum", f);
    each_combiner_over(elementwise_sum{}, "elementwise_sum", f);
    each_combiner_over(grouped_sum{}, "grouped_sum", f);
}

template <class Score>
inline constexpr bool plain_score = false;
template <class... T>
inline constexpr bool plain_score<heed::score::additive<T...>> = true;
template <class... T>
inline constexpr bool plain_score<heed::score::additive_per_dimension<T...>> = true;
template <class... T>
inline constexpr bool plain_score<heed::score::additive_grouped<T...>> = true;

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
    const bool plain[] = {plain_score<Score> ||
                              std::same_as<Normalize, heed::normalize::ratio>,  // legal with few scores
                          std::same_as<Normalize, heed::normalize::softmax>, form_of<Combine> == 0};
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

template <bool with_word, class Score>
void add_products(table& to, const std::string& name, const Score& score)
{
    each_normalizer([&]<class Normalize>(const char* normalizer, const Normalize& normalize) {
        each_combiner([&]<class Combine>(const std::string& combiner, const Combine& combine) {
            constexpr heed::composition_fault fault = heed::fault_of<Score, Normalize, Combine>();
            many queries{};
            std::unique_ptr<product> judged;
            if constexpr (fault == heed::composition_fault::none) {
                queries = many_of<with_word, Score, Normalize, Combine>();
                if constexpr (to_be_judged<Score, Normalize, Combine>())
                    judged = std::make_unique<of<with_word, Score, Normalize, Combine>>(score, normalize, combine);
            }
            add_row(to, name, normalizer, combiner, Score::traits.weights, fault, queries, std::move(judged));
        });
    });
}

inline auto additive() { return heed::score::additive{random({D, A}, 11), random({D, A}, 12), random({A}, 13)}; }

}  // namespace composition
