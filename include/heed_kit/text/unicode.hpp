// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/core/workspace.hpp>

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/casemap.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/stringoptions.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

/// The functions of ICU (Debian: libicu-dev) that heed uses: normalization, word segmentation, and conversion to lower,
/// upper and title case. Programs that include this header must link icuuc; with CMake, heed::raw_text. They throw
/// heed::error if ICU fails, and for more than 512 MiB of text.
namespace heed::inline HEED_TARGET::text {

namespace detail {

inline void require_icu(UErrorCode status, const char* what)
{
    if (U_FAILURE(status)) throw error(std::string(what) + ": ICU reports " + u_errorName(status));
}

inline std::int32_t icu_length(std::string_view text)
{
    if (text.size() > std::size_t{std::numeric_limits<std::int32_t>::max()} / 4)
        throw error("a line of " + counted(text.size(), "byte") + " is too long; split it into sentences");
    return static_cast<std::int32_t>(text.size());
}

inline std::string mapped_case(std::string_view text, auto&& map)
{
    std::string result;
    icu::StringByteSink<std::string> sink(&result);
    UErrorCode status = U_ZERO_ERROR;
    map(icu::StringPiece(text.data(), icu_length(text)), sink, status);
    require_icu(status, "letters");
    return result;
}

struct word_breaks {
    std::unique_ptr<icu::BreakIterator> find;
};

}  // namespace detail

/// The text in lower case, independent of the language.   Unicode, SpecialCasing
inline std::string lower_case(std::string_view text)
{
    return detail::mapped_case(
        text, [](auto from, auto& to, auto& status) { icu::CaseMap::utf8ToLower("", 0, from, to, nullptr, status); });
}

/// The text in capitals: "Straße" becomes "STRASSE".
inline std::string upper_case(std::string_view text)
{
    return detail::mapped_case(
        text, [](auto from, auto& to, auto& status) { icu::CaseMap::utf8ToUpper("", 0, from, to, nullptr, status); });
}

/// The text with its first character in title case, the others unchanged.
inline std::string title_case(std::string_view text)
{
    return detail::mapped_case(text, [](auto from, auto& to, auto& status) {
        icu::CaseMap::utf8ToTitle("",
                                  U_TITLECASE_WHOLE_STRING | U_TITLECASE_NO_LOWERCASE | U_TITLECASE_NO_BREAK_ADJUSTMENT,
                                  nullptr, from, to, nullptr, status);
    });
}

/// A normalized line: in Unicode's normalization form C, each run of white space (including no-break and narrow spaces)
/// replaced by one space, none at its ends, without control characters and byte order marks. Normalization is
/// idempotent. Throws heed::error if it is not UTF-8.
inline std::string normalize(std::string_view line)
{
    std::string text;
    text.reserve(line.size());
    for (std::size_t at = 0; at < line.size();) {
        const utf8_character one = utf8_at(line, at);
        if (!one.valid)
            throw error("byte " + std::to_string(at + 1) + " of the line \"" + printable(line.substr(0, 60)) +
                        (line.size() > 60 ? "…" : "") + "\" is not valid UTF-8; save the text as UTF-8");
        const auto code = static_cast<UChar32>(one.code);
        if (u_isUWhiteSpace(code)) {
            if (!text.empty() && text.back() != ' ') text += ' ';
        } else if (u_charType(code) != U_CONTROL_CHAR && one.code != U'\uFEFF') {
            text += line.substr(at, one.length);
        }
        at += one.length;
    }
    if (!text.empty() && text.back() == ' ') text.pop_back();

    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* const form = icu::Normalizer2::getNFCInstance(status);
    detail::require_icu(status, "normalization");
    std::string result;
    icu::StringByteSink<std::string> sink(&result);
    form->normalizeUTF8(0, icu::StringPiece(text.data(), detail::icu_length(text)), sink, nullptr, status);
    detail::require_icu(status, "normalization");
    return result;
}

/// Whether it contains a letter or a digit. Otherwise it is a symbol.
inline bool is_word(std::string_view text)
{
    for (std::size_t at = 0; at < text.size();) {
        const utf8_character one = utf8_at(text, at);
        if (one.valid && u_isalnum(static_cast<UChar32>(one.code))) return true;
        at += one.length;
    }
    return false;
}

/// The bytes of a word or symbol in a line.
struct segment {
    std::size_t begin, end;
    bool word;  // whether is_word() holds

    friend bool operator==(const segment&, const segment&) = default;
};

/// The words and symbols of a normalized line; their concatenation is the line without spaces. "can't" and "3.14" are
/// words; an emoji of several characters is one symbol.   Unicode Standard Annex 29, section 4.1
inline std::vector<segment> segments(std::string_view line)
{
    UErrorCode status = U_ZERO_ERROR;
    const heed::detail::kept_between_calls<detail::word_breaks> kept;
    std::unique_ptr<icu::BreakIterator>& breaks = (*kept).find;
    if (!breaks) breaks.reset(icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
    detail::require_icu(status, "words");
    if (!breaks) throw error("words: ICU has no segmentation data");
    const std::unique_ptr<UText, decltype(&utext_close)> text(
        utext_openUTF8(nullptr, line.data(), detail::icu_length(line), &status), &utext_close);
    breaks->setText(text.get(), status);
    detail::require_icu(status, "words");
    std::vector<segment> all;
    auto from = static_cast<std::size_t>(breaks->first());
    for (std::int32_t next = breaks->next(); next != icu::BreakIterator::DONE; next = breaks->next()) {
        const auto to = static_cast<std::size_t>(next);
        while (from < to && line[from] == ' ') ++from;  // which may be the base of a mark, by rule WB4
        if (from < to) all.push_back({from, to, is_word(line.substr(from, to - from))});
        from = to;
    }
    return all;
}

}  // namespace heed::inline HEED_TARGET::text
