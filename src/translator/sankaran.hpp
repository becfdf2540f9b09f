// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <heed_translator/expected_tensor.hpp>
#include <heed_translator/options.hpp>
#include <heed_translator/system.hpp>

/// Sankaran et al. 2016: temporal attention and alternatives, on a conditional GRU.
namespace heed::translator {

std::unique_ptr<system> make_sankaran(const options& how, std::size_t source_words, std::size_t target_words);
std::vector<expected_tensor> sankaran_claims(const options& how, std::size_t source_words, std::size_t target_words);

}  // namespace heed::translator
