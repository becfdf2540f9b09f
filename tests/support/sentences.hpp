// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <vector>

#include <heed/seq2seq/batch.hpp>

namespace support {

/// Sentences in the form that batches are made from.
inline std::vector<const heed::seq2seq::id_sentence*> pointers(const std::vector<heed::seq2seq::id_sentence>& sentences)
{
    std::vector<const heed::seq2seq::id_sentence*> result;
    for (const auto& each : sentences) result.push_back(&each);
    return result;
}

}  // namespace support
