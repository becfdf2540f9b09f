// SPDX-License-Identifier: BSD-3-Clause
#include "../../examples/read_digits/drawing.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <support/approx.hpp>

// The pictures that read_digits draws: a picture is a function of its seed, every digit is inside the picture and in
// its box, and all pictures differ.

using namespace read_digits;

TEST_CASE("a picture is a function of its arguments, and its pixels are gray values")
{
    const heed::grid size{32, 96};
    const picture one = draw_number(size, 3, 7), same = draw_number(size, 3, 7), other = draw_number(size, 3, 8);
    CHECK(one.pixels == same.pixels);
    CHECK(one.digits == same.digits);
    CHECK(one.pixels != other.pixels);
    for (const float p : one.pixels) CHECK((p >= 0 && p <= 1));
}

TEST_CASE("digits are inside the picture, from left to right; all ten occur")
{
    std::set<std::uint32_t> seen;
    double leftmost = 96, rightmost = 0;
    for (std::size_t i = 0; i < 300; ++i) {
        const std::size_t count = 1 + i % 5;
        const picture drawn = draw_number({32, 96}, count, heed::mix(i));
        REQUIRE(drawn.digits.size() == count);
        REQUIRE(drawn.boxes.size() == count);
        for (std::size_t k = 0; k < count; ++k) {
            const box& b = drawn.boxes[k];
            seen.insert(drawn.digits[k]);
            CHECK(b.left > -1);
            CHECK(b.top > -1);
            CHECK(b.right < 97);
            CHECK(b.bottom < 33);
            CHECK(b.bottom - b.top > 8);
            if (k > 0) CHECK((b.left + b.right) > (drawn.boxes[k - 1].left + drawn.boxes[k - 1].right) + 8);
            leftmost = std::min(leftmost, b.left);
            rightmost = std::max(rightmost, b.right);
        }
    }
    CHECK(seen.size() == 10);
    CHECK(leftmost < 8);
    CHECK(rightmost > 88);
}

TEST_CASE("the ink is in the boxes")
{
    for (std::uint64_t i = 0; i < 40; ++i) {
        const picture drawn = draw_number({32, 96}, 2, heed::mix(1000 + i));
        std::vector<float> sorted = drawn.pixels;
        std::nth_element(sorted.begin(), sorted.begin() + 1536, sorted.end());
        const float usual = sorted[1536];  // background: most pixels are background
        double inside = 0, outside = 0, pixels_inside = 0, pixels_outside = 0;
        for (std::size_t p = 0; p < drawn.pixels.size(); ++p) {
            const point at{static_cast<double>(p % 96) + 0.5, static_cast<double>(p / 96) + 0.5};
            const double contrast = std::abs(static_cast<double>(drawn.pixels[p] - usual));
            const bool in = drawn.boxes[0].contains(at) || drawn.boxes[1].contains(at);
            (in ? inside : outside) += contrast;
            (in ? pixels_inside : pixels_outside) += 1;
        }
        CHECK(inside / pixels_inside > 1.5 * outside / pixels_outside);
    }
}

TEST_CASE("a pen covers the pixels under it, half of the pixels at its edge, and none beyond")
{
    canvas paper({5, 7});
    paper.draw({{1.5, 2.5}, {5.5, 2.5}}, 2);
    for (std::size_t row = 0; row < 5; ++row) {
        const float must = row == 2 ? 1.0f : row == 1 || row == 3 ? 0.5f : 0.0f;
        CHECK(paper.at(row * 7 + 3) == support::approx(must));
    }
    CHECK(paper.at(2 * 7 + 0) == support::approx(0.5f));
    canvas dot({3, 3});
    dot.draw({{1.5, 1.5}, {1.5, 1.5}}, 1, 0.5);
    CHECK(dot.at(4) == support::approx(0.5f));
    CHECK(dot.at(1) == support::approx(0.0f));
    canvas away({3, 3});
    away.draw({{-9, -9}, {-5, -5}}, 1);
    away.draw({{9, 9}, {15, 15}}, 1);
    for (std::size_t i = 0; i < 9; ++i) CHECK(away.at(i) == 0);
}

TEST_CASE("no two digits are drawn alike")
{
    std::vector<std::pair<std::size_t, std::vector<float>>> all;
    for (std::size_t digit = 0; digit < 10; ++digit) {
        for (const bool form : {false, true}) {
            if (form && digit != 1 && digit != 4 && digit != 7) continue;
            canvas paper({20, 14});
            for (stroke line : strokes_of(digit, form)) {
                for (point& p : line) p = {1 + 18 * p.x, 1 + 18 * p.y};
                paper.draw(line, 2);
            }
            std::vector<float> pixels;
            for (std::size_t i = 0; i < 280; ++i) pixels.push_back(paper.at(i));
            for (const auto& [other, others] : all) {
                double off = 0;
                for (std::size_t i = 0; i < 280; ++i) off += std::abs(static_cast<double>(pixels[i] - others[i]));
                if (other != digit) CHECK(off > 14);
            }
            all.emplace_back(digit, std::move(pixels));
        }
    }
    CHECK(all.size() == 13);
}
