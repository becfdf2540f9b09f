// SPDX-License-Identifier: BSD-3-Clause

#include <heed_translator/raw.hpp>

#ifdef HEED_RAW_TEXT
#include <heed_kit/text/raw_text.hpp>
#endif

namespace heed::translator {

#ifdef HEED_RAW_TEXT

std::shared_ptr<const heed::text::tokenizer> learn_tokenizer(const std::vector<heed::text::sentence>& lines,
                                                             const options& how)
{
    std::vector<std::string> text;
    text.reserve(lines.size());
    for (const heed::text::sentence& each : lines) text.push_back(heed::text::join(each));
    return std::make_shared<const heed::text::raw_text>(
        heed::text::raw_text::learn(text, {how.subword_vocab, how.subword_model, how.casing == "truecase"}));
}

std::shared_ptr<const heed::text::tokenizer> read_tokenizer(const std::string& text)
{
    return std::make_shared<const heed::text::raw_text>(heed::text::raw_text::from_text(text));
}

#else

namespace detail {

[[noreturn]] inline void no_raw_text()
{
    throw heed::error("raw text requires SentencePiece and ICU, but this program was built without them; install them "
                      "(Debian: libsentencepiece-dev libicu-dev) and rebuild");
}

}  // namespace detail

std::shared_ptr<const heed::text::tokenizer> learn_tokenizer(const std::vector<heed::text::sentence>&, const options&)
{
    detail::no_raw_text();
}

std::shared_ptr<const heed::text::tokenizer> read_tokenizer(const std::string&) { detail::no_raw_text(); }

#endif

}  // namespace heed::translator
