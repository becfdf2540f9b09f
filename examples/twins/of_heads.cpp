// SPDX-License-Identifier: BSD-3-Clause

#include <cstddef>

#include <heed/papers/linear_attention.hpp>
#include <heed/papers/transformer.hpp>

#include "papers.hpp"

namespace twins {

namespace paper = heed::papers;
using heed::causal;

namespace {

constexpr std::size_t B = 2, T = 6, D = 4, n = 2, K = 2, V = 3, O = 4, C = 3, R = 2;

/// Causal self-attention of x.
void attends(twin& t, const auto& attend)
{
    const auto x = t.input<3>("x", {B, T, D});
    t.result("context", attend(attend.on(x), x, causal{}));
}

/// The matrices of n heads, or of n pairs of heads with shared values.
struct matrices {
    variable<2> W_Q, W_K, W_V, W_O;

    explicit matrices(twin& t, std::size_t heads_per_value = 1, std::size_t width = V)
        : W_Q(t.input<2>("W_Q", {D, heads_per_value * n * K})),
          W_K(t.input<2>("W_K", {D, heads_per_value * n * K})),
          W_V(t.input<2>("W_V", {D, n * width})),
          W_O(t.input<2>("W_O", {n * width, O}))
    {
        t.setting("heads", n);
    }
};

}  // namespace

void ainslie2023(const presets& add)
{
    add("grouped", [](twin& t) {  // one group
        t.setting("heads", n);
        const auto W_Q = t.input<2>("W_Q", {D, n * K}), W_K = t.input<2>("W_K", {D, K}),
                   W_V = t.input<2>("W_V", {D, V}), W_O = t.input<2>("W_O", {n * V, O});
        attends(t, paper::ainslie2023::grouped(n, W_Q, W_K, W_V, W_O));
    });
}

void deepseek2024(const presets& add)
{
    add("latent", [](twin& t) {
        t.setting("heads", n);
        const auto W_Q = t.input<2>("W_Q", {D, n * K}), W_QR = t.input<2>("W_QR", {D, n * R}),
                   W_DKV = t.input<2>("W_DKV", {D, C}), W_KR = t.input<2>("W_KR", {D, R}),
                   W_UK = t.input<2>("W_UK", {n * K, C}), W_UV = t.input<2>("W_UV", {n * C, V}),
                   W_O = t.input<2>("W_O", {n * V, O});
        attends(t, paper::deepseek2024::latent(n, W_Q, W_QR, W_DKV, W_KR, W_UK, W_UV, W_O));
    });
}

void qiu2025(const presets& add)
{
    add("gated", [](twin& t) {
        const auto [W_Q, W_K, W_V, W_O] = matrices(t);
        const auto W = t.input<2>("W", {D, n * V});
        attends(t, paper::qiu2025::gated(n, W_Q, W_K, W_V, W_O, W));
    });
}

void shazeer2020(const presets& add)
{
    add("talking_heads", [](twin& t) {
        const auto [W_Q, W_K, W_V, W_O] = matrices(t);
        const auto P_l = t.input<2>("P_l", {n, n}), P_w = t.input<2>("P_w", {n, n});
        attends(t, paper::shazeer2020::talking_heads(n, W_Q, W_K, W_V, W_O, P_l, P_w));
    });
}

void sun2023(const presets& add)
{
    add("retention", [](twin& t) {
        t.setting("gamma", 0.875);
        const auto q = t.input<3>("q", {B, T, D}), k = t.input<3>("k", {B, T, D});
        const auto attend = paper::sun2023::retention(0.875);
        t.result("context", attend(attend.on(k), q, causal{}));
    });
    add("multi_scale", [](twin& t) {
        const auto [W_Q, W_K, W_V, W_O] = matrices(t);
        attends(t, paper::sun2023::multi_scale(n, W_Q, W_K, W_V, W_O));
    });
}

void vaswani2017(const presets& add)
{
    const lengths real{6, 4};
    add("scaled_dot", [=](twin& t) {  // keys are also the values, as in the annotations of an encoder
        t.setting("lengths", real);
        const auto q = t.input<3>("q", {B, T, D}), k = t.input<3>("k", {B, T, D}), v = t.input<3>("v", {B, T, V});
        const auto attend = paper::vaswani2017::scaled_dot();
        t.result("context", attend(attend.on(k, v, real), q));
    });
    add("multi_head", [=](twin& t) {  // values as wide as keys: nn.MultiheadAttention supports no others
        t.setting("lengths", real);
        const auto [W_Q, W_K, W_V, W_O] = matrices(t, 1, K);
        const auto q = t.input<3>("q", {B, T, D}), h = t.input<3>("h", {B, T, D});
        const auto attend = paper::vaswani2017::multi_head(n, W_Q, W_K, W_V, W_O);
        t.result("context", attend(attend.on(h, real), q));
    });
}

void ye2024(const presets& add)
{
    add("differential", [](twin& t) {
        const auto [W_Q, W_K, W_V, W_O] = matrices(t, 2);
        const auto q1 = t.input<1>("q1", {K}), k1 = t.input<1>("k1", {K}), q2 = t.input<1>("q2", {K}),
                   k2 = t.input<1>("k2", {K}), gain = t.input<1>("gain", {V});
        t.setting("lambda_init", 0.25);
        attends(t, paper::ye2024::differential(n, W_Q, W_K, W_V, W_O,
                                               heed::per_head::differential{q1, k1, q2, k2, gain, 0.25}));
    });
}

}  // namespace twins
