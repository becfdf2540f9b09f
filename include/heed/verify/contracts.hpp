// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/combine/weighted_sum.hpp>
#include <heed/policy/weigh.hpp>
#include <heed/verify/problem.hpp>
#include <heed/verify/requirements.hpp>

/// heed's contracts, one function each. A function throws `broken` or returns a short description of the comparison.
/// verify.hpp names the contracts.
namespace heed::inline HEED_TARGET::detail::verifying {

template <class Mechanism>
concept one_attention = requires(const Mechanism& attend)
{
    attend.score;
    attend.normalize;
};

/// The object with the traits that determine which results can be compared: a normalizer, or a mechanism of several
/// attentions.
template <class Mechanism>
const auto& speaker_of(const Mechanism& attend)
{
    if constexpr (one_attention<Mechanism>) {
        return attend.normalize;
    } else {
        return attend;
    }
}
template <class Mechanism>
using normalizer_of = std::remove_cvref_t<decltype(speaker_of(std::declval<const Mechanism&>()))>;

/// Does a mechanism, or one of its parts, distinguish between hiding the last positions and shortening the row?
template <class Mechanism>
consteval bool length_counts();

template <class Several>
struct any_length_counts;
template <class M>
struct any_length_counts<std::vector<M>> : std::bool_constant<length_counts<M>()> {};
template <class... M>
struct any_length_counts<std::tuple<M...>> : std::bool_constant<(length_counts<M>() || ...)> {};

template <class Mechanism>
consteval bool length_counts()
{
    if constexpr (one_attention<Mechanism>) {
        return normalizer_traits_of<normalizer_of<Mechanism>>().reads_length ||
               score_traits_of<std::remove_cvref_t<decltype(std::declval<Mechanism>().score)>>().reads_length;
    } else if constexpr (requires(const Mechanism& m) { m.heads; }) {
        return any_length_counts<std::remove_cvref_t<decltype(std::declval<Mechanism>().heads)>>::value;
    } else if constexpr (requires(const Mechanism& m) { m.hops; }) {
        return any_length_counts<std::remove_cvref_t<decltype(std::declval<Mechanism>().hops)>>::value;
    } else {
        return requires { requires Mechanism::reads_length; };
    }
}

/// The part of an attention's state without a `map` to select rows; null if both have it.
template <class State>
consteval const char* part_without_map()
{
    if constexpr (requires(const State& state) { state.normalize, state.score; }) {
        if constexpr (!requires(const State& state, selected f) { state.normalize.map(f); }) return "the normalizer";
        if constexpr (!requires(const State& state, selected f) { state.score.map(f); }) return "the score";
    }
    return nullptr;
}

/// Verification starts from arrays of double; they are converted for float.
struct requires_double {
    template <class Tensor>
    visited operator()(const std::string&, const Tensor&) const
    {
        static_assert(std::is_same_v<element_of<Tensor>, double> && plain_tensor<Tensor>,
                      "heed: verify requires arrays of double as parameters; it converts them to float itself");
        return {};
    }
};

std::string check_first_run(const auto& p, const auto& at)
{
    require_finite(results<form::step, double>(p, at), "in a first run");
    const auto [B, T, D] = shape_of(p.annotations);
    return "B " + std::to_string(B) + ", T " + std::to_string(T) + ", D " + std::to_string(D);
}

std::string check_gradient(const auto& p, const auto& at)
{
    if constexpr (!normalizer_traits_of<normalizer_of<decltype(p.attend)>>().differentiable) {
        return "not differentiable: not compared";
    } else {
        auto moved = p;
        const ad::grad_check_result tried = ad::grad_check(moved, loss_for<form::step, true>(at));
        if (!tried) throw broken(tried.text());
        return tried.text();
    }
}

std::string check_families(const auto& p, const auto& at)
{
    ad::tape<double> on;
    return require_close(results<form::step, double>(ad::lift(on, p), at), results<form::step, double>(p, at), rounding,
                         "on the tape against off the tape");
}

std::string check_empty_rows(const auto& p, const auto& at)
{
    const auto shape = shape_of(p.annotations);
    auto setting = at;
    std::size_t rows = 0;
    const auto check = [&setting, &rows](const auto& problem) {
        // With respect to the annotations and queries of that row; parameters get gradients from the other rows.
        rows += require_empty_rows(results<form::step, double>(problem, setting),
                                   gradients<form::step, true, double>(problem, setting), 1 + problem.parts.size(),
                                   setting.real);
    };
    for (const std::size_t empty : {std::size_t{0}, shape[0] - 1}) {  // the first row, the last row
        std::vector<std::size_t> counts(at.real.data(), at.real.data() + shape[0]);
        counts[empty] = 0;
        setting.real = lengths(std::move(counts));
        check(p);
    }
    setting.real = lengths::full(shape[0], 0);
    check(p);  // there are positions, but none is real
    auto nothing = p;
    nothing.annotations = array<double, 3>(shape_of_rank<3>{shape[0], 0, shape[2]});
    check(nothing);
    return std::to_string(rows) + " rows without positions";
}

std::string check_padding(const auto& p, const auto& at)
{
    const auto values = results<form::step, double>(p, at);
    const auto contexts = results<form::read, double>(p, at);
    const auto slopes = gradients<form::step, true, double>(p, at);
    const double infinite = std::numeric_limits<double>::infinity();
    auto other = p;
    for (const double rubbish : {std::numeric_limits<double>::quiet_NaN(), infinite, -infinite, 1e30, -1.0}) {
        other.annotations = padded_with(rubbish, p.annotations, at.real);
        const std::string what = "with " + std::to_string(rubbish) + " in the padding";
        require_same_bits(results<form::step, double>(other, at), values, what);
        require_same_bits(results<form::read, double>(other, at), contexts, what);
        require_same_bits(gradients<form::step, true, double>(other, at), slopes, what);
    }
    require_no_weight_where_hidden(values, as_mask(at.real, shape_of(p.annotations)[1]),
                                   one_attention<decltype(p.attend)>, "beyond the length");
    return "no bit changes with NaN, inf, -inf, 1e30 or -1";
}

std::string check_alone(const auto& p, const auto& at)
{
    if constexpr (draws<normalizer_of<decltype(p.attend)>>) {
        return "drawn at random: not compared";
    } else {
        const auto together = results<form::step, double>(p, at);
        const auto [B, T, D] = shape_of(p.annotations);
        auto alone = p;
        auto setting = at;
        double worst = 0;
        for (std::size_t b = 0; b < B; ++b) {
            alone.annotations = one_row(p.annotations, b, at.real[b]);
            for (std::size_t i = 0; i < p.parts.size(); ++i) alone.parts[i] = one_row(p.parts[i], b, at.steps);
            setting.real = lengths{at.real[b]};
            const auto must = results_of_row(together, b, at.real, T, one_attention<decltype(p.attend)>);
            const auto is = results<form::step, double>(alone, setting);
            require_close(is, must, rounding, "row " + std::to_string(b) + " alone against the same row in the batch");
            worst = std::max(worst, compare(is, must).worst);
        }
        return worst == 0 ? "no difference" : "a few units in the last place apart";
    }
}

/// The combiner of given scores; a plain sum for one that computes values from keys.
template <class Combine>
const auto& combine_of_given(const Combine& combine)
{
    if constexpr (has_prepare_values<std::remove_cvref_t<decltype(heed::summing(combine))>>) {
        static constexpr heed::combine::weighted_sum plain{};
        return plain;
    } else {
        return combine;
    }
}

/// A mechanism's results with scores[s] instead of its scores at step s.
template <weight_kind kind, class Scores>
auto answers_to_scores(const std::vector<Scores>& scores, const auto& p, const auto& at)
{
    const auto mechanism = [&](std::size_t s) {
        return attention{given_scores<kind, Scores>{scores[s]}, p.attend.normalize, combine_of_given(p.attend.combine)};
    };
    const auto first = mechanism(0);
    const auto start = first.start(first.on(p.annotations, at.real));
    return answers_from(start, at.steps, [&](std::size_t s, const auto& before) {
        const auto attend = mechanism(s);
        return attend.step(attend.on(p.annotations, at.real), at.query(p.parts, s), before);
    });
}

/// The weights of the first step and those of the later ones, if they are finite.
template <class T>
std::pair<outcome<T>, outcome<T>> first_and_later(const auto& given)
{
    std::pair<outcome<T>, outcome<T>> both;
    for (std::size_t s = 0; s < given.weights.size(); ++s) {
        append(s == 0 ? both.first : both.second, named("weights", s), given.weights[s]);
    }
    require_finite(both.first, "with scores of 1e4");
    require_finite(both.second, "with scores of 1e4");
    return both;
}

/// Scores of ±1e4: weights and gradients are finite, and the weights in float agree with double. The normalizer gets
/// the scores directly.
std::string check_large_scores(const auto& p, const auto& at)
{
    if constexpr (!one_attention<decltype(p.attend)>) {
        return "several scores: not compared; verify each attention separately";
    } else {
        constexpr weight_kind kind = std::remove_cvref_t<decltype(p.attend.score)>::traits.weights;
        const auto shape = shape_of(p.annotations);
        shape_of_rank<3> score_shape{shape[0], shape[1], 1};
        if constexpr (kind == weight_kind::per_dimension) score_shape[2] = shape[2];
        if constexpr (kind == weight_kind::per_group) score_shape[2] = p.attend.score.groups();
        const auto weights = [&]<class T>(ad::tape<T> on, const auto& problem) {
            std::vector<ad::var<T, 3>> scores;
            std::vector<ad::named_variable<T>> variables;
            for (std::size_t s = 0; s < at.steps; ++s) {
                auto e = large_scores<T>(score_shape, s);
                if constexpr (normalizer_traits_of<normalizer_of<decltype(p.attend)>>().requires_nonnegative) {
                    for (T& x : e) x = std::abs(x);
                }
                const tensor_view<const T, 3> kept{on.keep(e.data(), e.size()), score_shape};
                const auto& x = scores.emplace_back(on.parameter(kept));
                variables.push_back({"the scores" + named("", s), {on, x.slot(), {x.size()}}});
            }
            const auto given = answers_to_scores<kind>(scores, ad::lift(on, problem), at);
            require_finite(gradients_by(variables, loss_of<false, T>(given), "gradient by "), "with scores of 1e4");
            return first_and_later<T>(given);
        };
        const auto in_double = weights(ad::tape<double>(), p);
        const auto in_float = weights(ad::tape<float>(), converted<float>(p));
        require_close(in_float.first, in_double.first, 1e-5, "scores of 1e4 in float against double");
        // Floats near 1e4 are 1e-3 apart, and so are states computed from such scores.
        require_close(in_float.second, in_double.second, 5e-3, "scores of 1e4 in float against double, later steps");
        return "finite, and float agrees with double";
    }
}

std::string check_float(const auto& p, const auto& at)
{
    const auto single = converted<float>(p);
    require_finite(gradients<form::step, true, float>(single, at), "in float");
    return require_close(results<form::step, float>(single, at), results<form::step, double>(p, at), 1e-3,
                         "float against double");
}

std::string check_weights_do_not_matter(const auto& p, const auto& at)
{
    auto contexts = results<form::step, double>(p, at);
    std::erase_if(contexts, [](const auto& s) { return s.name.starts_with("weights"); });
    require_same_bits(results<form::read, double>(p, at), contexts, "without the weights");
    return require_close(gradients<form::read, false, double>(p, at), gradients<form::step, false, double>(p, at),
                         rounding, "without the weights");
}

std::string check_repeatable(const auto& p, const auto& at)
{
    require_same_bits(results<form::step, double>(p, at), results<form::step, double>(p, at), "the second run");
    require_same_bits(gradients<form::step, true, double>(p, at), gradients<form::step, true, double>(p, at),
                      "the second run");
    return "no bit changes";
}

std::string check_nothing_hidden(const auto& p, const auto& at)
{
    const auto memory = p.attend.on(p.annotations, at.real);
    const auto start = p.attend.start(memory);
    const auto run_again = [&] {
        return numbers_in<double>(answers_from(start, at.steps, [&](std::size_t s, const auto& before) {
            return p.attend.step(memory, at.query(p.parts, s), before);
        }));
    };
    const auto once = run_again();
    require_same_bits(run_again(), once, "again from the first state");
    return "an old state gives the old results";
}

std::string check_rows(const auto& p, const auto& at)
{
    if constexpr (draws<normalizer_of<decltype(p.attend)>>) {
        return "drawn at random: not compared";
    } else {
        using state = decltype(p.attend.start(p.attend.on(p.annotations, at.real)));
        constexpr const char* lacking = part_without_map<state>();
        if constexpr (lacking != nullptr) {
            throw broken(lacking +
                         std::string("'s state has no map(f, others...), so beam search cannot select its rows"));
        } else {
            const std::size_t batch = at.real.batch();
            const auto rows = surviving_rows(batch);
            return require_selected(results_of_rows(rows, p, at), results_of_rows({}, p, at), batch, rows);
        }
    }
}

std::string check_masks(const auto& p, const auto& at)
{
    const auto [B, T, D] = shape_of(p.annotations);
    const boolean_mask<2> holes = mask_with_holes(B, T);
    require_obeyed(results<form::step, double>(p, at, holes), results<form::step, double>(p, at, as_bias(holes)), holes,
                   one_attention<decltype(p.attend)>);
    if constexpr (length_counts<std::remove_cvref_t<decltype(p.attend)>>()) {
        return "boolean and additive masks; shorter lengths are not compared, since the results depend on the length";
    } else {
        const lengths fewer = first_half(at.real);
        return require_close(results<form::step, double>(p, at, as_mask(fewer, T)),
                             results<form::step, double>(p, at, fewer), rounding,
                             "the last positions hidden against shorter lengths");
    }
}

std::string check_at_once(const auto& p, const auto& at)
{
    require_close(results<form::many_queries, double>(p, at), results<form::read, double>(p, at), rounding,
                  "all queries at once against one by one");
    return require_close(gradients<form::many_queries, false, double>(p, at),
                         gradients<form::read, false, double>(p, at), rounding,
                         "all queries at once against one by one");
}

std::string check_composed(const auto& p, const auto& at)
{
    require_close(results<form::step, double>(p, at), results<form::compose, double>(p, at), rounding,
                  "step against compose");
    return require_close(gradients<form::step, true, double>(p, at), gradients<form::compose, true, double>(p, at),
                         rounding, "step against compose");
}

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

std::string check_shapes(const auto& p, const auto& at)
{
    const auto [B, T, D] = shape_of(p.annotations);
    lengths real;
    const auto prepare = [&] { p.attend.on(p.annotations, real); };
    real = lengths::full(B + 1, T);
    require_refused("one length too many", prepare);
    real = lengths::full(B, T + 1);
    require_refused("a length beyond the last position", prepare);
    std::size_t refused = 2;

    const auto memory = p.attend.on(p.annotations, at.real);
    const auto start = p.attend.start(memory);
    auto parts = p.parts;
    const auto step = [&] { return p.attend.step(memory, at.query(parts, 0), start); };
    auto result = step();
    const auto just_step = [&] { step(); };
    const auto step_into = [&] { p.attend.step_into(result, memory, at.query(parts, 0), start); };
    const auto written = [&] {
        outcome<double> all;
        append(all, "context", result.context);
        append(all, "weights", result.weights);
        return all;
    };
    const auto slopes = gradients<form::step, true, double>(p, at);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto& by_query = slopes[slopes.size() - parts.size() + i].values;
        // A mechanism that does not read this part cannot detect a wrong shape.
        if (std::all_of(by_query.begin(), by_query.end(), [](double x) { return x == 0; })) continue;
        refused += require_misfits_refused(parts, i, at.layout[i].name, just_step, step_into, written);
    }
    if constexpr (remembers_positions<decltype(start)>) {
        const auto longer = p.attend.on(array<double, 3>(shape_of_rank<3>{B, T + 1, D}, 0.0), at.real);
        const auto alien = p.attend.start(longer);
        require_refused("the state of another batch", [&] { p.attend.step(memory, at.query(p.parts, 0), alien); });
        ++refused;
    }
    return std::to_string(refused) + " wrong shapes rejected";
}

std::string check_names(const auto& p, const auto&)
{
    ad::tape<double> on;
    std::vector<ad::named_variable<double>> parameters;
    ad::lift(on, p, parameters);
    return require_different(parameters, "attention.");
}

}  // namespace heed::inline HEED_TARGET::detail::verifying
