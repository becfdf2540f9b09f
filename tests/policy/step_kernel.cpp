// SPDX-License-Identifier: BSD-3-Clause
#include <heed/policy/step_kernel.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/normalize/temporal.hpp>
#include <heed/policy/step_context.hpp>
#include <heed/policy/weigh.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <ostream>
#include <utility>

#include <support/tensors.hpp>

// A custom kernel for a custom score is used whenever there are no masks. It counts the rows of its forward and
// backward passes; the number of rows per call does not matter.
using namespace heed;
using support::random;

namespace mine {

struct counts {
    std::size_t forward = 0, backward = 0;
    bool operator==(const counts&) const = default;
    friend std::ostream& operator<<(std::ostream& to, const counts& n) { return to << n.forward << ", " << n.backward; }
};
inline counts rows;

struct counting_step_op : ops::operation<counting_step_op> {
    static auto shape(const auto&... x) { return ops::dot_step_op::shape(x...); }
    template <class Context, class Weights>
    static auto results(Context context, Weights weights)
    {
        return ops::dot_step_op::results(std::move(context), std::move(weights));
    }
    static void forward(const auto& query, const auto&... x)
    {
        rows.forward += query.shape[0];
        ops::dot_step_op::forward(query, x...);
    }
    static void backward(const auto& query, const auto&... x)
    {
        rows.backward += query.shape[0];
        ops::dot_step_op::backward(query, x...);
    }
};

/// e_j = (W s) · (U h_j)
template <class Matrix>
struct bilinear {
    Matrix W, U;  // [Q,A], [D,A]
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto prepare(const tensor auto& annotations) const { return ops::linear(annotations, U); }
    auto project(const tensor auto& query) const { return ops::linear(query, W); }
    auto match(const tensor auto& projected, const tensor auto& keys) const
    {
        return ops::dot_per_position(projected, keys);
    }
    auto operator()(const tensor auto& query, const tensor auto& keys) const { return match(project(query), keys); }
    static auto parameters(auto& self, auto&& visit) { return mine::bilinear{visit("W", self.W), visit("U", self.U)}; }
};
template <class Matrix>
bilinear(Matrix, Matrix) -> bilinear<Matrix>;

}  // namespace mine

template <class Matrix, class Normalize, class Combine>
    requires(known_to_kernels_as<Normalize, kernels::softmax_of_row>&&
                 known_to_kernels_as<Combine, kernels::weighted_sum_of_row>)
struct heed::step_kernel<mine::bilinear<Matrix>, Normalize, Combine> {
    using operation = mine::counting_step_op;
    static auto answer(const auto&, const Normalize&, const Combine&, const auto& in, const auto&)
    {
        auto seen = operation{}(in.query, in.keys, in.values, in.real);
        return outcome{std::move(seen.context), std::move(seen.weights), no_state{}};
    }
};

namespace {

using mine::counts;

constexpr std::size_t B = 3, T = 4, Q = 3, D = 5, A = 2, E = 2;

const mine::bilinear bilinear{random({Q, A}, 1), random({D, A}, 2)};
const array<double, 3> annotations = random({B, T, D}, 3);
const lengths real{4, 2, 0};
const array<double, 2> query = random({B, Q}, 4);

auto location_over(const auto& base) { return score::with_location{base, random({2, 3}, 5), random({2, A}, 6)}; }
auto word_over(const auto& base) { return score::with_word{base, random({E, A}, 7)}; }
auto coverage_over(const auto& base)
{
    return score::with_coverage{base, random({2, A}, 8),
                                nn::coverage_gru{random({E, 6}, 9), random({6}, 10), random({2, 6}, 11)}};
}
auto attend_with(const auto& own) { return attention{own, normalize::softmax{}, combine::weighted_sum{}}; }

/// The rows that the kernel computes forward and backward while f runs.
counts rows_of(const auto& f)
{
    mine::rows = {};
    f();
    return mine::rows;
}

/// The kernel computes each row of a step once, and its results are those of compose.
void check_steps(const auto& attend, const auto& asked)
{
    const auto memory = attend.on(annotations, real);
    const auto state = attend.start(memory);
    auto seen = attend.compose(memory, asked, state);
    const auto must = seen;
    CHECK(rows_of([&] { seen = attend.step(memory, asked, state); }) == counts{B, 0});
    CHECK(support::distance(seen.context, must.context) < 1e-14);
    CHECK(support::distance(seen.weights, must.weights) < 1e-14);
    CHECK(rows_of([&] { (void)attend.read(memory, asked, state); }) == counts{B, 0});
    CHECK(rows_of([&] { attend.step_into(seen, memory, asked, state); }) == counts{B, 0});
    CHECK(support::distance(seen.context, must.context) < 1e-14);
    CHECK(rows_of([&] { (void)attend.compose(memory, asked, state); }) == counts{0, 0});
}

/// Also in training. A step by rows is recomputed in the backward pass, except for small results: with many positions
/// the kernel runs once.
void check_training(const auto& attend, const auto& asked, counts must)
{
    CHECK(rows_of([&] {
              ad::tape<double> on;
              const auto lifted = ad::lift(on, attend);
              const auto memory = lifted.on(annotations, real);
              on.backward(ops::dot(lifted.read(memory, asked, lifted.start(memory)).context,
                                   support::uneven(shape_of_rank<2>{B, D})));
          }) == must);
}

}  // namespace

TEST_CASE("a custom kernel computes step, read and step_into, and many queries one by one")
{
    const auto attend = attend_with(bilinear);
    check_steps(attend, query);
    const auto memory = attend.on(annotations, real);
    CHECK(rows_of([&] { (void)attend(memory, random({B, 6, Q}, 20)); }) == counts{6 * B, 0});
}

TEST_CASE("a custom kernel computes windows")
{
    check_steps(attention{bilinear, normalize::local_m{1}, combine::weighted_sum{}}, query);
}

TEST_CASE("a custom kernel computes a memory whose rows are shared")
{
    const auto attend = attend_with(bilinear);
    const auto memory = attend.on(annotations, real);
    const shared_memory shared(memory, {0, 0, 1, 0, 1});
    const auto asked = random({5, Q}, 21);
    CHECK(rows_of([&] { (void)attend.step(shared, asked, attend.start(shared)); }) == counts{5, 0});
}

TEST_CASE("a custom kernel computes scores that wrap its score")
{
    check_steps(attend_with(location_over(bilinear)), query);
    check_steps(attend_with(word_over(bilinear)), state_and_word{query, random({B, E}, 22)});
    check_steps(attend_with(coverage_over(location_over(bilinear))), state_and_word{query, random({B, E}, 22)});
}

TEST_CASE("a custom kernel trains")
{
    check_training(attend_with(bilinear), query, {B, B});
    check_training(attention{bilinear, normalize::local_m{1}, combine::weighted_sum{}}, query, {2 * B, B});
    check_training(attend_with(location_over(bilinear)), query, {B, B});
}

TEST_CASE("a custom kernel is not used for masks and other normalizers")
{
    const auto attend = attend_with(bilinear);
    const auto memory = attend.on(annotations, real);
    const boolean_mask<2> all(filled<bool, 2>({B, T}, true));
    CHECK(rows_of([&] { (void)attend.step(memory, query, attend.start(memory), all); }) == counts{0, 0});
    const attention temporal{bilinear, normalize::temporal{}, combine::weighted_sum{}};
    CHECK(rows_of([&] { (void)temporal.step(memory, query, temporal.start(memory)); }) == counts{0, 0});
}

namespace kernel_of_inner_products {

using support::random;

namespace {

template <class Score, class Normalize, class Combine>
constexpr bool has_kernel = requires
{
    typename step_kernel<Score, Normalize, Combine>::operation;
};

}  // namespace

TEST_CASE("inner products with softmax and a weighted sum have a kernel")
{
    CHECK(has_kernel<score::dot, normalize::softmax, combine::weighted_sum>);
    CHECK(has_kernel<score::general<array<double, 2>>, normalize::softmax, combine::weighted_sum>);
    CHECK(!has_kernel<score::dot, normalize::temporal, combine::weighted_sum>);
    CHECK(!has_kernel<score::rotary<score::dot>, normalize::softmax, combine::weighted_sum>);
}

TEST_CASE("the kernel equals score, normalizer and combiner")
{
    const auto q = random({2, 5}, 1);
    const auto keys = random({2, 7, 5}, 2), values = random({2, 7, 3}, 3);
    const lengths real{7, 4};
    const auto check = [&](const auto& by, const auto& query) {
        const operands in{query, keys, values, no_state{}, real};
        const normalize::softmax normalize;
        const combine::weighted_sum combine;
        const plain_step_context at{real};
        using kernel = step_kernel<std::remove_cvref_t<decltype(by)>, normalize::softmax, combine::weighted_sum>;
        const auto is = kernel::answer(by, normalize, combine, in, weights_too{});
        const auto weights = weigh(normalize, score::over::compare(by, query, keys, no_score_state{}), no_state{}, at);
        CHECK(support::distance(is.context, combined(combine, weights, values, at)) < 1e-14);
        CHECK(support::distance(is.weights, weights) < 1e-14);
        CHECK(is.weights(1, 4) == 0);
    };
    check(score::dot{}, q);
    check(score::scaled_dot{0.5}, q);
    check(score::cosine{array<double, 1>{2.0}}, q);
}

}  // namespace kernel_of_inner_products
