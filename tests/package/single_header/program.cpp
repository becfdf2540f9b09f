// SPDX-License-Identifier: BSD-3-Clause
// Something from each folder that the single header holds.
#include <heed/heed.hpp>

/// A step of training of Bahdanau's attention behind a layer of nn, with an optimiser of train.
float train_once()
{
    using namespace heed;
    random_source random{1};
    auto attend = papers::bahdanau2015::make_additive<float>(random, {.query = 2, .annotation = 3, .hidden = 4});
    train::adam<float> optimiser;

    ad::tape<float> tape;
    const auto lifted = ad::lift(tape, attend);
    const auto annotations = filled<float, 3>({1, 3, 3}, 0.5F);  // [B,T,D]
    const auto queries = filled<float, 3>({1, 2, 2}, 1.0F);      // [B,S,Q]
    const auto contexts = lifted(lifted.on(annotations, lengths{2}), queries);
    const auto loss = ops::inner(contexts, contexts);
    tape.backward(loss);
    optimiser.step(attend, lifted, tape);
    return *loss.data();
}
