// SPDX-License-Identifier: BSD-3-Clause
//
// The computations of course_07.py in heed: the translator of the step, whose file is included unchanged, in double.

#define main step_7
#include "../course/07_translator.cpp"
#undef main

#include "course_07.hpp"

int main()
{
    random_source random{8};
    auto W = nn::glorot<double>(random, H, H), U = nn::glorot<double>(random, 2 * H, H);
    const attention attend{score::additive{W, U, nn::small_vector<double>(random, H)}, normalize::softmax{},
                           combine::weighted_sum{}};
    const auto data = numbers::sample(7, 10000, 0, 500);
    std::printf("{\n%s}\n", learned("translator", attend, data.train, 30, numbers::say(724)).c_str());
}
