// SPDX-License-Identifier: BSD-3-Clause
//
// The computations of course_08.py in heed: the three policies and the lists of the step, with the translator of step 7
// in double. The file of the step is included unchanged. It renames the `main` of step 7, so its `main` cannot be
// renamed here in the same way; the program exits before that `main` is called.

#include "../course/08_luong_bahdanau_none.cpp"

#include <cstdlib>

#include "course_07.hpp"

namespace {

struct instead_of_main {
    instead_of_main()
    {
        const auto train = draw_lists(1, 20000), test = draw_lists(2, 1);
        random_source random{8};
        const auto matrix = [&](std::size_t rows, std::size_t columns) {
            return nn::glorot<double>(random, rows, columns);
        };
        const score::additive additive{matrix(H, H), matrix(2 * H, H), nn::small_vector<double>(random, H)};
        const score::general general{matrix(H, 2 * H)};
        const auto of = [&](const char* name, const auto& score, const auto& normalize) {
            return learned(name, attention{score, normalize, combine::weighted_sum{}}, train, 4, test[0]);
        };
        std::printf("{\n%s,\n%s,\n%s}\n", of("Bahdanau", additive, normalize::softmax{}).c_str(),
                    of("Luong", general, normalize::softmax{}).c_str(), of("none", general, last_word{}).c_str());
        std::exit(0);
    }
};
const instead_of_main run;

}  // namespace
