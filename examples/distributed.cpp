// SPDX-License-Identifier: BSD-3-Clause
//
// distributed: a custom training loop on several processes, on one machine or on many.
//
//     distributed                        one process
//     mpirun -n 3 distributed            three, on this machine
//     mpirun -n 8 --hostfile hosts distributed
//
// The task: find the largest number of a list. Attention scores each number, and the context, the weighted mean of the
// numbers, should be the largest. The four lines that involve ranks are marked.
//
// test:

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/additive.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/averaging.hpp>
#include <heed_mpi/optimizer.hpp>

#ifdef HEED_DISTRIBUTED
#include <heed_mpi/mpi.hpp>
using engine = heed::distributed::mpi;
#else
using engine = heed::distributed::alone;  // heed was configured without MPI
#endif

using namespace heed;

namespace {

constexpr std::size_t lists = 32, numbers = 6, hidden = 8, updates = 200;

/// Lists of the batch of an update: `count` lists from `first` on.
struct batch {
    array<float, 3> lists_of_numbers;  // [B,T,1]
    array<float, 2> query, largest;    // [B,1]

    batch(std::size_t update, std::size_t first, std::size_t count)
        : lists_of_numbers(filled<float, 3>({count, numbers, 1}, 0.0f)),
          query(filled<float, 2>({count, 1}, 1.0f)),
          largest(filled<float, 2>({count, 1}, 0.0f))
    {
        for (std::size_t b = 0; b < count; ++b) {
            for (std::size_t j = 0; j < numbers; ++j) {
                const double drawn = uniform(mix(update), (first + b) * numbers + j);
                lists_of_numbers(b, j, 0) = static_cast<float>(drawn);
            }
            largest(b, 0) = *std::max_element(&lists_of_numbers(b, 0, 0), &lists_of_numbers(b, 0, 0) + numbers);
        }
    }
};

auto make_model()
{
    random_source random{1};
    return attention{score::additive{nn::gaussian<float>(random, 1, hidden, 0.1),
                                     nn::gaussian<float>(random, 1, hidden, 0.1), filled<float, 1>({hidden}, 0.3f)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

/// The squared errors, divided by the number of lists in the whole batch: the losses of all ranks sum to its mean.
auto loss_of(const auto& attend, const batch& now)
{
    const auto memory = attend.on(now.lists_of_numbers);
    const auto context = attend.step(memory, now.query, attend.start(memory)).context;  // [B,1]
    const auto wrong = ops::subtract(context, now.largest);
    return ops::scale(ops::dot(wrong, wrong), 1.0 / lists);
}

int train_largest()
{
    auto model = make_model();
    engine ranks;                                                                        // 1
    distributed::optimizer optimizer{ranks, train::adam<float>({.rate = 0.05}), model};  // 2: wraps train::adam

    ad::tape<float> tape;
    float loss = 0;
    for (std::size_t update = 0; update < updates; ++update) {
        const auto mine = distributed::share_of(ranks, lists);  // 3: this rank's lists of the batch
        tape.clear();
        const auto lifted = ad::lift(tape, model);
        const auto part = loss_of(lifted, batch(update, mine.first, mine.size()));
        optimizer.backward(lifted, part);          // 4: tape.backward(part), and final gradients are summed
        optimizer.step(model, lifted, tape, 1.0);  // with the gradients of all ranks
        loss = *part.data();
    }

    // Only rank 0 prints.
    ranks.sum(std::span<float>(&loss, 1));
    if (ranks.rank() == 0) std::printf("%zu rank(s): loss %.4f\n", ranks.size(), static_cast<double>(loss));

    // All ranks have the same model, bit for bit.
    const auto parameters = train::copy_parameters<float>(model);
    const auto all = ranks.gather(std::as_bytes(std::span<const float>(parameters)));
    const bool same = std::all_of(all.begin(), all.end(), [&](const auto& each) { return each == all[0]; });
    return same && loss < 0.01f ? 0 : 1;
}

}  // namespace

int main()
{
    try {
        return train_largest();
    } catch (const std::exception& problem) {  // the other ranks end as well
        std::fprintf(stderr, "distributed: %s\n", problem.what());
        return 1;
    }
}
