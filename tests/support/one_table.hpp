// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <heed/nn/init.hpp>

namespace support {

/// A module of one parameter.
template <class Matrix>
struct one_table {
    Matrix E;

    static auto parameters(auto& self, auto&& visit) { return make(visit("E", self.E)); }
    template <class X>
    static one_table<X> make(X x)
    {
        return {std::move(x)};
    }
};

/// Gaussian numbers [rows,columns].
inline heed::array<double, 2> gaussian_numbers(std::uint64_t seed, std::size_t rows, std::size_t columns)
{
    heed::random_source random{seed, 0};
    return heed::nn::gaussian<double>(random, rows, columns, 1.0);
}

}  // namespace support
