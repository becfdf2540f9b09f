// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <type_traits>

#include <heed/core/dual_number.hpp>
#include <heed/ops/operation.hpp>

/// Losses of predicted numbers. For losses of words see ops/losses.hpp.
///
///     loss(x, t)               all elements have weight 1
///     loss(x, t, lengths)      x [B,T] or [B,T,N]: only the elements of real positions count
///     loss(x, t, mask)         with a boolean_mask<2>: only the elements of positions where it is true count
///     loss(x, t, weights)      a weight for each element, [...,N], or for each row of N, [...]
///
/// Elements of weight 0 are not read: they may be NaN, and get no gradient.
namespace heed::inline HEED_TARGET::ops {

namespace functions {

/// (x − t)², for any target: `require` accepts all.
struct squared_error {
    static constexpr bool mean = true;

    static void require(const auto&, const char*) {}
    static auto value(const auto& x, const auto& t) { return (x - t) * (x - t); }
    static auto slope_a(const auto& x, const auto& t) { return 2 * (x - t); }
    static auto slope_b(const auto& x, const auto& t) { return 2 * (t - x); }
};

/// −t log σ(x) − (1 − t) log(1 − σ(x)) = max(x, 0) − x t + log(1 + exp(−|x|)). `require`
/// throws heed::error unless 0 <= t <= 1.
struct binary_cross_entropy {
    static constexpr bool mean = false;

    template <class T>
    static void require(const T& t, const char* name)
    {
        if (t >= T(0) && t <= T(1)) return;
        throw error(std::string(name) + ": a target is " + std::to_string(static_cast<double>(value_of(t))) +
                    "; it is the probability of class 1 and must be between 0 and 1");
    }
    template <class T>
    static T value(const T& x, const T& t)
    {
        using std::exp, std::log1p;
        const bool positive = x >= T(0);  // so that the slopes of both terms at 0 add up to 1/2
        return (positive ? x : T(0)) - x * t + log1p(exp(positive ? -x : x));
    }
    template <class T>
    static T slope_a(const T& x, const T& t)
    {
        using std::exp;
        const T small = exp(x >= T(0) ? -x : x);  // does not overflow
        return (x >= T(0) ? 1 / (1 + small) : small / (1 + small)) - t;
    }
    template <class T>
    static T slope_b(const T& x, const T&)
    {
        return -x;
    }
};

}  // namespace functions

/// ℓ = Σ_i w_i rule(x_i, t_i), divided by Σ_i w_i if the rule is a mean. See the top of this file for w. Throws
/// heed::error for a target that the rule does not accept.
template <class Rule>
struct number_loss : operation<number_loss<Rule>> {
    const char* name;

    constexpr explicit number_loss(const char* word) : name(word) {}

    shape_of_rank<0> shape(const auto& x, const auto& t, const auto&... weights) const
    {
        (require(x, weights), ...);
        require_shape(name, "the target", t.shape, x.shape, "one number for each prediction");
        return {};
    }

    template <class T, std::size_t R>
    void forward(in<T, R> x, in<T, R> t, out<T, 0> loss) const
    {
        *loss.data = static_cast<T>(total(x, t).value());
    }
    template <class T, std::size_t R>
    void forward(in<T, R> x, in<T, R> t, const auto& weights, out<T, 0> loss) const
    {
        *loss.data = static_cast<T>(total(x, t, weights).value());
    }

    template <class T, std::size_t R>
    void backward(in<T, R> x, in<T, R> t, in<T, 0>, in<T, 0> d, adjoint<T, R> d_x, adjoint<T, R> d_t) const
    {
        go_back(x, t, *d.data, d_x, d_t);
    }
    template <class T, std::size_t R>
    void backward(in<T, R> x, in<T, R> t, const auto& weights, in<T, 0>, in<T, 0> d, adjoint<T, R> d_x,
                  adjoint<T, R> d_t, const auto&... d_weights) const
    {
        const T factor = go_back(x, t, *d.data, d_x, d_t, weights);
        const auto add_to = [&](const auto& d_w) {
            if (!d_w) return;
            const auto all = total(x, t, weights);
            const std::size_t width = width_of(x, weights);
            for (std::size_t i = 0; i < d_w.size(); ++i) {
                // Also for numbers of weight 0: their weight may have a gradient.
                in_double<T> sum = 0;
                for (std::size_t k = i * width; k < (i + 1) * width; ++k) {
                    sum += in_double<T>(Rule::value(x.data[k], t.data[k]));
                    if constexpr (Rule::mean) sum -= all.value();
                }
                d_w.data[i] += factor * static_cast<T>(sum);
            }
        };
        (add_to(d_weights), ...);
    }

private:
    template <class Weights>
    void require(const auto& x, const Weights& weights) const
    {
        constexpr std::size_t R = rank_of<decltype(x)>;
        if constexpr (tensor<Weights>) {
            constexpr std::size_t W = rank_of<Weights>;
            static_assert(
                W == R || W + 1 == R,
                "heed: the weights of a loss must have the shape of the prediction, with or without its last axis");
            shape_of_rank<W> must;
            std::copy_n(x.shape.begin(), W, must.begin());
            require_shape(name, "the weights", weights.shape, must,
                          W == R ? "one for each prediction" : "one for each row of the prediction");
        } else {
            static_assert(R == 2 || R == 3, "heed: a loss with lengths or a mask takes predictions [B,T] or [B,T,N]; "
                                            "for other shapes give weights");
            if constexpr (std::is_same_v<Weights, lengths_view>) {
                weights.require(name, x.shape[0], x.shape[1]);
            } else {
                weights.require(name, {x.shape[0], x.shape[1]});
            }
        }
    }

    /// Σ w rule and Σ w.
    template <class T>
    struct sums {
        in_double<T> losses = 0, weights = 0;

        in_double<T> value() const
        {
            if constexpr (!Rule::mean) return losses;
            return weights == in_double<T>(0) ? in_double<T>(0) : losses / weights;
        }
    };

    /// The number of predictions that share a weight.
    template <class T, std::size_t R, class... Weights>
    static std::size_t width_of(in<T, R> x, const Weights&...)
    {
        if constexpr (sizeof...(Weights) == 0) {
            return x.size() == 0 ? 1 : x.size();
        } else if constexpr ((tensor<Weights> && ...)) {
            return ((rank_of<Weights> == R) && ...) ? 1 : x.shape[R - 1];
        } else {
            return R == 3 ? x.shape[R - 1] : 1;
        }
    }

    /// The i-th weight.
    static int weight(std::size_t, std::size_t) { return 1; }
    static int weight(std::size_t i, std::size_t positions, const lengths_view& real)
    {
        return i % positions < real[i / positions] ? 1 : 0;
    }
    static int weight(std::size_t i, std::size_t, const boolean_mask_view<2>& mask) { return mask[i] != 0 ? 1 : 0; }
    static auto weight(std::size_t i, std::size_t, const tensor auto& weights) { return weights.data[i]; }

    /// f(weight, i) for each element with a nonzero weight.
    template <class T, std::size_t R>
    static void each(in<T, R> x, auto&& f, const auto&... weights)
    {
        const std::size_t width = width_of(x, weights...), size = x.size();
        const std::size_t positions = R >= 2 ? x.shape[R >= 2 ? 1 : 0] : 1;
        for (std::size_t i = 0; i * width < size; ++i) {
            const T w = static_cast<T>(weight(i, positions, weights...));
            if (w == T(0)) continue;
            for (std::size_t k = i * width; k < (i + 1) * width; ++k) f(w, k);
        }
    }

    template <class T, std::size_t R>
    sums<T> total(in<T, R> x, in<T, R> t, const auto&... weights) const
    {
        sums<T> all;
        each(
            x,
            [&](const T& w, std::size_t i) {
                Rule::require(t.data[i], name);
                all.losses += in_double<T>(w * Rule::value(x.data[i], t.data[i]));
                all.weights += in_double<T>(w);
            },
            weights...);
        return all;
    }

    /// Returns the derivative of ∂ℓ with respect to a weighted value of the rule.
    template <class T, std::size_t R>
    T go_back(in<T, R> x, in<T, R> t, const T& d, adjoint<T, R> d_x, adjoint<T, R> d_t, const auto&... weights) const
    {
        T factor = d;
        if constexpr (Rule::mean) {
            in_double<T> all = 0;
            each(
                x, [&](const T& w, std::size_t) { all += in_double<T>(w); }, weights...);
            if (all == in_double<T>(0)) return T(0);
            factor = static_cast<T>(in_double<T>(d) / all);
        }
        each(
            x,
            [&](const T& w, std::size_t i) {
                if (d_x) d_x.data[i] += factor * w * Rule::slope_a(x.data[i], t.data[i]);
                if (d_t) d_t.data[i] += factor * w * Rule::slope_b(x.data[i], t.data[i]);
            },
            weights...);
        return factor;
    }
};

/// ℓ = Σ w (x − t)² / Σ w, 0 if all weights are 0; w = 1 if no weights are given: x and t [...] -> [].
///
///     ∂x += g,  ∂t −= g,  g = 2 w (x − t) ∂ℓ / Σ w,  ∂w += ((x − t)² − ℓ) ∂ℓ / Σ w
inline constexpr number_loss<functions::squared_error> mean_squared_error{"mean_squared_error"};

/// ℓ = Σ w (−t log σ(x) − (1 − t) log(1 − σ(x))) for logits x and targets t between 0 and 1: x and t [...] -> []. A
/// sum, in nats, like ops::cross_entropy; exact for large |x|.
///
///     ∂x += w (σ(x) − t) ∂ℓ,  ∂t −= w x ∂ℓ,  ∂w += the loss of each number
inline constexpr number_loss<functions::binary_cross_entropy> binary_cross_entropy{"binary_cross_entropy"};

}  // namespace heed::inline HEED_TARGET::ops
