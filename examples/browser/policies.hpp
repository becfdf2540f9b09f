// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>
#include <heed/nn/coverage_gru.hpp>
#include <heed/nn/gated_coverage.hpp>
#include <heed/nn/gru.hpp>

/// The scores, normalizers and combiners of the playground, with preset parameters.
///
/// A word is a point (x, y) of the plane and a vector (x, 1, y, 0). The hidden units of additive scores are chosen so
/// that a score is high if query and word are close: tanh(a d + b) − tanh(a d − b) is a hill in the distance d, one for
/// each of x and y. Memories make the hill wider or narrower.
namespace browser {

using vector = heed::array<double, 1>;
using settings_of_policy = std::span<const double>;  // one value per knob

inline constexpr std::size_t width = 4, units = 4, most_words = 8;

/// A number that the user may change.
struct knob {
    std::string name;
    double initial, least, most, step;
};

struct description {
    std::string name, title, equation, page;  // page: docs/mechanisms/<page>.md
    std::vector<knob> knobs{};
};

namespace detail {

inline heed::array<double, 2> rows(std::size_t columns, std::initializer_list<double> values)
{
    auto m = heed::zeros<double>(values.size() / columns, columns);
    std::copy(values.begin(), values.end(), m.data());
    return m;
}
inline vector row(std::initializer_list<double> values)
{
    auto x = heed::filled<double, 1>({values.size()}, 0.0);
    std::copy(values.begin(), values.end(), x.data());
    return x;
}
inline heed::array<double, 2> times(heed::array<double, 2> m, double factor)
{
    for (std::size_t i = 0; i < m.size(); ++i) m.data()[i] *= factor;
    return m;
}
inline vector times(vector x, double factor)
{
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] *= factor;
    return x;
}

// Hidden units: x + b, x − b, y + b, y − b; a = 1.2, b = 1.
inline heed::array<double, 2> query_units()
{
    return rows(units, {1.2, 1.2, 0, 0, 1, -1, 1, -1, 0, 0, 1.2, 1.2, 0, 0, 0, 0});
}
inline heed::array<double, 2> word_units()
{
    return rows(units, {-1.2, -1.2, 0, 0, 0, 0, 0, 0, 0, 0, -1.2, -1.2, 0, 0, 0, 0});
}
inline vector hill(double height) { return row({height, -height, height, -height}); }
/// An addition to the hidden units that makes the hills wider.
inline heed::array<double, 2> wider(double by) { return rows(units, {by, -by, by, -by}); }

inline auto additive(double height) { return heed::score::additive{query_units(), word_units(), hill(height)}; }
inline heed::array<double, 2> small(std::size_t n, std::size_t m, std::uint64_t stream)
{
    auto x = heed::zeros<double>(n, m);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = 0.8 * heed::normal(stream, i);
    return x;
}
inline std::size_t whole(double x) { return static_cast<std::size_t>(std::lround(x)); }

}  // namespace detail

/// f(description, make) for each score; make(settings) returns it.
template <class F>
void each_score(const F& f)
{
    using namespace heed::score;
    using detail::additive, detail::wider, detail::rows, detail::row, detail::times, detail::small;
    using S = settings_of_policy;
    const knob height{"sharpness", 2, 0, 8, 0.1};
    f(description{"additive", "Additive", "e = vᵀ tanh(W s + U h)", "additive", {height}},
      [](S k) { return additive(k[0]); });
    f(description{"dot", "Dot product", "e = s · h", "multiplicative"}, [](S) { return dot{}; });
    f(description{"scaled_dot", "Scaled dot product", "e = s · h / √D", "multi-head"}, [](S) { return scaled_dot{}; });
    f(description{"general",
                  "General",
                  "e = sᵀ W h; W turns the plane",
                  "multiplicative",
                  {{"turn in degrees", 30, -180, 180, 5}}},
      [](S k) {
          const double angle = k[0] * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
          return general{rows(width, {c, 0, s, 0, 0, 1, 0, 0, -s, 0, c, 0, 0, 0, 0, 1})};
      });
    f(description{"concat", "Concat", "e = vᵀ tanh(W [s; h])", "additive", {height}}, [](S k) {
        auto W = heed::filled<double, 2>({2 * width, units}, 0.0);
        const auto W_s = detail::query_units(), U_h = detail::word_units();
        std::copy_n(W_s.data(), W_s.size(), W.data());
        std::copy_n(U_h.data(), U_h.size(), W.data() + W_s.size());
        return concat{W, detail::hill(k[0])};
    });
    f(description{"location", "Location", "e = W s; the words are not read", "location", {{"sharpness", 2, 0, 6, 0.1}}},
      [](S k) {
          auto W = heed::filled<double, 2>({width, most_words}, 0.0);
          for (std::size_t t = 0; t < most_words; ++t) {
              const double angle = 2 * std::numbers::pi * static_cast<double>(t) / 6;
              W(0, t) = k[0] * std::cos(angle);
              W(2, t) = k[0] * std::sin(angle);
          }
          return location{W};
      });
    f(description{"cosine", "Cosine", "e = β s · h / |s| |h|", "similarity", {{"β", 5, 0, 20, 0.5}}},
      [](S k) { return cosine{k[0]}; });
    f(description{"match", "Match", "e = 1 / (1 + |s − h|)", "similarity"}, [](S) { return match{}; });
    f(description{"kernel", "Kernel of features", "e = φ(s) · φ(h),  φ = elu + 1", "linear"},
      [](S) { return kernel{elu_plus_one{}}; });
    f(description{"gaussian_mixture",
                  "Gaussian windows",
                  "φ = α exp(−β (κ_t − u)²),  κ_t = κ_{t−1} + exp(κ̂)",
                  "gaussian-mixture",
                  {{"β", 0.5, 0.05, 3, 0.05}, {"positions per step", 1, 0.2, 3, 0.1}}},
      [](S k) {
          return gaussian_mixture{heed::filled<double, 2>({width, 2}, 0.0), row({0, std::log(k[0])}),
                                  rows(1, {0.3, 0, 0, 0}), row({std::log(k[1])})};
      });
    f(description{"conv_s2s", "ConvS2S", "e = (W s + b + y) · h; y is the last query", "multi-hop"}, [](S) {
        return conv_s2s{rows(width, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}), row({0, 0, 0, 0})};
    });
    f(description{"with_word",
                  "Additive with the last word",
                  "e = vᵀ tanh(W s + Y y + U h); y is the last query",
                  "with-word",
                  {height, {"pull of the last word", 0.4, -1, 1, 0.1}}},
      [](S k) {
          auto Y = times(detail::query_units(), k[1]);
          for (std::size_t a = 0; a < units; ++a) Y(1, a) = 0;
          return with_word{additive(k[0]), Y};
      });
    f(description{"with_positions",
                  "Additive with positions",
                  "e = vᵀ tanh(W s + U h + P ψ(t, j, T))",
                  "structural-biases",
                  {height, {"along the diagonal", 1, 0, 3, 0.1}}},
      [](S k) {
          return with_positions{additive(k[0]), rows(units, {k[1], k[1], 0, 0, -k[1], -k[1], 0, 0, 0, 0, 0, 0})};
      });
    f(description{"with_neighbors",
                  "Additive with the neighbors' last weights",
                  "e = vᵀ tanh(W s + U h + M ξ),  ξ = α_{t−1} around j",
                  "structural-biases",
                  {height, {"of the word before", 0.6, -1, 1, 0.1}, {"of the word itself", -0.4, -1, 1, 0.1}}},
      [](S k) {
          return with_neighbors{additive(k[0]),
                                rows(units, {k[1], -k[1], k[1], -k[1], k[2], -k[2], k[2], -k[2], 0, 0, 0, 0})};
      });
    f(description{"with_location",
                  "Location-aware",
                  "e = vᵀ tanh(W s + U h + U_f f),  f = F ∗ α_{t−1}",
                  "location-aware",
                  {height, {"on to the next word", 0.6, -1, 1, 0.1}}},
      [](S k) {
          return with_location{additive(k[0]), rows(3, {1, 0, 0}), wider(k[1])};
      });
    f(description{"with_fertility",
                  "Fertility",
                  "e = vᵀ tanh(W s + U h + v_c C),  C = Σ α / Φ",
                  "fertility",
                  {height, {"coverage", -0.6, -1, 1, 0.1}, {"N", 2, 0.5, 6, 0.5}}},
      [](S k) {
          return with_fertility{additive(k[0]), row({k[1], -k[1], k[1], -k[1]}), row({0, 0, 0, 0}), k[2]};
      });
    f(description{"with_coverage",
                  "Coverage embeddings",
                  "e = vᵀ tanh(W s + U h + V c),  c ← f(c, y, α)",
                  "coverage",
                  {height, {"coverage", -0.7, -1, 1, 0.1}}},
      [](S k) {
          return with_coverage{additive(k[0]), wider(k[1]),
                               heed::nn::coverage_gru{rows(3, {0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0}), row({-6, 0, 4}),
                                                      rows(3, {0, 0, 0})}};
      });
    f(description{"with_gated_coverage",
                  "Gated coverage",
                  "e = vᵀ tanh(W s + U h + V C),  C ← f(C, α, h, s)",
                  "gated-coverage",
                  {height, {"coverage", -0.7, -1, 1, 0.1}}},
      [](S k) {
          return with_gated_coverage{additive(k[0]), wider(k[1]),
                                     heed::nn::gated_coverage{rows(3, {0, 0, 0, -3, 0, 0, 0, 0, 0, 0, 0, 0}),
                                                              rows(3, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
                                                              row({6, 0, 4}), rows(2, {0, 0}), rows(1, {0})}};
      });
    f(description{"with_recurrence",
                  "Recurrent attention",
                  "e = vᵀ tanh(W s + W_r a + U h),  a ← f(a, [y; c]); random numbers",
                  "recurrent",
                  {height, {"W_r", 1, 0, 2, 0.1}}},
      [](S k) {
          constexpr std::size_t R = 2;
          return with_recurrence{additive(k[0]), times(small(R, units, 1), k[1]),
                                 heed::nn::gru{small(2 * width, 3 * R, 2), heed::filled<double, 1>({3 * R}, 0.0),
                                               small(R, 2 * R, 3), small(R, R, 4)}};
      });
    f(
        description{
            "alibi", "Dot product, less by the distance", "e = s · h − m |j − t|", "modified", {{"m", 1, 0, 3, 0.1}}},
        [](S k) {
            const double m = k[0];
            return modified{dot{}, [m](auto e, heed::score_index p) { return e - m * abs(p.query - p.key); }};
        });
    f(
        description{
            "relative", "Relative positions as keys", "e = s · (h + a_{j−t})", "relative", {{"a_{−1}", 2, -3, 3, 0.1}}},
        [](S k) {
            auto a = heed::filled<double, 2>({width, std::size_t{3}}, 0.0);
            a(1, 0) = k[0];
            return relative{dot{}, a};
        });
    f(description{"rotary", "Rotary positions", "e = (R_t s) · (R_j h)", "rotary"}, [](S) { return rotary{dot{}}; });
    f(
        description{
            "forgetting", "Forgetting", "e = s · h + Σ log f_l,  f_l = σ(b)", "forgetting", {{"b", 1, -3, 5, 0.1}}},
        [](S k) {
            return forgetting{dot{}, heed::filled<double, 2>({width, 1}, 0.0), row({k[0]})};
        });
    f(description{"gated_decay",
                  "Decay by gates",
                  "e = φ(s) · φ(h) Π a_l,  a_l = σ(b)",
                  "gated_decay",
                  {{"b", 1, -3, 5, 0.1}}},
      [](S k) {
          return gated_decay{kernel{elu_plus_one{}}, heed::filled<double, 2>({width, 1}, 0.0), row({k[0]})};
      });
    f(description{"contextual_positions",
                  "Contextual positions",
                  "e = s · h + s · z[p],  p = Σ σ(s · h)",
                  "contextual-positions",
                  {{"z_1", 2, -3, 3, 0.1}}},
      [](S k) {
          auto z = heed::filled<double, 2>({width, std::size_t{3}}, 0.0);
          z(1, 1) = k[0];
          return contextual_positions{dot{}, z};
      });
    f(description{"dynamic_convolution",
                  "Dynamic convolution",
                  "e = softmax(W s)_{j−t+1}",
                  "dynamic-convolution",
                  {{"w_{−1}", 2, -3, 3, 0.1}}},
      [](S k) {
          auto W = heed::filled<double, 2>({width, std::size_t{3}}, 0.0);
          W(1, 0) = k[0];
          return dynamic_convolution{W};
      });
    // x depends only on x, y only on y.
    const auto V_of = [](double v) {
        return rows(width, {v, v / 2, 0, 0, -v, -v / 2, 0, 0, 0, v / 2, v, 0, 0, -v / 2, -v, 0});
    };
    f(description{"additive_per_dimension",
                  "Additive, a weight per dimension",
                  "e = Vᵀ tanh(W s + U h)",
                  "per-dimension",
                  {height}},
      [V_of](S k) {
          return additive_per_dimension{detail::query_units(), detail::word_units(), V_of(k[0])};
      });
    f(description{"additive_grouped", "Additive, a weight per group", "e = Vᵀ tanh(W s + U h)", "grouped", {height}},
      [](S k) {
          const double v = k[0];
          return additive_grouped{detail::query_units(), detail::word_units(), rows(2, {v, 0, -v, 0, 0, v, 0, -v})};
      });
}

/// f(description, make) for each normalizer.
template <class F>
void each_normalizer(const F& f)
{
    using namespace heed::normalize;
    using detail::row, detail::rows, detail::whole;
    using S = settings_of_policy;
    const knob seed{"seed", 1, 1, 20, 1}, reach{"D", 1, 1, 5, 1}, shift{"r", 0, -4, 4, 0.1};
    f(description{"softmax", "Softmax", "α = exp(e) / Σ exp(e)", "additive"}, [](S) { return softmax{}; });
    f(description{"temperature",
                  "Softmax with a temperature",
                  "α = softmax(e / τ)",
                  "temperature",
                  {{"τ", 0.5, 0.1, 4, 0.1}}},
      [](S k) { return temperature{k[0]}; });
    f(description{"temporal", "Temporal", "α_t ∝ exp(e_t) / Σ_{k<t} exp(e_k)", "temporal"},
      [](S) { return temporal{}; });
    f(description{"recent_temporal",
                  "Recent temporal",
                  "α_t ∝ exp(e_t) / Σ_{t−n≤k<t} exp(e_k)",
                  "temporal-family",
                  {{"n", 1, 0, 5, 1}}},
      [](S k) { return recent_temporal{whole(k[0])}; });
    f(description{"decayed_temporal",
                  "Decayed temporal",
                  "α = softmax(e − β L),  L decays by δ",
                  "temporal-family",
                  {{"β", 0.7, -1, 2, 0.1}, {"δ", 0.3, 0, 3, 0.1}}},
      [](S k) {
          return decayed_temporal{k[0], k[1]};
      });
    f(description{"learned_temporal",
                  "Learned temporal",
                  "α = softmax(e + w Σ_{k<t} α_k)",
                  "temporal-family",
                  {{"w", -2, -6, 6, 0.1}}},
      [](S k) { return learned_temporal{row({k[0]})}; });
    f(description{"local_m", "Local-m", "softmax of positions t − D … t + D", "local", {reach}},
      [](S k) { return local_m{whole(k[0])}; });
    f(
        description{
            "local_m_temporal", "Local-m over temporal", "temporal within t − D … t + D", "local-temporal", {reach}},
        [](S k) {
            return local_m{whole(k[0]), temporal{}};
        });
    f(
        description{
            "local_p", "Local-p", "α exp(−(j − p)² / 2σ²),  p = T σ(v tanh(w · s))", "local", {{"D", 2, 1, 5, 1}}},
        [](S k) {
            return local_p{rows(1, {1, 0, 0, 0}), row({2}), whole(k[0])};
        });
    f(description{"sparsemax", "Sparsemax", "the nearest point of the simplex", "sparse"},
      [](S) { return sparsemax{}; });
    f(description{"entmax15", "1.5-entmax", "[e / 2 − τ]₊²", "sparse"}, [](S) { return entmax15{}; });
    f(description{"entmax", "α-entmax", "[(α − 1) e − τ]₊^{1/(α−1)},  α = 1 + σ(a)", "sparse", {{"a", 0, -4, 4, 0.1}}},
      [](S k) { return entmax{row({k[0]})}; });
    f(description{"top_k", "Top k", "softmax of the k largest scores", "sparse", {{"k", 2, 1, 6, 1}}},
      [](S k) { return top_k{whole(k[0])}; });
    f(description{"softmax_with_sink",
                  "Softmax with a sink",
                  "α = exp(e) / (exp(s) + Σ exp(e))",
                  "sink",
                  {{"s", 2, -4, 10, 0.1}}},
      [](S k) { return softmax_with_sink{row({k[0]})}; });
    f(description{"sigmoid", "Sigmoid", "α = σ(e + bias)", "sigmoid", {{"bias", -4, -10, 4, 0.1}}},
      [](S k) { return sigmoid{k[0]}; });
    f(description{"stick_breaking", "Stick breaking", "α_j = σ(e_j) Π_{k>j} (1 − σ(e_k))", "stick-breaking"},
      [](S) { return stick_breaking{}; });
    f(description{"monotonic",
                  "Monotonic",
                  "stops at j with p_j = σ(e_j + r), from the previous stop",
                  "monotonic",
                  {{"r", -4, -10, 4, 0.1}}},
      [](S k) { return monotonic{row({k[0]})}; });
    f(description{"monotonic_hard",
                  "Monotonic, hard",
                  "stops at the first j with σ(e_j + r) ≥ 1/2",
                  "monotonic",
                  {{"r", -4, -10, 4, 0.1}}},
      [](S k) { return monotonic_hard{row({k[0]})}; });
    f(description{"chunkwise",
                  "Monotonic chunkwise",
                  "softmax of w positions up to where monotonic stops",
                  "chunkwise",
                  {{"w", 2, 1, 5, 1}, {"r", -4, -10, 4, 0.1}}},
      [](S k) {
          return chunkwise{whole(k[0]), row({1}), monotonic{row({k[1]})}};
      });
    f(description{"ratio", "Ratio", "α = γ^age e / Σ γ^age e", "linear", {{"γ", 1, 0.2, 1, 0.05}}},
      [](S k) { return ratio{k[0]}; });
    f(description{"retention", "Retention", "α = γ^age e", "linear", {{"γ", 0.9, 0.2, 1, 0.05}}},
      [](S k) { return retention{k[0]}; });
    f(description{"hard", "Hard: one position, drawn", "s ~ softmax(e)", "hard", {seed}},
      [](S k) { return hard{static_cast<std::uint64_t>(whole(k[0]))}; });
    f(description{"gumbel", "Gumbel: one position, drawn", "argmax(e + g)", "hard", {seed}},
      [](S k) { return gumbel{static_cast<std::uint64_t>(whole(k[0]))}; });
    f(description{"argmax", "Argmax", "the largest score", "hard"}, [](S) { return argmax{}; });
    f(description{"dropout",
                  "Dropout on weights",
                  "each weight is dropped from the context with probability p",
                  "weight-dropout",
                  {{"p", 0.4, 0, 0.9, 0.1}, seed}},
      [](S k) {
          return dropout{k[0], static_cast<std::uint64_t>(whole(k[1])), softmax{}, {.at_inference = true}};
      });
    f(description{"noisy", "Noise on scores", "softmax(e + σ g)", "monotonic", {{"σ", 1, 0, 4, 0.1}, seed}}, [](S k) {
        return noisy{k[0], static_cast<std::uint64_t>(whole(k[1])), softmax{}, {.at_inference = true}};
    });
}

/// f(description, make) for each combiner.
template <class F>
void each_combiner(const F& f)
{
    using namespace heed::combine;
    using detail::row, detail::rows;
    using S = settings_of_policy;
    const knob open{"b", 0, -4, 4, 0.1};
    const auto each_over = [&](const auto& sum, const std::string& name, const std::string& title,
                               const std::string& equation, const std::string& page) {
        f(description{name, title, equation, page}, [sum](S) { return sum; });
        f(description{"attentional_" + name, title + ", attentional vector", "h̃ = tanh(W [c; s]),  " + equation,
                      "combiners"},
          [sum](S) {
              auto W = heed::filled<double, 2>({2 * width, width}, 0.0);
              for (std::size_t i = 0; i < width; ++i) W(i, i) = W(width + i, i) = 0.5;
              return attentional{W, sum};
          });
        f(description{"gated_" + name, title + ", gated", "c' = σ(w · s + b) c,  " + equation, "combiners", {open}},
          [sum](S k) {
              return gated{rows(1, {1, 0, 0, 0}), row({k[0]}), sum};
          });
    };
    each_over(weighted_sum{}, "weighted_sum", "Weighted sum", "c = Σ α_j h_j", "additive");
    each_over(elementwise_sum{}, "elementwise_sum", "Sum with a weight per dimension", "c = Σ α_j ⊙ h_j",
              "per-dimension");
    each_over(grouped_sum{}, "grouped_sum", "Sum with a weight per group", "c_g = Σ α_{j,g} h_{j,g}", "grouped");
}

}  // namespace browser
