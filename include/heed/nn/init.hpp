// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>

#include <heed/core/errors.hpp>
#include <heed/core/parameters.hpp>
#include <heed/core/random.hpp>
#include <heed/core/tensor.hpp>

/// Initial parameters. Each call takes one stream of the source, so that a model depends only on its seed. Throws
/// too_many_numbers, a heed::error, for more numbers than limited_numbers allows.
namespace heed::inline HEED_TARGET::nn {

/// Thrown if new parameters would have more numbers than limited_numbers allows, or than an array can have.
struct too_many_numbers : error {
    using error::error;
};

namespace detail {

/// The number of numbers that this thread's new parameters may still have.
inline thread_local std::size_t numbers_left = std::numeric_limits<std::size_t>::max();

/// The number of rows, if that many numbers may be allocated; an empty parameter counts as one number.
inline std::size_t allowed_rows(std::size_t rows, std::size_t columns = 1)
{
    const bool overflows = columns != 0 && rows > std::numeric_limits<std::size_t>::max() / columns;
    const std::size_t numbers = overflows ? 0 : std::max<std::size_t>(1, rows * columns);
    if (overflows || numbers > numbers_left)
        throw too_many_numbers("a new parameter [" + std::to_string(rows) + "," + std::to_string(columns) +
                               "] is too large: all new parameters together may have only " +
                               std::to_string(numbers_left) + " more numbers");
    numbers_left -= numbers;
    return rows;
}

}  // namespace detail

/// While this object exists, the new parameters of this thread may have at most this many numbers in total, with an
/// empty parameter counted as one number. Beyond that, too_many_numbers is thrown before memory is allocated. For sizes
/// that come from an untrusted file.
///
///     const nn::limited_numbers limit(numbers_of_the_file);
class limited_numbers {
public:
    /// `most`: the total number of numbers in all parameters.
    explicit limited_numbers(std::size_t most) : before_(detail::numbers_left) { detail::numbers_left = most; }
    ~limited_numbers() { detail::numbers_left = before_; }
    limited_numbers(const limited_numbers&) = delete;
    limited_numbers& operator=(const limited_numbers&) = delete;

private:
    std::size_t before_;
};

/// A copy of parameters that counts as new parameters.
template <class Module>
Module counted_copy(const Module& of)
{
    (void)detail::allowed_rows(parameter_count(of));
    return of;
}

/// A function that draws a matrix [rows,columns], such as glorot<T> or orthogonal<T> from <heed/nn/orthogonal.hpp>.
template <class T>
using initializer = array<T, 2> (*)(random_source& random, std::size_t rows, std::size_t columns);

/// [rows,columns], uniform in ±√(6 / (rows + columns)) (Glorot and Bengio 2010).
template <class T>
array<T, 2> glorot(random_source& random, std::size_t rows, std::size_t columns)
{
    const std::uint64_t stream = random.next_stream();
    const double bound = std::sqrt(6.0 / static_cast<double>(rows + columns));
    array<T, 2> matrix(shape_of_rank<2>{detail::allowed_rows(rows, columns), columns});
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
    array<T, 2> matrix(shape_of_rank<2>{detail::allowed_rows(rows, columns), columns});
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix.data()[i] = static_cast<T>(deviation * normal(stream, i));
    return matrix;
}

/// [size], uniform in ±1/√size: its product with activations of order one is of order one.
template <class T>
array<T, 1> small_vector(random_source& random, std::size_t size)
{
    const std::uint64_t stream = random.next_stream();
    const double bound = 1 / std::sqrt(static_cast<double>(size));
    array<T, 1> vector(shape_of_rank<1>{detail::allowed_rows(size)});
    for (std::size_t i = 0; i < size; ++i) vector.data()[i] = static_cast<T>((2 * uniform(stream, i) - 1) * bound);
    return vector;
}

/// [size] zeros.
template <class T>
array<T, 1> zeros(std::size_t size)
{
    return filled<T, 1>({detail::allowed_rows(size)}, T(0));
}

}  // namespace heed::inline HEED_TARGET::nn
