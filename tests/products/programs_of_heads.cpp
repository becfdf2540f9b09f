// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>

#include <heed/core/random.hpp>
#include <products/compare.hpp>
#include <products/programs.hpp>

// Programs of several heads.
namespace composition {

namespace {

/// The product of a program; null if there is none.
const heads_product* product_of_heads(const program& x)
{
    for (const auto& each : products_of_heads())
        if (each->form == x.form && each->score == x.score && each->normalizer == x.normalizer) return each.get();
    return nullptr;
}

/// The product of a program, with its inputs and parameters.
std::unique_ptr<heads_product> remade(const program& x)
{
    const heads_product* const line = product_of_heads(x);
    if (line == nullptr) throw std::runtime_error("not a product of heads: " + x.form + ", " + x.score);
    auto p = line->remade(x.of, x.heads, x.groups);
    std::uint64_t stream = x.numbers;
    for (const part& each : p->parts()) {
        const double scale =
            each.shape.size() == 2 ? std::sqrt(4 / std::max(4.0, static_cast<double>(each.shape[0]))) : 1;
        const auto drawn = support::random({each.size}, stream = heed::mix(stream), scale);
        std::copy_n(drawn.data(), each.size, each.data);
    }
    p->data.real = heed::lengths(x.lengths);
    return p;
}

masks_of_heads masks_of(const program& x)
{
    const std::size_t B = x.of.rows, n = x.heads, S = x.of.steps, T = x.of.positions;
    masks_of_heads all;
    all.kind = x.mask;
    if (x.mask != mask_kind::boolean && x.mask != mask_kind::additive) return all;
    all.visible = heed::boolean_mask<4>({B, n, 1, T});
    all.added = support::random({B, n, S, T}, heed::mix(x.numbers + 1));
    for (std::size_t i = 0; i < all.added.size(); ++i) {
        const bool sees = x.visible[i / (S * T)][i % T] == '1';
        if (!sees) all.added.data()[i] = -std::numeric_limits<double>::infinity();
    }
    for (std::size_t i = 0; i < B * n * T; ++i) all.visible[i] = x.visible[i / T][i % T] == '1';
    return all;
}

/// What head i of a program sees.
interpreter::mask seen_by(const program& x, const masks_of_heads& masks, std::size_t i)
{
    interpreter::mask sees;
    switch (x.mask) {
    case mask_kind::boolean:
    case mask_kind::additive:
        sees.visible = [&x, i](std::size_t b, std::size_t, std::size_t t) {
            return x.visible[b * x.heads + i][t] == '1';
        };
        if (x.mask == mask_kind::boolean) break;
        sees.bias = [&masks, i](std::size_t b, std::size_t s, std::size_t t) { return masks.added(b, i, s, t); };
        break;
    case mask_kind::predicate:
        sees.visible = [i](std::size_t, std::size_t s, std::size_t t) { return t <= s + i; };
        break;
    case mask_kind::causal:  // the last query sees all positions, and each earlier one a position less
        sees.length = [&x](std::size_t b, std::size_t s) {
            return x.lengths[b] + s + 1 < x.of.steps ? 0 : x.lengths[b] + s + 1 - x.of.steps;
        };
        break;
    default:
        break;
    }
    if (x.run == way::growing) sees.memory = [&x](std::size_t, std::size_t s) { return x.rows[s]; };
    return sees;
}

interpreter::heads equations_of(const program& x, heads_product& p, const masks_of_heads& masks)
{
    interpreter::heads run;
    run.groups = x.groups;
    for (std::size_t i = 0; i < x.heads; ++i) {
        interpreter::program one;
        one.score = x.score;
        one.normalizer = x.normalizer;
        one.combiner = x.combiner;
        one.lengths = x.lengths;
        for (const setting& each : p.settings()) one.settings[each.name] = each.value();
        one.sees = seen_by(x, masks, i);
        run.each.push_back(one);
    }
    for (const part& each : p.parts()) {
        interpreter::tensor copy{each.shape, {each.data, each.data + each.size}};
        if (each.name == "queries" || each.name == "keys" || each.name == "values") {
            tensor_of(run, each.name) = std::move(copy);
        } else {
            run.parameters[each.name] = std::move(copy);
        }
    }
    return run;
}

}  // namespace

void fill_inputs(inputs_of_heads& data, bool projects)
{
    const auto& of = data.of;
    const auto sized = [&](std::size_t positions, std::size_t width) {
        return heed::array<double, 3>(heed::shape_of_rank<3>{of.rows, positions, width}, 0.0);
    };
    data.queries = sized(of.steps, projects ? of.width : data.heads * of.width);
    data.keys = sized(of.positions, projects ? of.width : data.groups * of.width);
    data.values = sized(of.positions, projects ? of.width : data.groups * of.hidden);
}

void check_heads(const program& x)
{
    const auto p = remade(x);
    const masks_of_heads masks = masks_of(x);
    const auto equations = equations_of(x, *p, masks);
    if (x.run == way::in_float) {
        return check_float(p->parts(), equations, 2, 3, 64,
                           [&] { return step_by_step(x.of.rows, x.of.steps, p->at_once_in_float()); });
    }
    const outcome must = values_of(interpreter::interpret(equations));
    if (!all_finite(must)) return;
    constexpr double tolerance = 1e-10;
    const auto fill = [&] {
        fill_padding(p->data.keys, p->data.real, x.beyond);
        fill_padding(p->data.values, p->data.real, x.beyond);
    };
    if (x.run == way::on_tape) {
        const taped_outcome first = p->on_tape(masks);
        require_near(step_by_step(x.of.rows, x.of.steps, first.values.front()), contexts_of(must), tolerance,
                     "on the tape, all queries at once");
        check_slopes(p->parts(), first.slopes, equations, [&](std::size_t series, std::size_t i) {
            const std::size_t width = must[series].size() / x.of.rows, b = i / width;
            return series % 2 == 1 ? 0 : constant(0, (b * x.of.steps + series / 2) * width + i % width);
        });
        fill();
        const taped_outcome again = p->on_tape(masks);
        require_same_bits(again.values, first.values, "values with rubbish in the padding");
        require_same_bits(again.slopes, first.slopes, "gradients with rubbish in the padding");
        return;
    }
    const auto run = [&]() -> outcome {
        switch (x.run) {
        case way::at_once:
            return step_by_step(x.of.rows, x.of.steps, p->at_once(masks));
        case way::segments:
            return segment_by_segment(x, p->in_segments(x.rows));
        case way::growing:
            return p->growing(x.rows);
        default:
            return p->steps(masks);
        }
    };
    const outcome first = run();
    if (x.run == way::at_once || x.run == way::segments) {
        require_near(first, contexts_of(must), tolerance, "contexts of all queries at once");
    } else {
        require_near(first, must, tolerance, "step by step");
    }
    fill();
    require_same_bits(run(), first, "with rubbish in the padding");
}

void draw_heads(chooser& choose, program& x)
{
    const heads_product& of = *products_of_heads()[choose.below(products_of_heads().size())];
    x.form = of.form;
    x.score = of.score;
    x.normalizer = of.normalizer;
    x.combiner = "weighted_sum";
    x.heads = choose.among({1, 2, 2, 3, 4});
    x.groups = x.heads;
    while (of.shares_keys && choose.once_in(2)) x.groups = choose.below(x.heads) + 1;
    while (x.heads % x.groups != 0) --x.groups;
    x.of.rows = choose.among({0, 1, 1, 2, 3});
    x.of.positions = choose.among({0, 1, 1, 2, 3, 5, 8, 9, 17, 33});
    x.of.steps = choose.among({0, 1, 1, 2, 3, 5, 9, 17});
    x.of.width = choose.among({1, 2, 3, 4, 8, 16, 17});
    x.of.hidden = choose.among({1, 2, 3, 5, 8, 16});
    for (std::size_t b = 0; b < x.of.rows; ++b)
        x.lengths.push_back(choose.among({0, choose.below(x.of.positions + 1), x.of.positions}));
    constexpr way some[] = {way::steps,   way::at_once, way::at_once,  way::segments,
                            way::on_tape, way::on_tape, way::in_float, way::growing};
    x.run = some[choose.below(std::size(some))];
    x.beyond = static_cast<padding>(choose.below(4));
    x.threads = choose.among({1, 1, 1, 2});
    if ((x.run == way::at_once || x.run == way::on_tape || x.run == way::in_float) && x.of.rows > 0 &&
        of.normalizer != "temporal" && choose.once_in(4)) {
        draw_tiles(choose, x);
        x.of.width = choose.among({1, 2, 4, 8});
    }
    if (x.run == way::in_float && !of.ways.in_float) x.run = way::at_once;
    if (x.run == way::on_tape && (x.of.steps == 0 || x.of.rows == 0)) x.run = way::at_once;
    if (x.run == way::growing) draw_growth(choose, x);
    // In a KV cache, the query's number depends on its row's length: see policy/query_numbers.hpp.
    if (x.run == way::growing && x.score.find("modified") == 0) x.lengths.assign(x.of.rows, x.of.positions);
    if (x.run == way::segments) {
        const std::size_t first = choose.below(x.of.steps + 1);
        x.rows = {first, x.of.steps - first};
    }
    const unsigned masks_compiled = x.run == way::at_once   ? of.ways.at_once
                                    : x.run == way::on_tape ? of.ways.tape
                                    : x.run == way::steps   ? of.ways.steps
                                                            : 1;
    do x.mask = static_cast<mask_kind>(choose.below(5));
    while (!compiled_ways::among(masks_compiled, x.mask));
    if (x.mask == mask_kind::boolean || x.mask == mask_kind::additive) draw_mask(choose, x, x.of.rows * x.heads);
}

std::vector<program> simpler_heads(const program& x)
{
    std::vector<program> all;
    const auto change = [&](const std::function<void(program&)>& f) {
        program y = x;
        f(y);
        if (text(y) != text(x)) all.push_back(y);
    };
    const auto per_row = [](auto& list, std::size_t first, std::size_t count) {
        const auto at = list.begin() + static_cast<std::ptrdiff_t>(first);
        if (!list.empty()) list.erase(at, at + static_cast<std::ptrdiff_t>(count));
    };
    change([](program& y) { y.threads = 1; });
    change([](program& y) { y.beyond = padding::zero; });
    change([](program& y) { y.mask = mask_kind::none, y.visible.clear(); });
    const auto compiled = product_of_heads(x)->ways;
    if (x.run != way::steps && compiled_ways::among(compiled.steps, x.mask))
        change([](program& y) { y.run = way::steps, y.rows.clear(); });
    if (x.run == way::on_tape && compiled_ways::among(compiled.at_once, x.mask))
        change([](program& y) { y.run = way::at_once; });
    for (std::size_t b = 0; b < x.of.rows; ++b) {
        change([&](program& y) {
            --y.of.rows;
            per_row(y.lengths, b, 1);
            per_row(y.visible, b * x.heads, x.heads);
        });
    }
    if (x.groups < x.heads) change([](program& y) { y.groups = y.heads; });
    if (x.groups == x.heads && x.heads > 1) {
        change([&](program& y) {
            y.groups = --y.heads;
            for (std::size_t b = x.of.rows; b-- > 0;) per_row(y.visible, b * x.heads + y.heads, 1);
        });
    }
    for (const std::size_t T : {x.of.positions / 2, x.of.positions - 1}) {
        if (x.of.positions == 0) break;
        change([T](program& y) {
            y.of.positions = T;
            for (std::size_t& n : y.lengths) n = std::min(n, T);
            for (std::string& each : y.visible) each.resize(T);
            if (y.run == way::growing)
                for (std::size_t& n : y.rows) n = std::min(n, T);
        });
    }
    for (const std::size_t S : {x.of.steps / 2, x.of.steps - 1}) {
        if (x.of.steps == 0) break;
        change([S](program& y) {
            y.of.steps = S;
            if (y.run == way::segments) y.rows = {S / 2, S - S / 2};
            if (y.run == way::growing) y.rows.resize(S);
        });
    }
    if (x.of.width > 1) change([](program& y) { y.of.width /= 2; });
    if (x.of.hidden > 1) change([](program& y) { y.of.hidden /= 2; });
    for (std::size_t i = 0; i < x.visible.size(); ++i) {
        const std::size_t hole = x.visible[i].find('0');
        if (hole != std::string::npos) change([i, hole](program& y) { y.visible[i][hole] = '1'; });
    }
    std::erase_if(all, [](const program& y) {
        return (y.run == way::on_tape && (y.of.steps == 0 || y.of.rows == 0)) ||
               (y.of.rows == 0 && (y.mask == mask_kind::boolean || y.mask == mask_kind::additive));
    });
    return all;
}

}  // namespace composition
