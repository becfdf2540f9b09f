// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/tape.hpp>
#include <heed/core/parameters.hpp>

namespace heed::ad {

/// A module of the same kind whose parameters are variables on the tape. No weight is copied: the module must stay
/// alive and unmoved as long as the recording.
template <class T, parameterised M>
auto lift(tape<T>& on, const M& module)
{
    return transform_parameters(module, [&on](const std::string&, const auto& tensor) { return on.parameter(tensor); });
}

/// Not of a temporary: the variables would refer to weights that are gone.
template <class T, parameterised M>
auto lift(tape<T>& on, const M&& module) = delete;

}  // namespace heed::ad
