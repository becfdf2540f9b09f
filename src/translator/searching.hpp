// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include <heed/seq2seq/decoding.hpp>
#include <heed/seq2seq/packed.hpp>

#include "system_of.hpp"

namespace heed::translator {

template <class Model>
std::shared_ptr<const packed_of<Model>> pack_weights(const Model& model, heed::seq2seq::weight_numbers numbers)
{
    return std::make_shared<const packed_of<Model>>(model, numbers);
}

template <class Model>
std::unique_ptr<heed::seq2seq::decoding<float>> begin_search(const Model& model, const packed_of<Model>* packed,
                                                             const heed::seq2seq::source_batch& sentences)
{
    return packed == nullptr ? heed::seq2seq::decode<float>(model, sentences)
                             : heed::seq2seq::decode<float>(*packed, sentences);
}

}  // namespace heed::translator
