// SPDX-License-Identifier: BSD-3-Clause
#include "luong_of.hpp"

#include "luong.hpp"

std::unique_ptr<translation::system> translation::detail::make_luong_fed(const options& how, std::size_t source_words,
                                                                         std::size_t target_words)
{
    return make_luong_of(heed::papers::luong2015::parts(how.layers, heed::seq2seq::direction::forward), how,
                         luong_sizes(how, source_words, target_words));
}
