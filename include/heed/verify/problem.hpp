// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/core/random.hpp>
#include <heed/ops/shape.hpp>
#include <heed/ops/sums.hpp>

/// The inputs of heed::verify, a batch of generated sentences, and every way to run a mechanism on them.
namespace heed::inline HEED_TARGET::detail::verifying {

/// A broken contract; the message names the place.
struct broken : error {
    using error::error;
};

/// Named numbers, such as the context of a step or the gradient of a parameter.
template <class T>
struct series {
    std::string name;
    std::vector<T> values;
};

template <class T>
using outcome = std::vector<series<T>>;

template <class T>
void append(outcome<T>& to, std::string name, const tensor auto& x)
{
    const auto v = view_of(x);
    to.push_back({std::move(name), std::vector<T>(v.data, v.data + v.size())});
}

template <class T, std::size_t N>
array<T, N> normal_numbers(const shape_of_rank<N>& shape, std::uint64_t stream)
{
    array<T, N> x(shape);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<T>(normal(stream, i));
    return x;
}

/// Constants that give each number a different factor in a loss: equal factors would hide errors.
template <class T, std::size_t N>
array<T, N> uneven(const shape_of_rank<N>& shape, std::size_t salt)
{
    array<T, N> c(shape);
    for (std::size_t i = 0; i < c.size(); ++i) {
        c.data()[i] = static_cast<T>(std::sin(1.0 + 1.7 * static_cast<double>(i) + 0.3 * static_cast<double>(salt)) +
                                     0.05 * static_cast<double>(i % 7));
    }
    return c;
}

/// One tensor of a query that `describe` requested: "query" [Q], or "state" and "word".
struct part_layout {
    std::string name;
    std::size_t width;
};

/// A query that is one tensor [B,Q].
struct plain_query {
    std::size_t width;
    auto operator()(auto part) const { return part("query", width); }
};

inline std::vector<part_layout> layout_of(const auto& describe)
{
    std::vector<part_layout> layout;
    (void)describe([&layout](std::string_view name, std::size_t width) {
        layout.push_back({std::string(name), width});
        return array<double, 2>(shape_of_rank<2>{1, width});
    });
    return layout;
}

/// A batch with lengths T, 0, 1, about T/2, and so on, and all its queries.
struct made_up_sentences {
    array<double, 3> annotations;         // [B,T,D]
    std::vector<array<double, 3>> parts;  // of the queries, [B,S,N] each
    lengths real;
};
inline made_up_sentences sentences(const std::vector<part_layout>& layout, std::uint64_t seed, std::size_t B,
                                   std::size_t T, std::size_t S, std::size_t D)
{
    random_source source{seed};
    made_up_sentences made{normal_numbers<double, 3>({B, T, D}, source.next_stream()), {}, {}};
    for (const part_layout& part : layout) {
        made.parts.push_back(normal_numbers<double, 3>({B, S, part.width}, source.next_stream()));
    }
    std::vector<std::size_t> counts;
    for (std::size_t b = 0; b < B; ++b) {
        const std::size_t kinds[] = {T, 0, T < 1 ? T : 1, (T + 1) / 2};
        counts.push_back(kinds[b % 4]);
    }
    made.real = lengths(std::move(counts));
    return made;
}

/// A mechanism, its annotations and all queries; plain, or lifted onto a tape.
template <class Attention, class Tensor>
struct problem {
    Attention attend;
    Tensor annotations;         // [B,T,D]
    std::vector<Tensor> parts;  // of the queries, [B,S,N] each

    static auto parameters(auto& self, auto&& visit)
    {
        return verifying::problem{visit("attention", self.attend), visit("annotations", self.annotations),
                                  visit("queries", self.parts)};
    }
};
template <class Attention, class Tensor>
problem(Attention, Tensor, std::vector<Tensor>) -> problem<Attention, Tensor>;

enum class form { step, read, compose, step_into, many_queries };

/// The sentences' lengths and the queries' parts, which are the same for every family and element type.
template <class Describe>
struct setting {
    Describe describe;
    std::vector<part_layout> layout;
    lengths real;
    std::size_t steps;

    auto query(const auto& parts, std::size_t s) const
    {
        return query_of([&parts, s](std::size_t i) { return ops::step_of(parts[i], s); });
    }
    auto queries(const auto& parts) const
    {
        return query_of([&parts](std::size_t i) { return parts[i]; });
    }

private:
    /// The query with give(i) for its part number i; `describe` requests parts by name.
    auto query_of(const auto& give) const
    {
        return describe([&](std::string_view name, std::size_t) {
            std::size_t number = 0;
            while (number + 1 < layout.size() && layout[number].name != name) ++number;
            return give(number);
        });
    }
};

inline std::string named(const char* what, std::size_t step) { return what + (" of step " + std::to_string(step)); }

/// A mechanism's results, step by step.
template <class Context, class Weights>
struct answers {
    std::vector<Context> contexts;  // [B,D] each
    std::vector<Weights> weights;   // [B,T] or wider each; empty if the form returns none

    void keep(const auto& now)
    {
        contexts.push_back(now.context);
        if constexpr (tensor<Weights>) weights.push_back(now.weights);
    }
};
struct no_weights {};

/// The results of answer(s, state) for all steps, from this state on.
auto answers_from(const auto& start, std::size_t steps, const auto& answer)
{
    auto now = answer(0, start);
    const auto weights_of = [](const auto& each) {
        if constexpr (requires { each.weights; }) {
            return each.weights;
        } else {
            return no_weights{};
        }
    };
    answers<decltype(now.context), decltype(weights_of(now))> all;
    all.keep(now);
    for (std::size_t s = 1; s < steps; ++s) all.keep(now = answer(s, now.state));
    return all;
}

/// The results of a mechanism for all queries; only `step` takes a mask.
template <form how>
auto run(const auto& p, const auto& at, const auto&... mask)
{
    const auto memory = p.attend.on(p.annotations, at.real);
    if constexpr (how == form::many_queries) {
        const auto contexts = p.attend(memory, at.queries(p.parts));  // [B,S,D]
        answers<decltype(ops::step_of(contexts, at.steps)), no_weights> all;
        for (std::size_t s = 0; s < at.steps; ++s) all.contexts.push_back(ops::step_of(contexts, s));
        return all;
    } else {
        const auto answer = [&](std::size_t s, const auto& before) {
            if constexpr (how == form::read) {
                return p.attend.read(memory, at.query(p.parts, s), before);
            } else if constexpr (how == form::compose) {
                return p.attend.compose(memory, at.query(p.parts, s), before);
            } else {
                return p.attend.step(memory, at.query(p.parts, s), before, mask...);
            }
        };
        const auto start = p.attend.start(memory);
        using answered = decltype(answer(0, start));
        if constexpr (!std::is_same_v<std::remove_cvref_t<decltype(start)>, decltype(answered::state)>) {
            throw broken(
                "the state before the first query and the state after it have different types, but a decoder keeps one "
                "variable for both. On a tape, start() must return variables: same_family(memory.keys, …)");
        }
        if constexpr (how == form::step_into) {
            answers<decltype(answered::context), decltype(answered::weights)> all;
            answered result;
            p.attend.step_into(result, memory, at.query(p.parts, 0), start);
            all.keep(result);
            for (std::size_t s = 1; s < at.steps; ++s) {
                p.attend.step_into(result, memory, at.query(p.parts, s), result.state);
                all.keep(result);
            }
            return all;
        } else {
            return answers_from(start, at.steps, answer);
        }
    }
}

/// The numbers of a run: contexts, and weights if its form returns them; step by step.
template <class T, class Context, class Weights>
outcome<T> numbers_in(const answers<Context, Weights>& given)
{
    outcome<T> all;
    for (std::size_t s = 0; s < given.contexts.size(); ++s) {
        append(all, named("context", s), given.contexts[s]);
        if constexpr (tensor<Weights>) append(all, named("weights", s), given.weights[s]);
    }
    return all;
}
template <form how, class T>
outcome<T> results(const auto& p, const auto& at, const auto&... mask)
{
    return numbers_in<T>(run<how>(p, at, mask...));
}

/// Selects these rows of a state, as a beam search does.
struct selected {
    std::span<const std::size_t> rows;

    auto operator()(const plain_tensor auto& x) const { return ops::rows_of(x, rows); }
};

/// The results of `step` if the mechanism continues with these rows after the first query; an empty list keeps all
/// rows.
inline outcome<double> results_of_rows(std::span<const std::size_t> rows, const auto& p, const auto& at)
{
    const selected gather{rows};
    const auto memory = p.attend.on(p.annotations, at.real);
    auto now = p.attend.step(memory, at.query(p.parts, 0), p.attend.start(memory));
    answers<decltype(now.context), decltype(now.weights)> all;
    all.keep(now);
    auto annotations = p.annotations;
    auto parts = p.parts;
    auto real = at.real;
    if (!rows.empty()) {
        annotations = gather(annotations);
        for (auto& part : parts) part = gather(part);
        real = real.rows({rows.begin(), rows.end()});
        now.state = now.state.map(gather);
    }
    const auto of_rows = p.attend.on(annotations, real);
    for (std::size_t s = 1; s < std::max<std::size_t>(at.steps, 2); ++s) {
        now = p.attend.step(of_rows, at.query(parts, s % at.steps), now.state);
        all.keep(now);
    }
    return numbers_in<double>(all);
}

/// Σ over all steps of the contexts, and of the weights if `with_weights`, each number times a different constant.
template <bool with_weights, class T, class Context, class Weights>
ad::var<T, 0> loss_of(const answers<Context, Weights>& given)
{
    std::vector<ad::var<T, 0>> terms;
    for (std::size_t s = 0; s < given.contexts.size(); ++s) {
        terms.push_back(ops::dot(given.contexts[s], uneven<T>(given.contexts[s].shape(), s)));
        if constexpr (with_weights) {
            terms.push_back(ops::dot(given.weights[s], uneven<T>(given.weights[s].shape(), s + 100)));
        }
    }
    ad::var<T, 0> sum = terms.front();
    for (std::size_t i = 1; i < terms.size(); ++i) sum = ops::add(sum, terms[i]);
    return sum;
}
template <form how, bool with_weights, class T>
ad::var<T, 0> loss(const auto& p, const auto& at)
{
    return loss_of<with_weights, T>(run<how>(p, at));
}

template <form how, bool with_weights>
auto loss_for(const auto& at)
{
    return [&at](auto&, const auto& lifted) { return loss<how, with_weights, double>(lifted, at); };
}

/// The gradient of that loss with respect to every parameter, the annotations and the queries.
template <class T>
outcome<T> gradients_by(const std::vector<ad::named_variable<T>>& parameters, const ad::var<T, 0>& loss,
                        const char* title = "gradient of ")
{
    ad::tape<T>& on = loss.tape();
    on.backward(loss);
    outcome<T> all;
    for (const auto& x : parameters) append(all, title + x.name, on.gradient(x.numbers));
    return all;
}
template <form how, bool with_weights, class T>
outcome<T> gradients(const auto& p, const auto& at)
{
    ad::tape<T> on;
    std::vector<ad::named_variable<T>> parameters;
    const auto lifted = ad::lift(on, p, parameters);
    return gradients_by(parameters, loss<how, with_weights, T>(lifted, at));
}

template <class To>
struct converting_leaf {
    auto operator()(const std::string&, const auto& x) const
    {
        const auto from = view_of(x);
        array<To, rank_of<decltype(x)>> y(from.shape);
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = static_cast<To>(from.data[i]);
        return y;
    }
};
template <class To>
auto converted(const auto& module)
{
    return transform_parameters(module, converting_leaf<To>{});
}

/// A score that returns given scores: they are its keys, so that windows and masks apply to them.
template <weight_kind kind, class Scores>
struct given_scores {
    Scores scores;  // [B,T,1] or [B,T,N]

    static constexpr score_traits traits{
        .weights = kind,
        .nonnegative = true,  // normalizers that require this are given no negative scores
    };

    std::size_t groups() const { return shape_of(scores)[2]; }
    auto prepare(const auto&) const { return scores; }
    auto match(const auto&, const auto& keys) const
    {
        if constexpr (kind == weight_kind::per_position) {
            return ops::sum_last(keys);
        } else {
            return keys;
        }
    }
    auto operator()(const auto& query, const auto& keys) const { return match(query, keys); }

    static auto parameters(auto& self, auto&& visit)
    {
        auto scores = visit("scores", self.scores);
        return given_scores<kind, decltype(scores)>{std::move(scores)};
    }
};

/// Where two outcomes differ most; NaN and missing numbers count as infinite.
struct disagreement {
    double worst = 0;
    std::string where;
};
/// The largest off(x, y) of two corresponding numbers.
template <class T, class U>
disagreement greatest(const outcome<T>& a, const outcome<U>& b, const auto& off)
{
    disagreement most;
    if (a.size() != b.size()) return {INFINITY, "the number of results"};
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k].values.size() != b[k].values.size()) return {INFINITY, "the size of the " + b[k].name};
        for (std::size_t i = 0; i < a[k].values.size(); ++i) {
            const double by = off(a[k].values[i], b[k].values[i]);
            if (by <= most.worst) continue;
            most.worst = std::isnan(by) ? INFINITY : by;
            most.where = b[k].name + "[" + std::to_string(i) + "]: " + std::to_string(a[k].values[i]) + " against " +
                         std::to_string(b[k].values[i]);
        }
    }
    return most;
}

/// |a - b| / (1 + |b|).
template <class T, class U>
disagreement compare(const outcome<T>& a, const outcome<U>& b)
{
    return greatest(a, b, [](double x, double y) { return x == y ? 0 : std::abs(x - y) / (1 + std::abs(y)); });
}

/// Where two outcomes differ in any bit; empty if nowhere.
template <class T>
std::string differing_bits(const outcome<T>& a, const outcome<T>& b)
{
    return greatest(a, b, [](T x, T y) { return std::memcmp(&x, &y, sizeof(T)) == 0 ? 0.0 : 1.0; }).where;
}

}  // namespace heed::inline HEED_TARGET::detail::verifying
