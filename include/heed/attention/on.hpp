// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/attention/growing.hpp>
#include <heed/attention/memory.hpp>
#include <heed/attention/score_hooks.hpp>
#include <heed/core/family.hpp>
#include <heed/core/shared_tensor.hpp>
#include <heed/ops/by_rows.hpp>
#include <heed/ops/masks.hpp>
#include <heed/ops/parts.hpp>

/// `on`, once per batch: positions that may not be attended to are cleared, then the score prepares the keys.
namespace heed::detail {

/// The type of the limits of a batch: lengths, or a mask.
template <class Limit>
concept source_limit = std::is_same_v<Limit, lengths> || std::is_same_v<Limit, boolean_mask<2>>;

/// f(first, count) for pieces of [B,T] that may not be attended to.
template <source_limit Limit>
void each_hidden(const Limit& limit, const shape_of_rank<3>& shape, const auto& f)
{
    const std::size_t B = shape[0], T = shape[1];
    if constexpr (std::is_same_v<Limit, lengths>) {
        for (std::size_t b = 0; b < B; ++b) f(b * T + limit[b], T - limit[b]);
    } else {
        for (std::size_t i = 0; i < B * T; ++i)
            if (limit[i] == 0) f(i, std::size_t{1});
    }
}

/// Annotations or values [B,T,D].
template <tensor X>
decltype(auto) annotations_meant(X&& x)
{
    constexpr bool fits = rank_of<X> == 3;
    static_assert(fits,
                  "heed: attention::on takes annotations [B,T,D], and values [B,T,D] if keys are made of other "
                  "annotations: of one sentence [1,T,D]; `extend` takes annotations [B,t,D], of one position [B,1,D]");
    if constexpr (fits) {
        return std::forward<X>(x);
    } else {
        return array<plain_number<element_of<X>>, 3>{};
    }
}

/// x [B,T,D] with zeros at the positions that may not be attended to. An array that is given away is cleared where it
/// is; another one is copied, since a memory owns what it holds. Views and the like are copied only if there is
/// something to clear.
template <tensor X, source_limit Limit>
auto cleared(const char* where, X&& x, const Limit& limit)
{
    using type = std::remove_cvref_t<X>;
    constexpr bool of_lengths = std::is_same_v<Limit, lengths>;
    const auto shape = shape_of(x);
    if constexpr (of_lengths) {
        limit.require(where, shape[0], shape[1]);
    } else {
        limit.require(where, {shape[0], shape[1]});
    }
    const auto copy = [&] {
        if constexpr (of_lengths) {
            return ops::clear_padding(x, limit);
        } else {
            return ops::clear_hidden(x, limit);
        }
    };
    if constexpr (is_array<type> && !std::is_lvalue_reference_v<X> && !std::is_const_v<X>) {
        type here = std::move(x);
        each_hidden(limit, shape, [data = here.data(), D = shape[2]](std::size_t first, std::size_t count) {
            std::fill_n(data + first * D, count * D, element_of<X>(0));
        });
        return here;
    } else if constexpr (is_array<type>) {
        return copy();
    } else {
        bool hides_any = false;
        each_hidden(limit, shape, [&](std::size_t, std::size_t count) { hides_any = hides_any || count > 0; });
        using kept = std::conditional_t<owning_tensor<type>, shared_tensor<element_of<X>, 3>, type>;
        return hides_any ? kept(copy()) : kept(x);
    }
}

/// make(annotations, values, real, mask). `values` may be the very annotations, given away.
template <source_limit Limit>
auto from_cleared(const auto& make, const auto& annotations, auto&& values, const Limit& limit)
{
    using values_type = decltype(values);
    if constexpr (std::is_same_v<Limit, lengths>) {
        return make(annotations, std::forward<values_type>(values), limit, no_mask{});
    } else {
        return make(annotations, std::forward<values_type>(values), lengths::full(limit.shape()[0], limit.shape()[1]),
                    limit);
    }
}

/// The memory that `make` makes of annotations, of values if they are others, and of lengths or a mask if some
/// positions are missing. `where` begins the messages.
template <tensor X, source_limit Limit>
auto from_source(const char* where, const auto& make, X&& annotations, const Limit& limit)
{
    auto both = detail::cleared(where, detail::annotations_meant(std::forward<X>(annotations)), limit);
    return detail::from_cleared(make, both, std::move(both), limit);
}
template <tensor X, tensor V, source_limit Limit>
auto from_source(const char* where, const auto& make, X&& annotations, V&& values, const Limit& limit)
{
    decltype(auto) of_keys = detail::annotations_meant(std::forward<X>(annotations));
    decltype(auto) of_values = detail::annotations_meant(std::forward<V>(values));
    const auto shape = shape_of(of_keys);
    require_shape(where, "the values", shape_of(of_values), {shape[0], shape[1], shape_of(of_values)[2]},
                  "one for each annotation");
    const auto keys_from = detail::cleared(where, std::forward<decltype(of_keys)>(of_keys), limit);
    return detail::from_cleared(make, keys_from,
                                detail::cleared(where, std::forward<decltype(of_values)>(of_values), limit), limit);
}
template <tensor First, tensor... Rest>
auto from_source(const char* where, const auto& make, First&& annotations, Rest&&... values)
{
    decltype(auto) first = detail::annotations_meant(std::forward<First>(annotations));
    const auto shape = shape_of(first);
    return detail::from_source(where, make, std::forward<decltype(first)>(first), std::forward<Rest>(values)...,
                               lengths::full(shape[0], shape[1]));
}

/// An array as a view, for what reads annotations and does not keep them; anything else as it is.
decltype(auto) read_in_place(const auto& x)
{
    if constexpr (is_array<std::remove_cvref_t<decltype(x)>>) {
        return view_of(x);
    } else {
        return (x);
    }
}

/// Makes the memory of annotations and values that are cleared already.
template <class Score>
struct memory_by {
    const Score& score;
    lengths_view first{};  // the position of the first annotation of each row; 0 if there are none

    /// `values` may be the annotations themselves: they are moved only after the keys are made.
    template <class Values, class Mask>
    auto operator()(const tensor auto& annotations, Values&& values, lengths real, Mask mask) const
    {
        auto keys = heed::score::over::prepare(score, annotations, first.batch() == 0 ? 0 : first[0]);
        if constexpr (plain_tensor<decltype(keys)> && hook::prepare<Score, decltype(annotations), std::size_t>) {
            for (std::size_t b = 1; b < first.batch(); ++b) {
                if (first[b] == first[0]) continue;
                const auto row =
                    rows_of_view(tensor_view<const element_of<decltype(keys)>, 3>(view_of(annotations)), {b, 1});
                const auto of_row = heed::score::over::prepare(score, row, first[b]);
                std::copy_n(view_of(of_row).data, view_of(of_row).size(), view_of(keys)[b].data);
            }
        }
        auto in_family = same_family(keys, std::remove_cvref_t<Values>(std::forward<Values>(values)));
        return memory<decltype(in_family), decltype(keys), Mask>{std::move(in_family), std::move(keys), std::move(real),
                                                                 std::move(mask)};
    }
};
template <class Score>
memory_by(const Score&, lengths_view = {}) -> memory_by<Score>;

/// The memory with the positions of `more` behind its own; only a growing one may have padding.
template <class Score, class T, class Values, class Keys>
auto appended(const char*, const Score& score, memory<growing_tensor<T>, growing_tensor<T>> to,
              const memory<Values, Keys>& more)
{
    std::vector<std::size_t> real(to.batch());
    for (std::size_t b = 0; b < real.size(); ++b) real[b] = to.real[b] + more.real[b];
    to.values.append(view_of(more.values), more.real);
    if constexpr (heed::score::over::follows<Score, array<T, 3>>()) {
        const auto [B, P, N] = to.keys.shape();
        auto last = filled<T, 3>({B, 1, N}, T(0));  // the last key of each row; zeros where there is none
        for (std::size_t b = 0; b < B; ++b) {
            if (const std::size_t n = to.keys.length(b); n > 0)
                std::copy_n(to.keys.row(b) + (n - 1) * N, N, last.data() + b * N);
        }
        const auto keys = heed::score::over::follow(score, more.keys, last);
        to.keys.append(view_of(keys), more.real);
    } else {
        to.keys.append(view_of(more.keys), more.real);
    }
    to.real = lengths(std::move(real));
    return to;
}

/// Throws shape_error if a row of a memory that is to grow has padding. `instead`: what could be done.
inline void require_no_padding(const char* where, const lengths& real, std::size_t positions, const char* instead = "")
{
    for (std::size_t b = 0; b < real.batch(); ++b) {
        if (real[b] != positions) {
            throw shape_error(std::string(where) + ": row " + std::to_string(b) + " of the memory has " +
                              std::to_string(real[b]) + " real positions of " + std::to_string(positions) +
                              "; a memory is extended behind its last position, so it must be without padding" +
                              instead);
        }
    }
}

/// The memory with the positions of `more` behind its own; neither has padding.
template <class Values, class Keys, class MoreValues, class MoreKeys>
auto appended(const char* where, const auto& score, const memory<Values, Keys>& to,
              const memory<MoreValues, MoreKeys>& more)
{
    require_no_padding(where, to.real, to.positions(), ", or a growing one: growing(memory)");
    auto values = ops::append(to.values, more.values);
    auto keys = ops::append(to.keys, heed::score::over::follow(score, more.keys, to.keys));
    const auto shape = shape_of(values);
    return memory<Values, Keys>{std::move(values), std::move(keys), lengths::full(shape[0], shape[1])};
}

}  // namespace heed::detail
