// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <set>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <products/compare.hpp>
#include <products/programs.hpp>
#include <support/tensors.hpp>

namespace composition {

namespace {

constexpr const char* ways[] = {"steps",   "rows",      "at_once",  "causal", "segments",
                                "on_tape", "curvature", "in_float", "growing"};
constexpr const char* paddings[] = {"zero", "nan", "infinity", "large"};
constexpr const char* mask_kinds[] = {"none", "boolean", "additive", "predicate", "causal"};
constexpr const char* on_tapes[] = {"everything", "parameters", "annotations", "queries"};

template <class Enum, std::size_t N>
Enum named(const char* const (&names)[N], const std::string& name)
{
    const auto found = std::find(std::begin(names), std::end(names), name);
    if (found == std::end(names)) throw std::runtime_error("not a part of a program: " + name);
    return static_cast<Enum>(found - std::begin(names));
}

const row& line_of(const table& lines, const program& x)
{
    if (const row* const line = judged_line(lines, x.score, x.normalizer, x.combiner)) return *line;
    throw std::runtime_error("not a judged product: " + x.score + ", " + x.normalizer + ", " + x.combiner);
}

/// Is it cheap for a very long sentence?
bool quick(const row& line)
{
    static const std::set<std::string> scores{"additive", "additive_per_dimension", "dot", "general", "scaled_dot"};
    static const std::set<std::string> normalizers{"sigmoid", "softmax", "softmax_with_sink", "temperature",
                                                   "temporal"};
    return scores.contains(line.score) && normalizers.contains(line.normalizer);
}

/// The width is a multiple of this.
std::size_t divisor_of_width(const program& x)
{
    if (x.score.find("grouped") != std::string::npos) return x.of.groups;
    return x.score.find("rotary") != std::string::npos ? 2 : 1;
}

/// The product with the Hessian along a random direction of all tensors: of each tensor, its inner product with another
/// random direction.
void check_curvature(product& p, interpreter::program run)
{
    const std::vector<part> parts = p.parts();
    outcome direction;
    for (std::size_t k = 0; k < parts.size(); ++k) {
        const auto drawn = support::random({parts[k].size}, 951 + k);
        direction.emplace_back(drawn.data(), drawn.data() + drawn.size());
        interpreter::tensor& x = tensor_of(run, parts[k].name);
        for (std::size_t i = 0; i < x.numbers.size(); ++i) x.numbers[i].w = drawn(i);
    }
    const outcome found = p.curvature(direction);
    require(found.size() == parts.size(), "the numbers of products with the Hessian and parameters differ");
    for (std::size_t k = 0; k < parts.size(); ++k) {
        require(found[k].size() == parts[k].size,
                "the product with the Hessian of " + parts[k].name + ": a different size");
        const auto other = support::random({parts[k].size}, 901 + k);
        interpreter::tensor& x = tensor_of(run, parts[k].name);
        double along = 0, must = 0, size = 1;
        for (std::size_t i = 0; i < x.numbers.size(); ++i) {
            x.numbers[i].u = other(i);
            along += found[k][i] * other(i);
            size += std::abs(found[k][i] * other(i));
        }
        const auto results = interpreter::interpret(run);
        for (std::size_t s = 0; s < results.size(); ++s) {
            for (std::size_t i = 0; i < results[s].size(); ++i) {
                must += constant(s, i) * results[s][i].uw;
                size += std::abs(results[s][i].uw);
            }
        }
        for (interpreter::number& each : x.numbers) each.u = 0;
        require(std::abs(along - must) <= 1e-8 * size,
                "the product with the Hessian of " + parts[k].name + ": " + digits(along) + " against " + digits(must));
    }
}

void check(const table& lines, const program& x)
{
    const auto p = product_of(lines, x);
    auto equations = program_of(*p);
    if (x.run == way::in_float) {
        // Equal numbers, whose rounding errors add up: at most 2⁻²⁰ in a block of 128, in heed as documented.
        const double factor = x.alike ? 256 : 64;
        const int samples = x.of.positions > 20000 ? 1 : 3;
        equations.smallest = 1e-30;
        return check_float(p->parts(), equations, 1, samples, factor, [&] { return p->steps_in_float(); });
    }
    if (x.run == way::growing) {
        equations.sees.memory = [&](std::size_t, std::size_t s) { return x.rows[s]; };
        require(p->grows, "the memory of this product does not grow");
    }
    if (x.run == way::causal) {  // the last query sees all positions, and each earlier one a position less
        equations.sees.length = [&](std::size_t b, std::size_t s) {
            return x.lengths[b] + s + 1 < x.of.steps ? 0 : x.lengths[b] + s + 1 - x.of.steps;
        };
    }
    const bool masked = !x.visible.empty();
    const auto bias = masked && x.additive ? bias_of(x) : heed::array<double, 2>();
    if (masked) {
        equations.sees.visible = [&](std::size_t b, std::size_t, std::size_t t) { return x.visible[b][t] == '1'; };
        if (x.additive) equations.sees.bias = [&](std::size_t b, std::size_t, std::size_t t) { return bias(b, t); };
    }
    const outcome must = values_of(equations);
    if (!all_finite(must)) return;
    constexpr double tolerance = 1e-10;
    const auto run = [&]() -> outcome {
        switch (x.run) {
        case way::at_once:
            return step_by_step(x.of.rows, x.of.steps, p->at_once());
        case way::causal:
            return step_by_step(x.of.rows, x.of.steps, p->at_once_causal());
        case way::rows:
            return p->steps_of(x.rows);
        case way::segments:
            return segment_by_segment(x, p->in_segments(x.rows));
        case way::growing:
            return p->growing(x.rows);
        default:
            return steps_of(*p, x, bias);
        }
    };
    if (x.run == way::curvature) return check_curvature(*p, equations);
    if (x.run == way::on_tape) {
        const auto recorded = [&] { return masked ? p->on_tape_under(heed::additive_mask{bias}) : p->on_tape(x.what); };
        const taped_outcome first = recorded();
        require_near(first.values, must, tolerance, "on the tape");
        if (p->differentiable) check_slopes(p->parts(), first.slopes, equations, constant);
        fill_padding(p->data.annotations, p->data.real, x.beyond);
        const taped_outcome again = recorded();
        require_same_bits(again.values, first.values, "values with rubbish in the padding");
        require_same_bits(again.slopes, first.slopes, "gradients with rubbish in the padding");
        return;
    }
    const outcome first = run();
    if (x.run == way::at_once || x.run == way::causal || x.run == way::segments) {
        require_near(first, contexts_of(must), tolerance, "contexts of all queries at once");
    } else if (x.run == way::rows) {
        outcome selected;
        for (std::size_t k = 2; k < must.size(); ++k) {
            const std::size_t width = must[k].size() / x.of.rows;
            selected.emplace_back();
            for (const std::size_t b : x.rows) {
                const double* const from = must[k].data() + b * width;
                selected.back().insert(selected.back().end(), from, from + width);
            }
        }
        require_near(first, selected, tolerance, "rows selected after the first step (steps count from there)");
    } else {
        require_near(first, must, tolerance, "step by step");
        if (x.run == way::steps) check_rewrites(lines, x, *p, first);
    }
    fill_padding(p->data.annotations, p->data.real, x.beyond);
    require_same_bits(run(), first, "with rubbish in the padding");
}

}  // namespace

std::size_t chooser::below(std::size_t bound) { return heed::below(bound, stream, ++taken); }

void draw_mask(chooser& choose, program& x, std::size_t rows)
{
    const std::size_t density = choose.among({0, 1, 2, 4, 4});
    for (std::size_t b = 0; b < rows; ++b) {
        x.visible.emplace_back(x.of.positions, '1');
        for (char& each : x.visible.back()) each = density > 0 && !choose.once_in(density) ? '1' : '0';
    }
}

/// Other numbers for some of the settings of a product.
void draw_settings(chooser& choose, const std::vector<setting>& of, program& x)
{
    static const std::map<std::string, std::vector<double>> values{
        {"N", {1, 3}},         {"reach", {1, 2, 3, 40}}, {"steps", {0, 1, 2, 5, 12}}, {"strength", {0.3, 1, 1.5}},
        {"decay", {0.5, 1}},   {"tau", {0.5, 1, 3}},     {"bias", {-2, 0.5}},         {"k", {1, 3, 9}},
        {"width", {1, 3, 20}},
    };
    for (const setting& each : of) {
        const auto known = values.find(each.name.substr(each.name.rfind('.') + 1));
        if (known != values.end() && choose.once_in(2))
            x.settings[each.name] = known->second[choose.below(known->second.size())];
    }
}

void fill_padding(heed::array<double, 3>& x, const heed::lengths& real, padding with)
{
    constexpr double numbers[] = {0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(),
                                  1e300};
    const auto [B, T, D] = x.shape();
    for (std::size_t b = 0; b < B; ++b)
        std::fill_n(x.data() + (b * T + real[b]) * D, (T - real[b]) * D, numbers[static_cast<int>(with)]);
}

namespace {

/// Simpler programs, the simplest first.
std::vector<program> simpler(const table& lines, const program& x)
{
    if (!x.form.empty()) return simpler_heads(x);
    std::vector<program> all;
    const auto change = [&](const std::function<void(program&)>& f) {
        program y = x;
        f(y);
        if (text(y) != text(x)) all.push_back(y);
    };
    const auto policies = [&](const std::string& score, const std::string& normalizer, const std::string& combiner) {
        if (judged_line(lines, score, normalizer, combiner))
            change([&](program& y) { y.score = score, y.normalizer = normalizer, y.combiner = combiner; });
    };
    policies(x.score, "softmax", x.combiner);
    for (const char* sum : {"weighted_sum", "elementwise_sum", "grouped_sum"}) policies(x.score, x.normalizer, sum);
    const std::size_t open = x.score.find('{'), close = x.score.rfind('}');
    if (open != std::string::npos) policies(x.score.substr(open + 1, close - open - 1), x.normalizer, x.combiner);
    change([](program& y) { y.settings.clear(); });
    for (const auto& each : x.settings) change([&](program& y) { y.settings.erase(each.first); });
    change([](program& y) { y.threads = 1; });
    change([](program& y) { y.beyond = padding::zero; });
    change([](program& y) { y.alike = false; });
    if (x.run != way::steps) change([](program& y) { y.run = way::steps, y.what = taped::everything, y.rows.clear(); });
    change([](program& y) { y.visible.clear(), y.additive = false; });
    if (x.run != way::on_tape) change([](program& y) { y.additive = false; });
    if (x.run != way::rows) {
        for (std::size_t b = 0; b < x.of.rows; ++b) {
            change([b](program& y) {
                const auto at = static_cast<std::ptrdiff_t>(b);
                --y.of.rows;
                y.lengths.erase(y.lengths.begin() + at);
                if (!y.visible.empty()) y.visible.erase(y.visible.begin() + at);
            });
        }
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
    const auto steps = [&](std::size_t S) {
        change([S](program& y) {
            y.of.steps = S;
            if (y.run == way::segments) y.rows = {S / 2, S - S / 2};
            if (y.run == way::growing) y.rows.resize(S);
        });
    };
    if (x.of.steps > 0) steps(x.of.steps / 2);
    if (x.of.steps > 0) steps(x.of.steps - 1);
    const auto width = [&](std::size_t D) {
        change([D](program& y) {
            if (y.of.groups == y.of.width) y.of.groups = D;
            y.of.width = D;
        });
    };
    if (x.of.width > 1) width(x.of.width / 2);
    if (x.of.width > 1) width(x.of.width - 1);
    if (x.of.width > 2) width(x.of.width - 2);
    if (x.of.hidden > 1) change([](program& y) { y.of.hidden /= 2; });
    if (x.of.hidden > 1) change([](program& y) { --y.of.hidden; });
    for (std::size_t b = 0; b < x.visible.size(); ++b) {
        change([b](program& y) { y.visible[b].assign(y.visible[b].size(), '1'); });
        const std::size_t hole = x.visible[b].find('0');
        if (hole != std::string::npos) change([b, hole](program& y) { y.visible[b][hole] = '1'; });
    }
    std::erase_if(all, [&](const program& y) {
        return y.of.width % divisor_of_width(y) != 0 ||
               ((y.run == way::rows || y.run == way::on_tape || y.run == way::curvature) && y.of.steps == 0) ||
               (y.run == way::on_tape && !y.visible.empty() && !y.additive) ||
               (y.run == way::growing && !line_of(lines, y).judged->grows);
    });
    return all;
}

}  // namespace

const row* judged_line(const table& lines, const std::string& score, const std::string& normalizer,
                       const std::string& combiner)
{
    for (const row& line : lines) {
        if (line.judged && line.score == score && line.normalizer == normalizer && line.combiner == combiner)
            return &line;
    }
    return nullptr;
}

std::unique_ptr<product> product_of(const table& lines, const program& x)
{
    auto p = line_of(lines, x).judged->remade(x.of);
    for (const setting& each : p->settings()) {
        const auto given = x.settings.find(each.name);
        if (given != x.settings.end()) each.set(given->second);
    }
    p->data = batch(x.of, x.lengths, heed::mix(x.numbers));
    std::uint64_t stream = x.numbers;
    for (const part& each : p->parts()) {
        if (each.name == "annotations" || each.name == "states" || each.name == "words") continue;
        // The variance of a product with a matrix does not grow with its rows.
        const double scale =
            each.shape.size() == 2 ? std::sqrt(4 / std::max(4.0, static_cast<double>(each.shape[0]))) : 1;
        const auto drawn = support::random({each.size}, stream = heed::mix(stream), scale);
        std::copy_n(drawn.data(), each.size, each.data);
    }
    heed::array<double, 3>& h = p->data.annotations;
    for (std::size_t i = 0; x.alike && i < h.size(); ++i) {
        const std::size_t row = i / x.of.width % x.of.positions;
        if (row > 1) h.data()[i] = h.data()[i - 2 * x.of.width];
    }
    return p;
}

heed::array<double, 2> bias_of(const program& x)
{
    auto bias = support::random({x.of.rows, x.of.positions}, heed::mix(x.numbers + 1));
    for (std::size_t b = 0; b < x.of.rows; ++b) {
        for (std::size_t t = 0; t < x.of.positions; ++t)
            if (x.visible[b][t] == '0') bias(b, t) = -std::numeric_limits<double>::infinity();
    }
    return bias;
}

heed::boolean_mask<2> mask_of(const program& x)
{
    heed::boolean_mask<2> mask({x.of.rows, x.of.positions});
    for (std::size_t b = 0; b < x.of.rows; ++b) {
        for (std::size_t t = 0; t < x.of.positions; ++t) mask[b * x.of.positions + t] = x.visible[b][t] == '1';
    }
    return mask;
}

void require_near(const outcome& is, const outcome& must, double tolerance, const std::string& what)
{
    require(is.size() == must.size(), what + ": a different number of results");
    for (std::size_t k = 0; k < must.size(); ++k) {
        require(is[k].size() == must[k].size(), what + ": a different size of the " + place(k, 0));
        double largest = 1;
        for (const double m : must[k]) largest = std::max(largest, std::abs(m));
        for (std::size_t i = 0; i < must[k].size(); ++i) {
            require(is[k][i] == must[k][i] || std::abs(is[k][i] - must[k][i]) <= tolerance * largest,
                    what + ", " + place(k, i) + ": " + digits(is[k][i]) + " against " + digits(must[k][i]));
        }
    }
}

outcome steps_of(const product& p, const program& x, const heed::array<double, 2>& bias)
{
    if (x.visible.empty()) return p.steps();
    return x.additive ? p.steps_under(heed::additive_mask{bias}) : p.steps_under(mask_of(x));
}

std::string text(const program& x)
{
    std::ostringstream to;
    to << "score " << x.score << "\nnormalizer " << x.normalizer << "\ncombiner " << x.combiner;
    if (!x.form.empty()) to << "\nheads " << x.heads << " keys " << x.groups << ' ' << x.form;
    to << "\nsizes rows " << x.of.rows << " positions " << x.of.positions << " steps " << x.of.steps << " width "
       << x.of.width << " hidden " << x.of.hidden;
    if (x.score.find("grouped") != std::string::npos) to << " groups " << x.of.groups;
    if (!x.settings.empty()) to << "\nsettings";
    for (const auto& [name, value] : x.settings) to << ' ' << name << ' ' << value;
    to << "\nlengths";
    for (const std::size_t n : x.lengths) to << ' ' << n;
    to << "\nmask "
       << (!x.form.empty()     ? mask_kinds[static_cast<int>(x.mask)]
           : x.visible.empty() ? "none"
           : x.additive        ? "additive"
                               : "boolean");
    for (const std::string& each : x.visible) to << ' ' << (each.empty() ? "-" : each);
    to << "\nrun " << ways[static_cast<int>(x.run)];
    if (x.run == way::on_tape) to << ' ' << on_tapes[static_cast<int>(x.what)];
    for (const std::size_t b : x.rows) to << ' ' << b;
    to << "\npadding " << paddings[static_cast<int>(x.beyond)] << "\nthreads " << x.threads << "\nnumbers " << x.numbers
       << (x.alike ? " alike\n" : "\n");
    return to.str();
}

program program_from(const std::string& given)
{
    program x;
    std::string all = given, line;
    std::replace(all.begin(), all.end(), ';', '\n');
    std::istringstream from(all);
    while (std::getline(from, line)) {
        std::istringstream words(line);
        std::string key, word;
        if (!(words >> key)) continue;
        const auto rest = [&] {
            std::getline(words >> std::ws, word);
            return word;
        };
        if (key == "score") {
            x.score = rest();
        } else if (key == "normalizer") {
            x.normalizer = rest();
        } else if (key == "combiner") {
            x.combiner = rest();
        } else if (key == "heads") {
            words >> x.heads >> word >> x.groups >> x.form;
        } else if (key == "sizes") {
            words >> word >> x.of.rows >> word >> x.of.positions >> word >> x.of.steps >> word >> x.of.width >> word >>
                x.of.hidden >> word >> x.of.groups;
        } else if (key == "settings") {
            for (double value = 0; words >> word >> value;) x.settings[word] = value;
        } else if (key == "lengths") {
            for (std::size_t n; words >> n;) x.lengths.push_back(n);
        } else if (key == "mask") {
            words >> word;
            x.additive = word == "additive";
            x.mask = named<mask_kind>(mask_kinds, word);
            while (words >> word) x.visible.push_back(word == "-" ? "" : word);
        } else if (key == "run") {
            words >> word;
            x.run = named<way>(ways, word);
            if (x.run == way::on_tape) {
                words >> word;
                x.what = named<taped>(on_tapes, word);
            }
            for (std::size_t b; words >> b;) x.rows.push_back(b);
        } else if (key == "padding") {
            words >> word;
            x.beyond = named<padding>(paddings, word);
        } else if (key == "threads") {
            words >> x.threads;
        } else if (key == "numbers") {
            words >> x.numbers;
            x.alike = words >> word && word == "alike";
        } else {
            throw std::runtime_error("not a line of a program: " + line);
        }
    }
    if (x.run == way::segments && std::accumulate(x.rows.begin(), x.rows.end(), std::size_t{0}) != x.of.steps)
        throw std::runtime_error("the segments of a program must have all its steps");
    if (x.run == way::growing && x.rows.size() != x.of.steps)
        throw std::runtime_error("a memory that grows needs its positions at each step");
    if (x.lengths.size() != x.of.rows) throw std::runtime_error("a program needs one length for each row");
    return x;
}

void draw_growth(chooser& choose, program& x)
{
    std::size_t now = choose.below(x.of.positions + 1);
    for (std::size_t s = 0; s < x.of.steps; ++s) {
        x.rows.push_back(now);
        now = std::min(x.of.positions, now + choose.among({0, 1, 1, 1, 2, 9}));
    }
}

outcome step_by_step(std::size_t rows, std::size_t steps, const numbers& contexts)
{
    outcome all;
    const std::size_t width = rows * steps == 0 ? 0 : contexts.size() / (rows * steps);
    for (std::size_t s = 0; s < steps; ++s) {
        all.emplace_back();
        for (std::size_t b = 0; b < rows; ++b) {
            const double* const from = contexts.data() + (b * steps + s) * width;
            all.back().insert(all.back().end(), from, from + width);
        }
    }
    return all;
}

outcome segment_by_segment(const program& x, const outcome& segments)
{
    outcome all;
    for (std::size_t i = 0; i < segments.size(); ++i) {
        const outcome some = step_by_step(x.of.rows, x.rows[i], segments[i]);
        all.insert(all.end(), some.begin(), some.end());
    }
    return all;
}

outcome contexts_of(const outcome& all)
{
    outcome contexts;
    for (std::size_t k = 0; k < all.size(); k += 2) contexts.push_back(all[k]);
    return contexts;
}

program draw(const table& lines, std::uint64_t seed)
{
    chooser choose{heed::mix(seed)};
    program x;
    x.numbers = heed::mix(seed + 1) >> 40;
    if (choose.once_in(10)) {
        draw_heads(choose, x);
        return x;
    }
    const bool very_long = choose.once_in(500);
    for (;;) {
        const row& line = lines[choose.below(lines.size())];
        if (!line.judged || !interpreted(*line.judged)) continue;
        if (very_long && !quick(line)) continue;
        x.score = line.score;
        x.normalizer = line.normalizer;
        x.combiner = line.combiner;
        break;
    }
    x.of.rows = choose.among({0, 1, 1, 2, 3, 4});
    x.of.positions = choose.among({0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33});
    x.of.steps = choose.among({0, 1, 1, 2, 2, 3, 3, 4, 5, 9});
    x.of.width = choose.among({1, 2, 3, 4, 4, 5, 7, 8, 9, 16, 17});
    x.of.hidden = choose.among({1, 2, 3, 4, 5, 7, 8, 9, 16, 17});
    if (x.score.find("grouped") != std::string::npos) x.of.groups = choose.among({1, 2, x.of.width, 2});
    x.of.width += x.of.width % divisor_of_width(x);  // 1 and 2 or the width itself
    draw_settings(choose, line_of(lines, x).judged->settings(), x);
    for (std::size_t b = 0; b < x.of.rows; ++b) {
        const std::size_t some = choose.below(x.of.positions + 1);
        x.lengths.push_back(choose.among({0, std::min<std::size_t>(1, x.of.positions), some, x.of.positions, some}));
    }
    x.run = static_cast<way>(choose.below(std::size(ways)));
    const many queries = line_of(lines, x).queries;
    if ((x.run == way::at_once || x.run == way::causal) && (queries == many::tiles || queries == many::linear) &&
        x.of.rows > 0 && x.score != "location" && choose.once_in(4)) {
        draw_tiles(choose, x);
    }
    x.beyond = static_cast<padding>(choose.below(std::size(paddings)));
    x.threads = choose.among({1, 1, 1, 2});
    if (very_long || (x.run == way::in_float && quick(line_of(lines, x)) && choose.once_in(20))) {
        x.run = way::in_float;
        x.of = {.rows = 1, .positions = 20000, .steps = 2, .width = 2, .hidden = 2};
        if (very_long) x.of.positions = choose.among({100000, 100000, 100000, 100000, 1000000});
        if (very_long) x.of.steps = x.normalizer == "temporal" ? 2 : 1;
        x.lengths = {x.of.positions};
        x.alike = very_long || choose.once_in(2);
        x.threads = 1;
    }
    if (x.run == way::rows && (x.of.rows == 0 || x.of.steps == 0)) x.run = way::steps;
    if (x.run == way::rows) {
        for (std::size_t i = choose.below(4) + 1; i > 0; --i) x.rows.push_back(choose.below(x.of.rows));
    }
    if (x.run == way::growing && !line_of(lines, x).judged->grows) x.run = way::steps;
    if (x.run == way::growing) draw_growth(choose, x);
    if (x.run == way::segments) {
        const std::size_t first = choose.below(x.of.steps + 1), second = choose.below(x.of.steps - first + 1);
        x.rows = {first, second, x.of.steps - first - second};
    }
    static const std::set<std::string> with_jumps{"argmax", "local_p", "monotonic_hard", "top_k"};
    if (x.run == way::in_float && with_jumps.contains(x.normalizer)) x.run = way::steps;
    if (x.run == way::curvature && !line_of(lines, x).judged->differentiable) x.run = way::steps;
    if ((x.run == way::on_tape || x.run == way::curvature) && x.of.steps == 0)
        x.run = way::steps;  // a loss without terms has no gradient
    if (x.run == way::on_tape) x.what = static_cast<taped>(choose.among({0, 0, 0, 1, 2, 3}));
    if (x.run == way::steps && !choose.once_in(3)) {
        draw_mask(choose, x, x.of.rows);
        x.additive = choose.once_in(2);
    } else if (x.run == way::on_tape && x.what == taped::everything && choose.once_in(2)) {
        draw_mask(choose, x, x.of.rows);
        x.additive = true;
    }
    if (x.visible.empty()) x.additive = false;
    return x;
}

void draw_tiles(chooser& choose, program& x)
{
    static constexpr std::size_t sizes[][2] = {{9, 456}, {17, 250}, {70, 60}, {128, 33}};
    const auto& [steps, positions] = sizes[choose.below(std::size(sizes))];
    x.of.rows = choose.among({1, 2});
    x.of.steps = steps;
    x.of.positions = positions;
    x.lengths.clear();
    for (std::size_t b = 0; b < x.of.rows; ++b)
        x.lengths.push_back(choose.among({choose.below(positions + 1), positions, positions - 1}));
}

std::string fault_of(const table& lines, const program& x)
{
    try {
        if (x.threads != heed::threads()) heed::set_threads(x.threads);
        if (x.form.empty()) {
            check(lines, x);
        } else {
            check_heads(x);
        }
        return "";
    } catch (const interpreter::divides_by_subnormal&) {
        return "";
    } catch (const std::exception& e) {
        return e.what();
    }
}

program shrunk(const table& lines, program x)
{
    for (;;) {
        const std::vector<program> all = simpler(lines, x);
        const auto fails = [&](const program& y) { return !fault_of(lines, y).empty(); };
        const auto smaller = std::find_if(all.begin(), all.end(), fails);
        if (smaller == all.end()) return x;
        x = *smaller;
    }
}

}  // namespace composition
