// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

/// What attention answers.
namespace heed {

/// What one query gets.
template <class Context, class Weights, class State>
struct attended {
    Context context;  // [B,D]
    Weights weights;  // [B,T], or [B,T,D] per dimension, [B,T,G] per group
    State state;      // for the next step
};

/// What one query gets when nobody looks at the weights.
template <class Context, class State>
struct read_out {
    Context context;  // [B,D]
    State state;      // for the next step
};

/// What many queries get, nobody looking at the weights.
template <class Contexts, class State>
struct all_read {
    Contexts contexts;  // [B,S,D]
    State state;        // after the last query
};

/// Whether the weights are asked for, or the context alone: `read` needs no [B,T,D] where a kernel makes none.
struct weights_too {};
struct context_only {};

}  // namespace heed
