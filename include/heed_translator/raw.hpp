// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed_kit/text/sentence.hpp>
#include <heed_kit/text/tokenizer.hpp>

#include <heed_translator/options.hpp>

/// Raw text, if SentencePiece and ICU are available: heed::raw_text links them and defines HEED_RAW_TEXT.
namespace heed::translator {

/// The tokenization of lines of one language, learned according to the options. Throws heed::error without the two
/// libraries.
std::shared_ptr<const heed::text::tokenizer> learn_tokenizer(const std::vector<heed::text::sentence>& lines,
                                                             const options& how);

/// The tokenization stored in a model file. Throws heed::error without the two libraries.
std::shared_ptr<const heed::text::tokenizer> read_tokenizer(const std::string& text);

}  // namespace heed::translator
