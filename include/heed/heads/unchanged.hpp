// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <heed/core/tensor.hpp>

namespace heed::per_head {

/// What a multi_head does with the contexts of its heads before W_O: here nothing, they only stand side by side.
///
///     Concat(head_1, …, head_n)               Vaswani et al. 2017, section 3.2.2
///
/// Such a policy gets the contexts, [B,n·V] of one query or [B,S,n·V] of many, and the query as it was given to the
/// multi_head; W_O multiplies what it returns. `heads_a_value`: so many heads in a row read the same values, so that
/// W_V has columns for n / heads_a_value of them.
struct unchanged {
    static constexpr std::size_t heads_a_value = 1;

    template <tensor Contexts>
    Contexts operator()(Contexts contexts, const auto&) const
    {
        return contexts;
    }

    static auto parameters(auto&, auto&&) { return per_head::unchanged{}; }
};

}  // namespace heed::per_head
