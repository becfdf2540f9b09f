// SPDX-License-Identifier: BSD-3-Clause
//
// own_kernel: a custom kernel for a custom score.
//
// A score written with heed's operations does not require a kernel: it runs sentence by sentence, and it trains. Write
// a kernel if a profile shows that the score dominates. This program defines one, checks its values and gradients
// against the composed form, and prints the speedup.
//
// test:

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <tuple>
#include <vector>

#include <heed/heed.hpp>
#include <heed/kernels/rows.hpp>
#include <heed/nn/init.hpp>

using namespace heed;

namespace mine {

/// 1. The score of own_policy.cpp, e_j = -|W s - U h_j|². `prepare` and `project` compute U h and W s in advance.
template <class Matrix>
struct nearness {
    Matrix W, U;  // [Q,A], [D,A]
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto prepare(const tensor auto& h) const { return ops::linear(h, U); }  // [B,T,D] -> [B,T,A]
    auto project(const tensor auto& s) const { return ops::linear(s, W); }  // [B,Q] -> [B,A]
    auto match(const tensor auto& q, const tensor auto& k) const            // [B,A], [B,T,A] -> [B,T]
    {
        return ops::scale(ops::sum_last(ops::square(ops::subtract_per_position(k, q))), -1);
    }
    auto operator()(const tensor auto& s, const tensor auto& k) const { return match(project(s), k); }
    static auto parameters(auto& self, auto&& visit) { return mine::nearness{visit("W", self.W), visit("U", self.U)}; }
};
template <class Matrix>
nearness(Matrix, Matrix) -> nearness<Matrix>;

/// 2. The kernel is an operation: the shapes of its results, their values, and the backward pass. The differences q -
/// k_j, [B,T,A], are never stored. Only real positions are read; padding has weight 0.
struct nearness_step_op : ops::operation<nearness_step_op> {
    static auto shape(const auto& q, const auto& k, const auto& h, const lengths_view& real)
    {
        const std::size_t B = k.shape[0], T = k.shape[1], A = k.shape[2], D = h.shape[2];
        require_shape("nearness", "the projected query", q.shape, {B, A}, "one row for each row of the keys ", k.shape);
        require_shape("nearness", "the values", h.shape, {B, T, D}, "positions as the keys ", k.shape);
        real.require("nearness", B, T);
        return std::tuple{shape_of_rank<2>{B, D}, shape_of_rank<2>{B, T}};
    }
    static auto results(auto context, auto weights) { return std::tuple{std::move(context), std::move(weights)}; }

    template <class T>
    static void forward(ops::in<T, 2> q, ops::in<T, 3> k, ops::in<T, 3> h, const lengths_view& real,
                        ops::out<T, 2> context, ops::out<T, 2> weights)
    {
        const std::size_t B = k.shape[0], P = k.shape[1], A = k.shape[2];
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < real[b]; ++j) {
                weights[b].data[j] = -kernels::squared_distance(A, q[b].data, k[b][j].data);
            }
        }
        const T* const read = weights.data;
        kernels::softmax(B, P, real.data(), read, weights.data);
        kernels::weighted_sum(B, P, h.shape[2], real.data(), read, h.data, context.data);
    }

    /// ∂α_j += ∂c · h_j,  ∂h_j += α_j ∂c,  ∂e from ∂α as in every softmax
    /// ∂q -= 2 Σ_j ∂e_j (q - k_j),  ∂k_j += 2 ∂e_j (q - k_j)
    template <class T>
    static void backward(ops::in<T, 2> q, ops::in<T, 3> k, ops::in<T, 3> h, const lengths_view& real,
                         const auto& results, const auto& d_results, ops::adjoint<T, 2> d_q, ops::adjoint<T, 3> d_k,
                         ops::adjoint<T, 3> d_h)
    {
        const std::size_t B = k.shape[0], P = k.shape[1], A = k.shape[2];
        const T* const weights = std::get<1>(results).data;
        const auto [d_context, d_weights] = d_results;  // empty if no gradient reached the result
        scratch here;
        T *const d_a = here.take<T>(B * P), *const d_e = here.take<T>(B * P);
        for (std::size_t i = 0; i < B * P; ++i) d_a[i] = d_weights.data == nullptr ? T(0) : d_weights.data[i];
        std::fill_n(d_e, B * P, T(0));
        kernels::weighted_sum_backward(B, P, h.shape[2], real.data(), weights, h.data, d_context.data, d_a, d_h.data);
        kernels::softmax_backward(B, P, real.data(), weights, static_cast<const T*>(d_a), d_e);
        for (std::size_t b = 0; b < B; ++b) {
            for (std::size_t j = 0; j < real[b]; ++j) {
                const T twice = 2 * d_e[b * P + j];
                if (d_q) kernels::add_scaled_difference(A, d_q[b].data, -twice, q[b].data, k[b][j].data);
                if (d_k) kernels::add_scaled_difference(A, d_k[b][j].data, twice, q[b].data, k[b][j].data);
            }
        }
    }
};

/// A combiner that the kernel does not support, for comparison.
struct other_sum : combine::weighted_sum {
    using kernel_tag = void;
    static auto parameters(auto&, auto&&) { return mine::other_sum{}; }
};

}  // namespace mine

/// 3. The kernel is registered for this score with every normalizer that is a softmax and every combiner that is a
/// weighted sum. heed then uses it in step, read and step_into, in training, in windows, and under scores that wrap
/// this one.
template <class M, class N, class C>
    requires(known_to_kernels_as<N, kernels::softmax_of_row>&& known_to_kernels_as<C, kernels::weighted_sum_of_row>)
struct heed::step_kernel<mine::nearness<M>, N, C> {
    using operation = mine::nearness_step_op;
    static auto answer(const auto&, const N&, const C&, const auto& in, const auto&)
    {
        auto [context, weights] = operation{}(in.query, in.keys, in.values, in.real);
        return outcome{std::move(context), std::move(weights), no_state{}};
    }
};

namespace {

struct sizes {
    std::size_t B, T, D, A, steps;  // batch, positions, widths of queries, words and values, alignment, steps
};

/// 4. README's loop on a tape: its contexts and weights, and the gradients of all parameters and of the annotations.
/// `ask(s, y)` makes a query from a state and a word; `answer` is step, or compose, which is the specification.
std::vector<double> loop(const sizes& n, const auto& attend, const auto& ask, const auto& answer)
{
    static ad::tape<double> tape;  // reuses its memory
    tape.clear();
    random_source random{1};
    const auto draw = [&](std::size_t rows, std::size_t columns) {
        return nn::gaussian<double>(random, rows, columns, 1);
    };
    const array<double, 3> annotations = ops::stack(std::vector(n.B, draw(n.T, n.D)));
    const auto s = draw(n.B, n.D), y = draw(n.B, n.D), by_context = draw(n.B, n.D), by_weights = draw(n.B, n.T);
    std::vector<ad::named_variable<double>> parameters;
    const auto lifted = ad::lift(tape, attend, parameters);
    const auto h = tape.parameter(annotations);
    const auto memory = lifted.on(h, lengths(std::vector(n.B, n.T - 1)));
    auto state = lifted.start(memory);
    auto loss = tape.constant(filled<double, 0>({}, 0.0));
    std::vector<double> all;
    const auto take = [&](const auto& x) { all.insert(all.end(), x.data, x.data + x.size()); };
    for (std::size_t t = 0; t < n.steps; ++t) {
        const auto [context, weights, next] = answer(lifted, memory, ask(s, y), state);
        loss = ops::add(loss, ops::add(ops::dot(context, by_context), ops::dot(weights, by_weights)));
        take(context.value());
        take(weights.value());
        state = next;
    }
    tape.backward(loss);
    for (const auto& parameter : parameters) take(tape.gradient(parameter.numbers));
    take(tape.gradient(h));
    return all;
}

constexpr auto step = [](const auto& attend, const auto&... x) { return attend.step(x...); };
constexpr auto compose = [](const auto& attend, const auto&... x) { return attend.compose(x...); };
constexpr auto state_alone = [](const auto& s, const auto&) { return s; };
constexpr auto with_word = [](const auto& s, const auto& y) { return state_and_word{s, y}; };

bool agree(const char* name, const sizes& n, const auto& attend, const auto& ask)
{
    const auto is = loop(n, attend, ask, step), must = loop(n, attend, ask, compose);
    double apart = 0;
    for (std::size_t i = 0; i < must.size(); ++i) apart = std::max(apart, std::abs(is[i] - must[i]));
    std::printf("%-14s %zu values and gradients, at most %.0e apart\n", name, must.size(), apart);
    return apart < 1e-12;
}

}  // namespace

int main()
{
    const auto made = [](const sizes& n) {
        random_source random{2};
        return mine::nearness{nn::glorot<double>(random, n.D, n.A), nn::glorot<double>(random, n.D, n.A)};
    };
    const sizes small{2, 5, 3, 4, 3}, large{16, 50, 64, 512, 20};
    random_source random{3};
    const score::with_coverage covered{made(small), nn::gaussian<double>(random, 6, small.A, 1),
                                       nn::make_coverage_gru<double>(random, small.D, 6)};
    const combine::weighted_sum sum;
    bool right = agree("alone", small, attention{made(small), normalize::softmax{}, sum}, state_alone);
    right &= agree("in a window", small, attention{made(small), normalize::local_m{1}, sum}, state_alone);
    right &= agree("with coverage", small, attention{covered, normalize::softmax{}, sum}, with_word);

    // 5. The speedup: 20 steps of 16 sentences of 50 words, forward and backward.
    const auto seconds = [&](const auto& attend) {
        double best = INFINITY;
        for (int i = 0; i < 5; ++i) {
            const auto before = std::chrono::steady_clock::now();
            (void)loop(large, attend, state_alone, step);
            best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count());
        }
        return best;
    };
    const double kernel = seconds(attention{made(large), normalize::softmax{}, sum});
    const double lines = seconds(attention{made(large), normalize::softmax{}, mine::other_sum{}});
    std::printf("\nwithout the kernel, training takes %.2f times as long\n", lines / kernel);
    return right ? 0 : 1;
}
