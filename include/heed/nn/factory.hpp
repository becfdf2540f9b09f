// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include <heed/core/parameters.hpp>
#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>
#include <heed/nn/init.hpp>
#include <heed/ops/shape.hpp>

/// Factories make the parts of a model. A factory is anything that heed can call with initializers and the part's
/// sizes, and that returns the part. A lambda is a factory:
///
///     parts{}.with_query_from([](auto& init, const seq2seq::decoder_sizes& n) {
///         return query_from::previous_state{init.glorot(n.context, n.gates)};
///     });
///
/// A finished part may be given instead of a factory: `with_query_from(query_from::current_state{})`. So may a tensor,
/// such as an embedding table that another program trained. It is copied for each use. Ready-made
/// factories are named after their part and have options as members: nn::lstm_factory{}, nn::stacked_factory{4}.
///
///     part                                       sizes
///     recurrent cell                             nn::cell_sizes
///     positions                                  nn::position_sizes
///     residual connection, feed-forward layers   nn::layer_sizes
///     encoder                                    seq2seq::encoder_sizes; more in encoder_parts
///     embedding of source or target words        seq2seq::embedding::embedding_sizes
///     attention, its score                       seq2seq::sizes, convolutional_sizes
///     query_from, initial_state, output          seq2seq::decoder_sizes; more in decoder_parts
///     tables of a Transformer                    seq2seq::table_sizes
///     block of papers::yin2016                   papers::yin2016::block_sizes
///
/// All factories draw from the same random source, one after another, so that a model depends only on its seed.
namespace heed::inline HEED_TARGET::nn {

/// Draws the initial parameters of a part. Each call takes one stream of `random`. Initializers may be passed where a
/// function takes a random_source&: `papers::bahdanau2015::make_additive<float>(init, {…})`.
template <class T>
struct initializers {
    random_source& random;
    initializer<T> recurrent_matrix = nullptr;  // draws the recurrent matrix of one gate, [H,H]; null: see `recurrent`

    operator random_source&() const { return random; }

    /// [rows,columns], see nn::glorot.
    array<T, 2> glorot(std::size_t rows, std::size_t columns) const { return nn::glorot<T>(random, rows, columns); }
    /// [rows,columns], normal with this standard deviation.
    array<T, 2> gaussian(std::size_t rows, std::size_t columns, double deviation) const
    {
        return nn::gaussian<T>(random, rows, columns, deviation);
    }
    /// [size], uniform in ±1/√size.
    array<T, 1> small_vector(std::size_t size) const { return nn::small_vector<T>(random, size); }
    /// [size] zeros.
    array<T, 1> zeros(std::size_t size) const { return nn::zeros<T>(size); }

    /// The matrix [H,nH] from a cell's state to n gates: `recurrent_matrix` draws each gate, or glorot draws it as one
    /// matrix.
    array<T, 2> recurrent(std::size_t n, std::size_t hidden) const
    {
        if (recurrent_matrix == nullptr) return glorot(hidden, n * hidden);
        auto gates = recurrent_matrix(random, hidden, hidden);
        for (std::size_t k = 1; k < n; ++k) gates = ops::concat(gates, recurrent_matrix(random, hidden, hidden));
        return gates;
    }
};

/// The sizes of a recurrent cell, for its factory.
struct cell_sizes {
    std::size_t input = 0;   // X
    std::size_t hidden = 0;  // H
};

/// The sizes of a layer of a Transformer, for the factories of its residual connections and feed-forward networks.
struct layer_sizes {
    std::size_t width = 0;   // D
    std::size_t hidden = 0;  // F
};

/// The sizes of position encodings, for their factory.
struct position_sizes {
    std::size_t longest = 0;  // number of positions
    std::size_t width = 0;    // D of a vector
};

/// A part or a tensor that replaces its factory.
template <class Part>
concept finished_part = tensor<Part> || parameterized<Part>;

/// A factory of a part with these sizes.
template <class Factory, class T, class Sizes>
concept factory_of = finished_part<Factory> || requires(const Factory& factory, initializers<T>& init, const Sizes& n)
{
    requires !std::is_void_v<decltype(factory(init, n))>;
};

namespace detail {

struct refused_part {};  // returned after a static_assert fails, to avoid further errors

}  // namespace detail

/// The part that this factory makes.
template <class Factory, class T, class Sizes>
auto make_part(const Factory& factory, initializers<T> init, const Sizes& n)
{
    static_assert(
        factory_of<Factory, T, Sizes>,
        "heed: this is not a factory of this part: heed calls a factory with nn::initializers and the sizes of the "
        "part, as in `[](auto& init, const auto& n) { return query_from::previous_state{init.glorot(n.context, "
        "n.gates)}; }`, and it returns the part; a ready-made one is an object, `nn::lstm_factory{}`; "
        "heed/nn/factory.hpp lists the sizes of each part");
    if constexpr (finished_part<Factory>) {
        return factory;
    } else if constexpr (factory_of<Factory, T, Sizes>) {
        return factory(init, n);
    } else {
        return detail::refused_part{};
    }
}

/// The type of the part that a factory makes.
template <class Factory, class T, class Sizes>
using part_of = decltype(nn::make_part(std::declval<const Factory&>(), std::declval<initializers<T>>(),
                                       std::declval<const Sizes&>()));

}  // namespace heed::inline HEED_TARGET::nn
