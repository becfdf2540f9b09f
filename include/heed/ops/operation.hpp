// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <type_traits>
#include <utility>

#include <heed/core/storage.hpp>
#include <heed/core/tensor.hpp>

/// The vocabulary that policies are written in. Each word is a constant function object, `ops::tanh(x)`, never an
/// overload set: an unqualified `tanh(x)` on an xtensor would find the lazy `xt::tanh`, and the C library's `::tanh` is
/// never far. Write `using namespace heed;` and `ops::tanh(x)`.
///
/// The same word serves both families. On plain tensors it computes into a new xt::xtensor; if any argument is taped,
/// the tape's twin of the word computes and records how to go back. The argument types alone decide.
namespace heed::ops {

namespace detail {

template <class... X>
struct family_among {
    using type = plain_family;
};
template <class First, class... Rest>
struct family_among<First, Rest...> {
    using type = typename family_among<Rest...>::type;
};
template <tensor First, class... Rest>
    requires(!plain_tensor<First>)
struct family_among<First, Rest...> {
    using type = family_of<First>;
};

/// A temporary that an operation has read is over: its storage is good for the next result.
template <class X>
void spend(std::remove_reference_t<X>& x)
{
    if constexpr (!std::is_reference_v<X> && !std::is_const_v<X>) give_back(x);
}

}  // namespace detail

/// What every word derives from: `plain` computes, the family of the arguments decides who is asked.
template <class Self>
struct operation {
    template <class... X>
    auto operator()(X&&... x) const
    {
        using family = typename detail::family_among<std::remove_cvref_t<X>...>::type;
        const Self& self = static_cast<const Self&>(*this);
        if constexpr (std::is_same_v<family, plain_family>) {
            auto result = self.plain(std::as_const(x)...);
            (detail::spend<X>(x), ...);
            return result;
        } else {
            return family::call(self, std::as_const(x)...);
        }
    }
};

}  // namespace heed::ops
