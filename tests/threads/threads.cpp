// SPDX-License-Identifier: BSD-3-Clause

// Built with ThreadSanitizer, which ends the program at a race. Other tests check the results; this one checks that any
// number of threads gives the same bits.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/parallel.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>
#include <heed_translator/batcher.hpp>
#include <support/tensors.hpp>

using namespace heed;

namespace {

using model_type =
    attention<score::additive<array<float, 2>, array<float, 1>>, normalize::softmax, combine::weighted_sum>;

constexpr std::size_t B = 6, T = 9, D = 8, A = 8;

model_type make_model()
{
    return {score::additive<array<float, 2>, array<float, 1>>{
                support::random<float>({D, A}, 1), support::random<float>({D, A}, 2), support::random<float>({A}, 3)},
            normalize::softmax{}, combine::weighted_sum{}};
}

struct results {
    array<float, 2> context, gradient;
};

/// Two steps, forward on plain tensors and backward on a tape of this call.
results look(const model_type& attend)
{
    const auto memory = support::random<float>({B, T, D}, 4);
    const auto query = support::random<float>({B, D}, 5);
    const lengths real{9, 1, 5, 8, 2, 7};
    results out;
    {
        const auto on = attend.on(memory, real);
        auto state = attend.start(on);
        const auto first = attend.step(on, query, state);
        out.context = attend.step(on, query, first.state).context;
    }
    ad::tape<float> tape;
    const auto lifted = ad::lift(tape, attend);
    const auto on = lifted.on(memory, real);
    const auto first = lifted.step(on, query, lifted.start(on));
    const auto loss = ops::dot(first.context, support::uneven<float>(shape_of(first.context)));
    tape.backward(loss);
    const auto gradient = tape.gradient(lifted.score.W);
    out.gradient = array<float, 2>(gradient.shape);
    std::copy_n(gradient.data, gradient.size(), out.gradient.data());
    return out;
}

}  // namespace

TEST_CASE("the pool: shards, exceptions, changing numbers of threads, several users")
{
    for (const std::size_t count : std::vector<std::size_t>{2, 4, 3, 1}) {
        set_threads(count);
        const auto fill = [&] {
            std::vector<std::size_t> own(1000);
            for (int round = 0; round < 50; ++round) {
                parallel_for(own.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                    for (std::size_t i = begin; i < end; ++i) own[i] += i;
                });
            }
            return own[999];
        };
        std::vector<std::thread> users;
        for (int i = 0; i < 2; ++i) users.emplace_back([&] { CHECK(fill() == 50 * 999); });
        CHECK(fill() == 50 * 999);
        for (std::thread& each : users) each.join();
        CHECK_THROWS_AS(parallel_for(8, 1, [](std::size_t, std::size_t, std::size_t) { throw error("x"); }), error);
    }
}

TEST_CASE("a mechanism, forward and backward: 2 and 4 threads, and three users of one model")
{
    const model_type attend = make_model();
    const results alone = look(attend);
    for (const std::size_t count : std::vector<std::size_t>{1, 2, 4}) {
        set_threads(count);
        std::vector<results> all(3);
        std::vector<std::thread> users;
        for (results& each : all) users.emplace_back([&] { each = look(attend); });
        const results here = look(attend);
        for (std::thread& each : users) each.join();
        CHECK(support::same_bits(here.context, alone.context));
        CHECK(support::same_bits(here.gradient, alone.gradient));
        for (const results& each : all) {
            CHECK(support::same_bits(each.context, alone.context));
            CHECK(support::same_bits(each.gradient, alone.gradient));
        }
    }
    set_threads(1);
}

TEST_CASE("a batcher: requests, cancellations and deadlines from four threads, three workers, and shutdown")
{
    using batcher = translator::batcher<int, std::string>;
    auto at = std::make_unique<batcher>(
        [](const std::vector<std::string>& lines, int how) {
            if (how == 2) throw error("refused");
            return lines;
        },
        translator::batcher_limits{.batch = 4, .queue = 64, .workers = 3});
    std::vector<std::thread> clients;
    for (int client = 0; client < 4; ++client) {
        clients.emplace_back([&, client] {
            for (int round = 0; round < 100; ++round) {
                try {
                    const auto timeout = std::chrono::microseconds(round % 10 == 3 ? 1 : 10'000'000);
                    const auto asked = at->submit({{"one", 3}, {"two", 3}}, client % 3, timeout);
                    if (round % 10 == 5) asked->cancel();
                    static_cast<void>(at->counters());
                    static_cast<void>(asked->get());
                } catch (const error&) {}
            }
        });
    }
    for (std::thread& each : clients) each.join();
    const auto counters = at->counters();
    CHECK(counters.waiting == 0);
    CHECK(counters.requests == 400);
    at = nullptr;
}
