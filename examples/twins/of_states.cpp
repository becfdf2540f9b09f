// SPDX-License-Identifier: BSD-3-Clause

#include <cstddef>
#include <vector>

#include <heed/papers/captioning.hpp>
#include <heed/papers/translation.hpp>

#include "papers.hpp"

namespace twins {

namespace paper = heed::papers;
using heed::state_and_word;

namespace {

constexpr std::size_t B = 2, T = 6, S = 3, D = 4, Q = 5, A = 3, E = 3, P = 3, O = 4;

/// The annotations of two sentences of 6 and 4 words, and the queries of three steps.
struct asked {
    twin& t;
    lengths real{6, 4};
    variable<3> h, s, y;

    explicit asked(twin& to, std::size_t query = Q, std::size_t word = 0) : t(to)
    {
        t.setting("lengths", real);
        h = t.input<3>("h", {B, T, D});
        s = t.input<3>("s", {S, B, query});
        if (word != 0) y = t.input<3>("y", {S, B, word});
    }

    void with_states(const auto& attend)
    {
        ask_in_turn(t, attend, attend.on(h, real), S, [&](std::size_t i) { return t.part(s, i); });
    }
    void with_words(const auto& attend)
    {
        ask_in_turn(t, attend, attend.on(h, real), S, [&](std::size_t i) {
            return state_and_word{t.part(s, i), t.part(y, i)};
        });
    }
};

}  // namespace

void bahdanau2015(const presets& add)
{
    add("additive", [](twin& t) {
        const auto W = t.input<2>("W", {Q, A}), U = t.input<2>("U", {D, A});
        const auto v = t.input<1>("v", {A});
        asked(t).with_states(paper::bahdanau2015::additive(W, U, v));
    });
}

void choi2018(const presets& add)
{
    add("att_y", [](twin& t) {
        const auto W = t.input<2>("W", {Q, A}), U = t.input<2>("U", {D, A}), Y = t.input<2>("Y", {E, A});
        const auto v = t.input<1>("v", {A});
        asked(t, Q, E).with_words(paper::choi2018::att_y(W, U, v, Y));
    });
    add("att_y_2d", [](twin& t) {
        const auto W = t.input<2>("W", {Q, A}), U = t.input<2>("U", {D, A}), V = t.input<2>("V", {A, D}),
                   Y = t.input<2>("Y", {E, A});
        asked(t, Q, E).with_words(paper::choi2018::att_y_2d(W, U, V, Y));
    });
}

void gehring2017(const presets& add)
{
    add("layer", [](twin& t) {
        const auto W = t.input<2>("W", {Q, D});
        const auto b = t.input<1>("b", {D});
        const asked with(t, Q, D);
        const auto x = t.input<3>("x", {B, T, D});
        const auto attend = paper::gehring2017::layer(W, b);
        ask_in_turn(t, attend, attend.on(with.h, heed::ops::add(with.h, x), with.real), S, [&](std::size_t i) {
            return state_and_word{t.part(with.s, i), t.part(with.y, i)};
        });
    });
    add("multi_step", [](twin& t) {
        const auto W = t.input<3>("W", {2, D, D});
        const auto b = t.input<2>("b", {2, D});
        using layer = heed::score::conv_s2s<variable<2>, variable<1>>;
        asked with(t, D, D);
        const auto attend = paper::gehring2017::multi_step(
            std::vector{layer{t.part(W, 0), t.part(b, 0)}, layer{t.part(W, 1), t.part(b, 1)}});
        const auto memory = attend.on(with.h, with.real);
        for (std::size_t i = 0; i < S; ++i) {
            const state_and_word query{t.part(with.s, i), t.part(with.y, i)};
            t.result("context", attend.step(memory, query, attend.start(memory)).context);
        }
    });
}

void luong2015(const presets& add)
{
    namespace luong = paper::luong2015;
    add("global_dot", [](twin& t) { asked(t, D).with_states(luong::global_dot()); });
    add("global_general", [](twin& t) {
        const auto W_a = t.input<2>("W_a", {Q, D});
        asked(t).with_states(luong::global_general(W_a));
    });
    add("global_concat", [](twin& t) {
        const auto W_a = t.input<2>("W_a", {D + D, A});
        const auto v_a = t.input<1>("v_a", {A});
        asked(t, D).with_states(luong::global_concat(W_a, v_a));
    });
    add("global_location", [](twin& t) {
        const auto W_a = t.input<2>("W_a", {Q, T + 2});
        asked(t).with_states(luong::global_location(W_a));
    });
    add("local_m", [](twin& t) {
        const auto W_a = t.input<2>("W_a", {Q, D});
        t.setting("reach", 1);
        asked(t).with_states(luong::local_m(W_a, 1));
    });
    add("local_p", [](twin& t) {
        const auto W_a = t.input<2>("W_a", {Q, D}), W_p = t.input<2>("W_p", {Q, P});
        const auto v_p = t.input<1>("v_p", {P});
        t.setting("reach", 2);
        asked(t).with_states(luong::local_p(W_a, W_p, v_p, 2));
    });
    add("attentional", [](twin& t) {
        const auto W_a = t.input<2>("W_a", {Q, D}), W_c = t.input<2>("W_c", {D + Q, O});
        asked(t).with_states(luong::attentional(luong::global_general(W_a), W_c));
    });
}

void xu2015(const presets& add)
{
    namespace xu = paper::xu2015;
    add("soft", [](twin& t) {
        const auto W = t.input<2>("W", {Q, A}), U = t.input<2>("U", {D, A});
        const auto v = t.input<1>("v", {A});
        asked(t).with_states(xu::soft(W, U, v));
    });
    add("gated", [](twin& t) {
        const auto W = t.input<2>("W", {Q, A}), U = t.input<2>("U", {D, A}), W_beta = t.input<2>("W_beta", {Q, 1});
        const auto v = t.input<1>("v", {A}), b_beta = t.input<1>("b_beta", {1});
        asked(t).with_states(xu::gated(W, U, v, W_beta, b_beta));
    });
    add("doubly_stochastic", [](twin& t) {
        const auto alpha = t.input<3>("alpha", {S, B, T});
        const lengths source{6, 4}, target{3, 2};
        t.setting("source", source);
        t.setting("target", target);
        t.setting("lambda", 0.5);
        const std::vector weights{t.part(alpha, 0), t.part(alpha, 1), t.part(alpha, 2)};
        t.result("penalty", xu::doubly_stochastic(weights, source, target, 0.5));
    });
}

}  // namespace twins
