// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>

#include <heed/core/family.hpp>
#include <heed/nn/cells.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/seq2seq/encoder.hpp>

/// The first state of a recurrent decoder: a policy of seq2seq::decoder. policy(cell, source) returns a state of the
/// cell, made of the encoded source. Its parameters are named among the decoder's own.
namespace heed::seq2seq::starts_with {

/// A layer on what the encoder offers as a start.
///
///     s_0 = tanh(W_s ←h_1 + b_s)              Bahdanau et al. 2015, appendix A.2.2
///
/// Deviation: the bias. Of an LSTM s_0 is the output, and its cell starts at 0; of stacked cells every layer starts so.
template <class Matrix, class Vector>
struct tanh_layer {
    Matrix W_s;  // [H,H]
    Vector b_s;  // [H]

    auto operator()(const auto& cell, const auto& source) const
    {
        return nn::begin_of(cell, ops::tanh(ops::linear(source.start, W_s, b_s)));
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return starts_with::tanh_layer{visit("W_s", self.W_s), visit("b_s", self.b_s)};
    }
};
template <class Matrix, class Vector>
tanh_layer(Matrix, Vector) -> tanh_layer<Matrix, Vector>;

/// The encoder's last state, of all layers: encoder and decoder have the same kind of cell.
///
///     s_0 = h_T                               Sutskever et al. 2014, §2; Luong et al. 2015
struct last_state {
    auto operator()(const auto& cell, const auto& source) const
    {
        static_assert(!std::is_same_v<std::remove_cvref_t<decltype(source.last)>, nothing>,
                      "heed: starts_with::last_state needs an encoder that hands over its last state, as "
                      "forward_encoder does; with another one use starts_with::tanh_layer");
        // A decoder on a tape may follow an encoder that is not.
        return nn::map_state(source.last, [&](const auto& x) { return same_family(nn::biases_of(cell), x); });
    }

    static auto parameters(auto&, auto&&) { return starts_with::last_state{}; }
};

/// Makers, for decoders that are made new.
struct new_tanh_layer {
    template <class T>
    auto make(random_source& random, std::size_t hidden) const
    {
        return tanh_layer{nn::glorot<T>(random, hidden, hidden), nn::zeros<T>(hidden)};
    }
};
/// Makes a last_state, which has no parameters.
struct new_last_state {
    template <class T>
    auto make(random_source&, std::size_t) const
    {
        return last_state{};
    }
};

}  // namespace heed::seq2seq::starts_with
