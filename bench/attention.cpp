// SPDX-License-Identifier: BSD-3-Clause

// heed's attention steps, and the matrix products of the per-dimension step alone.

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "floor.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;
using bench::attention_size;
using matrix = array<float, 2>;
using cube = array<float, 3>;

std::size_t size_of(long n) { return static_cast<std::size_t>(n); }

template <std::size_t N>
array<float, N> random_array(const shape_of_rank<N>& shape, unsigned seed, float scale)
{
    array<float, N> result(shape);
    bench::fill(result.data(), result.size(), seed, scale);
    return result;
}

matrix random_weight(long in, long out, unsigned seed)
{
    return random_array<2>({size_of(in), size_of(out)}, seed, std::sqrt(3.0F / static_cast<float>(in)));
}

/// Keys are already prepared here, so U is never used: one row is enough.
auto additive_attention(const attention_size& z)
{
    return attention{
        score::additive{random_weight(z.query, z.alignment, 4), matrix(shape_of_rank<2>{1, 1}),
                        random_array<1>({size_of(z.alignment)}, 5, std::sqrt(3.0F / static_cast<float>(z.alignment)))},
        normalize::softmax{}, combine::weighted_sum{}};
}

auto per_dimension_attention(const attention_size& z)
{
    return attention{score::additive_per_dimension{random_weight(z.query, z.alignment, 4),
                                                   matrix(shape_of_rank<2>{1, 1}),
                                                   random_weight(z.alignment, z.value, 7)},
                     normalize::softmax{}, combine::elementwise_sum{}};
}

struct inputs {
    explicit inputs(const attention_size& z)
        : query{random_array<2>({size_of(z.batch), size_of(z.query)}, 1, 1.0F)},
          keys{random_array<3>({size_of(z.batch), size_of(z.positions), size_of(z.alignment)}, 2, 1.0F)},
          values{random_array<3>({size_of(z.batch), size_of(z.positions), size_of(z.value)}, 3, 1.0F)},
          context_gradient{random_array<2>({size_of(z.batch), size_of(z.value)}, 6, 1.0F)},
          real{lengths::full(size_of(z.batch), size_of(z.positions))}
    {}

    matrix query;             // [B,Q]
    cube keys;                // [B,T,A]
    cube values;              // [B,T,D]
    matrix context_gradient;  // [B,D]
    lengths real;
};

/// One step of inference, into reused results.
template <class Make>
bench::work forward(const attention_size& z, Make make_attention)
{
    using attention_type = decltype(make_attention(z));
    using memory_type = memory<cube, cube>;
    const auto begin = [](const attention_type&, inputs& from) {
        return memory_type{std::move(from.values), std::move(from.keys), from.real};
    };
    struct storage {
        attention_type attend;
        inputs given;
        memory_type source;
        decltype(attend.start(source)) state;
        decltype(attend.step(source, given.query, state)) result;
    };
    auto attend = make_attention(z);
    inputs given{z};
    auto source = begin(attend, given);
    auto state = attend.start(source);
    auto result = attend.step(source, given.query, state);
    const auto s = std::make_shared<storage>(
        storage{std::move(attend), std::move(given), std::move(source), std::move(state), std::move(result)});
    return {[s] {
                s->attend.step_into(s->result, s->source, s->given.query, s->state);
                benchmark::DoNotOptimize(s->result.context.data());
            },
            [s] { return bench::sum_of_absolutes(s->result.context.data(), s->result.context.size()); }};
}

// The decoder steps of a short sentence are recorded before the backward pass: the gradients of keys and values
// accumulate over these steps and are set to zero once.
constexpr int recorded_steps = 15;

template <class Make>
bench::work forward_backward(const attention_size& z, Make make_attention)
{
    struct storage {
        decltype(make_attention(z)) attend;
        inputs given;
        ad::tape<float> tape;
        tensor_view<const float, 3> keys_gradient, values_gradient;
        storage(const attention_size& size, Make& make) : attend{make(size)}, given{size} {}
    };
    const auto s = std::make_shared<storage>(z, make_attention);
    return {[s] {
                auto& tape = s->tape;
                tape.clear();
                const auto attend = ad::lift(tape, s->attend);
                const memory<ad::var<float, 3>, ad::var<float, 3>> source{tape.parameter(s->given.values),
                                                                          tape.parameter(s->given.keys), s->given.real};
                auto state = attend.start(source);
                auto cost = tape.constant(filled<float, 0>({}, 0.0F));
                for (int i = 0; i < recorded_steps; ++i) {
                    auto seen = attend.read(source, tape.parameter(s->given.query), state);
                    cost = ops::add(cost, ops::dot(seen.context, s->given.context_gradient));
                    state = std::move(seen.state);
                }
                tape.backward(cost);
                s->keys_gradient = tape.gradient(source.keys);
                s->values_gradient = tape.gradient(source.values);
            },
            [s] {
                return (bench::sum_of_absolutes(s->keys_gradient.data, s->keys_gradient.size()) +
                        bench::sum_of_absolutes(s->values_gradient.data, s->values_gradient.size())) /
                       recorded_steps;
            }};
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    for (const auto& z : bench::attention_sizes()) {
        bench::add(bench::name_of("additive", "forward", z), [z] { return forward(z, additive_attention); });
        bench::add(
            bench::name_of("additive", "forward_backward", z), [z] { return forward_backward(z, additive_attention); },
            recorded_steps);
        bench::add(bench::name_of("per_dimension", "forward", z), [z] { return forward(z, per_dimension_attention); });
        bench::add(
            bench::name_of("per_dimension", "forward_backward", z),
            [z] { return forward_backward(z, per_dimension_attention); }, recorded_steps);
    }
    bench::floor::register_per_dimension(chosen);
    return bench::run(argc, argv, chosen);
}
