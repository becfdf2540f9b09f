// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>

#include <products/products.hpp>

// Tests the judge: products with one mistake each.
namespace composition {

namespace {

enum class mistake {
    none,
    gradient,
    at_once,
    tape,
    chance,
    padding,
    empty_row,
    behind_length,
    empty_slope,
    large,
    no_queries,
    part_on_tape,
    random,
    rows,
    hidden,
    hidden_by_bias,
    not_shortened,
    last
};

/// A correct product with a mistake added to its results.
struct mistaken final : product {
    product& right;
    mistake made;
    mutable double runs = 0;

    mistaken(product& p, mistake m) : right(p), made(m)
    {
        score = p.score;
        normalizer = p.normalizer;
        combiner = p.combiner;
        data = p.data;
        kind = p.kind;
        query_has_word = p.query_has_word;
        differentiable = p.differentiable;
        random = p.random;
        reads_length = p.reads_length;
    }

    outcome steps() const override
    {
        right.data = data;
        outcome values = right.steps();
        if (made == mistake::chance) values[2][0] += 1e-13 * ++runs;
        if (made == mistake::random) values[2][0] += 1e-3 * ++runs;
        // Row 1 is empty, row 2 has one position.
        if (made == mistake::padding) values[0][0] += std::isnan(data.annotations(2, 3, 0)) ? 1e-15 : 0;
        if (made == mistake::empty_row) values[4][data.of.width] = 1e-300;
        if (made == mistake::behind_length) values[1][2 * data.of.positions + 1] = 1e-300;
        if (made == mistake::large && std::abs(data.states(0, 0, 0)) > 1e2) values[3][0] = INFINITY;
        return values;
    }

    outcome steps_under(const heed::boolean_mask<2>& mask) const override
    {
        right.data = data;
        outcome values = right.steps_under(mask);
        if (made == mistake::hidden && mask[0] == 0) values[1][0] = 0.035;
        if (made == mistake::not_shortened && mask[0] != 0) values[0][0] += 1e-3;
        return values;
    }

    outcome steps_under(const heed::additive_mask<heed::array<double, 2>>& mask) const override
    {
        right.data = data;
        outcome values = right.steps_under(mask);
        if (made == mistake::hidden || made == mistake::hidden_by_bias) values[1][0] = 0.035;
        return values;
    }

    outcome steps_under(const heed::lengths& mask) const override
    {
        right.data = data;
        return right.steps_under(mask);
    }

    /// The state's `map` ignores its argument: the next step continues with the old rows.
    outcome steps_of(const std::vector<std::size_t>& rows) const override
    {
        right.data = data;
        outcome values = right.steps_of(rows);
        if (made == mistake::rows) values[0][0] = 0.917;
        return values;
    }

    numbers at_once() const override
    {
        right.data = data;
        numbers contexts = right.at_once();
        if (made == mistake::at_once && !contexts.empty()) contexts.back() += 1e-9;
        if (made == mistake::no_queries && contexts.empty()) contexts.push_back(0);
        return contexts;
    }

    numbers at_once_causal() const override
    {
        right.data = data;
        return right.at_once_causal();
    }

    outcome in_segments(const std::vector<std::size_t>& lengths) const override
    {
        right.data = data;
        return right.in_segments(lengths);
    }

    outcome growing(const std::vector<std::size_t>& positions) const override
    {
        right.data = data;
        return right.growing(positions);
    }

    taped_outcome on_tape_under(const heed::additive_mask<heed::array<double, 2>>& mask) const override
    {
        right.data = data;
        return right.on_tape_under(mask);
    }

    taped_outcome on_tape(taped what) const override
    {
        right.data = data;
        taped_outcome all = right.on_tape(what);
        if (made == mistake::part_on_tape && what == taped::queries) all.slopes.back()[0] += 1e-9;
        if (what != taped::everything) return all;
        if (made == mistake::gradient) all.slopes[1][2] += 1e-5;
        if (made == mistake::tape) all.values[1][0] += 1e-9;
        if (made == mistake::empty_slope) all.slopes.back()[data.of.steps * data.of.width] = 1e-300;
        return all;
    }

    outcome curvature(const outcome& direction) const override { return right.curvature(direction); }
    outcome steps_in_float() const override { return right.steps_in_float(); }

    std::vector<part> parts() override
    {
        std::vector<part> all = right.parts();
        for (part& x : all) {
            if (x.name == "annotations") x.data = data.annotations.data();
            if (x.name == "states") x.data = data.states.data();
            if (x.name == "words") x.data = data.words.data();
        }
        return all;
    }

    std::vector<setting> settings() override { return right.settings(); }
    std::unique_ptr<product> remade(const extents& sizes) const override { return right.remade(sizes); }
    std::size_t allocations() const override { return right.allocations(); }
};

}  // namespace

std::string overlooked_mistakes(product& right)
{
    std::string all;
    const batch data = right.data;
    for (int m = 0; m < static_cast<int>(mistake::last); ++m) {
        mistaken p(right, static_cast<mistake>(m));
        const std::string found = judge(p);
        const bool by_chance = p.made == mistake::chance || p.made == mistake::random;
        const bool right_line = !by_chance || found.find("the second run") == 0;  // among other faults
        if (found.empty() != (m == 0) || !right_line) all += " " + std::to_string(m);
        right.data = data;  // restored after the judge stopped
    }
    return all;
}

}  // namespace composition
