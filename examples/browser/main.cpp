// SPDX-License-Identifier: BSD-3-Clause
//
// browser: the computations of the playground page, as a program.
//
//     browser                                              every score, normalizer and combiner, as JSON
//     browser additive temporal weighted_sum               scores, weights and contexts of this product, as JSON
//     browser --legal                                      the names of all legal products, one per line
//
//     browser --pages                                      a product for each page of docs/mechanisms
//     browser --pack MODEL SCRIPT                          a model of `translate train --system sankaran` for a page
//     browser --round MODEL ROUNDED                        the same model with the rounded numbers of the page
//
// The page uses these headers compiled to WebAssembly by scripts/browser.sh. Its test compares the numbers of the page
// with those of this program.
//
// test:
// test: --legal
// test: --pages
// test: additive temporal weighted_sum
// test: scaled_dot softmax talking_heads scaled_dot softmax latent_heads additive document_temporal weighted_sum

#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "pack.hpp"
#include "playground.hpp"

int main(int argc, char** argv)
{
    using namespace browser;
    const std::vector<std::string> given(argv + 1, argv + argc);
    try {
        const catalogue all;
        if (given.empty()) {
            std::puts(json(all).c_str());
            return 0;
        }
        if (given.size() == 1 && given[0] == "--legal") {
            for (std::size_t s = 0; s < all.scores.size(); ++s) {
                for (std::size_t n = 0; n < all.normalizers.size(); ++n) {
                    for (std::size_t c = 0; c < all.combiners.size(); ++c) {
                        if (!all.fault(s, n, c).empty()) continue;
                        std::printf("%s %s %s\n", all.scores[s].about.name.c_str(),
                                    all.normalizers[n].about.name.c_str(), all.combiners[c].about.name.c_str());
                    }
                }
            }
            return 0;
        }
        if (given.size() == 1 && given[0] == "--pages") {
            for (const page_entry& each : all.pages())
                std::printf("%s %s+%s+%s\n", each.page.c_str(), all.scores[each.score].about.name.c_str(),
                            all.normalizers[each.normalizer].about.name.c_str(),
                            all.combiners[each.combiner].about.name.c_str());
            return 0;
        }
        if (given.size() == 3 && given[0] == "--pack") {
            pack(given[1], given[2]);
            return 0;
        }
        if (given.size() == 3 && given[0] == "--round") {
            browser::round(given[1], given[2]);
            return 0;
        }
        if (given.size() % 3 != 0 || given[0][0] == '-')
            throw heed::error("expected a score, a normalizer and a combiner, --legal, --pages, --pack MODEL SCRIPT, "
                              "--round MODEL ROUNDED, "
                              "or no arguments");
        for (std::size_t i = 0; i < given.size(); i += 3) {
            const std::size_t s = diagonal_of(all.scores, given[i]), n = diagonal_of(all.normalizers, given[i + 1]),
                              c = diagonal_of(all.combiners, given[i + 2]);
            const answers found = all.ask(s, n, c, initial(all.scores[s].about), initial(all.normalizers[n].about),
                                          initial(all.combiners[c].about), first_scene());
            std::puts(json(found).c_str());
        }
        return 0;
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "browser: %s\n", problem.what());
        return 1;
    }
}
