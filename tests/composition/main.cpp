// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdio>
#include <string_view>

#include <composition/products.hpp>

// Judges every legal product, or each policy among plain ones (HEED_TEST_EACH_POLICY). --markdown prints
// docs/composition.md;
// --allocations prints which products allocate memory in a steady step_into.

namespace {

using namespace composition;

/// The first mistake that `judge` overlooks, made in attention{additive, softmax, .}; true if there is one.
bool overlooks_a_mistake(const table& lines)
{
    for (const row& line : lines) {
        if (line.score != "additive" || line.normalizer != "softmax" || !line.judged) continue;
        const std::string overlooked = overlooked_mistakes(*line.judged);
        if (overlooked.empty()) continue;
        std::fprintf(stderr, "judge overlooks the mistakes%s in attention{additive, softmax, %s}\n", overlooked.c_str(),
                     line.combiner.c_str());
        return true;
    }
    return false;
}

struct verdict {
    std::size_t judged = 0, wrong = 0;
};

/// Judges those among these that are to be judged.
verdict judge_all(const table& lines)
{
    verdict all;
    for (const row& line : lines) {
        if (!line.judged) continue;
        ++all.judged;
        const std::string what = judge(*line.judged);
        if (what.empty()) continue;
        ++all.wrong;
        std::fprintf(stderr, "attention{%s, %s, %s}: %s\n", line.score.c_str(), line.normalizer.c_str(),
                     line.combiner.c_str(), what.c_str());
    }
    return all;
}

void print_allocations(const table& lines)
{
    std::size_t judged = 0, allocating = 0;
    for (const row& line : lines) {
        if (!line.judged) continue;
        ++judged;
        const std::size_t count = line.judged->allocations();
        if (count == 0) continue;
        ++allocating;
        std::printf("%5.1f  attention{%s, %s, %s}\n", static_cast<double>(count) / 2, line.score.c_str(),
                    line.normalizer.c_str(), line.combiner.c_str());
    }
    std::printf("%zu of %zu products ask for memory in a steady step_into\n", allocating, judged);
}

}  // namespace

int main(int argc, char** argv)
{
    const std::string_view option = argc > 1 ? argv[1] : "";
    if (argc > 2 || (argc == 2 && option != "--markdown" && option != "--allocations")) {
        std::fputs("usage: composition_products [--markdown | --allocations]\n", stderr);
        return 2;
    }
    table lines, own;
    add_scores_of_similarity(lines);
    add_scores_of_places(lines);
    add_scores_of_one_matrix(lines);
    add_additive_scores(lines);
    add_scores_that_remember(lines);
    add_scores_per_dimension(lines);
    add_scores_per_group(lines);
    add_own_score(own);

    if (option == "--allocations") {
        print_allocations(lines);
        print_allocations(own);
        return 0;
    }
    if (option == "--markdown") {
        std::fputs(markdown(lines).c_str(), stdout);
        return 0;
    }
    if (overlooks_a_mistake(lines)) return 1;
    const verdict of_heed = judge_all(lines), of_own = judge_all(own);
    const auto legal = std::count_if(lines.begin(), lines.end(), [](const row& line) { return line.legal(); });
    std::printf(
        "%zu products, %td legal, %zu judged, %zu of these wrong; %zu with a score that is not heed's, %zu wrong\n",
        lines.size(), legal, of_heed.judged, of_heed.wrong, of_own.judged, of_own.wrong);
    return of_heed.wrong + of_own.wrong == 0 && of_heed.judged > 0 && of_own.judged > 0 ? 0 : 1;
}
