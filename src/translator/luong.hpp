// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <heed_translator/expected_tensor.hpp>
#include <heed_translator/options.hpp>
#include <heed_translator/system.hpp>

/// Luong, Pham and Manning 2015: global and local attention with input feeding on stacked LSTM cells.
namespace heed::translator {

std::unique_ptr<system> make_luong(const options& how, std::size_t source_words, std::size_t target_words);
std::vector<expected_tensor> luong_claims(const options& how, std::size_t source_words, std::size_t target_words);

}  // namespace heed::translator
