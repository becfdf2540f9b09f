// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/ad/lookup.hpp>
#include <heed/ad/tape.hpp>
#include <heed/core/dual_number.hpp>
#include <heed/core/parameters.hpp>

/// Hessian-vector products of a loss, without forming the Hessian.
///
///     H v = d/dε ∇ℓ(p + ε v) at ε = 0                      Pearlmutter 1994, eq. 5
///
/// The loss and its gradient are computed once, with dual numbers p + v ε: the gradient on the tape is exactly ∇ℓ + H v
/// ε. Every operation and every kernel is a template over its element type, including tiles and modified scores. A
/// product takes the time of 2.4 to 3.6 gradients (docs/results/speed.md) and the memory of two recordings.
///
///     const auto loss = [&](auto&, const auto& model) { return model.loss(batch); };  // auto: a tape of dual numbers
///     auto [value, gradient, product] = ad::hessian_vector(loss, model, direction);
///
/// At a kink (relu, max, an edge of a support), the one-sided slopes at the value are used; choices (argmax, a hard
/// window, sampled positions) are constants, as they are for the gradient.
namespace heed::inline HEED_TARGET::ad {

/// The result of hessian_vector.
template <class T, class Module>
struct hessian_vector_result {
    T loss;
    Module gradient, product;  // ∇ℓ and H v
};

namespace detail {

/// Several tensors as a module.
template <class... X>
struct tensors_as_module {
    std::tuple<X...> at;

    static auto parameters(auto& self, auto&& visit)
    {
        return std::apply([&](auto&... x) { return of(std::tuple{visit("tensor", x)...}); }, self.at);
    }
    template <class... Y>
    static tensors_as_module<Y...> of(std::tuple<Y...> y)
    {
        return {std::move(y)};
    }
};

/// The parameters as a module: a module, a tensor, or a tuple of tensors (std::tie).
template <class X>
struct as_module {
    template <class Loss, class Tape, class M>
    static constexpr bool takes = std::is_invocable_v<const Loss&, Tape&, const M&>;
    static const X& of(const X& x) { return x; }
    static decltype(auto) call(const auto& loss, auto& on, const auto& module) { return loss(on, module); }
    static auto back(auto module) { return module; }
};
template <class... X>
struct as_module<std::tuple<X...>> {
    template <class Loss, class Tape, class... Y>
    static constexpr bool takes_each(const std::tuple<Y...>*)
    {
        return std::is_invocable_v<const Loss&, Tape&, const Y&...>;
    }
    template <class Loss, class Tape, class M>
    static constexpr bool takes = takes_each<Loss, Tape>(static_cast<const decltype(M::at)*>(nullptr));
    static auto of(const std::tuple<X...>& x)
    {
        return std::apply(
            [](const auto&... each) {
                return tensors_as_module<tensor_view<const element_of<decltype(each)>, rank_of<decltype(each)>>...>{
                    {view_of(each)...}};
            },
            x);
    }
    static decltype(auto) call(const auto& loss, auto& on, const auto& module)
    {
        return std::apply([&](const auto&... x) -> decltype(auto) { return loss(on, x...); }, module.at);
    }
    static auto back(auto module) { return std::move(module.at); }
};
template <tensor X>
struct as_module<X> : as_module<std::tuple<const X&>> {
    static auto of(const X& x) { return as_module<std::tuple<const X&>>::of(std::tie(x)); }
    static auto back(auto module) { return std::get<0>(std::move(module.at)); }
};

/// The element type of a module's tensors, if it can be deduced from its template arguments.
template <class M>
struct element_of_module : std::type_identity<void> {};
template <tensor X>
struct element_of_module<X> : std::type_identity<element_of<X>> {};
template <template <class...> class M, class First, class... Rest>
    requires(!tensor<M<First, Rest...>>)
struct element_of_module<M<First, Rest...>>
    : std::conditional_t<std::is_void_v<typename element_of_module<std::remove_cvref_t<First>>::type>,
                         element_of_module<std::tuple<Rest...>>, element_of_module<std::remove_cvref_t<First>>> {};

}  // namespace detail

/// ℓ(p), ∇ℓ(p) and H v. `parameters` are a module, and loss(tape, lifted module) returns a variable of rank 0; or a
/// tensor, or a tuple of tensors (std::tie(W, b)), with loss(tape, variables...). `direction`, ∇ℓ and H v consist of
/// tensors of the parameters' shapes. Plain tensors and targets in the loss are constants. `on` is cleared first; its
/// memory is reused for the next product. Throws shape_error unless each tensor of the direction has the size of its
/// parameter.
template <class T, class Loss, class Parameters, class Direction>
auto hessian_vector(tape<dual_number<T>>& on, const Loss& loss, const Parameters& parameters,
                    const Direction& direction)
{
    using given = detail::as_module<Parameters>;
    const auto& module = given::of(parameters);
    static_assert(parameterized<decltype(module)>,
                  "heed: hessian_vector takes a module with parameters, a tensor, or a tuple of tensors");
    std::vector<tensor_view<const T, 1>> ways;
    const auto& way = detail::as_module<Direction>::of(direction);
    (void)map_parameters(way, [&](const tensor auto& x) -> visited {
        const tensor_view<const T, rank_of<decltype(x)>> viewed = view_of(x);
        ways.push_back({viewed.data, {viewed.size()}});
        return {};
    });
    on.clear();
    std::vector<slot<dual_number<T>>*> slots;
    // The direction is stored in the slopes of the parameters. Its tensors are in the same order.
    const auto lifted = map_parameters(module, [&](const tensor auto& x) {
        const tensor_view<const T, rank_of<decltype(x)>> values = view_of(x);
        const std::size_t nth = slots.size();
        if (nth >= ways.size() || ways[nth].size() != values.size()) {
            throw shape_error("hessian_vector: tensor " + std::to_string(nth) + " of the direction has " +
                              counted(nth < ways.size() ? ways[nth].size() : 0, "number") +
                              ", but that of the parameters is " + shape_text(values.shape) +
                              "; a direction consists of the same tensors as the parameters");
        }
        auto* const duals = on.memory().template array_of<dual_number<T>>(values.size());
        for (std::size_t i = 0; i < values.size(); ++i) duals[i] = {values.data[i], ways[nth].data[i]};
        const auto made = on.parameter(tensor_view<const dual_number<T>, rank_of<decltype(x)>>{duals, values.shape});
        slots.push_back(&made.slot());
        return made;
    });
    constexpr bool callable = given::template takes<Loss, tape<dual_number<T>>, std::remove_cv_t<decltype(lifted)>>;
    static_assert(
        callable,
        "heed: hessian_vector runs the loss on a tape of dual numbers, which this loss does not accept: write it "
        "with auto, [](auto& tape, const auto& parameters) { ... }");
    if constexpr (callable) {
        const auto found = given::call(loss, on, lifted);
        constexpr bool one_number = std::is_same_v<std::remove_cv_t<decltype(found)>, var<dual_number<T>, 0>>;
        static_assert(one_number,
                      "heed: hessian_vector requires a loss that is a variable of rank 0 on the given tape");
        if constexpr (one_number) {
            const T value = found.data()->value;
            on.backward(found);
            // Values or slopes of the gradients, as owning tensors.
            const auto part = [&](bool slopes) {
                std::size_t nth = 0;
                const auto copy = [slopes](const dual_number<T>* from, std::size_t count, T* to) {
                    for (std::size_t i = 0; i < count; ++i) to[i] = slopes ? from[i].slope : from[i].value;
                };
                return given::back(map_parameters(module, [&](const tensor auto& x) {
                    array<T, rank_of<decltype(x)>> result(shape_of(x));
                    slot<dual_number<T>>& s = *slots[nth++];
                    const var<dual_number<T>, 1> flat(on, s, {s.size});
                    // A table used only in lookups has a sparse gradient; its whole gradient would be read twice.
                    if (const auto looked_up = gradient_rows(flat); looked_up.rows != nullptr) {
                        std::fill_n(result.data(), result.size(), T(0));
                        const std::size_t width = looked_up.width;
                        for (std::size_t i = 0; i < looked_up.ids.size(); ++i)
                            copy(looked_up.rows + i * width, width, result.data() + looked_up.ids[i] * width);
                    } else {
                        copy(on.gradient(flat).data, result.size(), result.data());
                    }
                    return result;
                }));
            };
            return hessian_vector_result<T, decltype(part(true))>{value, part(false), part(true)};
        }
    }
}

/// hessian_vector on a temporary tape. T: the parameters' element type, if it cannot be deduced.
template <class T = void, class Loss, class Parameters, class Direction>
auto hessian_vector(const Loss& loss, const Parameters& parameters, const Direction& direction)
{
    using known = typename detail::element_of_module<Parameters>::type;
    using U = std::conditional_t<std::is_void_v<T>, known, T>;
    static_assert(!std::is_void_v<U>, "heed: give the parameters' element type: ad::hessian_vector<float>(…)");
    tape<dual_number<U>> on;
    return ad::hessian_vector(on, loss, parameters, direction);
}

}  // namespace heed::inline HEED_TARGET::ad
