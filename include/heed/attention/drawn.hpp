// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heed/core/mask.hpp>
#include <heed/core/transient.hpp>
#include <heed/simd/place.hpp>

/// Masks of places as truth values, drawn for the queries of a block or a step and forgotten with their scores.
namespace heed::detail {

/// A mask of places and the queries that it is asked about: `all` of them, the first of which has the number `first`.
template <class Mask>
struct places_of_queries {
    Mask mask;
    std::size_t first, all, positions, head;

    const places_of_queries& rows(std::size_t, std::size_t) const { return *this; }  // lengths know which sentences
};
template <class Mask>
places_of_queries(Mask, std::size_t, std::size_t, std::size_t, std::size_t) -> places_of_queries<Mask>;

/// What `count` queries from the begin-th on see: [B,count,T] at `to`.
template <class Mask>
void draw(const places_of_queries<Mask>& what, const lengths_view& real, std::size_t begin, std::size_t count,
          std::uint8_t* to)
{
    const std::size_t T = what.positions;
    std::fill_n(to, real.batch() * count * T, std::uint8_t{0});
    place p;
    p.head = static_cast<std::int32_t>(what.head);
    for (std::size_t b = 0; b < real.batch(); ++b) {
        p.batch = static_cast<std::int32_t>(real.first_row() + b);
        for (std::size_t s = begin; s < begin + count; ++s, to += T) {
            p.query = static_cast<std::int32_t>(what.first + s);
            p.here = static_cast<std::int32_t>(real[b] + s) - static_cast<std::int32_t>(what.all);
            for (std::size_t t = 0; t < real[b]; t += lane_count) {
                p.key.at = counted_from(t).at;
                const lane_mask seen = what.mask(p);
                for (std::size_t i = 0; i < lane_count && t + i < real[b]; ++i) to[t + i] = seen.at[i] != 0 ? 1 : 0;
            }
        }
    }
}

/// The same in this thread's workspace.
template <class Mask>
boolean_mask_view<3> drawn(const places_of_queries<Mask>& what, const lengths_view& real, std::size_t begin,
                           std::size_t count)
{
    auto* const to = transient_family::take<std::uint8_t>(real.batch() * count * what.positions);
    detail::draw(what, real, begin, count, to);
    return {to, {real.batch(), count, what.positions}};
}

/// What each of S queries of a head sees, [B,S,T].
template <class Mask>
boolean_mask<3> drawn_out(const Mask& mask, const lengths_view& real, std::size_t first, std::size_t S,
                          std::size_t positions, std::size_t head = 0)
{
    boolean_mask<3> all(shape_of_rank<3>{real.batch(), S, positions});
    if (real.batch() * S * positions > 0)
        detail::draw(places_of_queries{mask, first, S, positions, head}, real, 0, S, &all[0]);
    return all;
}

/// The part of a mask that applies to query s, [B,T].
template <class Mask>
boolean_mask_view<2> mask_of_step(const places_of_queries<Mask>& what, std::size_t s, std::size_t S,
                                  const lengths_view& real)
{
    if (s >= S) {  // where there is no query, one of zeros stands in, and sees nothing
        auto* const none = transient_family::take<std::uint8_t>(real.batch() * what.positions);
        std::fill_n(none, real.batch() * what.positions, std::uint8_t{0});
        return {none, {real.batch(), what.positions}};
    }
    return {detail::drawn(what, real, s, 1).data(), {real.batch(), what.positions}};
}

}  // namespace heed::detail
