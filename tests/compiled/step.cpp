// SPDX-License-Identifier: BSD-3-Clause

// Prints the target of heed::compiled, and the sum of a step's contexts.

#include <cstddef>
#include <cstdio>
#include <exception>
#include <string>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/compiled.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/additive.hpp>

namespace {

template <class X>
X numbers(X x)
{
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(i * 7 % 11) / 8 - 0.5F;
    return x;
}

}  // namespace

int main()
try {
    using namespace heed;
    const attention attend{
        score::additive{numbers(zeros<float>(6, 16)), numbers(zeros<float>(8, 16)), numbers(zeros<float>(16))},
        normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(numbers(zeros<float>(2, 19, 8)), lengths{19, 11});
    const auto context = attend.read(memory, numbers(zeros<float>(2, 6)), attend.start(memory)).context;
    double sum = 0;
    for (const float each : context) sum += each;
    std::printf("%s %.5f\n", std::string(compiled_target()).c_str(), sum);
} catch (const std::exception& thrown) {
    std::fprintf(stderr, "%s\n", thrown.what());
    return 1;
}
