// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/tensor.hpp>

/// Whose tensor does not fit. An operation deep inside of a policy knows that x [2,5] does not fit a matrix [6,4];
/// where attention calls the policy it is known that x was the query:
///
///     score::additive: the query [2,5] does not fit W [6,4], U [8,4], v [4] (linear: …)
///
/// The calls are function-try-blocks: nothing is done unless an operation throws.
namespace heed::detail {

/// "score::additive": what a policy's type is called, without heed's namespace and without what it is a template of.
template <class Policy>
std::string_view policy_name()
{
    std::string_view name = __PRETTY_FUNCTION__;  // … [with Policy = heed::score::additive<…>; …]
    name.remove_prefix(name.find("Policy = ") + 9);
    name = name.substr(0, name.find_first_of("<;]"));
    if (name.starts_with("heed::")) name.remove_prefix(6);
    return name;
}

/// A tensor and what it is there: "the query".
template <class X>
struct named_tensor {
    const char* name;
    const X& x;
};
template <class X>
named_tensor(const char*, const X&) -> named_tensor<X>;

template <class X>
std::string text_of(const named_tensor<X>& named)
{
    std::string text = named.name;
    if constexpr (tensor<X>) text.append(" ").append(shape_text(shape_of(named.x)));
    return text;
}

/// Throws an error that names the policy and the tensors, unless `found` does so already. `others`: what `x` should
/// fit, with the policy's own parameters.
template <class Policy, class X, class... Others>
[[noreturn, gnu::noinline, gnu::cold]] void throw_whose(const shape_error& found, const Policy& policy,
                                                        named_tensor<X> x, named_tensor<Others>... others)
{
    if (found.names_policy) throw;
    std::string fits;
    ((fits += (fits.empty() ? "" : ", ") + text_of(others)), ...);
    if constexpr (parameterised<Policy>) (void)Policy::parameters(const_cast<Policy&>(policy), looking_visitor{&fits});
    throw_named_shape_error(found, policy_name<Policy>(), text_of(x), std::string_view(x.name).ends_with('s'), fits);
}

}  // namespace heed::detail
