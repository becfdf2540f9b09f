// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed_translator/search.hpp>

#include "../support/misuse.hpp"
#include "command_line.hpp"
#include "library.hpp"
#include "watch.hpp"

/// Search options of the command line.
namespace translation {

inline void declare_search(CLI::App& app, search_options& search)
{
    const auto choice = [&](const char* name, auto& value, const char* help) {
        return app.add_option(name, value, help)->type_name("N")->capture_default_str()->group("Search");
    };
    choice("--beam", search.beam, "hypotheses per sentence; 1: greedy")
        ->check(CLI::Range(std::size_t{1}, std::size_t{1024}).description(""));
    choice("--length-penalty", search.length_penalty,
           "log-probabilities are divided by ((5 + tokens) / 6)^A (Wu et al.\n"
           "2016); 0: no division, which favors short translations")
        ->check(CLI::Range(0.0, 10.0).description(""))
        ->check(number)
        ->type_name("A");
    choice("--coverage-penalty", search.coverage_penalty, "penalty for source words without attention (ibid.)")
        ->check(CLI::Range(0.0, 100.0).description(""))
        ->check(number)
        ->type_name("B");
    choice("--block-ngrams", search.block_ngrams, "n-grams of this size may not repeat in a translation; 0: no limit")
        ->check(any_number);
    choice("--min-length", search.min_length, "minimum number of tokens of a translation")->check(any_number);
    choice("--max-length", search.max_length, "maximum number of tokens; 0: twice the source length plus 10")
        ->check(any_number);
}

/// Throws if options contradict each other.
inline void check_search(const search_options& how, bool model_looks)
{
    if (how.best > how.beam)
        throw program::misuse(
            fmt::format("--n-best {} exceeds a beam of {}; use --beam {} or more", how.best, how.beam, how.best));
    if (how.max_length > 0 && how.min_length > how.max_length)
        throw program::misuse(
            fmt::format("--min-length {} is greater than --max-length {}", how.min_length, how.max_length));
    if (how.coverage_penalty > 0 && !model_looks)
        throw heed::error("--coverage-penalty: requires attention, but the model was trained with --attention none");
}

}  // namespace translation
