// SPDX-License-Identifier: BSD-3-Clause
#include <heed/attention/execute/step.hpp>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <type_traits>

#include <heed/verify/problem.hpp>
#include <support/mechanisms.hpp>

using namespace heed;
using support::random;
namespace running = heed::detail::verifying;

namespace {

/// step, compose and read: values and gradients, at a size where threads share the work.
template <class T>
void check_large(const auto& attend, const auto& describe, std::size_t width, double tolerance)
{
    using running::form;
    const auto model = running::converted<T>(attend);
    running::problem<std::remove_cvref_t<decltype(model)>, array<T, 3>> p{model, random<T>({9, 40, width}, 4), {}};
    running::setting<std::remove_cvref_t<decltype(describe)>> at{describe, running::layout_of(describe),
                                                                 lengths{40, 39, 0, 1, 17, 32, 40, 8, 5}, 3};
    for (const auto& part : at.layout) p.parts.push_back(random<T>({9, 3, part.width}, 5));
    const auto close = [&](const auto& is, const auto& must) {
        const auto most = running::compare(is, must);
        CHECK_MESSAGE(most.worst < tolerance, most.where);
    };
    const auto values = running::results<form::compose, T>(p, at);
    const auto slopes = running::gradients<form::compose, true, T>(p, at);
    const auto read_slopes = running::gradients<form::compose, false, T>(p, at);
    for (const std::size_t count : {1u, 2u, 3u}) {
        set_threads(count);
        const auto once = running::results<form::step, T>(p, at);
        const auto once_slopes = running::gradients<form::step, true, T>(p, at);
        close(once, values);
        close(once_slopes, slopes);
        close(running::gradients<form::read, false, T>(p, at), read_slopes);
        CHECK(running::differing_bits(running::results<form::step, T>(p, at), once) == "");
        CHECK(running::differing_bits(running::gradients<form::step, true, T>(p, at), once_slopes) == "");
        CHECK(running::differing_bits(running::results<form::step_into, T>(p, at), once) == "");
        set_threads(1);
    }
}

/// e_j = Σ_d s_d h_jd, with a count of the rows that it is computed for.
struct counted_products_op : ops::operation<counted_products_op> {
    static inline std::size_t rows = 0;

    static shape_of_rank<2> shape(const auto& s, const auto& h) { return {s.shape[0], h.shape[1]}; }
    template <class T>
    static void forward(ops::in<T, 2> s, ops::in<T, 3> h, ops::out<T, 2> e)
    {
        rows += s.shape[0];
        const std::size_t D = h.shape[2];
        for (std::size_t i = 0; i < e.size(); ++i) {
            e.data[i] = 0;
            for (std::size_t d = 0; d < D; ++d) e.data[i] += s.data[i / h.shape[1] * D + d] * h.data[i * D + d];
        }
    }
    template <class T>
    static void backward(ops::in<T, 2> s, ops::in<T, 3> h, ops::in<T, 2>, ops::in<T, 2> d_e, ops::adjoint<T, 2> d_s,
                         ops::adjoint<T, 3> d_h)
    {
        const std::size_t D = h.shape[2];
        for (std::size_t i = 0; i < d_e.size(); ++i) {
            for (std::size_t d = 0; d < D; ++d) {
                const std::size_t of_query = i / h.shape[1] * D + d;
                if (d_s) d_s.data[of_query] += d_e.data[i] * h.data[i * D + d];
                if (d_h) d_h.data[i * D + d] += d_e.data[i] * s.data[of_query];
            }
        }
    }
};
struct counted_products {
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return counted_products_op{}(query, keys);
    }
    static auto parameters(auto&, auto&&) { return counted_products{}; }
};

}  // namespace

TEST_CASE("the scores of a step are saved for the backward pass, also in a window")
{
    const auto count = [](const auto& normalize) {
        const attention attend{counted_products{}, normalize, combine::weighted_sum{}};
        ad::tape<double> on;
        const auto h = random({3, 40, 16}, 1);
        const auto memory = attend.on(on.parameter(h), lengths{40, 7, 0});
        counted_products_op::rows = 0;
        const auto context = attend.step(memory, random({3, 16}, 2), attend.start(memory)).context;
        on.backward(ops::dot(context, support::uneven(context.shape())));
        return counted_products_op::rows;
    };
    CHECK(count(normalize::softmax{}) == 3);
    CHECK(count(normalize::local_m{1}) == 3);
}

TEST_CASE("step equals compose where threads share the work, in float and in double")
{
    // Small parameters keep the scores of wide layers within a few units.
    const std::size_t Q = 37, A = 130, D = 101;
    const auto W = random({Q, A}, 1, 0.1), U = random({D, A}, 2, 0.1), V = random({A, D}, 3, 0.2);
    const auto v = random({A}, 4, 0.3);
    const auto in_double = [&](const auto& attend) { check_large<double>(attend, support::plain_query{Q}, D, 1e-12); };
    const auto check = [&](const auto& attend) {
        in_double(attend);
        check_large<float>(attend, support::plain_query{Q}, D, 1e-4);
    };
    in_double(attention{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{score::additive_per_dimension{W, U, V}, normalize::softmax{}, combine::elementwise_sum{}});
}

TEST_CASE("training per-dimension attention does not keep a [B,T,D] tensor per step")
{
    const attention attend{score::additive_per_dimension{random({3, 8}, 1), random({16, 8}, 2), random({8, 16}, 3)},
                           normalize::softmax{}, combine::elementwise_sum{}};
    const auto h = random({4, 64, 16}, 4);
    const auto query = random({4, 3}, 5);
    ad::tape<double> on;
    on.memory().allocate(std::size_t{32} << 20);
    on.clear();
    const auto lifted = ad::lift(on, attend);
    const auto memory = lifted.on(on.constant(h), lengths::full(4, 64));
    auto state = lifted.start(memory);
    const auto q = on.parameter(query);
    state = lifted.read(memory, q, state).state;
    const std::size_t before = on.memory().used();
    state = lifted.read(memory, q, state).state;
    const std::size_t after = on.memory().used();
    CHECK(after - before < 4 * 64 * 16 * sizeof(double) / 4);
}

TEST_CASE("scores of 1e4 through an additive score, in float")
{
    // v = (1e4, …): every hidden unit that is 1 or -1 contributes 1e4, and the scores reach 4e4.
    const auto W = random<float>({3, 4}, 1, 8), U = random<float>({5, 4}, 2, 8);
    const auto v = filled<float, 1>({4}, 1e4f);
    const auto h = random<float>({2, 6, 5}, 3);
    const auto query = random<float>({2, 3}, 4);
    const auto check = [&](const auto& attend) {
        const auto memory = attend.on(h, lengths{6, 3});
        auto state = attend.start(memory);
        ad::tape<float> on;
        const auto lifted = ad::lift(on, attend);
        const auto taped_memory = lifted.on(on.parameter(h), lengths{6, 3});
        auto taped = lifted.start(taped_memory);
        const auto q = on.parameter(query);
        ad::var<float, 0> loss = ops::dot(q, filled<float, 2>({2, 3}, 0.0f));
        for (int s = 0; s < 3; ++s) {
            const auto now = attend.step(memory, query, state);
            CHECK(support::all_finite(now.context));
            CHECK(support::all_finite(now.weights));
            state = now.state;
            const auto then = lifted.step(taped_memory, q, taped);
            loss = ops::add(loss, ops::dot(then.context, support::uneven<float>(shape_of(now.context))));
            taped = then.state;
        }
        on.backward(loss);
        for_each_parameter(lifted,
                           [&](const std::string&, const auto& x) { CHECK(support::all_finite(on.gradient(x))); });
        CHECK(support::all_finite(on.gradient(q)));
    };
    check(attention{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}});
    check(attention{score::additive{W, U, v}, normalize::temporal{}, combine::weighted_sum{}});
    check(attention{score::additive_per_dimension{W, U, filled<float, 2>({4, 5}, 1e4f)}, normalize::softmax{},
                    combine::elementwise_sum{}});
}
