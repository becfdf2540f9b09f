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

/// What a shared_tensor is made of: a view of an object that somebody keeps, or a shared_tensor itself.
auto view_or_itself(const auto& x)
{
    if constexpr (is_view<std::remove_cvref_t<decltype(x)>>) {
        return view_of(x);
    } else {
        return x;
    }
}

/// Is there a position that may not be attended to?
inline bool hides_any(const lengths& real, std::size_t positions)
{
    for (std::size_t b = 0; b < real.batch(); ++b)
        if (real[b] < positions) return true;
    return false;
}
inline bool hides_any(const boolean_mask<2>& mask, std::size_t positions)
{
    for (std::size_t i = 0; i < mask.shape()[0] * positions; ++i)
        if (mask[i] == 0) return true;
    return false;
}

/// Zeros in place.
template <class T>
void clear(tensor_view<T, 3> x, const lengths& real)
{
    const std::size_t row = x.shape[1] * x.shape[2];
    for (std::size_t b = 0; b < x.shape[0]; ++b)
        std::fill(x.data + b * row + real[b] * x.shape[2], x.data + (b + 1) * row, T(0));
}
template <class T>
void clear(tensor_view<T, 3> x, const boolean_mask<2>& mask)
{
    for (std::size_t i = 0; i < x.shape[0] * x.shape[1]; ++i)
        if (mask[i] == 0) std::fill_n(x.data + i * x.shape[2], x.shape[2], T(0));
}

/// Annotations or values, where they are [B,T,D].
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
/// is; one that is not is copied, since a memory owns what it holds. Everything else, views above all, is copied only
/// if there is something to clear.
template <tensor X, source_limit Limit>
auto cleared(const char* where, X&& x, const Limit& limit)
{
    using type = std::remove_cvref_t<X>;
    const auto shape = shape_of(x);
    if constexpr (std::is_same_v<Limit, lengths>) {
        limit.require(where, shape[0], shape[1]);
    } else {
        limit.require(where, {shape[0], shape[1]});
    }
    const auto copy = [&] {
        if constexpr (std::is_same_v<Limit, lengths>) {
            return ops::clear_padding(x, limit);
        } else {
            return ops::clear_hidden(x, limit);
        }
    };
    if constexpr (is_array<type> && !std::is_lvalue_reference_v<X> && !std::is_const_v<X>) {
        type here = std::move(x);
        detail::clear(view_of(here), limit);
        return here;
    } else if constexpr (is_array<type>) {
        return copy();
    } else if constexpr (owning_tensor<type>) {
        return hides_any(limit, shape[1]) ? shared_tensor<element_of<X>, 3>(copy())
                                          : shared_tensor<element_of<X>, 3>(view_or_itself(x));
    } else {
        return hides_any(limit, shape[1]) ? copy() : type(x);
    }
}

/// make(annotations, values, real, mask), with the lengths and the mask that the memory keeps. `values` may be the very
/// annotations, given away.
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

/// The memory that `make` makes of a source: annotations, values if they are others, and lengths or a mask if some
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

/// An array where it is, for what reads annotations and does not keep them; anything else as it is.
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
        if constexpr (plain_tensor<decltype(keys)> && hook::prepare<Score, decltype(annotations), std::size_t>)
            prepare_others(annotations, keys);
        auto in_family = same_family(keys, std::remove_cvref_t<Values>(std::forward<Values>(values)));
        return memory<decltype(in_family), decltype(keys), Mask>{std::move(in_family), std::move(keys), std::move(real),
                                                                 std::move(mask)};
    }

private:
    /// The keys of the rows whose first position is not that of row 0.
    template <class T>
    void prepare_others(const auto& annotations, array<T, 3>& keys) const
    {
        for (std::size_t b = 1; b < first.batch(); ++b) {
            if (first[b] == first[0]) continue;
            const auto row = rows_of_view(tensor_view<const T, 3>(view_of(annotations)), {b, 1});
            const auto of_row = heed::score::over::prepare(score, row, first[b]);
            std::copy_n(view_of(of_row).data, view_of(of_row).size(), view_of(keys)[b].data);
        }
    }
};
template <class Score>
memory_by(const Score&) -> memory_by<Score>;
template <class Score>
memory_by(const Score&, lengths_view) -> memory_by<Score>;

/// The last position of each row, [B,1,N]; zeros where there is none.
template <class T>
array<T, 3> last_positions(const growing_tensor<T>& x)
{
    const auto [B, P, N] = x.shape();
    auto last = filled<T, 3>({B, 1, N}, T(0));
    for (std::size_t b = 0; b < B; ++b) {
        if (const std::size_t n = x.length(b); n > 0) std::copy_n(x.row(b) + (n - 1) * N, N, last.data() + b * N);
    }
    return last;
}

/// The memory with the positions of `more` behind its own; only a growing one may have padding.
template <class Score, class T, class Values, class Keys>
auto appended(const char*, const Score& score, memory<growing_tensor<T>, growing_tensor<T>> to,
              const memory<Values, Keys>& more)
{
    std::vector<std::size_t> real(to.batch());
    for (std::size_t b = 0; b < real.size(); ++b) real[b] = to.real[b] + more.real[b];
    to.values.append(view_of(more.values), more.real);
    if constexpr (heed::score::over::follows<Score, array<T, 3>>()) {
        const auto keys = heed::score::over::follow(score, more.keys, detail::last_positions(to.keys));
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
