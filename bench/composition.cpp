// SPDX-License-Identifier: BSD-3-Clause

// The cost of the policies: composed mechanisms compared with hand-written ones (by_hand/*.hpp).
//
// Each round times a block of calls of one form and then of the other, so that both run under the same conditions. The
// ratio of a pair is the median of the rounds' ratios. Exits with an error if the results differ.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

#include "by_hand/additive.hpp"
#include "by_hand/products.hpp"
#include "by_hand/without_kernels.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;
namespace by_hand = bench::by_hand;
using by_hand::source;
using matrix = array<float, 2>;
using vector = array<float, 1>;
using cube = array<float, 3>;

struct pair_size {
    const char* name;
    std::size_t hidden, positions, batch;
};
constexpr pair_size sizes[] = {{"small", 64, 10, 1}, {"medium", 256, 50, 16}};

constexpr std::size_t rounds = 301, queries_at_once = 12, groups = 8, coverage_width = 100, reach = 10;

template <std::size_t N>
array<float, N> random_array(const shape_of_rank<N>& shape, unsigned seed, float scale = 1)
{
    array<float, N> result(shape);
    bench::fill(result.data(), result.size(), seed, scale);
    return result;
}

matrix random_weight(std::size_t in, std::size_t out, unsigned seed)
{
    return random_array<2>({in, out}, seed, std::sqrt(3.0F / static_cast<float>(in)));
}

/// All inputs and parameters of the mechanisms. Both sides read the parameters of the mechanism from the same memory,
/// since the address of a tensor changes times by several percent.
struct problem {
    explicit problem(const pair_size& z)
        : H{z.hidden},
          B{z.batch},
          T{z.positions},
          query{random_array<2>({B, H}, 1)},
          word{random_array<2>({B, H}, 8)},
          queries{random_array<3>({B, queries_at_once, H}, 9)},
          memory{random_array<3>({B, T, H}, 3), random_array<3>({B, T, H}, 2), lengths::full(B, T)},
          W{random_weight(H, H, 4)},
          Y{random_weight(H, H, 10)},
          V{random_weight(H, H, 7)},
          V_of_groups{random_weight(H, groups, 7)},
          C{random_weight(coverage_width, H, 11)},
          U{matrix(shape_of_rank<2>{1, 1})},
          v{random_array<1>({H}, 5, std::sqrt(3.0F / static_cast<float>(H)))},
          cell{random_weight(H, 3 * coverage_width, 12), random_array<1>({3 * coverage_width}, 13),
               random_weight(coverage_width, 3 * coverage_width, 14)}
    {}

    source plain() const { return {B, T, H, H, H, memory.real.data(), memory.keys.data(), memory.values.data()}; }

    std::size_t H, B, T;
    matrix query, word;
    cube queries;
    heed::memory<cube, cube> memory;
    matrix W, Y, V, V_of_groups, C;
    matrix U;  // keys are already prepared here, so U is never used: one row is enough
    vector v;
    nn::coverage_gru<matrix, vector> cell;
};

struct pair {
    std::function<void()> composed, by_hand;
    std::function<double()> difference;  // between both results
};

template <class X>
double difference(const X& a, const X& b)
{
    double most = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        const double d = std::abs(static_cast<double>(a.data()[i]) - static_cast<double>(b.data()[i]));
        if (!(d <= most)) most = d;  // also if d is NaN
    }
    return most;
}

double microseconds(const std::function<void()>& call, std::size_t count)
{
    const auto begin = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < count; ++i) call();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() /
           static_cast<double>(count);
}

/// One iteration is one round; its time is that of the composed form.
void add(const std::string& mechanism, const char* pass, const pair_size& z, std::function<pair()> make)
{
    const std::string name = "composition/" + mechanism + "/" + pass + "/" + z.name;
    const auto timed = [name, make = std::move(make)](benchmark::State& state) {
        const pair two = make();
        two.composed();
        two.by_hand();
        const double apart = two.difference();
        if (!(apart <= 1e-6)) {
            std::fprintf(stderr, "%s: the composed and the hand-written form differ by %g\n", name.c_str(), apart);
            std::exit(1);
        }
        const double once = std::min(microseconds(two.composed, 3), microseconds(two.composed, 3));
        const std::size_t calls = std::max<std::size_t>(1, static_cast<std::size_t>(200 / once));
        std::vector<double> composed, by_hand, ratios;
        for (auto _ : state) {
            double a = 0, b = 0;
            if (ratios.size() % 2 == 0) a = microseconds(two.composed, calls);
            b = microseconds(two.by_hand, calls);
            if (ratios.size() % 2 != 0) a = microseconds(two.composed, calls);
            state.SetIterationTime(a * 1e-6);
            composed.push_back(a);
            by_hand.push_back(b);
            ratios.push_back(a / b);
        }
        state.counters["composed_us"] = bench::median(composed);
        state.counters["by_hand_us"] = bench::median(by_hand);
        state.counters["ratio"] = bench::median(ratios);
    };
    benchmark::RegisterBenchmark(name.c_str(), timed)
        ->UseManualTime()
        ->Iterations(rounds)
        ->Unit(benchmark::kMicrosecond);
}

/// One step into reused results, composed and hand-written. `start` makes the initial state of the step.
template <class Attend, class Query, class Start, class ByHand>
pair step(const std::shared_ptr<problem>& p, const Attend& attend, const Query& query, const Start& start,
          const ByHand& by_hand)
{
    const auto first = start(attend, p->memory);
    const auto result = attend.step(p->memory, query, first);
    struct storage {
        Attend attend;
        Query query;
        std::remove_const_t<decltype(first)> state;
        std::remove_const_t<decltype(result)> composed, by_hand;
    };
    const auto s = std::make_shared<storage>(storage{attend, query, first, result, result});
    std::fill_n(s->by_hand.context.data(), s->by_hand.context.size(), 0.0F);
    std::fill_n(s->by_hand.weights.data(), s->by_hand.weights.size(), 0.0F);
    return {[s, p] {
                s->attend.step_into(s->composed, p->memory, s->query, s->state);
                benchmark::DoNotOptimize(s->composed.context.data());
            },
            [s, p, by_hand] {
                by_hand(p->plain(), s->attend.score, s->query, s->state, s->by_hand);
                benchmark::DoNotOptimize(s->by_hand.context.data());
            },
            [s] {
                return std::max(difference(s->composed.context, s->by_hand.context),
                                difference(s->composed.weights, s->by_hand.weights));
            }};
}

/// Many queries at once; both sides allocate a new tensor of contexts.
template <class Attend, class ByHand>
pair all_at_once(const std::shared_ptr<problem>& p, const Attend& attend, const ByHand& by_hand)
{
    struct storage {
        Attend attend;
        cube composed, by_hand;
    };
    const auto s = std::make_shared<storage>(storage{attend, {}, {}});
    return {[s, p] {
                s->composed = s->attend(p->memory, p->queries);
                benchmark::DoNotOptimize(s->composed.data());
            },
            [s, p, by_hand] {
                cube contexts(shape_of_rank<3>{p->B, queries_at_once, p->H});
                by_hand(p->plain(), s->attend.score, p->queries.data(), contexts.data());
                s->by_hand = std::move(contexts);
                benchmark::DoNotOptimize(s->by_hand.data());
            },
            [s] { return difference(s->composed, s->by_hand); }};
}

const auto begin = [](const auto& attend, const auto& memory) { return attend.start(memory); };

/// The state after one step.
const auto after_one = [](const auto& query) {
    return [query](const auto& attend, const auto& memory) {
        return attend.step(memory, query, attend.start(memory)).state;
    };
};

/// A mechanism with this score, softmax and a weighted sum.
template <class Score, class Normalize = normalize::softmax>
auto summed(Score score, Normalize normalize = {})
{
    return attention{std::move(score), std::move(normalize), combine::weighted_sum{}};
}

auto additive_of(const problem& x) { return score::additive{x.W, x.U, x.v}; }

void register_products(const pair_size& z)
{
    const auto given = [z] { return std::make_shared<problem>(z); };
    add("dot", "step", z, [given] {
        const auto p = given();
        return step(p, summed(score::dot{}), p->query, begin,
                    [](const source& from, const auto&, const auto& query, const auto&, auto& to) {
                        by_hand::dot(from, query.data(), to.weights.data(), to.context.data());
                    });
    });
    add("scaled_dot", "step", z, [given] {
        const auto p = given();
        return step(p, summed(score::scaled_dot{}), p->query, begin,
                    [](const source& from, const auto&, const auto& query, const auto&, auto& to) {
                        by_hand::scaled_dot(from, query.data(), to.weights.data(), to.context.data());
                    });
    });
    add("general", "step", z, [given] {
        const auto p = given();
        return step(p, summed(score::general{p->W}), p->query, begin,
                    [](const source& from, const auto& score, const auto& query, const auto&, auto& to) {
                        by_hand::general(from, query.data(), score.W.data(), to.weights.data(), to.context.data());
                    });
    });
    add("general", "all_at_once", z, [given] {
        const auto p = given();
        return all_at_once(p, summed(score::general{p->W}),
                           [](const source& from, const auto& score, const float* queries, float* contexts) {
                               by_hand::general_of_all(from, queries_at_once, queries, score.W.data(), contexts);
                           });
    });
    add("dot-local_m", "step", z, [given] {
        const auto p = given();
        const auto in_the_middle = [p](const auto& attend, const auto& memory) {
            auto state = attend.start(memory);
            state.step = p->T / 2;
            return state;
        };
        return step(p, summed(score::dot{}, normalize::local_m{reach}), p->query, in_the_middle,
                    [](const source& from, const auto&, const auto& query, const auto& before, auto& to) {
                        by_hand::local_dot(from, reach, before.step, query.data(), to.weights.data(),
                                           to.context.data());
                    });
    });
}

void register_additive(const pair_size& z)
{
    const auto given = [z] { return std::make_shared<problem>(z); };
    add("additive", "step", z, [given] {
        const auto p = given();
        return step(p, summed(additive_of(*p)), p->query, begin,
                    [](const source& from, const auto& score, const auto& query, const auto&, auto& to) {
                        by_hand::additive(from, query.data(), score.W.data(), score.v.data(), to.weights.data(),
                                          to.context.data());
                    });
    });
    add("additive", "step_without_kernels", z, [given] {
        const auto p = given();
        const auto projected = std::make_shared<matrix>(shape_of_rank<2>{p->B, p->H});
        return step(p, summed(additive_of(*p)), p->query, begin,
                    [projected](const source& from, const auto& score, const auto& query, const auto&, auto& to) {
                        by_hand::additive_without_kernels(from, query.data(), score.W.data(), score.v.data(),
                                                          projected->data(), to.weights.data(), to.context.data());
                    });
    });
    add("additive", "all_at_once", z, [given] {
        const auto p = given();
        return all_at_once(p, summed(additive_of(*p)),
                           [](const source& from, const auto& score, const float* queries, float* contexts) {
                               by_hand::additive_of_all(from, queries_at_once, queries, score.W.data(), score.v.data(),
                                                        contexts);
                           });
    });
    add("additive-with_word", "step", z, [given] {
        const auto p = given();
        return step(p, summed(score::with_word{additive_of(*p), p->Y}), state_and_word{p->query, p->word}, begin,
                    [](const source& from, const auto& score, const auto& query, const auto&, auto& to) {
                        by_hand::additive_with_word(from, score.Y.shape(0), query.state.data(), query.word.data(),
                                                    score.base.W.data(), score.Y.data(), score.base.v.data(),
                                                    to.weights.data(), to.context.data());
                    });
    });
    add("additive-temporal", "step", z, [given] {
        const auto p = given();
        return step(p, summed(additive_of(*p), normalize::temporal{}), p->query, after_one(p->query),
                    [](const source& from, const auto& score, const auto& query, const auto& before, auto& to) {
                        by_hand::temporal(from, query.data(), score.W.data(), score.v.data(),
                                          before.normalize.history.data(), to.weights.data(), to.context.data(),
                                          to.state.normalize.history.data());
                    });
    });
    add("additive-with_coverage", "step", z, [given] {
        const auto p = given();
        const state_and_word asked{p->query, p->word};
        return step(p, summed(score::with_coverage{additive_of(*p), p->C, p->cell}), asked, after_one(asked),
                    [](const source& from, const auto& score, const auto& query, const auto& before, auto& to) {
                        const auto& cell = score.cell;
                        by_hand::with_coverage(
                            from,
                            {cell.size(), cell.W.shape(0), score.C.data(), cell.W.data(), cell.a.data(), cell.U.data()},
                            query.state.data(), query.word.data(), score.base.W.data(), score.base.v.data(),
                            before.score.coverage.data(), before.score.weights.data(), to.weights.data(),
                            to.context.data(), to.state.score.coverage.data());
                        // The weights are also part of the state.
                        std::copy_n(to.weights.data(), to.weights.size(), to.state.score.weights.data());
                    });
    });
    add("per_dimension", "step", z, [given] {
        const auto p = given();
        return step(p,
                    attention{score::additive_per_dimension{p->W, p->U, p->V}, normalize::softmax{},
                              combine::elementwise_sum{}},
                    p->query, begin,
                    [](const source& from, const auto& score, const auto& query, const auto&, auto& to) {
                        by_hand::per_dimension(from, query.data(), score.W.data(), score.V.data(), to.weights.data(),
                                               to.context.data());
                    });
    });
    add("grouped", "step", z, [given] {
        const auto p = given();
        return step(p,
                    attention{score::additive_grouped{p->W, p->U, p->V_of_groups}, normalize::softmax{},
                              combine::grouped_sum{}},
                    p->query, begin,
                    [](const source& from, const auto& score, const auto& query, const auto&, auto& to) {
                        by_hand::grouped(from, groups, query.data(), score.W.data(), score.V.data(), to.weights.data(),
                                         to.context.data());
                    });
    });
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    for (const auto& z : sizes) {
        register_additive(z);
        register_products(z);
    }
    return bench::run(argc, argv, chosen);
}
