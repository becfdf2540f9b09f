// SPDX-License-Identifier: BSD-3-Clause
// Uses each folder of the single header: a training step of Bahdanau's attention after a layer of nn, with an optimizer
// of train.
#include <heed/heed.hpp>

#include <cstdio>

int main()
{
    using namespace heed;
    random_source random{1};
    auto attend = papers::bahdanau2015::make_additive<float>(random, {.query = 2, .annotation = 3, .hidden = 4});
    train::adam<float> optimizer;

    ad::tape<float> tape;
    const auto lifted = ad::lift(tape, attend);
    const auto annotations = filled<float, 3>({1, 3, 3}, 0.5F);  // [B,T,D]
    const auto queries = filled<float, 3>({1, 2, 2}, 1.0F);      // [B,S,Q]
    const auto contexts = lifted(lifted.on(annotations, lengths{2}), queries);
    const auto loss = ops::dot(contexts, contexts);
    tape.backward(loss);
    optimizer.step(attend, lifted, tape);
    const double is = static_cast<double>(*loss.data());  // two contexts of three numbers, all 0.5
    std::printf("heed %s: %g\n", HEED_VERSION_STRING, is);
    return is > 1.4999 && is < 1.5001 ? 0 : 1;
}
