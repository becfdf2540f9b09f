// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <heed/ops/operation.hpp>

/// Cutting the last axis into equal parts, one a head, and joining parts again.
namespace heed::ops {

/// The parts of x one beside the other: [...,P·n] -> P times [...,n].
struct split_op : operation<split_op> {
    template <std::size_t R>
    static shape_of_rank<R> result_shape(const shape_of_rank<R>& x, std::size_t parts)
    {
        if (parts == 0 || x[R - 1] % parts != 0) {
            throw shape_error("split: the last axis of " + shape_text(x) + " cannot be cut into " +
                              std::to_string(parts) + " equal parts; its size must be a multiple of their number");
        }
        shape_of_rank<R> y = x;
        y[R - 1] /= parts;
        return y;
    }

    /// copy(offset in x, offset in the parts lying one behind the other, elements) for each stretch.
    template <class Copy>
    static void each_stretch(std::size_t rows, std::size_t parts, std::size_t n, Copy&& copy)
    {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t p = 0; p < parts; ++p) copy((row * parts + p) * n, (p * rows + row) * n, n);
        }
    }

    template <plain_tensor X>
    auto plain(const X& x, std::size_t parts) const
    {
        using T = element_of<X>;
        constexpr std::size_t R = rank_of<X>;
        const auto shape = result_shape(shape_of(x), parts);
        std::vector<array<T, R>> y(parts, array<T, R>(shape));
        const std::size_t n = shape[R - 1], size = y[0].size(), rows = n == 0 ? 0 : size / n;
        each_stretch(rows, parts, n, [&](std::size_t from, std::size_t to, std::size_t count) {
            std::copy_n(view_of(x).data + from, count, y[to / size].data() + to % size);
        });
        return y;
    }
};
inline constexpr split_op split{};

/// [a; b; …] along the last axis: [...,n_1], [...,n_2], … -> [...,n_1+n_2+…].
struct join_op {
    template <tensor X>
    static auto result_shape(const std::vector<X>& parts)
    {
        if (parts.empty()) throw shape_error("join: nothing to join; give at least one tensor");
        constexpr std::size_t R = rank_of<X>;
        auto shape = shape_of(parts.front());
        shape[R - 1] = 0;
        for (const X& part : parts) {
            auto must = shape_of(parts.front());
            must[R - 1] = shape_of(part)[R - 1];
            require_shape("join", "a part", shape_of(part), must, "all axes but the last as the first part");
            shape[R - 1] += must[R - 1];
        }
        return shape;
    }

    /// y[rows,N] <- the parts, each [rows,n].
    template <class T, class Parts>
    static void compute(const Parts& parts, std::size_t N, std::size_t size, T* y)
    {
        for (std::size_t row = 0; row * N < size; ++row) {
            for (const auto& part : parts) {
                const auto from = view_of(part);
                const std::size_t n = from.shape.back();
                y = std::copy_n(from.data + row * n, n, y);
            }
        }
    }

    template <tensor X>
    auto operator()(const std::vector<X>& parts) const
    {
        if constexpr (plain_tensor<X>) {
            auto y = storage_for<element_of<X>, rank_of<X>>(result_shape(parts));
            compute(parts, y.shape().back(), y.size(), y.data());
            return y;
        } else {
            return family_of<X>::call(*this, parts);
        }
    }
};
inline constexpr join_op join{};

}  // namespace heed::ops
