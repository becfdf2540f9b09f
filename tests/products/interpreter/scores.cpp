// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <products/interpreter/scope.hpp>

// Scores from their equations. A score projects the query and the keys, and compares them: a score that wraps another
// one changes its projections or its comparisons.
namespace interpreter {

namespace {

struct projections {
    vector query;
    matrix keys;  // of every position
};

struct score {
    projections (*project)(const scope&);
    matrix (*compare)(const scope&, const projections&);  // [length][G]
};
extern const std::map<std::string, score> table;

projections project(const scope& at)
{
    projections of = at.entry(table).project(at);
    at.spoil(of.query);
    return of;
}

matrix compare(const scope& at, const projections& of)
{
    matrix e = at.entry(table).compare(at, of);
    at.spoil(e);
    return e;
}

projections project_base(const scope& at) { return project(at.base()); }
matrix compare_base(const scope& at, const projections& of) { return compare(at.base(), of); }

/// One score for each position, f(j).
template <class F>
matrix of_each(const scope& at, F&& f)
{
    matrix e;
    for (std::size_t j = 0; j < at.positions(); ++j) e.push_back({f(j)});
    return e;
}

/// Was position j in the memory at step k?
bool existed(const scope& at, std::size_t k, std::size_t j) { return j < at.before.weights[k].size(); }

/// The weight of position j after step k, the mean of its weights; 0 outside the sentence.
number weight(const scope& at, std::size_t k, std::ptrdiff_t j)
{
    if (j < 0 || !existed(at, k, static_cast<std::size_t>(j))) return 0;
    const vector& all = at.before.weights[k][static_cast<std::size_t>(j)];
    number sum;
    for (const number& x : all) sum += x;
    return sum / static_cast<double>(all.size());
}

/// The query's own position: that of its number, or the last one.
std::size_t own_position(const scope& at) { return std::min(at.step, at.positions() - 1); }

// Similarity

projections as_given(const scope& at) { return {at.query(), at.in.annotations}; }

/// e_j = hᵀ h_j                                         Luong et al. 2015, section 3.1
matrix inner_products(const scope& at, const projections& of)
{
    return of_each(at, [&](std::size_t j) { return inner_product(of.query, of.keys[j]); });
}

/// e_j = qᵀ k_j / √d                                    Vaswani et al. 2017, eq. 1
projections scaled(const scope& at)
{
    projections of = as_given(at);
    const double given = at.setting("scale");
    const double factor = given == 0 ? 1 / std::sqrt(static_cast<double>(of.query.size())) : given;
    for (number& x : of.query) x *= factor;
    return of;
}

/// e_j = hᵀ W_a h_j                                     Luong et al. 2015, section 3.1
projections general(const scope& at) { return {times(at.query(), at["W"]), at.in.annotations}; }

/// x / |x|
vector unit(const vector& x)
{
    const number length = sqrt(inner_product(x, x));
    vector y = x;
    for (number& each : y) each = each / length;
    return y;
}

/// e_j = scale · qᵀ h_j / (|q| |h_j|)                   Graves et al. 2014, eq. 5 and 6
projections cosine(const scope& at)
{
    projections of{unit(at.query()), {}};
    for (number& x : of.query) x *= at.setting("scale");
    for (const vector& h : at.in.annotations) of.keys.push_back(unit(h));
    return of;
}

/// e_j = 1 / (1 + |q - h_j|)                            Yin et al. 2016, section 4
matrix closeness(const scope& at, const projections& of)
{
    return of_each(at, [&](std::size_t j) {
        number squares;
        for (std::size_t d = 0; d < of.query.size(); ++d) {
            const number off = of.query[d] - of.keys[j][d];
            squares += off * off;
        }
        return 1 / (1 + sqrt(squares));
    });
}

/// e_j = φ(q) · φ(k_j),  φ = elu + 1                    Katharopoulos et al. 2020, eq. 4 and 7
projections features(const scope& at)
{
    projections of = as_given(at);
    const auto phi = [](number& x) { x = x.value > 0 ? x + 1 : exp(x); };
    for (number& x : of.query) phi(x);
    for (vector& k : of.keys) {
        for (number& x : k) phi(x);
    }
    return of;
}

/// d = W h + b + g,  e_j = dᵀ z_j                       Gehring et al. 2017, eq. 1 and 2
projections convolutional(const scope& at)
{
    return {plus(plus(times(at.query(), at["W"]), at["b"]), at.in.words[at.step]), at.in.annotations};
}

// Hidden layers

/// W s, U h_j
projections hidden(const scope& at) { return {times(at.query(), at["W"]), times(at.in.annotations, at["U"])}; }

/// W [s; h_j] = W_s s + W_h h_j
projections stacked(const scope& at)
{
    const tensor& W = at["W"];
    matrix keys;
    for (const vector& h : at.in.annotations) keys.push_back(times(joined(vector(at.query().size()), h), W));
    return {times(joined(at.query(), vector(W.rows() - at.query().size())), W), keys};
}

/// e_j = vᵀ tanh(W s + U h_j)                           Bahdanau et al. 2015, A.1.2; Luong et al. 2015, section 3.1
matrix additive(const scope& at, const projections& of)
{
    return of_each(at, [&](std::size_t j) {
        number sum;
        for (std::size_t a = 0; a < of.query.size(); ++a) sum += at["v"](a) * tanh(of.query[a] + of.keys[j][a]);
        return sum;
    });
}

/// e_j^d = V_dᵀ tanh(W s + U h_j)                       Choi et al. 2018, eq. 7
matrix additive_of_several(const scope& at, const projections& of)
{
    matrix e;
    for (const vector& key : of.keys) {
        vector layer;
        for (std::size_t a = 0; a < key.size(); ++a) layer.push_back(tanh(of.query[a] + key[a]));
        e.push_back(times(layer, at["V"]));
    }
    return e;
}

/// The examples' own score: e_j = -|W s - U h_j|²
matrix nearness(const scope& at, const projections& of)
{
    return of_each(at, [&](std::size_t j) {
        number sum;
        for (std::size_t a = 0; a < of.query.size(); ++a) {
            const number off = of.query[a] - of.keys[j][a];
            sum += off * off;
        }
        return -sum;
    });
}

// Positions

/// e = W_a h                                            Luong et al. 2015, eq. 8
projections location(const scope& at) { return {times(at.query(), at["W"]), {}}; }
matrix columns_of_positions(const scope& at, const projections& of)
{
    return of_each(at, [&](std::size_t j) { return of.query[j]; });
}

/// R_p rotates the pair m of numbers by p · 10000^(-2m/d)        Su et al. 2021, eq. 15 and 34
vector rotated(const vector& x, std::size_t position)
{
    vector y = x;
    for (std::size_t m = 0; 2 * m < x.size(); ++m) {
        const double exponent = -2 * static_cast<double>(m) / static_cast<double>(x.size());
        const double angle = static_cast<double>(position) * std::pow(10000.0, exponent);
        y[2 * m] = x[2 * m] * std::cos(angle) - x[2 * m + 1] * std::sin(angle);
        y[2 * m + 1] = x[2 * m] * std::sin(angle) + x[2 * m + 1] * std::cos(angle);
    }
    return y;
}
projections rotary(const scope& at)
{
    projections of = project_base(at);
    of.query = rotated(of.query, at.step);
    for (std::size_t j = 0; j < of.keys.size(); ++j) of.keys[j] = rotated(of.keys[j], j);
    return of;
}

/// e_j = q · (k_j + a_r),  r = clip(j - t, -R, R)       Shaw et al. 2018, eq. 4 and 5
matrix relative(const scope& at, const projections& of)
{
    matrix e = compare_base(at, of);
    const tensor& a = at["distances"];
    const auto R = static_cast<std::ptrdiff_t>(a.columns() / 2);
    for (std::size_t j = 0; j < e.size(); ++j) {
        const auto distance = static_cast<std::ptrdiff_t>(j) - static_cast<std::ptrdiff_t>(at.step);
        const auto r = static_cast<std::size_t>(std::clamp(distance, -R, R) + R);
        for (std::size_t i = 0; i < of.query.size(); ++i) e[j][0] += of.query[i] * a(i, r);
    }
    return e;
}

/// e_j + b_{j - t + 3}, or e_j + b_{h, j - t + 3} for head h; an index outside the table clamped
matrix modified(const scope& at, const projections& of)
{
    matrix e = compare_base(at, of);
    const tensor& bias = at["table"];
    const std::size_t width = bias.shape.back(), row = bias.shape.size() == 1 ? 0 : at.run.head * width;
    for (std::size_t j = 0; j < e.size(); ++j) {
        const auto i = static_cast<std::ptrdiff_t>(j) - static_cast<std::ptrdiff_t>(at.step) + 3;
        const auto last = static_cast<std::ptrdiff_t>(width) - 1;
        e[j][0] += bias(row + static_cast<std::size_t>(std::clamp(i, std::ptrdiff_t{0}, last)));
    }
    return e;
}

/// p_j = min(p_max, Σ_{l=j..i} σ(q · k_l)),  e_j = q · (k_j + z[p_j])   Golovneva et al. 2024, section 4
matrix contextual_positions(const scope& at, const projections& of)
{
    matrix e = compare_base(at, of);
    if (e.empty()) return e;
    const tensor& z = at["positions"];
    const std::size_t last = z.columns() - 1;
    const auto along = [&](std::size_t p) {
        number sum;
        for (std::size_t i = 0; i < of.query.size(); ++i) sum += of.query[i] * z(i, p);
        return sum;
    };
    matrix changed = e;
    for (std::size_t j = 0; j < e.size(); ++j) {
        number p;
        for (std::size_t l = j; l <= own_position(at); ++l) p += sigmoid(e[l][0]);
        const auto below = static_cast<std::size_t>(p.value);
        if (below >= last) {
            changed[j][0] += along(last);
        } else {
            const number part = p - static_cast<double>(below);
            changed[j][0] += (1 - part) * along(below) + part * along(below + 1);
        }
    }
    return changed;
}

/// Kernels of the query alone: e_j = softmax(W x_i)_{j - i + ⌊K/2⌋}      Wu et al. 2019, section 4
projections kernel_of_query(const scope& at) { return {softmax(times(at.query(), at["W"])), {}}; }
matrix at_distances(const scope& at, const projections& of)
{
    return of_each(at, [&](std::size_t j) {
        const auto k = static_cast<std::ptrdiff_t>(j) - static_cast<std::ptrdiff_t>(own_position(at)) +
                       static_cast<std::ptrdiff_t>(of.query.size() / 2);
        const bool inside = k >= 0 && k < static_cast<std::ptrdiff_t>(of.query.size());
        return inside ? of.query[static_cast<std::size_t>(k)] : number();
    });
}

// Gates

/// Σ_{l=j+1..i} log σ(w · x_l + b), and minus Σ_{l=i+1..j} for a later key
number sum_of_gates(const scope& at, std::size_t j)
{
    const std::size_t i = own_position(at);
    number sum;
    for (std::size_t l = std::min(i, j) + 1; l <= std::max(i, j); ++l) {
        number x = at["b"](0);
        for (std::size_t d = 0; d < at.in.annotations[l].size(); ++d) x += at.in.annotations[l][d] * at["w"](d, 0);
        sum += log(sigmoid(x));
    }
    return j <= i ? sum : -sum;
}

/// e_j + Σ_{l=j+1..i} log f_l                           Lin et al. 2025, section 3
matrix forgetting(const scope& at, const projections& of)
{
    matrix e = compare_base(at, of);
    for (std::size_t j = 0; j < e.size(); ++j) e[j][0] += sum_of_gates(at, j);
    return e;
}

/// e_j Π_{l=j+1..i} a_l; a later key does not decay     Yang et al. 2024, section 4.1; Dao and Gu 2024, section 5.1
matrix gated_decay(const scope& at, const projections& of)
{
    matrix e = compare_base(at, of);
    for (std::size_t j = 0; j < e.size() && j < own_position(at); ++j) e[j][0] *= exp(sum_of_gates(at, j));
    return e;
}

// Past weights and words

/// φ_j = Σ_k α_k exp(-β_k (κ_k - u)²),  κ_t = κ_{t-1} + exp(κ̂_t),  u = j + 1       Graves 2013, section 5.1
projections windows(const scope& at)
{
    vector all = plus(times(at.query(), at["W"]), at["b"]);
    vector centers(all.size() / 2);
    for (std::size_t t = 0; t <= at.step; ++t) {
        const vector moves = plus(times(at.in.states[t], at["W_kappa"]), at["b_kappa"]);
        for (std::size_t k = 0; k < centers.size(); ++k) centers[k] += exp(moves[k]);
    }
    return {joined(all, centers), {}};
}
matrix mixture(const scope& at, const projections& of)
{
    const std::size_t K = of.query.size() / 3;
    return of_each(at, [&](std::size_t j) {
        number sum;
        for (std::size_t k = 0; k < K; ++k) {
            const number off = of.query[2 * K + k] - static_cast<double>(j + 1);
            sum += exp(of.query[k] - exp(of.query[K + k]) * off * off);
        }
        return sum;
    });
}

/// W s + Y y                                            Choi et al. 2018, eq. 6 and 7
projections with_word(const scope& at)
{
    projections of = project_base(at);
    of.query = plus(of.query, times(at.in.words[at.step], at["Y"]));
    return of;
}

/// The base's keys plus f(j) M.
template <class F>
projections with_features(const scope& at, const tensor& M, F&& f)
{
    projections of = project_base(at);
    for (std::size_t j = 0; j < of.keys.size(); ++j) of.keys[j] = plus(of.keys[j], times(f(j), M));
    return of;
}

/// ψ_{t,j} = [log(1+t), log(1+j), log(1+I)], counted from 1             Cohn et al. 2016
projections with_positions(const scope& at)
{
    return with_features(at, at["P"], [&](std::size_t j) -> vector {
        return {std::log(2.0 + static_cast<double>(at.step)), std::log(2.0 + static_cast<double>(j)),
                std::log(1.0 + static_cast<double>(at.positions()))};
    });
}

/// f_t = F ∗ α_{t-1}                                    Chorowski et al. 2015, eq. 8 and 9
projections with_location(const scope& at)
{
    const tensor& F = at["F"];
    return with_features(at, at["U_f"], [&](std::size_t j) {
        vector f(F.rows());
        for (std::size_t n = 0; at.step > 0 && n < F.rows(); ++n) {
            for (std::size_t i = 0; i < F.columns(); ++i) {
                const auto from = static_cast<std::ptrdiff_t>(j + i) - static_cast<std::ptrdiff_t>(F.columns() / 2);
                f[n] += F(n, i) * weight(at, at.step - 1, from);
            }
        }
        return f;
    });
}

/// ξ_{t,j} = [α_{t-1,j-k} … α_{t-1,j+k}]                Cohn et al. 2016
projections with_neighbors(const scope& at)
{
    const tensor& M = at["M"];
    return with_features(at, M, [&](std::size_t j) {
        vector near(M.rows());
        for (std::size_t i = 0; at.step > 0 && i < M.rows(); ++i) {
            const auto from = static_cast<std::ptrdiff_t>(j + i) - static_cast<std::ptrdiff_t>(M.rows() / 2);
            near[i] = weight(at, at.step - 1, from);
        }
        return near;
    });
}

/// C_{t-1,j} = Σ_{k<t} α_{k,j} / Φ_j,  Φ_j = N σ(U_f h_j)               Tu et al. 2016, eq. 7-9
projections with_fertility(const scope& at)
{
    projections of = project_base(at);
    for (std::size_t j = 0; j < of.keys.size(); ++j) {
        number x, sum;
        for (std::size_t d = 0; d < at.in.annotations[j].size(); ++d) x += at.in.annotations[j][d] * at["U_f"](d);
        const number fertility = at.setting("N") * sigmoid(x);
        for (std::size_t k = 0; k < at.step; ++k) sum += weight(at, k, static_cast<std::ptrdiff_t>(j)) / fertility;
        for (std::size_t a = 0; a < of.keys[j].size(); ++a) of.keys[j][a] += sum * at["v_c"](a);
    }
    return of;
}

/// W y + α_j a, the inputs of three gates.
vector inputs(const vector& x, const tensor& W, const number& alpha, const tensor& a)
{
    vector y = times(x, W);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += alpha * a(i);
    return y;
}

/// z   = σ(W_z y + α_j a_z + U_z c_j),  r = σ(W_r y + α_j a_r + U_r c_j)
/// c̃_j = tanh(W_c y + α_j a_c + r ⊙ U_c c_j),  c_j' = z ⊙ c_j + (1 - z) ⊙ c̃_j       Mi et al. 2016
vector next_coverage(const scope& cell, const vector& word, const number& alpha, const vector& c)
{
    const std::size_t N = c.size();
    const vector x = inputs(word, cell["W"], alpha, cell["a"]), u = times(c, cell["U"]);
    vector next(N);
    for (std::size_t n = 0; n < N; ++n) {
        const number z = sigmoid(x[n] + u[n]), r = sigmoid(x[N + n] + u[N + n]);
        next[n] = z * c[n] + (1 - z) * tanh(x[2 * N + n] + r * u[2 * N + n]);
    }
    return next;
}
projections with_coverage(const scope& at)
{
    scope cell = at;
    cell.prefix += "cell.";
    return with_features(at, at["C"], [&](std::size_t j) {
        vector c(at["C"].rows());
        for (std::size_t k = 0; k < at.step; ++k) {  // the word of step k arrives with the next query
            if (existed(at, k, j))
                c = next_coverage(cell, at.in.words[k + 1], weight(at, k, static_cast<std::ptrdiff_t>(j)), c);
        }
        return c;
    });
}

/// z  = σ(x_z + U_z h),  r = σ(x_r + U_r h)
/// h̃  = tanh(x_h + U_h (r ⊙ h)),  h' = (1 - z) ⊙ h + z ⊙ h̃             Bahdanau et al. 2015, A.1.1
vector next_of_gru(const vector& x, const vector& h, const tensor& U, const tensor& U_h)
{
    const std::size_t N = h.size();
    const vector gates = times(h, U);
    vector reset(N), next(N);
    for (std::size_t n = 0; n < N; ++n) reset[n] = sigmoid(x[N + n] + gates[N + n]) * h[n];
    const vector fresh = times(reset, U_h);
    for (std::size_t n = 0; n < N; ++n) {
        const number z = sigmoid(x[n] + gates[n]);
        next[n] = (1 - z) * h[n] + z * tanh(x[2 * N + n] + fresh[n]);
    }
    return next;
}

/// C_{t,j} = f(C_{t-1,j}, α_{t,j}, h_j, s_t)            Tu et al. 2016, section 3.1.2
projections with_gated_coverage(const scope& at)
{
    scope cell = at;
    cell.prefix += "cell.";
    return with_features(at, at["V"], [&](std::size_t j) {
        vector C(at["V"].rows());
        for (std::size_t k = 0; k < at.step; ++k) {
            if (!existed(at, k, j)) continue;
            const number alpha = weight(at, k, static_cast<std::ptrdiff_t>(j));
            const vector x =
                plus(inputs(at.in.annotations[j], cell["W"], alpha, cell["a"]), times(at.in.states[k], cell["S"]));
            C = next_of_gru(x, C, cell["U"], cell["U_c"]);
        }
        return C;
    });
}

/// a_t = f(a_{t-1}, [y_{t-1}; c_t])                     after Feng et al. 2016
projections with_recurrence(const scope& at)
{
    scope cell = at;
    cell.prefix += "cell.";
    vector a(at["W_r"].rows());
    for (std::size_t k = 0; k < at.step; ++k) {
        const vector x = plus(times(joined(at.in.words[k], at.before.contexts[k]), cell["W"]), cell["b"]);
        a = next_of_gru(x, a, cell["U"], cell["U_h"]);
    }
    projections of = project_base(at);
    of.query = plus(of.query, times(a, at["W_r"]));
    return of;
}

const std::map<std::string, score> table{
    {"additive", {hidden, additive}},
    {"additive_grouped", {hidden, additive_of_several}},
    {"additive_per_dimension", {hidden, additive_of_several}},
    {"concat", {stacked, additive}},
    {"contextual_positions", {project_base, contextual_positions}},
    {"conv_s2s", {convolutional, inner_products}},
    {"cosine", {cosine, inner_products}},
    {"dot", {as_given, inner_products}},
    {"dynamic_convolution", {kernel_of_query, at_distances}},
    {"forgetting", {project_base, forgetting}},
    {"gated_decay", {project_base, gated_decay}},
    {"gaussian_mixture", {windows, mixture}},
    {"general", {general, inner_products}},
    {"kernel", {features, inner_products}},
    {"location", {location, columns_of_positions}},
    {"match", {as_given, closeness}},
    {"modified", {project_base, modified}},
    {"nearness", {hidden, nearness}},
    {"relative", {project_base, relative}},
    {"rotary", {rotary, compare_base}},
    {"scaled_dot", {scaled, inner_products}},
    {"with_coverage", {with_coverage, compare_base}},
    {"with_fertility", {with_fertility, compare_base}},
    {"with_gated_coverage", {with_gated_coverage, compare_base}},
    {"with_location", {with_location, compare_base}},
    {"with_neighbors", {with_neighbors, compare_base}},
    {"with_positions", {with_positions, compare_base}},
    {"with_recurrence", {with_recurrence, compare_base}},
    {"with_word", {with_word, compare_base}},
};

}  // namespace

matrix scores(const scope& at) { return compare(at, project(at)); }

std::size_t groups(const scope& score)
{
    const std::string name = score.head();
    if (name.rfind("with_", 0) == 0) return groups(score.base());
    return name == "additive_grouped" || name == "additive_per_dimension" ? score["V"].columns() : 1;
}

std::vector<std::string> score_names()
{
    std::vector<std::string> all;
    for (const auto& [name, functions] : table) all.push_back(name);
    return all;
}

}  // namespace interpreter
