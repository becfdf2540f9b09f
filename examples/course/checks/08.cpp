// SPDX-License-Identifier: BSD-3-Clause
//
// Grades step 8: compares with metrics::bleu, and runs heed::verify.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/random.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/verify.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/text/sentence.hpp>

#include "08.hpp"
#include "course.hpp"

using namespace heed;

namespace {

std::string check_matches()
{
    const std::vector<std::pair<std::string, std::string>> pairs{{"the the the cat", "the cat sees the dog"},
                                                                 {"a dog", "the cat"},
                                                                 {"vier und zwanzig", "vier und zwanzig"},
                                                                 {"", "the cat"},
                                                                 {"b a b a b", "a b c a"}};
    for (const auto& [made, right] : pairs) {
        const std::vector<text::sentence> translation{text::split(made)}, reference{text::split(right)};
        const auto counts = metrics::bleu_statistics(translation, std::span(&reference, 1))[0];
        const auto wrong = course::same("the clipped count of \"" + made + "\" in \"" + right + "\"",
                                        static_cast<double>(clipped_matches(translation[0], reference[0])),
                                        static_cast<double>(counts.matches[0]));
        if (!wrong.empty()) return wrong;
    }
    return {};
}

std::string check_indifferent()
{
    const attention attend{indifferent{}, normalize::softmax{}, combine::weighted_sum{}};
    const lengths real{5, 2};
    auto annotations = filled<double, 3>({2, 5, 3}, 0.0);
    auto query = filled<double, 2>({2, 4}, 0.0);
    for (std::size_t i = 0; i < annotations.size(); ++i) annotations.data()[i] = normal(1, i);
    for (std::size_t i = 0; i < query.size(); ++i) query.data()[i] = normal(2, i);
    const auto memory = attend.on(annotations, real);
    const auto seen = attend.step(memory, query, attend.start(memory));
    for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < real[b]; ++t) {
            const auto wrong =
                course::same("the weight of word " + std::to_string(t) + " of " + std::to_string(real[b]),
                             seen.weights(b, t), 1.0 / static_cast<double>(real[b]));
            if (!wrong.empty()) return wrong;
        }
    }
    const verification report = verify(attend, {.query = 4, .width = 3});
    for (const contract& each : report.contracts) {
        if (!each.passed) return each.name + ": " + each.detail;
    }
    return {};
}

}  // namespace

int main()
{
    return course::graded(
        {{"a", "a clipped count", check_matches}, {"b", "a score that knows nothing", check_indifferent}});
}
