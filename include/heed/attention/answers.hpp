// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

/// Results of attention.
namespace heed {

/// The result of one query.
template <class Context, class Weights, class State>
struct attended {
    Context context;  // [B,D]
    Weights weights;  // [B,T], or [B,T,D] per dimension, [B,T,G] per group
    State state;      // for the next step
};
template <class Context, class Weights, class State>
attended(Context, Weights, State) -> attended<Context, Weights, State>;

/// The result of one query, without the weights.
template <class Context, class State>
struct read_out {
    Context context;  // [B,D]
    State state;      // for the next step
};
template <class Context, class State>
read_out(Context, State) -> read_out<Context, State>;

/// The results of many queries, without the weights.
template <class Contexts, class State>
struct all_read {
    Contexts contexts;  // [B,S,D]
    State state;        // after the last query
};
template <class Contexts, class State>
all_read(Contexts, State) -> all_read<Contexts, State>;

/// Tags: return the weights too, or the context alone. A kernel per dimension then makes no weights [B,T,D].
struct weights_too {};
/// The context without the weights.
struct context_only {};

}  // namespace heed
