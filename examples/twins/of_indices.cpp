// SPDX-License-Identifier: BSD-3-Clause

#include <cstddef>

#include <heed/papers/linear_attention.hpp>
#include <heed/papers/positions.hpp>
#include <heed/papers/softmax_variants.hpp>

#include "papers.hpp"

namespace twins {

namespace paper = heed::papers;
using heed::causal;

namespace {

constexpr std::size_t B = 2, T = 6, D = 4, M = 3, R = 2;

/// Equal numbers of queries and keys, causal. Keys are the values.
void attends(twin& t, const auto& attend)
{
    const auto q = t.input<3>("q", {B, T, D}), k = t.input<3>("k", {B, T, D});
    t.result("context", attend(attend.on(k), q, causal{}));
}

}  // namespace

void choromanski2021(const presets& add)
{
    add("performer", [](twin& t) {
        const auto Omega = t.input<2>("Omega", {D, M});
        attends(t, paper::choromanski2021::performer(Omega));
    });
}

void dao2024(const presets& add)
{
    add("state_space", [](twin& t) {
        const auto w = t.input<2>("w", {D, 1});
        const auto b = t.input<1>("b", {1});
        attends(t, paper::dao2024::state_space(w, b));
    });
}

void golovneva2024(const presets& add)
{
    add("contextual", [](twin& t) {
        const auto positions = t.input<2>("positions", {D, M});
        attends(t, paper::golovneva2024::contextual(positions));
    });
}

void katharopoulos2020(const presets& add)
{
    add("linear", [](twin& t) { attends(t, paper::katharopoulos2020::linear()); });
}

void lin2025(const presets& add)
{
    add("forgetting", [](twin& t) {
        const auto w = t.input<2>("w", {D, 1});
        const auto b = t.input<1>("b", {1});
        attends(t, paper::lin2025::forgetting(w, b));
    });
}

void press2022(const presets& add)
{
    add("alibi", [](twin& t) { attends(t, paper::press2022::alibi(1)); });
    add("alibi_of_program", [](twin& t) { attends(t, paper::press2022::alibi_of_program(3)); });
}

void raffel2020(const presets& add)
{
    add("relative_bias", [](twin& t) {
        t.setting("buckets", 4);
        t.setting("longest", 5);
        const auto table = t.input<2>("table", {1, 4});
        attends(t, paper::raffel2020::relative_bias(table, {4, 5}));
    });
}

void schlag2021(const presets& add)
{
    add("delta_net", [](twin& t) {
        const auto w = t.input<2>("w", {D, 1});
        const auto b = t.input<1>("b", {1});
        attends(t, paper::schlag2021::delta_net(w, b));
    });
}

void shaw2018(const presets& add)
{
    add("relative", [](twin& t) {
        const auto distances = t.input<2>("distances", {D, 2 * R + 1});
        attends(t, paper::shaw2018::relative(distances));
    });
}

void su2021(const presets& add)
{
    add("rotary", [](twin& t) { attends(t, paper::su2021::rotary()); });
}

void wu2019(const presets& add)
{
    add("dynamic", [](twin& t) {
        const auto W = t.input<2>("W", {D, M});
        attends(t, paper::wu2019::dynamic(W, heed::score::kernel_over::past));
    });
    add("lightweight", [](twin& t) {
        const auto w = t.input<1>("w", {M});
        attends(t, paper::wu2019::lightweight(w, heed::score::kernel_over::past));
    });
}

void yang2024(const presets& add)
{
    add("gated_linear", [](twin& t) {
        const auto w = t.input<2>("w", {D, 1});
        const auto b = t.input<1>("b", {1});
        attends(t, paper::yang2024::gated_linear(w, b));
    });
}

void yang2025(const presets& add)
{
    add("gated_delta_net", [](twin& t) {
        const auto w_a = t.input<2>("w_a", {D, 1}), w = t.input<2>("w", {D, 1});
        const auto b_a = t.input<1>("b_a", {1}), b = t.input<1>("b", {1});
        attends(t, paper::yang2025::gated_delta_net(w_a, b_a, w, b));
    });
}

}  // namespace twins
