// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <heed/normalize/inner.hpp>
#include <heed/verify/problem.hpp>

/// What heed promises of every mechanism, one function a promise. Each throws `broken` with the place where the promise
/// fails, or gives a word on what was compared.
namespace heed::detail::verifying {

/// A promise that does not hold; the message says where.
struct broken : error {
    using error::error;
};

// The last bits may differ where BLAS sums in another order for another number of rows, or a kernel does.
inline constexpr double rounding = 1e-11;

template <class T, class U>
std::string require_close(const outcome<T>& is, const outcome<U>& must, double tolerance, const std::string& what)
{
    const disagreement most = compare(is, must);
    if (!(most.worst <= tolerance)) throw broken(what + ": " + most.where);
    if (most.worst == 0) return "no difference";
    char text[64];
    std::snprintf(text, sizeof text, "greatest difference %.1e", most.worst);
    return text;
}

template <class T>
void require_same_bits(const outcome<T>& is, const outcome<T>& must, const std::string& what)
{
    const std::string where = differing_bits(is, must);
    if (!where.empty()) throw broken(what + ": " + where);
}

template <class T>
void require_finite(const outcome<T>& is, const std::string& what)
{
    const std::string where = not_finite(is);
    if (!where.empty()) throw broken(what + ": " + where);
}

/// Is this one attention, not several put together as in multi_head?
template <class Mechanism>
concept one_attention = requires(const Mechanism& attend)
{
    attend.score;
    attend.normalize;
};

/// What says which of a mechanism's results can be compared, see normalize/inner.hpp: the normalizer of an attention,
/// any other mechanism itself.
template <class Mechanism>
struct speaker {
    using type = Mechanism;
};
template <one_attention Mechanism>
struct speaker<Mechanism> {
    using type = std::remove_cvref_t<decltype(std::declval<Mechanism>().normalize)>;
};
template <class Mechanism>
using normalizer_of = typename speaker<Mechanism>::type;

/// The gradient by parameters, annotations and queries, through all steps and their history.
std::string check_gradient(auto p, const auto& at)
{
    if constexpr (!differentiable_inside<normalizer_of<decltype(p.attend)>>())
        return "not differentiable: not compared";
    const auto tried =
        ad::grad_check(p, [&](auto&, const auto& lifted) { return loss<form::step, true, double>(lifted, at); });
    if (!tried) throw broken(tried.text());
    return tried.text();
}

/// What was recorded and what was only computed are the same numbers.
std::string check_families(const auto& p, const auto& at)
{
    ad::tape<double> on;
    return require_close(results<form::step, double>(ad::lift(on, p), at), results<form::step, double>(p, at), rounding,
                         "on the tape against without");
}

/// Rows without any position, and a batch without any position.
std::string check_empty_rows(const auto& p, const auto& at)
{
    const auto shape = shape_of(p.annotations);
    std::size_t rows = 0;
    const auto require_zero = [&](const auto& numbers, const lengths& real) {
        for (const auto& s : numbers) {
            const std::size_t row = s.values.size() / real.batch();
            for (std::size_t i = 0; i < s.values.size(); ++i) {
                if (real[i / row] == 0 && s.values[i] != 0) {  // true for NaN as well
                    throw broken("row " + std::to_string(i / row) + " has no position, but the " + s.name + "[" +
                                 std::to_string(i) + "] is " + std::to_string(s.values[i]) + ", not 0");
                }
            }
        }
    };
    const auto check = [&](const auto& problem, const auto& setting) {
        const auto values = results<form::step, double>(problem, setting);
        require_zero(values, setting.real);
        require_finite(values, "with an empty row");
        const auto slopes = gradients<form::step, true, double>(problem, setting);
        require_finite(slopes, "with an empty row");
        // By the annotations and the queries of that row; parameters get what the other rows give them.
        require_zero(
            outcome<double>(slopes.end() - 1 - static_cast<std::ptrdiff_t>(problem.parts.size()), slopes.end()),
            setting.real);
        for (std::size_t b = 0; b < setting.real.batch(); ++b) rows += setting.real[b] == 0;
    };
    auto setting = at;
    for (const std::size_t empty : {std::size_t{0}, shape[0] - 1}) {  // the first row, the last row
        std::vector<std::size_t> counts(at.real.data(), at.real.data() + shape[0]);
        counts[empty] = 0;
        setting.real = lengths(std::move(counts));
        check(p, setting);
    }
    setting.real = lengths::full(shape[0], 0);
    check(p, setting);  // there are positions, but none is real
    auto nothing = p;
    nothing.annotations = array<double, 3>(shape_of_rank<3>{shape[0], 0, shape[2]});
    check(nothing, setting);
    return std::to_string(rows) + " rows without a position";
}

/// Whatever lies behind the lengths.
std::string check_padding(const auto& p, const auto& at)
{
    const auto values = results<form::step, double>(p, at);
    const auto slopes = gradients<form::step, true, double>(p, at);
    const auto shape = shape_of(p.annotations);
    const double infinite = std::numeric_limits<double>::infinity();
    auto other = p;
    for (const double rubbish : {std::numeric_limits<double>::quiet_NaN(), infinite, -infinite, 1e30, -1.0}) {
        for (std::size_t b = 0; b < shape[0]; ++b) {
            for (std::size_t i = at.real[b] * shape[2]; i < shape[1] * shape[2]; ++i) {
                other.annotations.data()[b * shape[1] * shape[2] + i] = rubbish;
            }
        }
        const std::string what = "with " + std::to_string(rubbish) + " in the padding";
        require_same_bits(results<form::step, double>(other, at), values, what);
        require_same_bits(results<form::read, double>(other, at), results<form::read, double>(p, at), what);
        require_same_bits(gradients<form::step, true, double>(other, at), slopes, what);
    }
    for (const auto& s : values) {
        const std::size_t positions = shape[0] * shape[1];
        if (!s.name.starts_with("weights") || positions == 0) continue;
        const std::size_t width = s.values.size() / positions;
        for (std::size_t i = 0; i < s.values.size(); ++i) {
            // Positions come first in the weights of an attention, [T,D], and last where there are several, [n,T].
            const std::size_t position = (one_attention<decltype(p.attend)> ? i / width : i) % shape[1];
            if (position >= at.real[i / (width * shape[1])] && s.values[i] != 0) {
                throw broken("behind the length, the " + s.name + "[" + std::to_string(i) + "] is " +
                             std::to_string(s.values[i]) + ", not 0");
            }
        }
    }
    return "no bit changes with NaN, inf, -inf, 1e30 or -1";
}

/// The rows [b, b + 1) of x, and of its second axis the first `count`.
inline array<double, 3> one_row(const array<double, 3>& x, std::size_t b, std::size_t count)
{
    const auto shape = shape_of(x);
    array<double, 3> row(shape_of_rank<3>{1, count, shape[2]});
    std::copy_n(x.data() + b * shape[1] * shape[2], count * shape[2], row.data());
    return row;
}

/// Each sentence without its companions and without padding.
std::string check_alone(const auto& p, const auto& at)
{
    if constexpr (random_inside<normalizer_of<decltype(p.attend)>>()) return "drawn at random: not compared";
    const auto together = results<form::step, double>(p, at);
    const auto shape = shape_of(p.annotations);
    double worst = 0;
    for (std::size_t b = 0; b < shape[0]; ++b) {
        auto alone = p;
        alone.annotations = one_row(p.annotations, b, at.real[b]);
        for (auto& part : alone.parts) part = one_row(part, b, at.steps);
        auto setting = at;
        setting.real = lengths{at.real[b]};
        outcome<double> must;
        for (const auto& s : together) {
            const std::size_t row = s.values.size() / shape[0];
            const bool has_padding = s.name.starts_with("weights") && shape[1] != 0;
            const std::size_t times = has_padding && !one_attention<decltype(p.attend)> ? row / shape[1] : 1;
            const std::size_t stretch = row / times, kept = has_padding ? stretch / shape[1] * at.real[b] : stretch;
            series<double> real{s.name, {}};
            for (std::size_t i = 0; i < times; ++i) {
                const auto first = s.values.begin() + static_cast<std::ptrdiff_t>(b * row + i * stretch);
                real.values.insert(real.values.end(), first, first + static_cast<std::ptrdiff_t>(kept));
            }
            must.push_back(std::move(real));
        }
        const auto is = results<form::step, double>(alone, setting);
        require_close(is, must, rounding, "row " + std::to_string(b) + " alone against in the batch");
        worst = std::max(worst, compare(is, must).worst);
    }
    return worst == 0 ? "no difference" : "a few units in the last place apart";
}

/// Scores of ±1e4 in float: finite, and what double finds. The normalizer is shown them directly.
std::string check_large_scores(const auto& p, const auto& at) requires(!one_attention<decltype(p.attend)>)
{
    (void)at;
    return "several scores: not compared here, verify shows it of each attention by itself";
}
std::string check_large_scores(const auto& p, const auto& at)
{
    using score_type = std::remove_cvref_t<decltype(p.attend.score)>;
    const auto shape = shape_of(p.annotations);
    shape_of_rank<3> score_shape{shape[0], shape[1], 1};
    if constexpr (score_type::weights == weight_kind::per_dimension) score_shape[2] = shape[2];
    if constexpr (score_type::weights == weight_kind::per_group) score_shape[2] = p.attend.score.groups();

    const auto answer = [&]<class T>(const auto& problem, T) {
        std::pair<outcome<T>, outcome<T>> first_and_later;
        ad::tape<T> on;
        const auto lifted = ad::lift(on, problem);
        std::vector<ad::var<T, 3>> scores;
        std::vector<ad::var<T, 0>> terms;
        const auto mechanism = [&](std::size_t s) {
            array<T, 3> e(score_shape);
            for (std::size_t i = 0; i < e.size(); ++i) {  // ±1e4, some of them within a few units: exact in float
                const double sign = (i * 7 + s * 3) % 5 < 3 ? 1 : -1;
                e.data()[i] = static_cast<T>(sign * 1e4 + static_cast<double>((i * 5 + s) % 4) * 0.5);
            }
            scores.push_back(on.parameter(tensor_view<const T, 3>{on.keep(e.data(), e.size()), score_shape}));
            return attention{given_scores{lifted.attend.score, scores.back()}, lifted.attend.normalize,
                             lifted.attend.combine};
        };
        const auto keep = [&](std::size_t s, const auto& now) {
            append(s == 0 ? first_and_later.first : first_and_later.second, named("weights", s), now.weights);
            terms.push_back(ops::inner(now.context, uneven<T>(now.context.shape(), s)));
        };
        auto now = [&] {
            const auto attend = mechanism(0);
            const auto memory = attend.on(lifted.annotations, at.real);
            return attend.step(memory, at.query(lifted.parts, 0), attend.start(memory));
        }();
        keep(0, now);
        for (std::size_t s = 1; s < at.steps; ++s) {
            const auto attend = mechanism(s);
            now = attend.step(attend.on(lifted.annotations, at.real), at.query(lifted.parts, s), now.state);
            keep(s, now);
        }
        ad::var<T, 0> sum = terms.front();
        for (std::size_t i = 1; i < terms.size(); ++i) sum = ops::add(sum, terms[i]);
        on.backward(sum);
        outcome<T> slopes;
        for (std::size_t s = 0; s < scores.size(); ++s)
            append(slopes, named("gradient by the scores", s), on.gradient(scores[s]));
        require_finite(first_and_later.first, "with scores of 1e4");
        require_finite(first_and_later.second, "with scores of 1e4");
        require_finite(slopes, "with scores of 1e4");
        return first_and_later;
    };
    const auto in_double = answer(p, 0.0);
    const auto in_float = answer(converted<float>(p), 0.0f);
    require_close(in_float.first, in_double.first, 1e-5, "scores of 1e4 in float against double");
    // A float of 1e4 has steps of 1e-3, and so has what a mechanism remembers of such scores.
    require_close(in_float.second, in_double.second, 5e-3, "scores of 1e4 in float against double, later steps");
    return "finite, and in float as in double";
}

/// The whole mechanism in float.
std::string check_float(const auto& p, const auto& at)
{
    const auto single = converted<float>(p);
    require_finite(gradients<form::step, true, float>(single, at), "in float");
    return require_close(results<form::step, float>(single, at), results<form::step, double>(p, at), 1e-3,
                         "float against double");
}

/// read against step.
std::string check_weights_do_not_matter(const auto& p, const auto& at)
{
    auto contexts = results<form::step, double>(p, at);
    std::erase_if(contexts, [](const auto& s) { return s.name.starts_with("weights"); });
    require_same_bits(results<form::read, double>(p, at), contexts, "without the weights");
    return require_close(gradients<form::read, false, double>(p, at), gradients<form::step, false, double>(p, at),
                         rounding, "without the weights");
}

/// The same bits again.
std::string check_repeatable(const auto& p, const auto& at)
{
    require_same_bits(results<form::step, double>(p, at), results<form::step, double>(p, at), "the second run");
    require_same_bits(gradients<form::step, true, double>(p, at), gradients<form::step, true, double>(p, at),
                      "the second run");
    return "no bit changes";
}

/// All that a mechanism remembers is in its state: from an old state it answers as it did then.
std::string check_nothing_hidden(const auto& p, const auto& at)
{
    const auto memory = p.attend.on(p.annotations, at.real);
    const auto start = p.attend.start(memory);
    const auto answers = [&](auto state) {
        outcome<double> all;
        for (std::size_t s = 0; s < at.steps; ++s) {
            auto now = p.attend.step(memory, at.query(p.parts, s), state);
            append(all, named("context", s), now.context);
            append(all, named("weights", s), now.weights);
            state = std::move(now.state);
        }
        return all;
    };
    const auto once = answers(start);
    require_same_bits(answers(start), once, "again from the first state");
    return "an old state gives the old answers";
}

/// attend(memory, queries) against one step after the other.
std::string check_at_once(const auto& p, const auto& at)
{
    require_close(results<form::at_once, double>(p, at), results<form::read, double>(p, at), rounding,
                  "all queries at once against one by one");
    return require_close(gradients<form::at_once, false, double>(p, at), gradients<form::read, false, double>(p, at),
                         rounding, "all queries at once against one by one");
}

/// step, with fused kernels where there are any, against score, normalize and combine one after the other.
std::string check_composed(const auto& p, const auto& at)
{
    require_close(results<form::step, double>(p, at), results<form::compose, double>(p, at), rounding,
                  "step against compose");
    return require_close(gradients<form::step, true, double>(p, at), gradients<form::compose, true, double>(p, at),
                         rounding, "step against compose");
}

/// step_into, state in place, against step.
std::string check_step_into(const auto& p, const auto& at)
{
    require_same_bits(results<form::step_into, double>(p, at), results<form::step, double>(p, at),
                      "step_into against step");
    return "no difference";
}

/// Does the state of an attention hold numbers for each position?
template <class State>
concept remembers_positions = requires(const State& state)
{
    requires !std::is_empty_v<std::remove_cvref_t<decltype(state.normalize)>>;
};

/// Whatever does not fit together throws shape_error and leaves the results as they were.
std::string check_shapes(const auto& p, const auto& at)
{
    const auto shape = shape_of(p.annotations);
    const std::size_t B = shape[0], T_ = shape[1], D = shape[2];
    std::size_t refused = 0;
    const auto require_refused = [&](const std::string& what, auto&& act) {
        std::string message;
        try {
            act();
        } catch (const shape_error& e) {
            message = e.what();
        } catch (const std::exception& e) {
            throw broken(what + " throws something else than shape_error: " + e.what());
        }
        if (message.empty()) throw broken(what + " is not refused: shape_error expected");
        ++refused;
    };
    require_refused("one length too many", [&] { p.attend.on(p.annotations, lengths::full(B + 1, T_)); });
    require_refused("a length beyond the last position", [&] { p.attend.on(p.annotations, lengths::full(B, T_ + 1)); });

    const auto memory = p.attend.on(p.annotations, at.real);
    const auto start = p.attend.start(memory);
    auto result = p.attend.step(memory, at.query(p.parts, 0), start);
    const auto written = [&] {
        outcome<double> all;
        append(all, "context", result.context);
        append(all, "weights", result.weights);
        return all;
    };
    const auto before = written();
    const auto refuse_query = [&](const std::string& what, std::size_t part, const shape_of_rank<3>& misfit) {
        auto wrong = p.parts;
        wrong[part] = normal_numbers<double>(misfit, 1);
        require_refused(what, [&] { p.attend.step(memory, at.query(wrong, 0), start); });
        require_refused(what, [&] { p.attend.step_into(result, memory, at.query(wrong, 0), start); });
        require_same_bits(written(), before, what + " throws, but has written");
    };
    const auto slopes = gradients<form::step, true, double>(p, at);
    for (std::size_t i = 0; i < p.parts.size(); ++i) {
        const auto& by_query = slopes[slopes.size() - p.parts.size() + i].values;
        // A mechanism that does not look at this part may not notice.
        if (std::all_of(by_query.begin(), by_query.end(), [](double x) { return x == 0; })) continue;
        const auto [rows, steps, width] = shape_of(p.parts[i]);
        const std::string name = at.layout[i].name;
        refuse_query("a " + name + " with a column too many", i, {rows, steps, width + 1});
        refuse_query("a " + name + " with a row too many", i, {rows + 1, steps, width});
        if (rows > 1) refuse_query("a " + name + " with a row too few", i, {rows - 1, steps, width});
    }
    if constexpr (remembers_positions<decltype(start)>) {
        const auto shorter = p.attend.on(array<double, 3>(shape_of_rank<3>{B, T_ + 1, D}, 0.0), at.real);
        const auto alien = p.attend.start(shorter);
        require_refused("the state of another batch", [&] { p.attend.step(memory, at.query(p.parts, 0), alien); });
    }
    return std::to_string(refused) + " misfits refused";
}

/// Saving and optimising go by name.
std::string check_names(const auto& p)
{
    std::set<std::string> names;
    std::size_t count = 0;
    for_each_parameter(p.attend, [&](const std::string& name, const auto&) {
        ++count;
        if (!names.insert(name).second) throw broken("two parameters are named \"" + name + "\"");
    });
    return std::to_string(count) + " parameters";
}

}  // namespace heed::detail::verifying
