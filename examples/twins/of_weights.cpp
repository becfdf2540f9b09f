// SPDX-License-Identifier: BSD-3-Clause

#include <cstddef>

#include <heed/papers/softmax_variants.hpp>
#include <heed/papers/transformer.hpp>

#include "papers.hpp"

namespace twins {

namespace paper = heed::papers;
using heed::causal;

namespace {

constexpr std::size_t B = 2, T = 6, D = 4;

/// Equal numbers of queries and keys, causal. Keys are the values.
void attends(twin& t, const auto& attend)
{
    const auto q = t.input<3>("q", {B, T, D}), k = t.input<3>("k", {B, T, D});
    t.result("context", attend(attend.on(k), q, causal{}));
}

}  // namespace

void correia2019(const presets& add)
{
    add("adaptive", [](twin& t) {
        const auto a = t.input<1>("a", {1});
        attends(t, paper::correia2019::adaptive(a));
    });
}

void gemma2024(const presets& add)
{
    add("capped", [](twin& t) {
        t.setting("cap", 0.5);
        attends(t, paper::gemma2024::capped(0.5));
    });
}

void gupta2021(const presets& add)
{
    add("top_k", [](twin& t) {
        t.setting("k_best", 3);
        attends(t, paper::gupta2021::top_k(3));
    });
}

void henry2020(const presets& add)
{
    add("normalized", [](twin& t) {
        const auto g = t.input<1>("g", {1});
        attends(t, paper::henry2020::normalized(g));
    });
}

void openai2025(const presets& add)
{
    add("with_sink", [](twin& t) {
        const auto s = t.input<1>("s", {1});
        attends(t, paper::openai2025::with_sink(s));
    });
}

void ramapuram2025(const presets& add)
{
    add("sigmoid", [](twin& t) {
        t.setting("length", T);
        attends(t, paper::ramapuram2025::sigmoid(T));
    });
}

void tan2025(const presets& add)
{
    add("stick_breaking", [](twin& t) { attends(t, paper::tan2025::stick_breaking()); });
}

void xiao2024(const presets& add)
{
    add("zero_sink", [](twin& t) { attends(t, paper::xiao2024::zero_sink<double>()); });
}

}  // namespace twins
