// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include <heed/kernels/tiles/tiles.hpp>

/// The definitions of all tiled kernels: plain loops over queries and keys, in double. Slow; for readers, and for
/// tests, which compare the kernels with them.
///
///     forward, backward                     kernels/tiles/forward.hpp, backward.hpp
///     forward_in_order, backward_in_order   kernels/tiles/temporal.hpp
///     sums_over_past                        kernels/linear_attention.hpp
namespace heed::inline HEED_TARGET::kernels::tiles::reference {

/// Unmodified scores. A score_mod has a value and a slope, of the score of query s and key j.
struct unmodified {
    double operator()(double e, std::size_t, std::size_t) const { return e; }
    double slope(double, std::size_t, std::size_t) const { return 1; }
};

/// de_j = s_j (dw_j − Σ_k s_k dw_k / Σ_k s_k)
inline void around_mean(const std::vector<double>& slopes, std::vector<double>& d)
{
    double pulled = 0, all = 0;
    for (std::size_t j = 0; j < d.size(); ++j) pulled += slopes[j] * d[j], all += slopes[j];
    for (std::size_t j = 0; j < d.size(); ++j) d[j] = all == 0 ? 0 : slopes[j] * (d[j] - pulled / all);
}

/// w_j = e^{e_j} / Σ_k e^{e_k}. A rule converts the visible scores of a query to weights, and the gradients d of
/// weights to those of scores.
struct softmax {
    static void weights(std::vector<double>& e)
    {
        double top = -std::numeric_limits<double>::infinity(), sum = 0;
        for (const double x : e) top = std::max(top, x);
        for (double& x : e) sum += x = std::exp(x - top);
        for (double& x : e) x /= sum;
    }
    static void gradients(const std::vector<double>&, const std::vector<double>& w, std::vector<double>& d)
    {
        around_mean(w, d);
    }
};

/// w_j = σ(e_j + bias)
struct sigmoid {
    double bias = 0;

    void weights(std::vector<double>& e) const
    {
        for (double& x : e) x = 1 / (1 + std::exp(-x - bias));
    }
    static void gradients(const std::vector<double>&, const std::vector<double>& w, std::vector<double>& d)
    {
        for (std::size_t j = 0; j < d.size(); ++j) d[j] *= w[j] * (1 - w[j]);
    }
};

/// w_j = max(e_j / power − τ, 0)^power with Σ_j w_j = 1: sparsemax (1) and 1.5-entmax (2). τ by bisection.
template <int power>
struct sparse_weights {
    static double weight(double e, double tau) { return std::pow(std::max(e / power - tau, 0.0), power); }
    static void weights(std::vector<double>& e)
    {
        if (e.empty()) return;
        double high = *std::max_element(e.begin(), e.end()) / power, low = high - 1;
        for (int i = 0; i < 100; ++i) {
            const double tau = (low + high) / 2;
            double sum = 0;
            for (const double x : e) sum += weight(x, tau);
            (sum > 1 ? low : high) = tau;
        }
        for (double& x : e) x = weight(x, low);
    }
    static void gradients(const std::vector<double>&, const std::vector<double>& w, std::vector<double>& d)
    {
        std::vector<double> slopes;
        for (const double x : w) slopes.push_back(power == 2 ? std::sqrt(x) : x > 0 ? 1 : 0);
        around_mean(slopes, d);
    }
};

/// w_j = σ(e_j) Π_{k>j} (1 − σ(e_k))
struct stick_breaking {
    static void weights(std::vector<double>& e)
    {
        double left = 1;
        for (std::size_t j = e.size(); j-- > 0;) {
            const double share = 1 / (1 + std::exp(-e[j]));
            e[j] = share * left;
            left *= 1 - share;
        }
    }
    /// de_j = (1 − σ(e_j)) w_j dw_j − σ(e_j) Σ_{i<j} w_i dw_i
    static void gradients(const std::vector<double>& e, const std::vector<double>& w, std::vector<double>& d)
    {
        double earlier = 0;
        for (std::size_t j = 0; j < d.size(); ++j) {
            const double share = 1 / (1 + std::exp(-e[j])), pulled = w[j] * d[j];
            d[j] = (1 - share) * pulled - share * earlier;
            earlier += pulled;
        }
    }
};

/// scale · q_s · k_j
template <class T>
double score(const head<T>& of, std::size_t s, std::size_t j)
{
    double sum = 0;
    for (std::size_t i = 0; i < of.width; ++i)
        sum += static_cast<double>(of.queries[s][i]) * static_cast<double>(of.keys[j][i]);
    return static_cast<double>(of.scale) * sum;
}

/// The keys that query s sees, by mask_mod(s, j).
template <class T>
std::vector<std::size_t> visible_keys(const head<T>& of, const auto& mask_mod, std::size_t s)
{
    std::vector<std::size_t> keys;
    for (std::size_t j = 0; j < of.positions; ++j)
        if (mask_mod(s, j)) keys.push_back(j);
    return keys;
}

/// c_s = Σ_j w_sj v_j, with the weights of the scores score_mod(scale · q_s · k_j) of the keys that query s sees.
template <class T>
void forward(const head<T>& of, const auto& score_mod, const auto& mask_mod, const auto& rule, rows<double> contexts)
{
    for (std::size_t s = 0; s < of.queries_count; ++s) {
        const std::vector<std::size_t> keys = visible_keys(of, mask_mod, s);
        std::vector<double> w;
        for (const std::size_t j : keys) w.push_back(score_mod(score(of, s, j), s, j));
        rule.weights(w);
        std::fill_n(contexts[s], of.value_width, 0.0);
        for (std::size_t n = 0; n < keys.size(); ++n)
            for (std::size_t i = 0; i < of.value_width; ++i)
                contexts[s][i] += w[n] * static_cast<double>(of.values[keys[n]][i]);
    }
}

/// dw_j = ∂c_s · v_j,  ∂v_j += w_j ∂c_s;  ∂q_s += scale Σ_j de_j k_j,  ∂k_j += scale · de_j q_s
template <class T>
void backward(const head<T>& of, const auto& score_mod, const auto& mask_mod, const auto& rule,
              rows<const T> d_contexts, const head_gradients<double>& to)
{
    for (std::size_t s = 0; s < of.queries_count; ++s) {
        const std::vector<std::size_t> keys = visible_keys(of, mask_mod, s);
        std::vector<double> e, d(keys.size(), 0);
        for (const std::size_t j : keys) e.push_back(score_mod(score(of, s, j), s, j));
        std::vector<double> w = e;
        rule.weights(w);
        for (std::size_t n = 0; n < keys.size(); ++n) {
            for (std::size_t i = 0; i < of.value_width; ++i) {
                const double d_c = static_cast<double>(d_contexts[s][i]);
                d[n] += d_c * static_cast<double>(of.values[keys[n]][i]);
                to.values[keys[n]][i] += w[n] * d_c;
            }
        }
        rule.gradients(e, w, d);
        for (std::size_t n = 0; n < keys.size(); ++n) {
            const std::size_t j = keys[n];
            const double d_product = d[n] * score_mod.slope(score(of, s, j), s, j) * static_cast<double>(of.scale);
            for (std::size_t i = 0; i < of.width; ++i) {
                to.queries[s][i] += d_product * static_cast<double>(of.keys[j][i]);
                to.keys[j][i] += d_product * static_cast<double>(of.queries[s][i]);
            }
        }
    }
}

/// The strength β with which a key's history modulates its scores, and the rate δ at which it decays.
struct past {
    double strength = 1, fading = 0;

    /// e − β L; e if the key has no history.
    double modulated(double e, double L) const { return std::isinf(L) ? e : e - strength * L; }
};

/// u_j = e_j − β L_j,  c_s = Σ_j softmax(u)_j v_j;  then L_j = log(e^{L_j − δ} + e^{e_j}), also of hidden keys.
/// `history` is L before the first query, and becomes L after the last one.
template <class T>
void forward_in_order(const head<T>& of, const past& by, const auto& mask_mod, rows<double> contexts,
                      std::vector<double>& history)
{
    for (std::size_t s = 0; s < of.queries_count; ++s) {
        const std::vector<std::size_t> keys = visible_keys(of, mask_mod, s);
        std::vector<double> w;
        for (const std::size_t j : keys) w.push_back(by.modulated(score(of, s, j), history[j]));
        softmax::weights(w);
        std::fill_n(contexts[s], of.value_width, 0.0);
        for (std::size_t n = 0; n < keys.size(); ++n)
            for (std::size_t i = 0; i < of.value_width; ++i)
                contexts[s][i] += w[n] * static_cast<double>(of.values[keys[n]][i]);
        for (std::size_t j = 0; j < of.positions; ++j)
            history[j] = std::log(std::exp(history[j] - by.fading) + std::exp(score(of, s, j)));
    }
}

/// From the last query to the first; `d_history` is the gradient of L after the last query, and becomes that of L
/// before the first query. `history` is L before the first query.
///
///     de_j = du_j + e^{e_j − L'_j} ∂L'_j,  ∂L_j = e^{L_j − δ − L'_j} ∂L'_j − β du_j        L': after the query
template <class T>
void backward_in_order(const head<T>& of, const past& by, const auto& mask_mod, rows<const T> d_contexts,
                       const std::vector<double>& history, std::vector<double>& d_history,
                       const head_gradients<double>& to)
{
    std::vector<std::vector<double>> L(1, history);  // before each query, and after the last
    for (std::size_t s = 0; s < of.queries_count; ++s) {
        L.push_back(L[s]);
        for (std::size_t j = 0; j < of.positions; ++j)
            L[s + 1][j] = std::log(std::exp(L[s][j] - by.fading) + std::exp(score(of, s, j)));
    }
    for (std::size_t s = of.queries_count; s-- > 0;) {
        const std::vector<std::size_t> keys = visible_keys(of, mask_mod, s);
        std::vector<double> w, d(keys.size(), 0), d_u(of.positions, 0);
        for (const std::size_t j : keys) w.push_back(by.modulated(score(of, s, j), L[s][j]));
        softmax::weights(w);
        for (std::size_t n = 0; n < keys.size(); ++n) {
            for (std::size_t i = 0; i < of.value_width; ++i) {
                d[n] += static_cast<double>(d_contexts[s][i]) * static_cast<double>(of.values[keys[n]][i]);
                to.values[keys[n]][i] += w[n] * static_cast<double>(d_contexts[s][i]);
            }
        }
        around_mean(w, d);
        for (std::size_t n = 0; n < keys.size(); ++n) d_u[keys[n]] = d[n];
        for (std::size_t j = 0; j < of.positions; ++j) {
            const double after = L[s + 1][j], d_e = d_u[j] + std::exp(score(of, s, j) - after) * d_history[j];
            d_history[j] =
                std::exp(L[s][j] - by.fading - after) * d_history[j] - (std::isinf(L[s][j]) ? 0 : by.strength * d_u[j]);
            for (std::size_t i = 0; i < of.width; ++i) {
                to.queries[s][i] += d_e * static_cast<double>(of.scale) * static_cast<double>(of.keys[j][i]);
                to.keys[j][i] += d_e * static_cast<double>(of.scale) * static_cast<double>(of.queries[s][i]);
            }
        }
    }
}

/// y_i = Σ_{j ≤ i + shift} left(j, i + shift) (x_i · k_j) v_j, for `outputs` rows y and `inputs` rows k and v. `width`:
/// of x and k; `depth`: of v and y.
template <class T>
void sums_over_past(std::size_t outputs, std::size_t inputs, std::ptrdiff_t shift, std::size_t width, std::size_t depth,
                    const auto& left, rows<const T> x, rows<const T> k, rows<const T> v, rows<double> y)
{
    for (std::size_t i = 0; i < outputs; ++i) {
        const auto last = static_cast<std::ptrdiff_t>(i) + shift;
        std::fill_n(y[i], depth, 0.0);
        for (std::size_t j = 0; j < inputs && static_cast<std::ptrdiff_t>(j) <= last; ++j) {
            double product = 0;
            for (std::size_t a = 0; a < width; ++a)
                product += static_cast<double>(x[i][a]) * static_cast<double>(k[j][a]);
            product *= left(j, static_cast<std::size_t>(last));
            for (std::size_t d = 0; d < depth; ++d) y[i][d] += product * static_cast<double>(v[j][d]);
        }
    }
}

}  // namespace heed::inline HEED_TARGET::kernels::tiles::reference
