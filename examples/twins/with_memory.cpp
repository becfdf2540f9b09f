// SPDX-License-Identifier: BSD-3-Clause

#include <cstddef>

#include <heed/papers/monotonic.hpp>
#include <heed/papers/translation.hpp>

#include "papers.hpp"

namespace twins {

namespace paper = heed::papers;

namespace {

constexpr std::size_t B = 2, T = 6, S = 4, D = 4, Q = 5, A = 3, E = 3, N = 3, K = 2;

/// Four steps over two sentences of 6 and 4 words.
struct asked {
    twin& t;
    lengths real{6, 4};
    variable<3> h = t.input<3>("h", {B, T, D}), s = t.input<3>("s", {S, B, Q});

    void with(const auto& attend)
    {
        t.setting("lengths", real);
        ask_in_turn(t, attend, attend.on(h, real), S, [&](std::size_t i) { return t.part(s, i); });
    }
};

/// The parameters of an additive score.
struct additive {
    variable<2> W, U;
    variable<1> v;

    explicit additive(twin& t) : W(t.input<2>("W", {Q, A})), U(t.input<2>("U", {D, A})), v(t.input<1>("v", {A})) {}
};

}  // namespace

void chiu2018(const presets& add)
{
    const auto chunkwise = [](twin& t, const auto& preset) {
        const auto [W, U, v] = additive(t);
        const auto r = t.input<1>("r", {1}), s = t.input<1>("sharpness", {1});
        t.setting("width", 3);
        asked{t}.with(preset(W, U, v, r, s, std::size_t{3}));
    };
    add("chunkwise",
        [=](twin& t) { chunkwise(t, [](const auto&... with) { return paper::chiu2018::chunkwise(with...); }); });
    add("chunkwise_hard",
        [=](twin& t) { chunkwise(t, [](const auto&... with) { return paper::chiu2018::chunkwise_hard(with...); }); });
}

void graves2013(const presets& add)
{
    add("window", [](twin& t) {
        const auto W = t.input<2>("W", {Q, 2 * K}), W_kappa = t.input<2>("W_kappa", {Q, K});
        const auto b = t.input<1>("b", {2 * K}), b_kappa = t.input<1>("b_kappa", {K});
        asked{t}.with(paper::graves2013::window(W, b, W_kappa, b_kappa));
    });
}

void mi2016(const presets& add)
{
    add("coverage", [](twin& t) {
        const auto [W, U, v] = additive(t);
        const auto C = t.input<2>("C", {N, A}), W_y = t.input<2>("W_y", {E, 3 * N}),
                   U_c = t.input<2>("U_c", {N, 3 * N});
        const auto a = t.input<1>("a", {3 * N});
        asked with{t};
        const auto y = t.input<3>("y", {S, B, E});
        t.setting("lengths", with.real);
        const auto attend = paper::mi2016::coverage(W, U, v, C, heed::nn::coverage_gru{W_y, a, U_c});
        ask_in_turn(t, attend, attend.on(with.h, with.real), S, [&](std::size_t i) {
            return heed::state_and_word{t.part(with.s, i), t.part(y, i)};
        });
    });
}

void raffel2017(const presets& add)
{
    add("monotonic", [](twin& t) {
        const auto [W, U, v] = additive(t);
        const auto r = t.input<1>("r", {1});
        asked{t}.with(paper::raffel2017::monotonic(W, U, v, r));
    });
    add("monotonic_hard", [](twin& t) {
        const auto [W, U, v] = additive(t);
        const auto r = t.input<1>("r", {1});
        asked{t}.with(paper::raffel2017::monotonic_hard(W, U, v, r));
    });
}

void sankaran2016(const presets& add)
{
    add("temporal", [](twin& t) {
        const auto [W, U, v] = additive(t);
        asked{t}.with(paper::sankaran2016::temporal(W, U, v));
    });
    add("recent_temporal", [](twin& t) {
        const auto [W, U, v] = additive(t);
        t.setting("steps", 2);
        asked{t}.with(paper::sankaran2016::recent_temporal(W, U, v, 2));
    });
    add("learned_temporal", [](twin& t) {
        const auto [W, U, v] = additive(t);
        const auto w = t.input<1>("w", {1});
        asked{t}.with(paper::sankaran2016::learned_temporal(W, U, v, w));
    });
}

}  // namespace twins
