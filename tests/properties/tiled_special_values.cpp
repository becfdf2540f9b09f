// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/function_ref.hpp>
#include <heed/heed.hpp>
#include <support/drawn_masks.hpp>
#include <support/exhaustive.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

// Scores that are large, infinite or NaN, tile by tile: equal to the composed form, forward and backward.

namespace {

constexpr double none = -std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Changes of a score. `one` is the score of query 3 and key 5, `row` the scores of query 3, `at_5` and `at_20` scores
/// of query 23.
enum class change {
    nothing,
    nan_at_one,
    nan_at_the_first_of_row,
    nan_in_row,
    nan_and_its_slope_at_one,
    inf_at_one,
    inf_at_the_first_two_of_row,
    inf_in_row,
    none_at_one,
    none_in_each_second_row,
    none_everywhere,
    log_of_positive,
    log_of_some,
    slope_of_nan_at_one,
    nan_where_hidden,  // the last change at query 3, or everywhere
    shifted,
    constant,
    nan_at_5,
    inf_at_5,
    none_in_row_23,
    inf_at_5_and_20,
    inf_and_nan,
    nan_and_inf,
    inf_nan_none,
    inf_without_slope,
    inf_of_infinite_slope
};

/// A function of a score, selected at run time, so that one kernel is compiled for all of these functions.
template <class T>
struct any_function {
    change what = change::nothing;
    double shift = 0;

    pack<T> operator()(const pack<T>& e, const score_index& p) const { return changed(e, p); }
    dual<T> operator()(const dual<T>& e, const score_index& p) const { return changed(e, p); }

private:
    template <class E>
    E changed(const E& e, const score_index& p) const
    {
        const auto one = [&] { return (p.query == 3) & (p.key == 5); };
        const auto at = [&](int key) { return (p.query == 23) & (p.key == key); };
        switch (what) {
        case change::nothing:
            break;
        case change::nan_at_one:
            return E(select(one(), not_a_number, e));
        case change::nan_at_the_first_of_row:
            return E(select((p.query == 3) & (p.key == 0), not_a_number, e));
        case change::nan_in_row:
            return E(select(p.query == 3, not_a_number, e));
        case change::nan_and_its_slope_at_one:
            return E(select(one(), not_a_number * e, e));
        case change::inf_at_one:
            return E(select(one(), -none, e));
        case change::inf_at_the_first_two_of_row:
            return E(select((p.query == 3) & (p.key <= 1), -none, e));
        case change::inf_in_row:
            return E(select(p.query == 3, -none, e));
        case change::none_at_one:
            return E(select(one(), none, e));
        case change::none_in_each_second_row:
            return E(select(p.query % 2 == 0, none, e));
        case change::none_everywhere:
            return E(0 * e + none);
        case change::log_of_positive:
            return E(log(select(e > 0, e, 0 * e)));
        case change::log_of_some:
            return E(log(e + 3));
        case change::slope_of_nan_at_one:
            return E(select(one(), log(0 * e) * 0, e));
        case change::nan_where_hidden:
            return E(select(p.key > p.query + 70, not_a_number * e, e));
        case change::shifted:
            return E(e + shift);
        case change::constant:
            return E(0 * e + 7);
        case change::nan_at_5:
            return E(select(at(5), not_a_number, e));
        case change::inf_at_5:
            return E(select(at(5), -none, e));
        case change::none_in_row_23:
            return E(select(p.query == 23, none, e));
        case change::inf_at_5_and_20:
            return E(select(at(5) | at(20), -none, e));
        case change::inf_and_nan:
            return E(select(at(5), -none, select(at(20), not_a_number, e)));
        case change::nan_and_inf:
            return E(select(at(20), -none, select(at(5), not_a_number, e)));
        case change::inf_nan_none:
            return E(select(at(5), -none, select(at(20), not_a_number, select(at(7), none, e))));
        case change::inf_without_slope:
            return E(select(at(5), -log(0 * e), e));
        case change::inf_of_infinite_slope:
            return E(-log(select((e >= 0) & (e <= 0), e, 0 * e + std::exp(-1))));
        }
        return e;
    }
};

/// The visible keys, selected at run time, so that one kernel is compiled for all masks.
enum class sight { all, causal, window, scattered, first };

struct any_mask : predicate_mask {
    sight what;

    explicit any_mask(sight of) : what(of) {}
    lane_mask operator()(const score_index& p) const
    {
        if (what == sight::causal) return not_behind{}(p);
        if (what == sight::window) return near(p);
        if (what == sight::scattered) return (p.key * 7 + p.query * 3) % 5 > 0;
        return p.key < (what == sight::first ? first : std::numeric_limits<std::int32_t>::max());
    }
    key_range visible_range(std::int32_t from, std::int32_t to) const
    {
        if (what == sight::causal) return not_behind{}.visible_range(from, to);
        if (what == sight::window) return near.visible_range(from, to);
        return what == sight::first ? key_range{0, first} : key_range{};
    }
    key_range full_range(std::int32_t from, std::int32_t to) const
    {
        if (what == sight::causal) return not_behind{}.full_range(from, to);
        if (what == sight::window) return near.full_range(from, to);
        if (what == sight::scattered) return {0, 0};
        return what == sight::first ? key_range{0, first} : key_range{};
    }

private:
    static constexpr std::int32_t first = 50;
    both_masks<not_behind, sliding_window> near{not_behind{}, sliding_window{25}};
};

constexpr std::size_t B = 2, S = 40, P = 110, D = 4;  // sentences, queries, positions, dimensions
const lengths real({P, 37});

/// Queries, keys and values, and a loss's weight of each context.
template <class T>
struct numbers_of_all {
    array<T, 3> queries = halves({B, S, D}, 2), keys = halves({B, P, D}, 1), values = halves({B, P, D}, 4),
                d_contexts = random<T>({B, S, D}, 3);

private:
    /// Multiples of 1/2, so that scores and their sums with large numbers are exact in float.
    static array<T, 3> halves(const std::size_t (&shape)[3], std::uint64_t stream)
    {
        auto x = random<T>(shape, stream);
        for (T& each : x) each = std::round(2 * each) / 2;
        return x;
    }
};

/// Contexts, weights (not in tiles), and a loss's gradients.
template <class T>
struct answers {
    std::vector<T> contexts, weights, d_queries, d_keys, d_values;
};

enum class way { composed, tiles, at_once };
/// All of these in double; floats all at once would take as long to compile as the other two.
template <class T>
constexpr int has_ways = sizeof(T) == sizeof(double) ? 3 : 2;

template <class T>
answers<T> answers_of(const auto& score, const auto& normalize, way how, const numbers_of_all<T>& all, sight seen)
{
    const attention attend{score, normalize, combine::weighted_sum{}};
    const auto numbers = [](const auto& x) { return std::vector<T>(x.data, x.data + x.size()); };
    const boolean_mask<3> drawn = heed::detail::materialize_mask(any_mask(seen), real, 0, S, P);
    ad::tape<T> on;
    answers<T> found;
    const auto H = on.parameter(all.keys), Q = on.parameter(all.queries), V = on.parameter(all.values);
    const auto memory = attend.on(H, V, real);
    const auto contexts = [&]() -> ad::var<T, 3> {
        if (how == way::tiles) return attend(memory, Q, any_mask(seen));
        if constexpr (has_ways<T> == 3) {
            if (how == way::at_once) {
                found.weights = numbers(attend.weights_of(memory, Q, drawn).value());
                return support::without_tiles(attend, memory, Q, drawn);
            }
        }
        found.weights.resize(B * S * P);
        std::vector<ad::var<T, 2>> each;
        auto state = ad::lift(on, attend).start(memory);
        for (std::size_t s = 0; s < S; ++s) {
            boolean_mask<2> row(shape_of_rank<2>{B, P});
            for (std::size_t i = 0; i < B * P; ++i) row[i] = drawn[(i / P * S + s) * P + i % P];
            auto next = attend.compose(memory, ops::step_of(Q, s), state, row);
            for (std::size_t b = 0; b < B; ++b)
                std::copy_n(next.weights.value().data + b * P, P, found.weights.data() + (b * S + s) * P);
            each.push_back(next.context);
            state = std::move(next.state);
        }
        return ops::swap_axes(ops::stack(each));
    }();
    on.backward(ops::dot(contexts, all.d_contexts));
    found.contexts = numbers(contexts.value());
    found.d_queries = numbers(on.gradient(Q));
    found.d_keys = numbers(on.gradient(H));
    found.d_values = numbers(on.gradient(V));
    return found;
}

/// The maximum |a − b| / (1 + |b|); infinite if only a or only b is NaN or infinite.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b)
{
    double worst = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
        if (x == y || (std::isnan(y) && std::isnan(x))) continue;
        const double off = std::abs(x - y) / (1 + std::abs(y));
        worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
    }
    return worst;
}

/// Checks properties that hold for every executor: contexts and the gradients of values follow from the weights by
/// plain loops, and masked positions have gradients of 0.
template <class T>
void check_alone(const answers<T>& x, const std::vector<T>& weights, const numbers_of_all<T>& all, sight seen,
                 double most)
{
    const boolean_mask<3> drawn = heed::detail::materialize_mask(any_mask(seen), real, 0, S, P);
    std::vector<T> contexts(B * S * D), d_values(B * P * D);
    std::vector<bool> visible(B * P);
    bool hidden_weights_are_0 = true, hidden_gradients_are_0 = true;
    for (std::size_t i = 0; i < B * S * P; ++i) {
        const std::size_t context = i / P * D, key = i / (S * P) * P + i % P;
        const T w = weights[i];
        if (drawn[i]) visible[key] = true;
        if (!drawn[i]) hidden_weights_are_0 = hidden_weights_are_0 && w == 0;
        for (std::size_t d = 0; w != 0 && d < D; ++d) {
            contexts[context + d] += w * all.values.data()[key * D + d];
            d_values[key * D + d] += w * all.d_contexts.data()[context + d];
        }
    }
    for (std::size_t i = 0; i < B * P * D; ++i) {
        if (!visible[i / D]) hidden_gradients_are_0 = hidden_gradients_are_0 && x.d_keys[i] == 0 && x.d_values[i] == 0;
    }
    CHECK(hidden_weights_are_0);
    CHECK(hidden_gradients_are_0);
    CHECK(distance(x.contexts, contexts) < most);
    CHECK(distance(x.d_values, d_values) < most);
}

/// Checks the results `answer(way)` of every executor for these inputs.
template <class T>
void check_answers(heed::detail::function_ref<answers<T>, way> answer, double most, const numbers_of_all<T>& all,
                   sight seen)
{
    const auto must = answer(way::composed);
    check_alone(must, must.weights, all, seen, most);
    for (int nth = 1; nth < has_ways<T>; ++nth) {
        const way how{nth};
        CAPTURE(nth);
        const auto is = answer(how);
        check_alone(is, how == way::tiles ? must.weights : is.weights, all, seen, most);
        CHECK(distance(is.contexts, must.contexts) < most);
        CHECK(distance(is.d_queries, must.d_queries) < most);
        CHECK(distance(is.d_keys, must.d_keys) < most);
        CHECK(distance(is.d_values, must.d_values) < most);
        if (how == way::at_once) CHECK(distance(is.weights, must.weights) < most);
    }
}

template <class T>
void check_score(const auto& score, const auto& normalize, double most, const numbers_of_all<T>& all, sight seen)
{
    const auto answer = [&](way how) { return answers_of<T>(score, normalize, how, all, seen); };
    check_answers<T>(answer, most, all, seen);
}

template <class T>
void check(const auto& normalize, const any_function<T>& f, double most, const numbers_of_all<T>& all = {},
           sight seen = sight::causal)
{
    check_score<T>(score::modified{score::scaled_dot{}, f}, normalize, most, all, seen);
}

/// Whether this problem is tested in T: each normalizer runs each problem in float or in double, and in both with
/// --exhaustive.
template <class T>
bool is_of(int normalizer, int problem)
{
    return support::exhaustive() || (normalizer + problem) % 2 == (sizeof(T) == sizeof(double) ? 1 : 0);
}

/// Calls f(mask) for the nth problem: with all masks if exhaustive, otherwise with one, in turn.
void each_sight(int nth, const auto& f)
{
    constexpr int sights = 5;
    for (int i = 0; i < (support::exhaustive() ? sights : 1); ++i) {
        const int seen = (nth + i) % sights;
        CAPTURE(seen);
        f(sight{seen});
    }
}

/// Calls f(name, inputs) for inputs with NaN or infinite numbers.
template <class T>
void each_with_special_numbers(const auto& f)
{
    constexpr T nan = std::numeric_limits<T>::quiet_NaN(), inf = std::numeric_limits<T>::infinity();
    const auto with = [&](const char* name, const auto& change) {
        numbers_of_all<T> all;
        change(all);
        f(name, all);
    };
    const auto fill = [](array<T, 3>& x, std::size_t b, std::size_t from, std::size_t to, T number) {
        std::fill_n(x.data() + (b * x.shape()[1] + from) * D, (to - from) * D, number);
    };
    with("NaN in the padding", [&](auto& all) {
        fill(all.keys, 1, 37, P, nan);
        fill(all.values, 1, 37, P, nan);
    });
    with("a NaN query", [&](auto& all) { fill(all.queries, 0, 9, 10, nan); });
    with("NaN keys", [&](auto& all) {
        fill(all.keys, 0, 80, 82, nan);
        fill(all.keys, 1, 12, 13, nan);
    });
    with("keys of inf", [&](auto& all) { fill(all.keys, 0, 80, 82, inf); });
    with("NaN values", [&](auto& all) {
        fill(all.values, 0, 80, 82, nan);
        fill(all.values, 1, 12, 13, nan);
    });
    with("NaN keys and values", [&](auto& all) {
        fill(all.keys, 0, 80, 81, nan);
        fill(all.values, 0, 80, 81, nan);
    });
    with("a NaN gradient of a context", [&](auto& all) { fill(all.d_contexts, 0, 9, 10, nan); });
}

/// Calls f(normalizer) for the normalizers with tile rules.
template <class T>
void each_normalizer(const auto& f)
{
    f(normalize::softmax{});
    f(normalize::softmax_with_sink{array<T, 1>{T(0.7)}});
    f(normalize::sigmoid{-1});
    f(normalize::sparsemax{});
    f(normalize::entmax15{});
    f(normalize::entmax{array<T, 1>{T(0.3)}});
    f(normalize::top_k{3});
    f(normalize::stick_breaking{});
    f(normalize::temporal{});
    f(normalize::decayed_temporal{0.7, 0.2});
}

}  // namespace

TEST_CASE_TEMPLATE("large scores: the backward pass does not round gradients away", T, float, double)
{
    const auto each = [](const auto& normalize) {
        const double most = sizeof(T) == 4 ? 1e-5 : 1e-12;
        for (const double shift : {1e4, -1e4, -1e30}) check<T>(normalize, {change::shifted, shift}, most);
        check<T>(normalize, {change::constant}, most);
    };
    each(normalize::softmax{});
    each(normalize::softmax_with_sink{array<T, 1>{T(-1e4)}});
    each(normalize::top_k{3});
    each(normalize::temporal{});
}

TEST_CASE_TEMPLATE("infinite or NaN scores and slopes: the NaNs are at the same positions", T, float, double)
{
    constexpr double most = sizeof(T) == 4 ? 1e-5 : 1e-10;
    int nth = -1;
    each_normalizer<T>([&](const auto& normalize) {
        ++nth;
        CAPTURE(nth);
        for (int function = 0; function <= static_cast<int>(change::nan_where_hidden); ++function) {
            if (!is_of<T>(nth, function)) continue;
            CAPTURE(function);
            check<T>(normalize, {change{function}}, most);
        }
    });
}

TEST_CASE_TEMPLATE("infinite and NaN scores, queries, keys, values and padding, under every kind of mask", T, float,
                   double)
{
    constexpr double most = sizeof(T) == 4 ? 1e-5 : 1e-10;
    struct problem {
        const char* name;
        change what;
        numbers_of_all<T> all{};
    };
    std::vector<problem> problems{
        {"none", change::nothing},
        {"a NaN score", change::nan_at_5},
        {"a score of +inf", change::inf_at_5},
        {"a row of -inf", change::none_in_row_23},
        {"two of +inf", change::inf_at_5_and_20},
        {"+inf and NaN", change::inf_and_nan},
        {"NaN and +inf", change::nan_and_inf},
        {"+inf, NaN, -inf", change::inf_nan_none},
        {"+inf without a slope", change::inf_without_slope},
        {"+inf of an infinite slope", change::inf_of_infinite_slope},
    };
    each_with_special_numbers<T>([&](const char* name, const auto& all) {
        problems.push_back({name, change::nothing, all});
    });
    int nth = -1;
    each_normalizer<T>([&](const auto& normalize) {
        ++nth;
        CAPTURE(nth);
        int problem_nth = nth;
        for (const problem& one : problems) {
            CAPTURE(std::string(one.name));
            each_sight(problem_nth, [&](sight seen) {
                if (is_of<T>(0, problem_nth)) check<T>(normalize, {one.what}, most, one.all, seen);
            });
            ++problem_nth;
        }
    });
}

TEST_CASE("scores that are sums over dimensions: masked positions do not contribute")
{
    int nth = 0;
    const auto each = [&](const auto& score) {
        each_with_special_numbers<double>([&](const char* name, const auto& all) {
            CAPTURE(std::string(name));
            each_sight(nth++, [&](sight seen) { check_score<double>(score, normalize::softmax{}, 1e-10, all, seen); });
        });
    };
    each(score::additive{random({D, D}, 5), random({D, D}, 6), random({D}, 7)});
    each(score::match{});
}
