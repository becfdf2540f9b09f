// SPDX-License-Identifier: BSD-3-Clause

#include <cstddef>

#include <heed/papers/sentence_pairs.hpp>

#include "papers.hpp"

namespace twins {

namespace paper = heed::papers;

namespace {

constexpr std::size_t B = 2, S = 5, T = 4, D = 3, N = 4, w = 2;

void reads(twin& t, const auto& block)
{
    const lengths first{5, 3}, second{4, 2};
    t.setting("first_lengths", first);
    t.setting("second_lengths", second);
    t.setting("width", w);
    const auto x = t.input<3>("x", {B, S, D}), y = t.input<3>("y", {B, T, D});
    const auto next = block(heed::abcnn::sentences{x, first, y, second});
    t.result("first", next.first);
    t.result("second", next.second);
}

}  // namespace

void yin2016(const presets& add)
{
    namespace yin = paper::yin2016;
    add("bcnn", [](twin& t) {
        const auto W = t.input<2>("W", {w * D, N});
        const auto b = t.input<1>("b", {N});
        reads(t, yin::bcnn(W, b, w));
    });
    add("abcnn1", [](twin& t) {
        const auto W_0 = t.input<2>("W_0", {T, D}), W_1 = t.input<2>("W_1", {S, D}),
                   W = t.input<2>("W", {w * 2 * D, N});
        const auto b = t.input<1>("b", {N});
        reads(t, yin::abcnn1(W_0, W_1, W, b, w));
    });
    add("abcnn2", [](twin& t) {
        const auto W = t.input<2>("W", {w * D, N});
        const auto b = t.input<1>("b", {N});
        reads(t, yin::abcnn2(W, b, w));
    });
    add("abcnn3", [](twin& t) {
        const auto W_0 = t.input<2>("W_0", {T, D}), W_1 = t.input<2>("W_1", {S, D}),
                   W = t.input<2>("W", {w * 2 * D, N});
        const auto b = t.input<1>("b", {N});
        reads(t, yin::abcnn3(W_0, W_1, W, b, w));
    });
}

}  // namespace twins
