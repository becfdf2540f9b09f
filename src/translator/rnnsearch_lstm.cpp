// SPDX-License-Identifier: BSD-3-Clause

#include "rnnsearch_of.hpp"

std::unique_ptr<heed::translator::system>
heed::translator::detail::make_rnnsearch_of_lstm(const options& how, std::size_t source_words, std::size_t target_words)
{
    return make_rnnsearch_of(heed::nn::new_lstm{}, how, source_words, target_words);
}
