// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <type_traits>

#include <heed/ad/by_rows.hpp>
#include <heed/core/parameters.hpp>
#include <heed/kernels/rows.hpp>

/// Gradient checkpointing: part of a model is recomputed in the backward pass instead of saved.
///
/// n layers that need memory m each, every one a checkpoint, need n inputs plus m instead of n · m, for one more
/// forward pass (Chen et al. 2016).
namespace heed::inline HEED_TARGET::ad {

namespace detail {

/// A variable of another tape on this one: without a derivative, or with its derivative added to that of the other
/// tape.
template <class T>
struct from_other_tape {
    tape<T>& here;
    bool back;

    template <std::size_t N>
    auto operator()(const var<T, N>& x) const
    {
        return here.external(x.value(), back ? x.tape().wanted_adjoint(x) : nullptr);
    }
    auto operator()(const plain_tensor auto& x) const { return x; }
};

struct no_module {
    static auto parameters(auto&, auto&&) { return no_module{}; }
};

}  // namespace detail

/// y = f(module, x...), recomputed in the backward pass.
///
///     auto y = ad::checkpoint([&](const auto& layer, const auto& in) { return layer(in, lengths); }, lifted.layer, x);
///
/// `module`: a module on a tape, with the parameters that f uses; x: tensors on the same tape, at least one. f returns
/// one tensor and is called twice, on another tape, with the variables of the module and of x there: it must not
/// capture variables, and must compute the same result both times. Gradients are those of f(module, x...).
template <class F, parameterized Module, class T, std::size_t N, class... Rest>
auto checkpoint(const F& f, const Module& module, const var<T, N>& first, const Rest&... rest)
{
    tape<T>& on = first.tape();
    const auto run = [f](tape<T>& inner, bool back, const Module& from, const var<T, N>& x, const Rest&... others) {
        const detail::from_other_tape<T> bring{inner, back};
        return f(map_parameters(from, bring), bring(x), bring(others)...);
    };
    bool wanted = false;
    const auto look = [&](const tensor auto& x) -> visited {
        if constexpr (detail::is_var<std::remove_cvref_t<decltype(x)>>) wanted |= on_tape(on, x).wanted();
        return {};
    };
    (void)map_parameters(module, look);
    (void)look(first);
    ((void)look(rest), ...);
    const auto y = [&] {
        detail::inner_tape<T> inner;
        const auto found = run(*inner, false, module, first, rest...);
        const auto made = on.make(found.shape(), wanted);
        std::copy_n(found.data(), found.size(), made.data);
        return made.result;
    }();
    on.record(y, [=](const T* d_y) {
        detail::inner_tape<T> inner;
        const auto again = run(*inner, true, module, first, rest...);
        kernels::add(again.size(), (*inner).adjoint(again), d_y);
        (*inner).go_back();
    });
    return y;
}

/// y = f(x...) without parameters.
template <class F, class T, std::size_t N, class... Rest>
    requires(std::is_invocable_v<const F&, const var<T, N>&, const Rest&...>)
auto checkpoint(const F& f, const var<T, N>& first, const Rest&... rest)
{
    return ad::checkpoint([f](const detail::no_module&, const auto&... x) { return f(x...); }, detail::no_module{},
                          first, rest...);
}

}  // namespace heed::inline HEED_TARGET::ad
