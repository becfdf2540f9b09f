// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/ops/shape.hpp>
#include <heed/policy/weigh.hpp>
#include <heed/score/with_word.hpp>
#include <heed/verify/problem.hpp>
#include <products/interpreter/program.hpp>

/// Every score × normalizer × combiner: the legal products, each as an object that can be run.
///
/// Only `of` is instantiated for each product, and does as little as possible: comparing, perturbing and judging are
/// compiled once, in judge.cpp.
namespace composition {

using numbers = std::vector<double>;

/// The sizes of a product's inputs and parameters. Queries, words and annotations have the same width, so that scores
/// without a projection of the query also fit.
struct extents {
    std::size_t rows = 4, positions = 4, steps = 3, width = 4, hidden = 3;
    std::size_t groups = 2;  // of scores per group

    static constexpr std::size_t longest = 40;  // positions that score::location has columns for
};

/// The inputs of a product.
struct batch {
    extents of;
    heed::array<double, 3> annotations;  // [B,T,D]
    heed::array<double, 3> states;       // [B,S,Q], the queries
    heed::array<double, 3> words;        // [B,S,E], the second part of the queries
    heed::lengths real;

    explicit batch(const extents& sizes = {});                                            // lengths T, 0, 1, 2
    batch(const extents& sizes, std::vector<std::size_t> lengths, std::uint64_t stream);  // normal numbers
};

/// A tensor that the checks read and change.
struct part {
    std::string name;
    double* data;
    std::size_t size;
    std::vector<std::size_t> shape;
};

/// A number of a policy that is not a tensor, such as a window's reach.
struct setting {
    std::string name;
    std::variant<double*, std::size_t*> at;

    double value() const;
    void set(double to) const;
};

/// The results of a run: for each step the context and the weights, each with the batch's rows first.
using outcome = std::vector<numbers>;

/// The results of a run on a tape, and the gradient of their `loss`.
struct taped_outcome {
    outcome values;
    outcome slopes;  // one for each of `parts`; empty if not on the tape
};

/// The part on the tape; the rest is plain.
enum class taped { everything, parameters, annotations, queries };

/// One product, type-erased.
struct product {
    std::string score, normalizer, combiner;  // as in the table
    batch data;
    heed::weight_kind kind{};
    bool query_has_word = false;
    bool differentiable = true;
    bool random = false;        // whether it depends on a row's position in the batch
    bool reads_length = false;  // whether it depends on a row's length beyond visibility
    bool grows = false;         // whether `growing` is defined

    virtual ~product() = default;
    virtual outcome steps() const = 0;
    virtual outcome steps_under(const heed::boolean_mask<2>& mask) const = 0;
    virtual outcome steps_under(const heed::additive_mask<heed::array<double, 2>>& mask) const = 0;
    virtual outcome steps_under(const heed::lengths& mask) const = 0;
    virtual outcome steps_of(const std::vector<std::size_t>& rows) const = 0;  // selected after the first step
    virtual numbers at_once() const = 0;                                       // contexts [B,S,.]
    virtual numbers at_once_causal() const = 0;
    virtual outcome in_segments(const std::vector<std::size_t>& lengths) const = 0;  // contexts [B,.,.] of each
    virtual outcome growing(const std::vector<std::size_t>& positions) const = 0;    // in a KV cache, at each step
    virtual taped_outcome on_tape(taped what = taped::everything) const = 0;
    virtual taped_outcome on_tape_under(const heed::additive_mask<heed::array<double, 2>>& mask) const = 0;
    virtual outcome curvature(const outcome& direction) const = 0;  // the Hessian of `loss` times a direction, by part
    virtual outcome steps_in_float() const = 0;
    virtual std::vector<part> parts() = 0;  // of the score, the normalizer, the combiner, the batch
    virtual std::vector<setting> settings() = 0;
    virtual std::unique_ptr<product> remade(const extents& sizes) const = 0;  // with parameters of these sizes
    virtual std::size_t allocations() const = 0;  // of the third and fourth step, into existing results
};

/// The executor of many queries.
enum class many { in_turn, products, tiles, linear };

/// A row of the table.
struct row {
    std::string score, normalizer, combiner;
    heed::weight_kind kind{};  // of the score
    heed::composition_fault fault{};
    many queries{};
    std::unique_ptr<product> judged;  // null: illegal, or not judged

    bool legal() const { return fault == heed::composition_fault::none; }
};
using table = std::vector<row>;

/// Adds a row. Not inline: it is called for thousands of products.
void add_row(table& to, const std::string& score, const char* normalizer, const std::string& combiner,
             heed::weight_kind kind, heed::composition_fault fault, many queries, std::unique_ptr<product> judged);

/// The number of allocations of this program so far (operator new).
std::size_t allocations_so_far();

/// Σ over all numbers of an outcome, each times a separate constant.
double loss(const outcome& values);
double constant(std::size_t series, std::size_t i);

/// The constants of a series, of this shape.
template <std::size_t R>
heed::array<double, R> constants(std::size_t series, const heed::shape_of_rank<R>& shape)
{
    heed::array<double, R> all(shape);
    for (std::size_t i = 0; i < all.size(); ++i) all.data()[i] = constant(series, i);
    return all;
}

/// Records the results of a plain run.
struct recorder {
    outcome& to;
    void operator()(const heed::array<double, 2>& x) const;
    void operator()(const heed::array<double, 3>& x) const;
    void operator()(const heed::array<float, 2>& x) const;
    void operator()(const heed::array<float, 3>& x) const;
};

/// The same for a run on a tape; also computes `loss` of the results.
struct taped_recorder {
    outcome& to;
    std::vector<heed::ad::var<double, 0>>& terms;
    void operator()(const heed::ad::var<double, 2>& x) const;
    void operator()(const heed::ad::var<double, 3>& x) const;
    void operator()(const heed::array<double, 2>& x) const { recorder{to}(x); }  // weights without a gradient
    void operator()(const heed::array<double, 3>& x) const { recorder{to}(x); }
};

/// Only `loss`, of numbers of any type.
template <class T>
struct loss_recorder {
    std::vector<heed::ad::var<T, 0>>& terms;
    std::size_t& series;

    template <std::size_t R>
    void operator()(const heed::ad::var<T, R>& x) const
    {
        terms.push_back(heed::ops::dot(x, constants<R>(series++, x.shape())));
    }
    void operator()(const auto&) const { ++series; }
};

/// A mechanism and its inputs, as a module.
template <class Attention, class Tensor>
struct with_inputs {
    Attention attend;
    Tensor annotations, states, words;

    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attention", self.attend);
        auto annotations = visit("annotations", self.annotations);
        auto states = visit("states", self.states);
        auto words = visit("words", self.words);
        return with_inputs<decltype(attend), decltype(annotations)>{attend, annotations, states, words};
    }
};

struct collect_parts {
    std::vector<part>& to;
    heed::visited operator()(const std::string& name, auto& x) const
    {
        const auto v = heed::view_of(x);
        to.push_back({name, v.data, v.size(), {v.shape.begin(), v.shape.end()}});
        return {};
    }
};

/// Adds the settings of a policy and of those that it wraps.
template <class Policy>
void collect_settings(std::vector<setting>& to, Policy& policy, const std::string& prefix)
{
    const auto add = [&]<class X>(const char* name, X& x) {
        if constexpr (std::is_same_v<X, double> || std::is_same_v<X, std::size_t>) to.push_back({prefix + name, &x});
    };
    if constexpr (requires { add("", policy.scale); }) add("scale", policy.scale);
    if constexpr (requires { add("", policy.N); }) add("N", policy.N);
    if constexpr (requires { add("", policy.reach); }) add("reach", policy.reach);
    if constexpr (requires { add("", policy.steps); }) add("steps", policy.steps);
    if constexpr (requires { add("", policy.strength); }) add("strength", policy.strength);
    if constexpr (requires { add("", policy.decay); }) add("decay", policy.decay);
    if constexpr (requires { add("", policy.tau); }) add("tau", policy.tau);
    if constexpr (requires { add("", policy.bias); }) add("bias", policy.bias);
    if constexpr (requires { add("", policy.k); }) add("k", policy.k);
    if constexpr (requires { add("", policy.width); }) add("width", policy.width);
    if constexpr (requires { policy.base; }) collect_settings(to, policy.base, prefix + "base.");
    if constexpr (requires { policy.inner; }) collect_settings(to, policy.inner, prefix + "inner.");
}

struct collect_slopes {
    outcome& to;
    heed::ad::tape<double>& on;
    heed::visited operator()(const std::string&, const heed::plain_tensor auto&) const
    {
        to.emplace_back();
        return {};
    }
    heed::visited operator()(const std::string&, const auto& x) const
    {
        const auto g = on.gradient(x);
        to.emplace_back(g.data, g.data + g.size());
        return {};
    }
};

/// Steps first … first + count - 1 of x [B,S,N].
heed::array<double, 3> steps_between(const heed::array<double, 3>& x, std::size_t first, std::size_t count);

/// The real positions among first … last - 1 of each row.
heed::lengths lengths_between(const heed::lengths& real, std::size_t first, std::size_t last);

/// The rows of `weights`, each with zeros up to `width` numbers.
numbers padded(const numbers& weights, std::size_t rows, std::size_t width);

/// Steps in a KV cache that has the first positions[s] positions of T at step s. `part(first, last)` returns the
/// arguments of `on` and `extend` for some positions, `query_at(s)` a query; `axis`: the positions' axis of the
/// weights.
template <std::size_t axis>
outcome steps_growing(const auto& attend, const std::vector<std::size_t>& positions, std::size_t T, const auto& part,
                      const auto& query_at)
{
    outcome all;
    const recorder look{all};
    std::size_t now = positions.empty() ? 0 : positions.front();
    auto memory = heed::with_cache(std::apply([&](const auto&... x) { return attend.on(x...); }, part(0, now)));
    auto state = attend.start(memory);
    for (std::size_t s = 0; s < positions.size(); ++s) {
        if (positions[s] > now) {
            memory = std::apply([&](const auto&... x) { return attend.extend(memory, x...); }, part(now, positions[s]));
            now = positions[s];
        }
        auto [context, weights, next] = attend.step(memory, query_at(s), state);
        state = next;
        look(context);
        look(weights);
        auto shape = heed::shape_of(weights);
        shape[axis] = T;
        std::size_t rows = 1, width = 1;
        for (std::size_t i = 0; i < shape.size(); ++i) (i < axis ? rows : width) *= shape[i];
        all.back() = padded(all.back(), rows, width);
    }
    return all;
}

void backward(heed::ad::tape<double>& on, const std::vector<heed::ad::var<double, 0>>& terms);

template <bool with_word, class Tensor>
auto query_of(const Tensor& states, const Tensor& words, std::size_t s)
{
    if constexpr (with_word) {
        return heed::state_and_word{heed::ops::step_of(states, s), heed::ops::step_of(words, s)};
    } else {
        return heed::ops::step_of(states, s);
    }
}

/// README's loop.
template <bool with_word, class Attention, class Annotations, class Queries, class Look, class Mask = heed::no_mask>
void each_step(const Attention& attend, const Annotations& annotations, const Queries& states, const Queries& words,
               const heed::lengths& real, const Look& look, const Mask& mask = {})
{
    auto memory = attend.on(annotations, real);
    auto state = attend.start(memory);
    const std::size_t steps = heed::shape_of(states)[1];
    for (std::size_t s = 0; s < steps; ++s) {
        auto [context, weights, next] = attend.step(memory, query_of<with_word>(states, words, s), state, mask);
        state = next;
        look(context);
        look(weights);
    }
}

/// The rows of a tensor.
struct select_rows {
    const std::vector<std::size_t>& rows;
    heed::array<double, 2> operator()(const heed::array<double, 2>& x) const { return heed::ops::rows_of(x, rows); }
    heed::array<double, 3> operator()(const heed::array<double, 3>& x) const { return heed::ops::rows_of(x, rows); }
};

/// Whether programs extend the memory of a product: a few, since a KV cache compiles every step once more.
template <class Score, class Normalize, class Combine>
inline constexpr bool grown = false;

template <bool with_word, class Score, class Normalize, class Combine>
struct of final : product {
    using makers = std::tuple<Score (*)(const extents&), Normalize (*)(const extents&), Combine (*)(const extents&)>;
    makers make;
    heed::attention<Score, Normalize, Combine> attend;

    explicit of(const makers& policies, const extents& sizes = {})
        : make(policies), attend{std::get<0>(make)(sizes), std::get<1>(make)(sizes), std::get<2>(make)(sizes)}
    {
        data = batch(sizes);
        kind = Score::traits.weights;
        query_has_word = with_word;
        differentiable = heed::normalizer_traits_of<Normalize>().differentiable;
        random = heed::draws<Normalize>;
        reads_length = heed::normalizer_traits_of<Normalize>().reads_length;
        grows = grown<Score, Normalize, Combine>;
    }

    std::unique_ptr<product> remade(const extents& sizes) const override
    {
        auto same = std::make_unique<of>(make, sizes);
        same->score = score;
        same->normalizer = normalizer;
        same->combiner = combiner;
        return same;
    }

    outcome steps() const override
    {
        outcome all;
        each_step<with_word>(attend, data.annotations, data.states, data.words, data.real, recorder{all});
        return all;
    }

    outcome steps_under(const heed::boolean_mask<2>& mask) const override { return masked(mask); }
    outcome steps_under(const heed::additive_mask<heed::array<double, 2>>& mask) const override { return masked(mask); }
    outcome steps_under(const heed::lengths& mask) const override { return masked(mask); }

    outcome steps_of(const std::vector<std::size_t>& rows) const override
    {
        outcome all;
        const recorder look{all};
        const select_rows select{rows};
        const auto memory = attend.on(data.annotations, data.real);
        const auto selected = attend.on(select(data.annotations), data.real.rows(rows));
        const auto states = select(data.states), words = select(data.words);
        auto now = attend.step(memory, query_of<with_word>(data.states, data.words, 0), attend.start(memory));
        now.state = now.state.map(select);
        for (std::size_t s = 1; s < data.of.steps; ++s) {
            attend.step_into(now, selected, query_of<with_word>(states, words, s), now.state);
            look(now.context);
            look(now.weights);
        }
        return all;
    }

    numbers at_once() const override { return of_all_queries(); }
    numbers at_once_causal() const override { return of_all_queries(heed::causal{}); }

    outcome in_segments(const std::vector<std::size_t>& lengths) const override
    {
        outcome all;
        const recorder look{all};
        const auto memory = attend.on(data.annotations, data.real);
        auto state = attend.start(memory);
        std::size_t first = 0;
        for (const std::size_t n : lengths) {
            auto some = attend.read_all(memory, queries_between(first, n), state);
            look(some.contexts);
            state = some.state;
            first += n;
        }
        return all;
    }

    outcome growing(const std::vector<std::size_t>& positions) const override
    {
        if constexpr (grown<Score, Normalize, Combine>) {
            return steps_growing<1>(
                attend, positions, data.of.positions,
                [&](std::size_t first, std::size_t last) {
                    return std::tuple{steps_between(data.annotations, first, last - first),
                                      lengths_between(data.real, first, last)};
                },
                [&](std::size_t s) { return query_of<with_word>(data.states, data.words, s); });
        } else {
            return {};
        }
    }

    taped_outcome on_tape(taped what) const override
    {
        heed::ad::tape<double> on;
        const auto on_it = [&](const auto& x) { return on.parameter(x); };
        switch (what) {
        case taped::parameters:
            return run(on, lifted(on), data.annotations, data.states, data.words);
        case taped::annotations:
            return run(on, attend, on_it(data.annotations), data.states, data.words);
        case taped::queries:
            return run(on, attend, data.annotations, on_it(data.states), on_it(data.words));
        default:
            return run(on, lifted(on), on_it(data.annotations), on_it(data.states), on_it(data.words));
        }
    }

    taped_outcome on_tape_under(const heed::additive_mask<heed::array<double, 2>>& mask) const override
    {
        heed::ad::tape<double> on;
        return run(on, lifted(on), on.parameter(data.annotations), on.parameter(data.states), on.parameter(data.words),
                   mask);
    }

    outcome curvature(const outcome& direction) const override
    {
        const with_inputs<decltype(attend), heed::array<double, 3>> at{attend, data.annotations, data.states,
                                                                       data.words};
        auto along = at;
        std::size_t nth = 0;
        heed::for_each_parameter(along, [&](const std::string&, auto& x) {
            if (nth < direction.size()) std::copy_n(direction[nth].data(), x.size(), x.data());
            ++nth;
        });
        const auto loss = [&]<class T>(heed::ad::tape<T>&, const auto& lifted) {
            std::vector<heed::ad::var<T, 0>> terms;
            std::size_t series = 0;
            each_step<with_word>(lifted.attend, lifted.annotations, lifted.states, lifted.words, data.real,
                                 loss_recorder<T>{terms, series});
            auto sum = terms.front();
            for (std::size_t i = 1; i < terms.size(); ++i) sum = heed::ops::add(sum, terms[i]);
            return sum;
        };
        const auto found = heed::ad::hessian_vector<double>(loss, at, along);
        outcome all;
        heed::for_each_parameter(found.product, [&](const std::string&, const auto& x) {
            if (all.size() < direction.size()) all.emplace_back(x.data(), x.data() + x.size());
        });
        return all;
    }

    outcome steps_in_float() const override
    {
        const heed::detail::verifying::converting_leaf<float> convert;
        outcome all;
        each_step<with_word>(heed::transform_parameters(attend, convert), convert("", data.annotations),
                             convert("", data.states), convert("", data.words), data.real, recorder{all});
        return all;
    }

    auto lifted(heed::ad::tape<double>& on) const
    {
        return heed::attention{heed::ad::lift(on, attend.score), heed::ad::lift(on, attend.normalize),
                               heed::ad::lift(on, attend.combine)};
    }

    template <class Attention, class Annotations, class Queries, class Mask = heed::no_mask>
    taped_outcome run(heed::ad::tape<double>& on, const Attention& mechanism, const Annotations& annotations,
                      const Queries& states, const Queries& words, const Mask& mask = {}) const
    {
        taped_outcome all;
        std::vector<heed::ad::var<double, 0>> terms;
        each_step<with_word>(mechanism, annotations, states, words, data.real, taped_recorder{all.values, terms}, mask);
        backward(on, terms);
        const collect_slopes collect{all.slopes, on};
        heed::transform_parameters(mechanism.score, collect);
        heed::transform_parameters(mechanism.normalize, collect);
        heed::transform_parameters(mechanism.combine, collect);
        collect("", annotations);
        collect("", states);
        if (with_word) collect("", words);
        return all;
    }

    std::vector<part> parts() override
    {
        std::vector<part> all;
        const collect_parts collect{all};
        heed::transform_parameters(attend.score, collect, "score.");
        heed::transform_parameters(attend.normalize, collect, "normalize.");
        heed::transform_parameters(attend.combine, collect, "combine.");
        collect("annotations", data.annotations);
        collect("states", data.states);
        if (with_word) collect("words", data.words);
        return all;
    }

    std::vector<setting> settings() override
    {
        std::vector<setting> all;
        collect_settings(all, attend.score, "score.");
        collect_settings(all, attend.normalize, "normalize.");
        return all;
    }

    std::size_t allocations() const override
    {
        const auto memory = attend.on(data.annotations, data.real);
        const auto query = query_of<with_word>(data.states, data.words, 0);
        auto now = attend.step(memory, query, attend.start(memory));
        attend.step_into(now, memory, query, now.state);
        const std::size_t before = allocations_so_far();
        for (int i = 0; i < 2; ++i) attend.step_into(now, memory, query, now.state);
        return allocations_so_far() - before;
    }

private:
    /// The queries first … first + count - 1.
    auto queries_between(std::size_t first, std::size_t count) const
    {
        const auto states = steps_between(data.states, first, count);
        if constexpr (with_word) {
            return heed::state_and_word{states, steps_between(data.words, first, count)};
        } else {
            return states;
        }
    }

    numbers of_all_queries(const auto&... mask) const
    {
        outcome all;
        const auto memory = attend.on(data.annotations, data.real);
        recorder{all}(attend(memory, queries_between(0, data.states.shape()[1]), mask...));
        return all.front();
    }

    outcome masked(const auto& mask) const
    {
        outcome all;
        each_step<with_word>(attend, data.annotations, data.states, data.words, data.real, recorder{all}, mask);
        return all;
    }
};

/// The fault of a product; empty if there is none.
std::string judge(product& p);

/// The fault of a product's values and gradients, against the interpreter with this mistake; empty if there is none.
std::string compare_with_equations(product& p, const interpreter::mistake& wrong);

/// The numbers of the mistakes that `judge` overlooks in this product, which must have a parameter and one weight per
/// position; empty if it finds all.
std::string overlooked_mistakes(product& right);

// In separate files, which compile in parallel.
void add_scores_of_similarity(table& to);
void add_scores_of_indices(table& to);
void add_scores_of_one_matrix(table& to);
void add_additive_scores(table& to);
void add_scores_that_remember(table& to);
void add_scores_per_dimension(table& to);
void add_scores_per_group(table& to);

/// A user's score, with every normalizer.
void add_own_score(table& to);

/// docs/explanation/composition.md
std::string markdown(const table& lines);

}  // namespace composition
