// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstring>

#include <composition/products.hpp>

// Judges every legal product; with --markdown, prints docs/composition.md.

int main(int argc, char** argv)
{
    using namespace composition;
    if (argc > 2 || (argc == 2 && std::strcmp(argv[1], "--markdown") != 0)) {
        std::fputs("usage: unit_composition [--markdown]\n", stderr);
        return 2;
    }
    table lines;
    add_scores_of_similarity(lines);
    add_scores_of_one_matrix(lines);
    add_additive_scores(lines);
    add_scores_that_remember(lines);
    add_scores_per_dimension(lines);
    add_scores_per_group(lines);

    for (const row& line : lines) {
        if (line.score != "additive" || line.normalizer != "softmax" || !line.legal) continue;
        const std::string overlooked = overlooked_mistakes(*line.legal);
        if (overlooked.empty()) continue;
        std::fprintf(stderr, "judge overlooks the mistakes%s in attention{additive, softmax, %s}\n", overlooked.c_str(),
                     line.combiner.c_str());
        return 1;
    }

    std::size_t legal = 0, wrong = 0;
    for (const row& line : lines) {
        if (!line.legal) continue;
        ++legal;
        const std::string what = judge(*line.legal);
        if (what.empty()) continue;
        ++wrong;
        std::fprintf(stderr, "attention{%s, %s, %s}: %s\n", line.score.c_str(), line.normalizer.c_str(),
                     line.combiner.c_str(), what.c_str());
    }
    if (argc == 2) {
        std::fputs(markdown(lines).c_str(), stdout);
    } else {
        std::printf("%zu products, %zu legal, %zu of these wrong\n", lines.size(), legal, wrong);
    }
    return wrong == 0 && legal > 0 ? 0 : 1;
}
