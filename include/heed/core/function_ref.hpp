// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <type_traits>

namespace heed::inline HEED_TARGET::detail {

/// A reference to any callable with these arguments, so that the function that takes it need not be a template. For
/// function arguments: the callable must outlive it.
template <class Result, class... Arguments>
class function_ref {
public:
    template <class F>
        requires(!std::is_same_v<std::remove_cvref_t<F>, function_ref>)
    function_ref(const F& f) : called_(&f), call_(&call<F>) {}

    Result operator()(Arguments... arguments) const { return call_(called_, arguments...); }

private:
    template <class F>
    static Result call(const void* f, Arguments... arguments)
    {
        return (*static_cast<const F*>(f))(arguments...);
    }

    const void* called_;
    Result (*call_)(const void*, Arguments...);
};

}  // namespace heed::inline HEED_TARGET::detail
