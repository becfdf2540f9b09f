// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "course.hpp"

// a) The first merge of byte-pair encoding: of all pairs of neighboring symbols in all words, the most frequent one. A
// word is given as its symbols, {"l", "o", "w</w>"}, with the number of times that it occurs in the text; </w> marks
// the end of a word. If several pairs are equally frequent, return the largest by operator< of std::pair.
using symbols = std::vector<std::string>;
inline std::pair<std::string, std::string> first_merge(const std::map<symbols, int>& words)
{
    (void)words;
    throw course::not_yet{};
}

// b) A beam search. log_p[v][w] is the log-probability of word w after word v; word 0 begins a sentence and ends it.
// The probability of a sentence is the product of the probabilities of all its words and of its end. Begin with the
// empty sentence. At each step, extend every open sentence by every word, and keep the `width` best results. A sentence
// that ends with word 0 is complete: remove it from the beam, and remember the best one. A sentence has at most
// `longest` words; after these, only word 0 may follow. Return the best complete sentence, without word 0.
using table = std::vector<std::vector<double>>;
inline std::vector<std::size_t> beam_search(const table& log_p, std::size_t width, std::size_t longest)
{
    (void)log_p, (void)width, (void)longest;
    throw course::not_yet{};
}
