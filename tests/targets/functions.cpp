// SPDX-License-Identifier: BSD-3-Clause

// Compiled with SUFFIX for_avx2, for_any, and for_none, which has no BLAS.

#include <cmath>
#include <cstddef>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/parallel.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>

#include "targets.hpp"

#define JOIN_NAMES(name, suffix) name##_##suffix
#define JOIN(name, suffix) JOIN_NAMES(name, suffix)
#define OF_TARGET(name) JOIN(name, SUFFIX)

namespace targets {

using namespace heed;

double OF_TARGET(step)(const inputs& from)
{
    const attention attend{score::additive{view_of(from.W), view_of(from.U), view_of(from.v)}, normalize::softmax{},
                           combine::weighted_sum{}};
    const auto memory = attend.on(from.annotations, lengths{19, 11});
    auto state = attend.start(memory);
    double sum = 0;
    for (int step = 0; step < 3; ++step) {
        auto [context, weights, next] = attend.step(memory, from.query, state);
        for (const float each : context) sum += each;
        state = next;
    }
    return sum;
}

double OF_TARGET(train)(const inputs& from)
{
    ad::tape<float> tape;
    const auto W = tape.parameter(from.W), U = tape.parameter(from.U);
    const auto v = tape.parameter(from.v);
    const attention attend{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(from.annotations, lengths{19, 11});
    const auto context = attend.read(memory, from.query, attend.start(memory)).context;
    tape.backward(ops::dot(context, context));
    double sum = 0;
    const auto gradient = tape.gradient(W);
    for (std::size_t i = 0; i < gradient.size(); ++i) sum += std::abs(gradient.data[i]);
    return sum;
}

const char* OF_TARGET(name)() { return HEED_TARGET_NAME; }

#ifdef __AVX2__

heed::kernels::panels<float> OF_TARGET(panels)(const inputs& from)
{
    heed::kernels::panels<float> packed;
    packed.pack(from.U.shape()[0], from.U.shape()[1], from.U.data(), from.U.shape()[1]);
    return packed;
}

std::size_t OF_TARGET(threads)() { return threads(); }
std::size_t OF_TARGET(shards)()
{
    std::vector<std::size_t> sums(threads());
    std::vector<std::thread::id> who(threads());
    parallel_for(3000, 1, [&](std::size_t begin, std::size_t end, std::size_t shard) {
        for (std::size_t i = begin; i < end; ++i) sums[shard] += i;
        who[shard] = std::this_thread::get_id();
    });
    const std::size_t sum = std::accumulate(sums.begin(), sums.end(), std::size_t{0});
    return sum == 2999 * 3000 / 2 ? std::set(who.begin(), who.end()).size() : 0;
}

bool OF_TARGET(batch_invariant)() { return heed::detail::own_products_here != nullptr; }

void OF_TARGET(throw)() { throw shape_error("from the other file"); }

#elif !defined(HEED_BLAS_NONE)

const char* OF_TARGET(multiply)(const inputs& from)
{
    static std::string message;
    std::vector<float> product(from.U.shape()[1]);
    try {
        panels_for_avx2(from).multiply(1, from.annotations.data(), from.U.shape()[0], product.data(), product.size(),
                                       false);
    } catch (const error& thrown) {
        message = thrown.what();
    }
    return message.c_str();
}

#endif

}  // namespace targets
