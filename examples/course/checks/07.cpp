// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 7: compares with nn::gru and metrics::strongest_links.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/nn/gru.hpp>
#include <heed_kit/metrics/alignment_error.hpp>

#include "07.hpp"
#include "course.hpp"

namespace {

std::string check_gru()
{
    constexpr std::size_t X = 3, H = 4;
    heed::random_source random{1};
    auto cell = heed::nn::make_gru<double>(random, X, H);
    for (std::size_t k = 0; k < 3 * H; ++k) cell.b(k) = heed::normal(5, k);
    const auto columns = [](const auto& of, std::size_t rows, std::size_t begin) {
        matrix some(rows, vector(H));
        for (std::size_t i = 0; i < rows; ++i)
            for (std::size_t k = 0; k < H; ++k) some[i][k] = of(i, begin + k);
        return some;
    };
    const auto part = [&](std::size_t begin) { return vector(cell.b.begin() + begin, cell.b.begin() + begin + H); };
    const gru_weights same{
        columns(cell.W, X, 0), columns(cell.W, X, H), columns(cell.W, X, 2 * H), part(0), part(H), part(2 * H),
        columns(cell.U, H, 0), columns(cell.U, H, H), columns(cell.U_h, H, 0)};
    auto x = heed::filled<double, 2>({1, X}, 0.0), h = heed::filled<double, 2>({1, H}, 0.0);
    for (std::size_t step = 0; step < 4; ++step) {
        for (std::size_t i = 0; i < X; ++i) x(0, i) = heed::normal(6 + step, i);
        const auto next = cell.step(cell.project(x), h);
        const vector made = gru_step(same, vector(x.begin(), x.end()), vector(h.begin(), h.end()));
        if (made.size() != H) return "the state has " + std::to_string(made.size()) + " numbers, but should have 4";
        for (std::size_t k = 0; k < H; ++k) {
            const auto wrong =
                course::same("number " + std::to_string(k) + " of the state after step " + std::to_string(step),
                             made[k], next(0, k));
            if (!wrong.empty()) return wrong;
        }
        h = next;
    }
    return {};
}

std::string check_links()
{
    const auto text = [](const std::vector<std::pair<int, int>>& some) {
        std::string all;
        for (const auto& [i, j] : some) all += " " + std::to_string(i) + "-" + std::to_string(j);
        return all;
    };
    for (const matrix& weights : {matrix{{0.9, 0.1, 0}, {0, 0.2, 0.8}, {0.4, 0.3, 0.3}, {0, 0.51, 0.49}},
                                  matrix{{0.5, 0.5}, {0.3, 0.7}}, matrix{}}) {
        std::vector<float> row_by_row;
        for (const vector& row : weights) row_by_row.insert(row_by_row.end(), row.begin(), row.end());
        const auto must = heed::metrics::strongest_links(row_by_row, weights.empty() ? 1 : weights[0].size(), 0.5f);
        const auto is = links(weights);
        if (is == must) continue;
        std::string of;
        for (const vector& row : weights) {
            for (const double weight : row) of += " " + std::to_string(weight).substr(0, 4);
            of += ";";
        }
        return "the links from weights" + of + " are" + text(is) + ", but should be" + text(must);
    }
    return {};
}

}  // namespace

int main() { return course::graded({{"a", "a step of the GRU", check_gru}, {"b", "links from weights", check_links}}); }
