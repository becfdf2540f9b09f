// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>

#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>

/// Initial parameters. Each call takes one stream of the source, so that a model depends on its seed alone.
namespace heed::nn {

/// A function that draws a matrix [rows,columns], such as glorot<T> or, from <heed/nn/orthogonal.hpp>, orthogonal<T>.
template <class T>
using initializer = array<T, 2> (*)(random_source& random, std::size_t rows, std::size_t columns);

/// [rows,columns], uniform in ±√(6 / (rows + columns)) (Glorot and Bengio 2010).
template <class T>
array<T, 2> glorot(random_source& random, std::size_t rows, std::size_t columns)
{
    const std::uint64_t stream = random.next_stream();
    const double bound = std::sqrt(6.0 / static_cast<double>(rows + columns));
    array<T, 2> matrix(shape_of_rank<2>{rows, columns});
    for (std::size_t i = 0; i < matrix.size(); ++i) {
        matrix.data()[i] = static_cast<T>((2 * uniform(stream, i) - 1) * bound);
    }
    return matrix;
}

/// [rows,columns], normal with this standard deviation.
template <class T>
array<T, 2> gaussian(random_source& random, std::size_t rows, std::size_t columns, double deviation)
{
    const std::uint64_t stream = random.next_stream();
    array<T, 2> matrix(shape_of_rank<2>{rows, columns});
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = static_cast<T>(deviation * normal(stream, i));
    return matrix;
}

/// [size], uniform in ±1/√size: a vector that products with activations of order one keep at order one.
template <class T>
array<T, 1> small_vector(random_source& random, std::size_t size)
{
    const std::uint64_t stream = random.next_stream();
    const double bound = 1 / std::sqrt(static_cast<double>(size));
    array<T, 1> vector(shape_of_rank<1>{size});
    for (std::size_t i = 0; i < size; ++i) vector.data()[i] = static_cast<T>((2 * uniform(stream, i) - 1) * bound);
    return vector;
}

/// [size] zeros.
template <class T>
array<T, 1> zeros(std::size_t size)
{
    return filled<T, 1>({size}, T(0));
}

}  // namespace heed::nn
