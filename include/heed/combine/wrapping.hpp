// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::detail {

/// Base class of combiners that wrap another and also read the query: the inner one sums, and `finish(context,
/// positions, at)` transforms its context for a whole batch at once. The inner combiner's kernel is used, and matrix
/// products are batched.
template <class Self, class Inner>
struct wrapping_combiner {
    using wraps = Inner;

    auto operator()(const tensor auto& given, const tensor auto& values, const auto& at) const  // -> contexts
    {
        const Self& self = static_cast<const Self&>(*this);
        return self.finish(heed::combined(self.inner, given, values, at), shape_of(given)[1], at);
    }
};

}  // namespace heed::inline HEED_TARGET::detail
