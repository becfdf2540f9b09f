// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/heed.hpp>
#include <heed/verify.hpp>
#include <support/tensors.hpp>

#include <stdexcept>

// heed::verify must detect violations: each policy here breaks one contract, and the report must name it.

using namespace heed;
using support::random;

namespace broken {

using heed::shape_of;
using heed::view_of;

/// A user's operation that breaks a rule: it silently fits x to [B,N].
struct fit_op : ops::operation<fit_op> {
    static shape_of_rank<2> shape(const auto&, const shape_of_rank<2>& to) { return to; }

    template <class T>
    static void forward(ops::in<T, 2> x, const shape_of_rank<2>&, ops::out<T, 2> y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = x.data[i % x.size()];
    }
    template <class T>
    static void backward(ops::in<T, 2> x, const shape_of_rank<2>&, ops::in<T, 2>, ops::in<T, 2> d_y,
                         ops::adjoint<T, 2> d_x)
    {
        for (std::size_t i = 0; i < d_y.size(); ++i) d_x.data[i % x.size()] += d_y.data[i];
    }
};
inline constexpr fit_op fit{};

/// A score without parameters, defined by one expression.
#define SCORE(name, ...)                                                                                               \
    struct name {                                                                                                      \
        static constexpr score_traits traits{.weights = weight_kind::per_position};                                    \
        auto operator()(const tensor auto& q, const tensor auto& k) const { return __VA_ARGS__; }                      \
        static auto parameters(auto&, auto&&) { return name{}; }                                                       \
    }

SCORE(sound, ops::dot_per_position(q, k));
/// The gradient omits the factor.
SCORE(detached, ops::scale(ops::dot_per_position(q, k), 1 + 0.5 * static_cast<double>(view_of(q).data[0])));
SCORE(of_batch, ops::scale(ops::dot_per_position(q, k), 1.0 / static_cast<double>(shape_of(k)[0])));
SCORE(any_shape, ops::dot_per_position(fit(q, shape_of_rank<2>{shape_of(k)[0], shape_of(k)[2]}), k));
SCORE(overflowing, ops::exp(ops::scale(ops::square(ops::dot_per_position(q, k)), 50.0)));

struct counting {
    static inline int count = 0;
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& q, const tensor auto& k) const
    {
        return ops::scale(ops::dot_per_position(q, k), 1 + 0.1 * (++count % 7));
    }
    static auto parameters(auto&, auto&&) { return counting{}; }
};

struct other_error {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& q, const tensor auto& k) const
    {
        if (shape_of(q)[1] != shape_of(k)[2]) throw std::invalid_argument("widths");
        return ops::dot_per_position(q, k);
    }
    static auto parameters(auto&, auto&&) { return other_error{}; }
};

template <class Vector>
struct same_names {
    Vector a, b;
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& q, const tensor auto& k) const
    {
        return ops::add(ops::dot_per_position(q, k), ops::add(ops::matvec(k, a), ops::matvec(k, b)));
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return broken::same_names{visit("v", self.a), visit("v", self.b)};
    }
};
template <class Vector>
same_names(Vector, Vector) -> same_names<Vector>;

/// Gives weight to padding.
struct maskless {
    auto operator()(const tensor auto& e, const auto&) const
    {
        return ops::softmax(e, lengths::full(shape_of(e)[0], shape_of(e)[1]));
    }
    static auto parameters(auto&, auto&&) { return maskless{}; }
};

/// Temporal modulation that sums exp(e) directly, starting at 1. `fitted`: accepts any shape.
template <bool fitted>
struct linear_history {
    template <class History>
    struct state {
        History sum;
    };
    auto start(auto&& blank) const { return make(blank(1.0)); }
    auto operator()(const tensor auto& e, const auto& memory, const auto& at) const
    {
        return ops::softmax(ops::subtract(e, ops::log(fitting(memory.sum, e))), at.real);
    }
    auto advance(const tensor auto& e, const tensor auto&, const auto& memory, const auto&) const
    {
        return make(ops::add(fitting(memory.sum, e), ops::exp(e)));
    }
    static auto parameters(auto&, auto&&) { return linear_history{}; }

private:
    template <class History>
    static state<History> make(History sum)
    {
        return {std::move(sum)};
    }
    static auto fitting(const tensor auto& sum, const tensor auto& e)
    {
        if constexpr (fitted) {
            return fit(sum, shape_of(e));
        } else {
            return sum;
        }
    }
};

/// A history with a `map` that does not apply f: a beam would continue with another hypothesis' history.
template <class History>
struct unmapped {
    History history;
    unmapped map(auto&&, const auto&...) const { return *this; }
};
template <class History>
unmapped(History) -> unmapped<History>;

struct unselectable {
    auto start(auto&& blank) const { return broken::unmapped{blank(0)}; }
    auto operator()(const tensor auto& e, const auto& state, const auto& at) const
    {
        return ops::softmax(at.visible(ops::subtract(e, state.history)), at.real);
    }
    auto advance(const tensor auto&, const tensor auto& weights, const auto& state, const auto&) const
    {
        return broken::unmapped{ops::add(state.history, weights)};
    }
    static auto parameters(auto&, auto&&) { return unselectable{}; }
};

/// The same mistake in a score.
struct unselectable_score {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto start(const auto& memory) const
    {
        return broken::unmapped{constant_like(memory.keys, shape_of_rank<2>{memory.batch(), memory.positions()}, 0.0)};
    }
    auto match(const tensor auto& q, const tensor auto& k, const auto& state) const
    {
        return ops::subtract(ops::dot_per_position(q, k), state.history);
    }
    auto advance(const auto& state, const tensor auto& now, const auto&) const
    {
        return broken::unmapped{ops::add(state.history, now)};
    }
    auto operator()(const tensor auto& q, const tensor auto& k, const auto& state) const { return match(q, k, state); }
    static auto parameters(auto&, auto&&) { return unselectable_score{}; }
};

/// A history that is not a variable at first: the type of a decoder's state would change after the first word.
template <class History>
struct mapped {
    History history;
    auto map(auto&& f, const auto&... others) const { return broken::mapped{f(history, others.history...)}; }
};
template <class History>
mapped(History) -> mapped<History>;

struct plain_at_first {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto start(const auto& memory) const
    {
        using T = element_of<decltype(memory.keys)>;
        return broken::mapped{filled<T, 2>({memory.batch(), memory.positions()}, T(0))};
    }
    auto match(const tensor auto& q, const tensor auto& k, const auto& state) const
    {
        return ops::subtract(ops::dot_per_position(q, k), state.history);
    }
    auto advance(const auto& state, const tensor auto& now, const auto&) const
    {
        return broken::mapped{ops::add(state.history, now)};
    }
    auto operator()(const tensor auto& q, const tensor auto& k, const auto& state) const { return match(q, k, state); }
    static auto parameters(auto&, auto&&) { return plain_at_first{}; }
};

/// A normalizer with a state must call `at.visible` itself. `never` does not. `too_late` does so after normalizing, so
/// that the remaining weights do not sum to 1. `of_bias_alone` applies only additive masks.
enum class asking { never, too_late, of_bias_alone };
template <asking when>
struct maskless_history {
    auto start(auto&& blank) const { return normalize::temporal{}.start(blank); }
    auto operator()(const tensor auto& e, const auto& state, const auto& at) const
    {
        const auto u = ops::subtract_history(e, state.history);
        if constexpr (when == asking::never) {
            return ops::softmax(u, at.real);
        } else if constexpr (when == asking::too_late) {
            return ops::multiply(ops::softmax(u, at.real), ops::exp(at.visible(ops::scale(e, 0.0))));
        } else if constexpr (requires { at.mask.bias; }) {
            return ops::softmax(at.visible(u), at.real);
        } else {
            return ops::softmax(u, at.real);
        }
    }
    auto advance(const tensor auto& e, const tensor auto& weights, const auto& state, const auto& at) const
    {
        return normalize::temporal{}.advance(e, weights, state, at);
    }
    static auto parameters(auto&, auto&&) { return maskless_history{}; }
};

/// e_{t,d} = q_d k_{t,d}.
struct product_per_dimension {
    static constexpr score_traits traits{.weights = weight_kind::per_dimension};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::multiply_per_position(keys, query);
    }
    static auto parameters(auto&, auto&&) { return product_per_dimension{}; }
};

}  // namespace broken

/// A kernel with given relative errors, with and without the weights.
template <>
struct heed::step_kernel<broken::product_per_dimension, heed::normalize::softmax, heed::combine::elementwise_sum> {
    using operation = ops::per_dimension_step_op;  // declares that a kernel exists
    static inline double error_with_weights = 0, error_without = 0;

    template <class With>
    static auto answer(const auto& score, const auto& normalize, const auto& combine, const auto& in, const With&)
    {
        auto weights = normalize(score(in.query, in.keys), no_state{}, plain_step_context{in.real});
        auto context = combine(weights, in.values);
        const double error = std::is_same_v<With, weights_too> ? error_with_weights : error_without;
        return outcome{ops::scale(context, 1 + error), std::move(weights), no_state{}};
    }
};

namespace {

/// Whether the report marks the contract whose name contains `part` as FAILED, for the given reason.
bool finds(const verification& report, const std::string& part, const std::string& reason = "")
{
    if (report) return false;
    for (const contract& c : report.contracts) {
        if (support::contains(c.name, part)) return !c.passed && support::contains(c.detail, reason);
    }
    return false;
}

/// The name of the first failed contract.
std::string first_broken(const verification& report)
{
    for (const contract& c : report.contracts) {
        if (!c.passed) return c.name;
    }
    return "";
}

template <class Score = broken::sound, class Normalize = normalize::softmax, class Combine = combine::weighted_sum>
verification verified(const Score& score = {}, const Normalize& normalize = {}, const Combine& combine = {})
{
    return verify(attention{score, normalize, combine});
}

}  // namespace

TEST_CASE("correct user-defined policies pass all contracts")
{
    CHECK_MESSAGE(verified(), verified().text());
    CHECK(verified().contracts.size() == 19);
    CHECK(verify<attention<broken::sound, normalize::temporal, combine::weighted_sum>>());
    CHECK(
        verify<attention<score::dot, normalize::softmax, combine::weighted_sum>>({.query = 3, .width = 3, .batch = 1}));
    CHECK(verify<attention<score::dot, normalize::softmax, combine::weighted_sum>>(
        {.query = 3, .width = 3, .batch = 5, .positions = 1, .steps = 1, .seed = 3}));
}

TEST_CASE("a report has one line per contract")
{
    const verification report{{{"first", true, "fine"}, {"second", false, "here"}}};
    CHECK(report.text() == "passed  first (fine)\nFAILED  second (here)\n");
    CHECK_FALSE(report);
    CHECK_FALSE(verification{});
    CHECK(verification{{{"first", true, ""}}});
}

TEST_CASE("sizes that do not fit the parameters are the only failure reported")
{
    const attention attend{score::general{random({3, 5}, 1)}, normalize::softmax{}, combine::weighted_sum{}};
    CHECK(verify(attend, {.query = 3, .width = 5}));
    const verification report = verify(attend, {.query = 4, .width = 5});
    CHECK(report.contracts.size() == 1);
    CHECK(finds(report, "runs with these sizes", "linear: x is [4,4] and the matrix is [3,5]"));
}

TEST_CASE("a wrong gradient") { CHECK(finds(verified(broken::detached{}), "finite differences", "queries.0")); }

TEST_CASE("a result that depends on the batch")
{
    const verification report = verified(broken::of_batch{});
    CHECK(finds(report, "agrees with compose", "step against compose: context of step 0"));  // a step runs by rows
}

TEST_CASE("state outside the returned state")
{
    const verification report = verified(broken::counting{});
    CHECK(finds(report, "two runs agree", "the second run"));
    CHECK(finds(report, "outside the state", "again from the first state"));
    CHECK(first_broken(report) == "two runs agree");  // randomness also breaks other contracts
}

TEST_CASE("a state with rows that cannot be selected")
{
    const std::string rows = "selecting rows";
    CHECK(finds(verified(broken::sound{}, broken::unselectable{}), rows, "after the first step: context of step 2"));
    CHECK(first_broken(verified(broken::sound{}, broken::unselectable{})).starts_with(rows));
    CHECK(finds(verified(broken::unselectable_score{}), rows, "after the first step: context of step 2"));
    CHECK(finds(verified(broken::sound{}, broken::linear_history<false>{}), rows,
                "the normalizer's state has no map(f, others...)"));
    const multi_hop hops{std::vector(2, attention{broken::sound{}, broken::unselectable{}, combine::weighted_sum{}})};
    CHECK(finds(verify(hops), rows, "after the first step: "));
    CHECK(
        finds(verify(attention{broken::sound{}, broken::unselectable{}, combine::weighted_sum{}}, {.batch = 1}), rows));
}

TEST_CASE("a state that changes its type after the first step on a tape")
{
    const verification report = verified(broken::plain_at_first{});
    CHECK_MESSAGE(finds(report, "finite differences", "start() must return variables"), report.text());
}

TEST_CASE("a mask that is not applied")
{
    using broken::asking, broken::maskless_history;
    const std::string masks = "hidden positions get weight 0";
    CHECK(finds(verified(broken::sound{}, maskless_history<asking::never>{}), masks,
                "hidden by a boolean mask, the weights of step 0"));
    CHECK(first_broken(verified(broken::sound{}, maskless_history<asking::never>{})).starts_with(masks));
    CHECK(finds(verified(broken::sound{}, maskless_history<asking::of_bias_alone>{}), masks, "by a boolean mask"));
    CHECK(finds(verified(broken::sound{}, maskless_history<asking::too_late>{}), masks,
                "the last positions hidden against shorter lengths"));
    const multi_hop hops{
        std::vector(2, attention{broken::sound{}, maskless_history<asking::never>{}, combine::weighted_sum{}})};
    CHECK(finds(verify(hops), masks, "hidden by a boolean mask, the weights of step 0"));
}

TEST_CASE("shapes that are not checked")
{
    CHECK(finds(verified(broken::any_shape{}), "shapes that do not fit",
                "a query with one column too many is not refused"));
    CHECK(finds(verified(broken::other_error{}), "shapes that do not fit", "something other than shape_error: widths"));
    const broken::linear_history<true> careless;
    CHECK(finds(verified(broken::sound{}, careless), "shapes that do not fit", "the state of another batch"));
}

TEST_CASE("two parameters with one name")
{
    const broken::same_names score{random({4}, 1), random({4}, 2)};
    const verification report = verified(score);
    CHECK(finds(report, "distinct name", "\"score.v\""));
}

TEST_CASE("padding with weight")
{
    const verification report = verified(broken::sound{}, broken::maskless{});
    CHECK(finds(report, "row without positions", "has no position, but the weights of step 0"));
    CHECK(finds(report, "padding", "beyond the length, the weights of step 0"));
    CHECK(finds(report, "alone and in a batch"));
}

TEST_CASE("scores that overflow")
{
    const verification history = verified(broken::sound{}, broken::linear_history<false>{});
    CHECK(finds(history, "+-1e4", "with scores of 1e4"));
    CHECK_FALSE(finds(history, "finite differences"));
    const verification report = verified(broken::overflowing{});
    CHECK(finds(report, "runs with these sizes", "in a first run"));
}

TEST_CASE("a kernel that differs from compose")
{
    using mechanism = attention<broken::product_per_dimension, normalize::softmax, combine::elementwise_sum>;
    using kernel = step_kernel<broken::product_per_dimension, normalize::softmax, combine::elementwise_sum>;
    CHECK(verify<mechanism>());
    kernel::error_with_weights = kernel::error_without = 1e-9;
    CHECK(finds(verify<mechanism>(), "agrees with compose", "step against compose: context of step 0"));
    kernel::error_with_weights = 0;
    CHECK(finds(verify<mechanism>(), "returning the weights", "without the weights: context of step 0"));
    kernel::error_without = 0;
    CHECK(verify<mechanism>());
}
