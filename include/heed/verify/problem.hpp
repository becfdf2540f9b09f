// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/core/random.hpp>

/// What heed::verify tries a mechanism on: a batch of made-up sentences, and every way to run it.
namespace heed::detail::verifying {

/// Named numbers: the context of a step, the gradient of a parameter.
template <class T>
struct series {
    std::string name;
    std::vector<T> values;
};

/// Everything that came out of a run.
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

/// Constants for a loss in which every number counts differently: symmetric ones would hide errors.
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

/// One tensor of a query, "query" [Q] or "state" and "word": what `describe` asked for.
struct part_layout {
    std::string name;
    std::size_t width;
};

/// Gives `describe` the tensor that it asks for by name; `give` maps the part's number to it.
template <class Give>
struct part_giver {
    const std::vector<part_layout>& layout;
    Give give;

    auto operator()(std::string_view name, std::size_t) const
    {
        std::size_t number = 0;
        while (number + 1 < layout.size() && layout[number].name != name) ++number;
        return give(number);
    }
};
template <class Give>
part_giver(const std::vector<part_layout>&, Give) -> part_giver<Give>;

/// Writes down which parts a query has.
inline std::vector<part_layout> layout_of(const auto& describe)
{
    std::vector<part_layout> layout;
    (void)describe([&layout](std::string_view name, std::size_t width) {
        layout.push_back({std::string(name), width});
        return array<double, 2>(shape_of_rank<2>{1, width});
    });
    return layout;
}

/// A mechanism, what it attends to, and all queries; plain, or lifted onto a tape.
template <class Attention, class Tensor>
struct problem {
    Attention attend;
    Tensor annotations;         // [B,T,D]
    std::vector<Tensor> parts;  // of the queries, [B,S,N] each

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attention", self.attend);
        auto annotations = visit("annotations", self.annotations);
        std::vector<decltype(annotations)> parts;
        for (std::size_t i = 0; i < self.parts.size(); ++i) {
            parts.push_back(visit("queries." + std::to_string(i), self.parts[i]));
        }
        return problem<decltype(attend), decltype(annotations)>{std::move(attend), std::move(annotations),
                                                                std::move(parts)};
    }
};

enum class form { step, read, compose, step_into, at_once };

/// The sentences' lengths and the queries' parts: what is the same for every family and element type.
template <class Describe>
struct setting {
    Describe describe;
    std::vector<part_layout> layout;
    lengths real;
    std::size_t steps;

    /// The query of step s.
    auto query(const auto& parts, std::size_t s) const
    {
        return describe(part_giver{layout, [&parts, s](std::size_t i) { return ops::step_of(parts[i], s); }});
    }
    /// The queries of all steps.
    auto queries(const auto& parts) const
    {
        return describe(part_giver{layout, [&parts](std::size_t i) { return parts[i]; }});
    }
};

inline std::string named(const char* what, std::size_t step) { return what + (" of step " + std::to_string(step)); }

/// Runs a mechanism over all queries: look(step, context, weights) for step, compose and step_into,
/// look(step, context) for read, look(contexts [B,S,D]) for at_once.
template <form how, class Problem, class Setting, class Look>
void run(const Problem& p, const Setting& at, Look&& look)
{
    const auto memory = p.attend.on(p.annotations, at.real);
    if constexpr (how == form::at_once) {
        look(p.attend(memory, at.queries(p.parts)));
    } else {
        const auto state = p.attend.start(memory);
        if constexpr (how == form::read) {
            auto now = p.attend.read(memory, at.query(p.parts, 0), state);
            look(std::size_t{0}, now.context);
            for (std::size_t s = 1; s < at.steps; ++s) {
                now = p.attend.read(memory, at.query(p.parts, s), now.state);
                look(s, now.context);
            }
        } else {
            const auto answer = [&](std::size_t s, const auto& before) {
                if constexpr (how == form::compose) {
                    return p.attend.compose(memory, at.query(p.parts, s), before);
                } else {
                    return p.attend.step(memory, at.query(p.parts, s), before);
                }
            };
            if constexpr (how == form::step_into) {
                decltype(answer(0, state)) result;
                p.attend.step_into(result, memory, at.query(p.parts, 0), state);
                look(std::size_t{0}, result.context, result.weights);
                for (std::size_t s = 1; s < at.steps; ++s) {
                    p.attend.step_into(result, memory, at.query(p.parts, s), result.state);
                    look(s, result.context, result.weights);
                }
            } else {
                auto now = answer(0, state);
                look(std::size_t{0}, now.context, now.weights);
                for (std::size_t s = 1; s < at.steps; ++s) {
                    now = answer(s, now.state);
                    look(s, now.context, now.weights);
                }
            }
        }
    }
}

/// The numbers of a run: contexts, and weights where this form gives them. All at once: cut into steps again.
template <form how, class T>
outcome<T> results(const auto& p, const auto& at)
{
    outcome<T> all;
    run<how>(p, at, [&]<class First>(const First& first, const auto&... rest) {
        if constexpr (how == form::at_once) {
            for (std::size_t s = 0; s < at.steps; ++s) append(all, named("context", s), ops::step_of(first, s));
        } else {
            const auto both = [&](const auto& context, const auto&... weights) {
                append(all, named("context", first), context);
                (append(all, named("weights", first), weights), ...);
            };
            both(rest...);
        }
    });
    return all;
}

/// Σ over all steps of the contexts, and of the weights if `with_weights`, each number times a constant of its own.
template <form how, bool with_weights, class T>
ad::var<T, 0> loss(const auto& p, const auto& at)
{
    std::vector<ad::var<T, 0>> terms;
    run<how>(p, at, [&]<class First>(const First& first, const auto&... rest) {
        if constexpr (how == form::at_once) {
            const auto [B, S, D] = first.shape();
            array<T, 3> constants(first.shape());
            for (std::size_t s = 0; s < S; ++s) {
                const auto of_step = uneven<T, 2>({B, D}, s);
                for (std::size_t b = 0; b < B; ++b) {
                    for (std::size_t d = 0; d < D; ++d) constants(b, s, d) = of_step(b, d);
                }
            }
            terms.push_back(ops::inner(first, constants));
        } else {
            const auto both = [&](const auto& context, const auto&... weights) {
                terms.push_back(ops::inner(context, uneven<T>(context.shape(), first)));
                if constexpr (with_weights) {
                    (terms.push_back(ops::inner(weights, uneven<T>(weights.shape(), first + 100))), ...);
                }
            };
            both(rest...);
        }
    });
    ad::var<T, 0> sum = terms.front();
    for (std::size_t i = 1; i < terms.size(); ++i) sum = ops::add(sum, terms[i]);
    return sum;
}

/// The gradient of that loss by every parameter, the annotations and the queries.
template <form how, bool with_weights, class T>
outcome<T> gradients(const auto& p, const auto& at)
{
    ad::tape<T> on;
    const auto lifted = ad::lift(on, p);
    on.backward(loss<how, with_weights, T>(lifted, at));
    outcome<T> all;
    for_each_parameter(
        lifted, [&](const std::string& name, const auto& x) { append(all, "gradient of " + name, on.gradient(x)); });
    return all;
}

/// A module of the same kind with its numbers converted to another element type.
template <class To>
auto converted(const auto& module)
{
    return transform_parameters(module, [](const std::string&, const auto& x) {
        array<To, rank_of<decltype(x)>> y(shape_of(x));
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = static_cast<To>(view_of(x).data[i]);
        return y;
    });
}

/// A score that answers what it was told: the scores are its keys, so that windows and masks reach them too.
template <class Base, class Scores>
struct given_scores {
    Base base;
    Scores scores;  // [B,T,1] or [B,T,N]

    static constexpr weight_kind weights = Base::weights;

    std::size_t groups() const { return shape_of(scores)[2]; }
    auto prepare(const auto&) const { return scores; }
    auto match(const auto&, const auto& keys) const
    {
        if constexpr (weights == weight_kind::per_position) {
            return ops::sum_last(keys);
        } else {
            return keys;
        }
    }
    auto operator()(const auto& query, const auto& keys) const { return match(query, keys); }

    static auto parameters(auto& self, auto&& visit) { return visit("scores", self.scores); }
};
template <class Base, class Scores>
given_scores(Base, Scores) -> given_scores<Base, Scores>;

/// Where two outcomes differ most, |a - b| / (1 + |b|); NaN and missing numbers count as infinite.
struct disagreement {
    double worst = 0;
    std::string where;
};
template <class T, class U>
disagreement compare(const outcome<T>& a, const outcome<U>& b)
{
    disagreement most;
    if (a.size() != b.size()) return {INFINITY, "the number of results"};
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k].values.size() != b[k].values.size()) return {INFINITY, "the size of the " + b[k].name};
        for (std::size_t i = 0; i < a[k].values.size(); ++i) {
            const double x = static_cast<double>(a[k].values[i]), y = static_cast<double>(b[k].values[i]);
            const double off = x == y ? 0 : std::abs(x - y) / (1 + std::abs(y));
            if (off <= most.worst) continue;
            most.worst = std::isnan(off) ? INFINITY : off;
            most.where =
                b[k].name + "[" + std::to_string(i) + "]: " + std::to_string(x) + " against " + std::to_string(y);
        }
    }
    return most;
}

/// Where two outcomes differ in any bit; empty if nowhere.
template <class T>
std::string differing_bits(const outcome<T>& a, const outcome<T>& b)
{
    if (a.size() != b.size()) return "the number of results";
    for (std::size_t k = 0; k < a.size(); ++k) {
        if (a[k].values.size() != b[k].values.size()) return "the size of the " + b[k].name;
        for (std::size_t i = 0; i < a[k].values.size(); ++i) {
            if (std::memcmp(&a[k].values[i], &b[k].values[i], sizeof(T)) != 0) {
                return a[k].name + "[" + std::to_string(i) + "]: " + std::to_string(a[k].values[i]) + " against " +
                       std::to_string(b[k].values[i]);
            }
        }
    }
    return "";
}

/// The first number that is not finite; empty if all are.
template <class T>
std::string not_finite(const outcome<T>& a)
{
    for (const series<T>& s : a) {
        for (std::size_t i = 0; i < s.values.size(); ++i) {
            if (!std::isfinite(s.values[i])) {
                return s.name + "[" + std::to_string(i) + "] is " + std::to_string(s.values[i]);
            }
        }
    }
    return "";
}

}  // namespace heed::detail::verifying
