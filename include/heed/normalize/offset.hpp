// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>

#include <heed/normalize/softmax.hpp>

namespace heed::detail {

/// Does a normalizer make the same weights of e + c as of e? One that does says so: `ignores_offset = true`.
template <class Inner>
consteval bool offset_ignored_inside()
{
    if constexpr (requires { Inner::ignores_offset; }) {
        return Inner::ignores_offset;
    } else {
        return std::is_same_v<Inner, normalize::softmax>;
    }
}

}  // namespace heed::detail
