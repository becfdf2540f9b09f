// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <functional>

#include <products/interpreter/scope.hpp>

// Normalizers from their equations, applied to the scores of all steps so far. Masks are applied last: histories count
// every score.
namespace interpreter {

namespace {

struct arguments {
    std::vector<matrix> e;      // [length][G] of steps 0 … t
    std::vector<view> visible;  // of steps 0 … t
    std::vector<matrix> past;   // weights of steps 0 … t - 1

    std::size_t step() const { return e.size() - 1; }
};

using normalizer = std::function<matrix(const scope&, const arguments&)>;
extern const std::map<std::string, normalizer> table;

matrix weigh(const scope& at, const arguments& in)
{
    matrix alpha = at.entry(table)(at, in);
    at.spoil(alpha);
    return alpha;
}

/// f(the visible scores of a column, their positions, the length of the row) gives their weights; the others are 0.
template <class F>
normalizer of_row(F f)
{
    return [f](const scope& at, const arguments& in) {
        const matrix& e = in.e.back();
        const view& now = in.visible.back();
        matrix alpha = e;
        for (vector& each : alpha) each.assign(each.size(), 0);
        std::vector<std::size_t> where;
        for (std::size_t j = 0; j < e.size(); ++j) {
            if (now.sees[j]) where.push_back(j);
        }
        for (std::size_t g = 0; !where.empty() && g < e[0].size(); ++g) {
            vector x;
            for (const std::size_t j : where) x.push_back(e[j][g] + now.bias[j]);
            const vector y = f(at, x, where, now.length);
            for (std::size_t i = 0; i < where.size(); ++i) alpha[where[i]][g] = y[i];
        }
        return alpha;
    };
}

using positions = std::vector<std::size_t>;

vector descending(vector x)
{
    std::sort(x.begin(), x.end(), [](const number& a, const number& b) { return a.value > b.value; });
    return x;
}

/// α_j = exp(e_j) / Σ_k exp(e_k)                        Bahdanau et al. 2015, eq. 6
vector exponential(const scope&, const vector& x, const positions&, std::size_t) { return softmax(x); }

/// α_j = max(e_j - τ, 0), τ such that Σ_j α_j = 1       Martins and Astudillo 2016, eq. 2 and 3
vector sparsemax(const scope&, const vector& x, const positions&, std::size_t)
{
    const vector z = descending(x);
    number sum, tau;
    for (std::size_t k = 1; k <= z.size(); ++k) {
        sum += z[k - 1];
        if (1 + static_cast<double>(k) * z[k - 1].value > sum.value) tau = (sum - 1) / static_cast<double>(k);
    }
    vector y;
    for (const number& each : x) y.push_back(each.value > tau.value ? each - tau : number());
    return y;
}

/// α_j = max(e_j / 2 - τ, 0)², τ such that Σ_j α_j = 1  Peters et al. 2019, section 3
///
/// With k positions in the support: k τ² - 2 τ Σ x + Σ x² = 1, and τ is the smaller root.
vector entmax15(const scope&, const vector& x, const positions&, std::size_t)
{
    const vector z = descending(x);
    number tau;
    for (std::size_t k = 1; k <= z.size(); ++k) {
        number mean, spread;
        for (std::size_t i = 0; i < k; ++i) mean += z[i] / 2 / static_cast<double>(k);
        for (std::size_t i = 0; i < k; ++i) spread += (z[i] / 2 - mean) * (z[i] / 2 - mean);
        if (spread.value > 1) break;
        const number root = mean - (k == 1 ? number(1) : sqrt((1 - spread) / static_cast<double>(k)));
        if (root.value > z[k - 1].value / 2) break;
        tau = root;
    }
    vector y;
    for (const number& each : x) {
        const number over = each / 2 - tau;
        y.push_back(over.value > 0 ? over * over : number());
    }
    return y;
}

/// α_j = [δ e_j - τ]₊^{1/δ}, τ such that Σ_j α_j = 1, δ = σ(a)          Correia et al. 2019, section 3.2
vector entmax(const scope& at, const vector& x, const positions&, std::size_t)
{
    const number delta = sigmoid(at["a"](0));
    const auto sum_at = [&](const number& tau, vector& y, number& slope) {
        number sum;
        slope = 0;
        for (std::size_t j = 0; j < x.size(); ++j) {
            const number over = delta * x[j] - tau;
            y[j] = over.value > 0 ? pow(over, 1 / delta) : number();
            sum += y[j];
            if (over.value > 0) slope += y[j] / over / delta;
        }
        return sum;
    };
    vector y(x.size());
    number slope;
    double top = -HUGE_VAL;
    for (const number& each : x) top = std::max(top, (delta * each).value);
    double low = top - 1, high = top;  // the sum is at least 1, and 0
    for (int i = 0; i < 100; ++i) {
        const double middle = (low + high) / 2;
        (sum_at(middle, y, slope).value > 1 ? low : high) = middle;
    }
    number tau = low;
    for (int i = 0; i < 3; ++i) {  // Newton's method: for the derivatives
        const number over = sum_at(tau, y, slope) - 1;
        tau += over / slope;
    }
    sum_at(tau, y, slope);
    return y;
}

/// softmax over the k largest scores, and those equal to the k-th       Zhao et al. 2019
vector top_k(const scope& at, const vector& x, const positions&, std::size_t)
{
    const auto k = std::min(static_cast<std::size_t>(at.setting("k")), x.size());
    const double least = descending(x)[k - 1].value;
    vector chosen;
    for (const number& each : x) {
        if (each.value >= least) chosen.push_back(each);
    }
    const vector alpha = softmax(chosen);
    vector y;
    std::size_t next = 0;
    for (const number& each : x) y.push_back(each.value >= least ? alpha[next++] : number());
    return y;
}

/// α_j = exp(e_j) / (exp(s) + Σ_k exp(e_k))             Miller 2023
vector with_sink(const scope& at, vector x, const positions&, std::size_t)
{
    x.push_back(at["sink"](0));
    vector y = softmax(x);
    y.pop_back();
    return y;
}

/// α_j = σ(e_j + bias)                                  Ramapuram et al. 2025
vector independent(const scope& at, const vector& x, const positions&, std::size_t)
{
    vector y;
    for (const number& each : x) y.push_back(sigmoid(each + at.setting("bias")));
    return y;
}

/// α_j = σ(e_j) Π_{k>j} (1 - σ(e_k))                    Tan et al. 2025
vector stick_breaking(const scope&, const vector& x, const positions&, std::size_t)
{
    vector y;
    for (std::size_t j = 0; j < x.size(); ++j) {
        number part = sigmoid(x[j]);
        for (std::size_t k = j + 1; k < x.size(); ++k) part *= sigmoid(-x[k]);
        y.push_back(part);
    }
    return y;
}

/// α_j = γ^{n-1-j} e_j                                  Sun et al. 2023, eq. 5
vector retention(const scope& at, vector x, const positions& where, std::size_t length)
{
    for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] *= std::pow(at.setting("decay"), static_cast<double>(length - 1 - where[i]));
    }
    return x;
}

/// Divided by their sum                                 Katharopoulos et al. 2020, eq. 4
vector ratio(const scope& at, const vector& x, const positions& where, std::size_t length)
{
    vector y = retention(at, x, where, length);
    number sum;
    for (const number& each : y) sum += each;
    if (sum.value != 0 && sum.value < at.run.smallest) throw divides_by_subnormal("a ratio of scores near 0");
    for (number& each : y) each = sum.value == 0 ? number() : each / sum;
    return y;
}

/// 1 at the first position with the maximum score
vector argmax(const scope&, const vector& x, const positions&, std::size_t)
{
    std::size_t best = 0;
    for (std::size_t j = 1; j < x.size(); ++j) {
        if (x[j].value > x[best].value) best = j;
    }
    vector y(x.size());
    y[best] = 1;
    return y;
}

/// The inner normalizer of the scores f(step, position, group).
template <class F>
matrix changed(const scope& at, arguments in, F&& f)
{
    for (std::size_t k = 0; k < in.e.size(); ++k) {
        for (std::size_t j = 0; j < in.e[k].size(); ++j) {
            for (std::size_t g = 0; g < in.e[k][j].size(); ++g) in.e[k][j][g] = f(k, j, g);
        }
    }
    return weigh(at.inner(), in);
}

/// inner(e / τ)                                         Hinton et al. 2015, eq. 1
matrix temperature(const scope& at, const arguments& in)
{
    return changed(at, in,
                   [&](std::size_t k, std::size_t j, std::size_t g) { return in.e[k][j][g] / at.setting("tau"); });
}

/// u_t = e_t - β log Σ_{t-n≤k<t} exp(e_k - δ (t-1-k))   Sankaran et al. 2016, eq. 6-8 and section 3; ours
matrix modulated(const scope& at, const arguments& in, double strength, double decay, std::size_t n)
{
    return changed(at, in, [&](std::size_t t, std::size_t j, std::size_t g) {
        number sum;
        double top = -HUGE_VAL;
        std::size_t first = t > n ? t - n : 0;
        while (first < t && j >= in.e[first].size()) ++first;  // the position is newer
        const auto term = [&](std::size_t k) {
            return in.e[k][j][g] - (t - 1 == k ? 0 : decay * static_cast<double>(t - 1 - k));
        };
        for (std::size_t k = first; k < t; ++k) top = std::max(top, term(k).value);
        for (std::size_t k = first; k < t; ++k) sum += exp(term(k) - top);
        return first == t ? in.e[t][j][g] : in.e[t][j][g] - strength * (log(sum) + top);
    });
}
matrix temporal(const scope& at, const arguments& in) { return modulated(at, in, 1, 0, in.e.size()); }
matrix recent_temporal(const scope& at, const arguments& in)
{
    return modulated(at, in, 1, 0, static_cast<std::size_t>(at.setting("steps")));
}
matrix decayed_temporal(const scope& at, const arguments& in)
{
    return modulated(at, in, at.setting("strength"), at.setting("decay"), in.e.size());
}

/// u_t = e_t + w Σ_{k<t} α_k                            Sankaran et al. 2016, footnote 3
matrix learned_temporal(const scope& at, const arguments& in)
{
    return changed(at, in, [&](std::size_t t, std::size_t j, std::size_t g) {
        number sum;
        for (std::size_t k = 0; k < t; ++k) sum += j < in.past[k].size() ? in.past[k][j][g] : number();
        return in.e[t][j][g] + at["w"](0) * sum;
    });
}

/// A position outside [center - D, center + D] is not visible.
void narrow(view& now, double center, double reach)
{
    for (std::size_t j = 0; j < now.sees.size(); ++j) {
        if (std::abs(static_cast<double>(j) - center) > reach) now.sees[j] = false;
    }
}

/// p_t = t, at most the last position                   Luong et al. 2015, section 3.2
matrix local_m(const scope& at, arguments in)
{
    for (std::size_t t = 0; t < in.visible.size(); ++t) {
        view& now = in.visible[t];
        const std::size_t center = now.length == 0 ? 0 : std::min(t, now.length - 1);
        narrow(now, static_cast<double>(center), at.setting("reach"));
    }
    return weigh(at.inner(), in);
}

/// p_t = S σ(v_pᵀ tanh(W_p h_t)),  α_j = inner(e)_j exp(-(j - p_t)² / 2σ²),  σ = D / 2          ibid., eq. 9 and 10
matrix local_p(const scope& at, arguments in)
{
    number p;
    for (std::size_t t = 0; t < in.visible.size(); ++t) {
        number x;
        const vector layer = times(at.in.states[t], at["W_p"]);
        for (std::size_t i = 0; i < layer.size(); ++i) x += at["v_p"](i) * tanh(layer[i]);
        p = static_cast<double>(in.visible[t].length) * sigmoid(x);
        narrow(in.visible[t], p.value, at.setting("reach"));
    }
    matrix alpha = weigh(at.inner(), in);
    const double sigma = at.setting("reach") / 2;
    for (std::size_t j = 0; j < alpha.size(); ++j) {
        const number off = static_cast<double>(j) - p;
        for (number& each : alpha[j]) each *= exp(-(off * off) / (2 * sigma * sigma));
    }
    return alpha;
}

/// p_j = σ(e_j + r),  q_j = (1 - p_{j-1}) q_{j-1} + α_{t-1,j},  α_j = p_j q_j,  α_0 = (1, 0, …)
///                                                      Raffel et al. 2017, eq. 11-14
matrix monotonic(const scope& at, const arguments& in)
{
    const std::size_t t = in.step();
    const view& now = in.visible[t];
    matrix alpha = in.e[t];
    for (std::size_t g = 0; !alpha.empty() && g < alpha[0].size(); ++g) {
        number rest;  // (1 - p_{j-1}) q_{j-1}
        for (std::size_t j = 0; j < alpha.size(); ++j) {
            const number q = rest + (t > 0 ? in.past[t - 1][j][g] : number(j == 0 ? 1 : 0));
            const number x = in.e[t][j][g] + now.bias[j] + at["r"](0);
            alpha[j][g] = now.sees[j] ? sigmoid(x) * q : number();
            rest = now.sees[j] ? sigmoid(-x) * q : q;
        }
    }
    return alpha;
}

/// 1 at the first position with e_j + r ≥ 0, at or after the last one                ibid., section 2.2
matrix monotonic_hard(const scope& at, const arguments& in)
{
    const std::size_t t = in.step();
    const view& now = in.visible[t];
    matrix alpha = in.e[t];
    for (std::size_t g = 0; !alpha.empty() && g < alpha[0].size(); ++g) {
        bool begun = false, stopped = false;
        for (std::size_t j = 0; j < alpha.size(); ++j) {
            begun = begun || (t > 0 ? in.past[t - 1][j][g].value != 0 : j == 0);
            const bool stops = now.sees[j] && (in.e[t][j][g] + now.bias[j] + at["r"](0)).value >= 0;
            alpha[j][g] = begun && !stopped && stops ? 1 : 0;
            stopped = stopped || (begun && stops);
        }
    }
    return alpha;
}

/// β_j = Σ_{k=j}^{j+w-1} α_k exp(u_j) / Σ_{l=k-w+1}^{k} exp(u_l),  u = s e     Chiu and Raffel 2018
matrix chunkwise(const scope& at, const arguments& in)
{
    arguments inner{{}, {}, {}};  // its weights are α, not β
    for (std::size_t k = 0; k < in.e.size(); ++k) {
        inner.e.push_back(in.e[k]);
        inner.visible.push_back(in.visible[k]);
        inner.past.push_back(weigh(at.inner(), inner));
    }
    const matrix& alpha = inner.past.back();
    const view& now = in.visible.back();
    const auto w = static_cast<std::size_t>(at.setting("width"));
    matrix beta = alpha;
    for (std::size_t g = 0; !alpha.empty() && g < alpha[0].size(); ++g) {
        const auto u = [&](std::size_t l) { return at["s"](0) * (in.e.back()[l][g] + now.bias[l]); };
        for (std::size_t j = 0; j < alpha.size(); ++j) {
            beta[j][g] = 0;
            for (std::size_t k = j; now.sees[j] && k < std::min(j + w, alpha.size()); ++k) {
                number sum;
                for (std::size_t l = k + 1 > w ? k + 1 - w : 0; l <= k; ++l) {
                    if (now.sees[l]) sum += exp(u(l) - u(j));
                }
                beta[j][g] += alpha[k][g] / sum;
            }
        }
    }
    return beta;
}

const std::map<std::string, normalizer> table{
    {"argmax", of_row(argmax)},
    {"chunkwise", chunkwise},
    {"decayed_temporal", decayed_temporal},
    {"entmax", of_row(entmax)},
    {"entmax15", of_row(entmax15)},
    {"learned_temporal", learned_temporal},
    {"local_m", local_m},
    {"local_p", local_p},
    {"monotonic", monotonic},
    {"monotonic_hard", monotonic_hard},
    {"ratio", of_row(ratio)},
    {"recent_temporal", recent_temporal},
    {"retention", of_row(retention)},
    {"sigmoid", of_row(independent)},
    {"softmax", of_row(exponential)},
    {"softmax_with_sink", of_row(with_sink)},
    {"sparsemax", of_row(sparsemax)},
    {"stick_breaking", of_row(stick_breaking)},
    {"temperature", temperature},
    {"temporal", temporal},
    {"top_k", of_row(top_k)},
};

}  // namespace

matrix weights(const scope& at, const std::vector<matrix>& scores)
{
    const auto now = static_cast<std::ptrdiff_t>(at.step + 1);
    return weigh(at, {scores, {at.in.visible.begin(), at.in.visible.begin() + now}, at.before.weights});
}

std::vector<std::string> normalizer_names()
{
    std::vector<std::string> all;
    for (const auto& [name, function] : table) all.push_back(name);
    return all;
}

const std::map<std::string, std::string>& not_interpreted()
{
    static const std::map<std::string, std::string> reasons{
        {"dropout", "its context depends on drawn numbers"},
        {"gumbel", "its weights depend on drawn numbers, and its gradient is that of different weights"},
        {"hard", "its weights are drawn"},
        {"noisy", "its scores contain drawn numbers"},
    };
    return reasons;
}

}  // namespace interpreter
