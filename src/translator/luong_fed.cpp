// SPDX-License-Identifier: BSD-3-Clause

#include "luong_of.hpp"

#include "luong.hpp"

std::unique_ptr<heed::translator::system>
heed::translator::detail::make_luong_fed(const options& how, std::size_t source_words, std::size_t target_words)
{
    return make_luong_of(heed::papers::luong2015::parts(how.layers, direction_of(how)), how,
                         luong_sizes(how, source_words, target_words));
}
