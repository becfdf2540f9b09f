// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <tuple>
#include <utility>

#include <heed/core/family.hpp>
#include <heed/core/workspace.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/policy/concepts.hpp>
#include <heed/policy/weigh.hpp>

namespace heed::inline HEED_TARGET::ops {

/// The sums over the last steps, L_k = log Σ exp(e) over the last k steps, k = 1 … n, advanced by one step:
///
///     L'_1 = e,  L'_k = log(exp(L_{k-1}) + exp(e))
///     ∂L_{k-1} += exp(L_{k-1} − L'_k) ∂L'_k,  ∂e += Σ_k exp(e − L'_k) ∂L'_k
///
/// Nothing is ever subtracted from a sum: dropping L_n forgets the oldest step, so L_n is not an argument. Sums
/// [B,T,(n−1)D] hold L_1 … L_{n-1} of each position, one after another, and e is [B,T] (D = 1) or [B,T,D] -> {L'_n, of
/// the shape of e; the new sums}. They are -inf at the start. With n = 0 there is no history: L' is -inf.
struct recent_sums_op : operation<recent_sums_op> {
    static auto shape(const auto& sums, const auto& e, std::size_t n)
    {
        require_shape("recent_sums", "the sums", sums.shape, shape_of_sums(e.shape, n),
                      "one for each score and each of the last n - 1 steps; the scores are ", e.shape);
        return std::tuple{e.shape, sums.shape};
    }

    /// The shape of the sums before the first step.
    template <std::size_t R>
    static shape_of_rank<3> shape_of_sums(const shape_of_rank<R>& e, std::size_t n)
    {
        return {e[0], e[1], n == 0 ? 0 : (n - 1) * detail::width_of(e)};
    }

    static auto results(auto last, auto sums) { return std::pair{std::move(last), std::move(sums)}; }

    template <class T, std::size_t R>
    static void forward(in<T, 3> sums, in<T, R> e, std::size_t n, out<T, R> last, out<T, 3> next)
    {
        if (n == 0) {
            std::fill_n(last.data, last.size(), -std::numeric_limits<T>::infinity());
            return;
        }
        each_row(e.shape, n, [&](const row& at, scratch& memory) {
            T *const before = memory.take<T>(at.size), *const now = memory.take<T>(at.size);
            gather_before(at, sums.data, before);
            repeat(at, e.data, now);
            simd::transform(
                at.size, now, [](auto L, auto score) { return functions::logaddexp::value(L, score); },
                static_cast<const T*>(before), static_cast<const T*>(now));
            at.each_position([=](std::size_t i, std::size_t sums_at, std::size_t last_at) {
                std::copy_n(now + i, at.kept, next.data + sums_at);
                std::copy_n(now + i + at.kept, at.width, last.data + last_at);
            });
        });
    }

    template <class T, std::size_t R>
    static void backward(in<T, 3> sums, in<T, R> e, std::size_t n, const std::tuple<in<T, R>, in<T, 3>>& made,
                         const std::tuple<in<T, R>, in<T, 3>>& derivatives, adjoint<T, 3> d_sums, adjoint<T, R> d_e)
    {
        if (n == 0) return;
        each_row(e.shape, n, [&](const row& at, scratch& memory) {
            T *const before = memory.take<T>(at.size), *const score = memory.take<T>(at.size),
                     *const now = memory.take<T>(at.size), *const d_now = memory.take<T>(at.size);
            gather_before(at, sums.data, before);
            repeat(at, e.data, score);
            gather(at, std::get<1>(made).data, std::get<0>(made).data, now);
            gather(at, std::get<1>(derivatives).data, std::get<0>(derivatives).data, d_now);
            for (T* const part : {before, score}) {
                simd::transform(
                    at.size, part, [](auto x, auto y, auto d) { return functions::logaddexp::share(x, y, d); },
                    static_cast<const T*>(part), static_cast<const T*>(now), static_cast<const T*>(d_now));
            }
            at.each_position([&](std::size_t i, std::size_t sums_at, std::size_t last_at) {
                if (d_sums) kernels::add(at.kept, d_sums.data + sums_at, static_cast<const T*>(before + i + at.width));
                if (d_e) kernels::add_columns(n, at.width, d_e.data + last_at, static_cast<const T*>(score + i));
            });
        });
    }

private:
    /// The positions of a sentence: each has n sums of `width` numbers, and keeps all but the last.
    struct row {
        std::size_t first, positions, width, kept, size;

        /// f(the offset of a position in n sums of the row, in the tensor of sums, in the scores).
        template <class F>
        void each_position(F&& f) const
        {
            for (std::size_t t = 0; t < positions; ++t) f(t * (kept + width), (first + t) * kept, (first + t) * width);
        }
    };

    /// f(row, memory that is released after the row).
    template <std::size_t R, class F>
    static void each_row(const shape_of_rank<R>& e, std::size_t n, F&& f)
    {
        const std::size_t positions = e[1], width = detail::width_of(e), size = positions * n * width;
        detail::each_row(
            e[0], size,
            [&](std::size_t b) {
                scratch memory;
                f(row{b * positions, positions, width, (n - 1) * width, size}, memory);
            },
            std::size_t{1} << 13);
    }

    /// -inf, L_1, …, L_{n-1} of each position: the terms that e is added to.
    template <class T>
    static void gather_before(const row& at, const T* sums, T* to)
    {
        at.each_position([=](std::size_t i, std::size_t sums_at, std::size_t) {
            std::fill_n(to + i, at.width, -std::numeric_limits<T>::infinity());
            std::copy_n(sums + sums_at, at.kept, to + i + at.width);
        });
    }

    /// L_1, …, L_n of each position; zeros if a pointer is null.
    template <class T>
    static void gather(const row& at, const T* sums, const T* last, T* to)
    {
        std::fill_n(to, at.size, T(0));
        at.each_position([=](std::size_t i, std::size_t sums_at, std::size_t last_at) {
            if (sums != nullptr) std::copy_n(sums + sums_at, at.kept, to + i);
            if (last != nullptr) std::copy_n(last + last_at, at.width, to + i + at.kept);
        });
    }

    /// e, repeated n times for each position.
    template <class T>
    static void repeat(const row& at, const T* e, T* to)
    {
        at.each_position([=](std::size_t i, std::size_t, std::size_t last_at) {
            T* const end = to + i + at.kept + at.width;
            for (T* each = to + i; each < end;) each = std::copy_n(e + last_at, at.width, each);
        });
    }
};
inline constexpr recent_sums_op recent_sums{};

}  // namespace heed::inline HEED_TARGET::ops

namespace heed::inline HEED_TARGET::normalize {

/// Temporal modulation by the last n steps only; older steps are forgotten.
///
///     b_{t,j} = exp(e_{t,j}) / Σ_{k=t-n}^{t-1} exp(e_{k,j})
///     α_{t,j} = b_{t,j} / Σ_i b_{t,i}         Sankaran et al. 2016, §3, last paragraph (future work)
///
/// The paper does not define the first n steps. heed uses all steps so far, so that n = S or more is `temporal`. n = 0
/// is `inner`. Ours: any inner normalizer may replace softmax.
///
/// The log domain does not permit subtraction, so the state has n sums per score, over the last 1, …, n steps;
/// gradients flow through them. A step costs n logaddexp per score: unless n is small compared with the number of
/// steps, `temporal` and `decayed_temporal` cost less.
template <class Inner = softmax>
struct recent_temporal {
    std::size_t steps = 1;  // n
    HEED_NO_UNIQUE_ADDRESS Inner inner{};

    using wraps = Inner;
    static constexpr normalizer_traits traits = traits_around_normalizer<Inner>([](normalizer_traits& own) {
        own.state_decays = true;
        own.shift_invariant = false;
    });

    /// L over the last n steps; nested in it, L over 1, …, n-1 steps, [B,T,(n-1)D], and the inner normalizer's state.
    auto start(auto&& blank) const
    {
        constexpr double nothing = -std::numeric_limits<double>::infinity();
        auto history = blank(nothing);
        auto sums = constant_like(history, ops::recent_sums.shape_of_sums(shape_of(history), steps), nothing);
        return past_attention{std::move(history), past_attention{std::move(sums), start_of(inner, blank)}};
    }

    auto operator()(const tensor auto& scores, const auto& memory, const auto& at) const
    {
        return weigh(inner, ops::subtract_history(scores, memory.history), memory.inner.inner, at);
    }

    auto advance(const tensor auto& scores, const tensor auto& weights, const auto& memory, const auto& at) const
    {
        const auto& [sums, state] = memory.inner;
        auto [last, others] = ops::recent_sums(sums, scores, steps);
        if constexpr (remembers<Inner>) {
            auto next = next_of(inner, ops::subtract_history(scores, memory.history), weights, state, at);
            return past_attention{std::move(last), past_attention{std::move(others), std::move(next)}};
        } else {
            return past_attention{std::move(last), past_attention{std::move(others), state}};
        }
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return normalize::recent_temporal{self.steps, visit("inner", self.inner)};
    }
};

template <class Inner = softmax>
recent_temporal(std::size_t = 1, Inner = {}) -> recent_temporal<Inner>;

}  // namespace heed::inline HEED_TARGET::normalize
