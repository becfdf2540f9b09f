// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <heed/ops/rows.hpp>

namespace heed::inline HEED_TARGET::ops {

/// Which two elements of a vector are rotated together: neighbors (Su et al. 2021; Meta's code of LLaMA), or the i-th
/// of each half (GPT-NeoX; LLaMA on Hugging Face, with weights permuted for this).
enum class turned_pairs { neighbors, halves };

/// How vectors are rotated by their position.
struct rotation {
    double base = 10000;
    turned_pairs pairs = turned_pairs::neighbors;
    std::size_t width = 0;  // rotates the first `width` elements of each vector; 0: all (ONNX: rotary_embedding_dim)
};

namespace detail {

/// A list or a tensor of integers.
template <class X>
concept whole_numbers = requires(const X& x)
{
    std::size(x);
    requires std::integral<std::remove_cvref_t<decltype(*std::data(x))>>;
};

/// The positions as std::size_t. Throws shape_error for a negative one.
template <whole_numbers X>
auto list_of_positions(const X& positions)
{
    using number = std::remove_cvref_t<decltype(*std::data(positions))>;
    const std::span<const number> given(std::data(positions), std::size(positions));
    if constexpr (std::is_same_v<number, std::size_t>) {
        return given;
    } else {
        std::vector<std::size_t> list;
        list.reserve(given.size());
        for (const number position : given) {
            if constexpr (std::is_signed_v<number>) {
                if (position < 0)
                    detail::refuse("rotate: position ", std::to_string(position), "; positions count from 0");
            }
            list.push_back(static_cast<std::size_t>(position));
        }
        return list;
    }
}

}  // namespace detail

/// Rotates each pair m of elements of a vector at position p by the angle p · base^(−2m/N) (rotary positions, RoPE):
///
///     y_a = cos(pθ_m) x_a − sin(pθ_m) x_b,  y_b = sin(pθ_m) x_a + cos(pθ_m) x_b       Su et al. 2021, eq. 34
///
/// x [B,T,N]; [B,H,T,N], where all heads of a sentence have the same positions; or [B,N], where T is 1 -> the same
/// shape. N is rotation::width if that is given: further elements are unchanged.
///
///     rotate(x, first, rotation{})              the positions first … first + T − 1
///     rotate(x, positions, rotation{})          any list or tensor of integers, [B,T], or [T] for all sentences
///                                               (`position_ids` in Hugging Face and ONNX)
///     rotate(x, cosines, sines, positions, …)   cos(pθ_m) and sin(pθ_m) are row p of the tables, [P,N/2] each
///     rotate(x, cosines, sines, rotation{})     tables [T,N/2] or [B,T,N/2]: a row for each position; for x [B,N] also
///                                               [B,N/2]
///
/// The rotation is optional. `base` is not read if tables are given.
///
///     ∂x: ∂y rotated back,  ∂cos(pθ_m) += ∂y_a x_a + ∂y_b x_b,  ∂sin(pθ_m) += ∂y_b x_a − ∂y_a x_b
///
/// Throws shape_error if N is odd or larger than the vectors, or if positions or tables do not fit.
struct rotate_op : operation<rotate_op> {
    static constexpr ranks takes{2, 4};

    using operation<rotate_op>::operator();
    auto operator()(const tensor auto& x, std::integral auto first, const rotation& how = {}) const
    {
        return operation::operator()(x, first, how);
    }
    template <tensor X, detail::whole_numbers Positions>
    auto operator()(const X& x, const Positions& positions, const rotation& how = {}) const
    {
        check_axes(x, positions);
        return operation::operator()(x, detail::list_of_positions(positions), how);
    }
    auto operator()(const tensor auto& x, const tensor auto& cosines, const tensor auto& sines,
                    const rotation& how = {}) const
    {
        return operation::operator()(x, cosines, sines, how);
    }
    template <tensor X, detail::whole_numbers Positions>
    auto operator()(const X& x, const tensor auto& cosines, const tensor auto& sines, const Positions& positions,
                    const rotation& how = {}) const
    {
        check_axes(x, positions);
        return operation::operator()(x, cosines, sines, detail::list_of_positions(positions), how);
    }

    static auto shape(const auto& x, std::size_t, const rotation& how)
    {
        (void)width_of(x.shape, how);
        return x.shape;
    }
    static auto shape(const auto& x, std::span<const std::size_t> positions, const rotation& how)
    {
        (void)width_of(x.shape, how);
        check_count(x.shape, positions.size());
        return x.shape;
    }
    static auto shape(const auto& x, const auto& cosines, const auto& sines, const rotation& how)
    {
        constexpr std::size_t R = rank_of<decltype(x)>, C = rank_of<decltype(cosines)>;
        auto must = cosines.shape;
        must[0] = C == 3 || R == 2 ? x.shape[0] : positions_of(x.shape);
        must[C - 2] = C == 3 ? positions_of(x.shape) : must[0];
        check_tables(x.shape, cosines.shape, sines.shape, must, how);
        return x.shape;
    }
    static auto shape(const auto& x, const auto& cosines, const auto& sines, std::span<const std::size_t> positions,
                      const rotation& how)
    {
        check_tables(x.shape, cosines.shape, sines.shape, cosines.shape, how);
        check_count(x.shape, positions.size());
        for (const std::size_t position : positions) {
            if (position >= cosines.shape[0])
                detail::refuse("rotate: position ", position, " of tables ", cosines.shape, ", which have only ",
                               cosines.shape[0], " rows; positions count from 0");
        }
        return x.shape;
    }

    template <class T, std::size_t R>
    static void forward(in<T, R> x, std::size_t first, const rotation& how, out<T, R> y)
    {
        scratch here;
        turn(x, how, angles_from<T>(here, x.shape, first, how), y);
    }
    template <class T, std::size_t R>
    static void forward(in<T, R> x, std::span<const std::size_t> positions, const rotation& how, out<T, R> y)
    {
        scratch here;
        turn(x, how, angles_at<T>(here, x.shape, positions, how), y);
    }
    template <class T, std::size_t R, std::size_t C>
        requires(C == 2 || C == 3)
    static void forward(in<T, R> x, in<T, C> cosines, in<T, C> sines, const rotation& how, out<T, R> y)
    {
        turn(x, how, {cosines.data, sines.data, detail::rows_of(cosines.shape)}, y);
    }
    template <class T, std::size_t R>
    static void forward(in<T, R> x, in<T, 2> cosines, in<T, 2> sines, std::span<const std::size_t> positions,
                        const rotation& how, out<T, R> y)
    {
        turn(x, how, {cosines.data, sines.data, positions.size(), positions.data()}, y);
    }

    template <class T, std::size_t R>
    static void backward(in<T, R> x, std::size_t first, const rotation& how, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x)
    {
        scratch here;
        turn_back(how, angles_from<T>(here, x.shape, first, how), d_y, d_x);
    }
    template <class T, std::size_t R>
    static void backward(in<T, R> x, std::span<const std::size_t> positions, const rotation& how, in<T, R>,
                         in<T, R> d_y, adjoint<T, R> d_x)
    {
        scratch here;
        turn_back(how, angles_at<T>(here, x.shape, positions, how), d_y, d_x);
    }
    template <class T, std::size_t R, std::size_t C>
    static void backward(in<T, R> x, in<T, C> cosines, in<T, C> sines, const rotation& how, in<T, R>, in<T, R> d_y,
                         adjoint<T, R> d_x, adjoint<T, C> d_cosines, adjoint<T, C> d_sines)
    {
        const angles<T> by{cosines.data, sines.data, detail::rows_of(cosines.shape)};
        if (d_x) turn_back(how, by, d_y, d_x);
        tables_back(x, how, by, d_y, d_cosines.data, d_sines.data);
    }
    template <class T, std::size_t R>
    static void backward(in<T, R> x, in<T, 2> cosines, in<T, 2> sines, std::span<const std::size_t> positions,
                         const rotation& how, in<T, R>, in<T, R> d_y, adjoint<T, R> d_x, adjoint<T, 2> d_cosines,
                         adjoint<T, 2> d_sines)
    {
        const angles<T> by{cosines.data, sines.data, positions.size(), positions.data()};
        if (d_x) turn_back(how, by, d_y, d_x);
        tables_back(x, how, by, d_y, d_cosines.data, d_sines.data);
    }

private:
    /// The cosines and sines of T positions, for all sentences, or of B·T. Position i has row rows[i] of the tables, or
    /// row i if `rows` is null.
    template <class T>
    struct angles {
        const T *cosines, *sines;
        std::size_t places;
        const std::size_t* rows = nullptr;
    };

    /// T; 1 for [B,N].
    template <std::size_t R>
    static std::size_t positions_of(const shape_of_rank<R>& x)
    {
        return R == 2 ? 1 : x[R - 2];
    }

    /// The number of rotated elements of each vector. Throws shape_error unless it is even and at most the vector's
    /// size.
    template <std::size_t R>
    static std::size_t width_of(const shape_of_rank<R>& x, const rotation& how)
    {
        const std::size_t N = x[R - 1];
        if (how.width == 0 && N % 2 != 0)
            detail::refuse("rotate: vectors of size ", N, " in ", x,
                           "; elements are rotated in pairs, so the size must be even");
        if (how.width % 2 != 0 || how.width > N)
            detail::refuse("rotate: a width of ", how.width, " for vectors of size ", N, " in ", x,
                           "; elements are rotated in pairs, so it must be even and at most ", N, ", or 0 for all");
        return how.width == 0 ? N : how.width;
    }

    template <std::size_t R>
    static void check_count(const shape_of_rank<R>& x, std::size_t positions)
    {
        const std::size_t T = positions_of(x);
        if (positions != T && positions != x[0] * T)
            detail::refuse("rotate: ", heed::detail::number_of{positions, "position"}, " for x ", x, "; give ", T,
                           ", the same for all sentences, or ", x[0] * T, ", sentence by sentence");
    }

    /// Throws shape_error for a matrix of positions that is not [B,T].
    template <class Positions>
    static void check_axes(const auto& x, const Positions& positions)
    {
        if constexpr (tensor<Positions>) {
            static_assert(rank_of<Positions> <= 2, "heed: positions to rotate by are [T] or [B,T]");
            const auto of = shape_of(x);
            if constexpr (rank_of<Positions> == 2)
                require_shape<2>("rotate", "the matrix of positions", shape_of(positions), {of[0], positions_of(of)},
                                 "one for each position of x ", of);
        }
    }

    template <std::size_t R, std::size_t C>
    static void check_tables(const shape_of_rank<R>& x, const shape_of_rank<C>& cosines, const shape_of_rank<C>& sines,
                             shape_of_rank<C> must, const rotation& how)
    {
        must[C - 1] = width_of(x, how) / 2;
        require_shape("rotate", "the table of cosines", cosines, must, "one number for each rotated pair of x ", x);
        require_shape("rotate", "the table of sines", sines, must, "the shape of the cosines");
    }

    template <class T, std::size_t R>
    static auto angles_from(scratch& here, const shape_of_rank<R>& x, std::size_t first, const rotation& how)
    {
        return angles_at<T>(here, width_of(x, how), positions_of(x), how, [=](std::size_t i) { return first + i; });
    }
    template <class T, std::size_t R>
    static auto angles_at(scratch& here, const shape_of_rank<R>& x, std::span<const std::size_t> positions,
                          const rotation& how)
    {
        return angles_at<T>(here, width_of(x, how), positions.size(), how, [=](std::size_t i) { return positions[i]; });
    }
    template <class T>
    static auto angles_at(scratch& here, std::size_t N, std::size_t places, const rotation& how, const auto& position)
    {
        const std::size_t half = N / 2;
        T *const cosines = here.take<T>(places * half), *const sines = here.take<T>(places * half);
        // Sine and cosine by the angle sum formulas, since calling both for each position would take as long as the
        // attention itself. They are computed directly at multiples of 32, so that a position has the same values in
        // every call, from whichever position it starts.
        constexpr std::size_t anew = 32;
        for (std::size_t m = 0; m < half; ++m) {
            const double theta = std::pow(how.base, -2.0 * static_cast<double>(m) / static_cast<double>(N));
            const double next_c = std::cos(theta), next_s = std::sin(theta);
            double c = 1, s = 0;
            for (std::size_t i = 0, at = 0; i < places; ++i) {
                const std::size_t p = position(i);
                if (p < at || p / anew != at / anew) {
                    at = p / anew * anew;
                    c = std::cos(static_cast<double>(at) * theta);
                    s = std::sin(static_cast<double>(at) * theta);
                }
                for (; at < p; ++at) {
                    const double turned = c * next_c - s * next_s;
                    s = s * next_c + c * next_s;
                    c = turned;
                }
                cosines[i * half + m] = static_cast<T>(c);
                sines[i * half + m] = static_cast<T>(s);
            }
        }
        return angles<T>{cosines, sines, places};
    }
    /// pair(one element, the other, their offset in the tables) for each pair, rest(the first one, count) for the
    /// unchanged elements of each vector.
    template <class T, std::size_t R>
    static void each_vector(const shape_of_rank<R>& x, const rotation& how, const angles<T>& by, const auto& pair,
                            const auto& rest, std::size_t worth = std::size_t{1} << 15)
    {
        const std::size_t N = x[R - 1], width = width_of(x, how), half = width / 2, positions = positions_of(x),
                          rows = detail::rows_of(x), sentence = x[0] == 0 ? 1 : rows / x[0];
        const bool halves = how.pairs == turned_pairs::halves;
        const auto vector = [=, &pair, &rest](std::size_t row) {
            const std::size_t t = row % positions, place = by.places == positions ? t : row / sentence * positions + t;
            const std::size_t angle = (by.rows == nullptr ? place : by.rows[place]) * half;
            for (std::size_t m = 0; m < half; ++m)
                pair(row * N, halves ? m : 2 * m, halves ? m + half : 2 * m + 1, angle + m);
            rest(row * N + width, N - width);
        };
        detail::each_row(rows, 4 * N, vector, worth);
    }

    template <class T, std::size_t R>
    static void turn(in<T, R> x, const rotation& how, const angles<T>& by, out<T, R> y)
    {
        const auto pair = [=, &by](std::size_t at, std::size_t a, std::size_t b, std::size_t i) {
            const T c = by.cosines[i], s = by.sines[i], u = x.data[at + a], v = x.data[at + b];
            y.data[at + a] = c * u - s * v;
            y.data[at + b] = s * u + c * v;
        };
        const auto rest = [=](std::size_t at, std::size_t n) { std::copy_n(x.data + at, n, y.data + at); };
        each_vector(x.shape, how, by, pair, rest);
    }

    template <class T, std::size_t R>
    static void turn_back(const rotation& how, const angles<T>& by, in<T, R> d_y, adjoint<T, R> d_x)
    {
        const auto pair = [=, &by](std::size_t at, std::size_t a, std::size_t b, std::size_t i) {
            const T c = by.cosines[i], s = -by.sines[i], u = d_y.data[at + a], v = d_y.data[at + b];
            d_x.data[at + a] += c * u - s * v;
            d_x.data[at + b] += s * u + c * v;
        };
        const auto rest = [=](std::size_t at, std::size_t n) { kernels::add(n, d_x.data + at, d_y.data + at); };
        each_vector(d_y.shape, how, by, pair, rest);
    }

    template <class T, std::size_t R>
    static void tables_back(in<T, R> x, const rotation& how, const angles<T>& by, in<T, R> d_y, T* d_cosines,
                            T* d_sines)
    {
        if (d_cosines == nullptr && d_sines == nullptr) return;
        const auto pair = [=](std::size_t at, std::size_t a, std::size_t b, std::size_t i) {
            const T u = x.data[at + a], v = x.data[at + b], d_u = d_y.data[at + a], d_v = d_y.data[at + b];
            if (d_cosines != nullptr) d_cosines[i] += d_u * u + d_v * v;
            if (d_sines != nullptr) d_sines[i] += d_v * u - d_u * v;
        };
        const std::size_t worth = 4 * x.size() + 1;  // one thread: vectors share the rows of the tables
        each_vector(
            x.shape, how, by, pair, [](std::size_t, std::size_t) {}, worth);
    }
};
inline constexpr rotate_op rotate{};

}  // namespace heed::inline HEED_TARGET::ops
