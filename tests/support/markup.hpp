// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/utf8.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

/// Helpers to examine the text of an SVG or HTML document.
namespace support {

/// The number of occurrences of one text in another.
inline std::size_t count(std::string_view text, std::string_view what)
{
    std::size_t times = 0;
    for (std::size_t at = text.find(what); at != std::string_view::npos; at = text.find(what, at + 1)) ++times;
    return times;
}

/// The reason why a document is not well-formed, as far as a small parser can tell: mismatched tags, unquoted or
/// repeated attributes, bare & or <, characters that XML forbids. Empty if it is well-formed.
inline std::string fault(std::string_view xml)
{
    std::vector<std::string> open;
    std::size_t roots = 0;
    const auto good_text = [](std::string_view text) {
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '<' || (static_cast<unsigned char>(text[i]) < 0x20 && text[i] != '\n')) return false;
            if (text[i] != '&') continue;
            const std::string_view rest = text.substr(i);
            if (!rest.starts_with("&amp;") && !rest.starts_with("&lt;") && !rest.starts_with("&gt;") &&
                !rest.starts_with("&quot;"))
                return false;
        }
        return !heed::text::find_invalid_utf8(text);
    };
    while (!xml.empty()) {
        const std::size_t begin = std::min(xml.find('<'), xml.size());
        if (!good_text(xml.substr(0, begin))) return "text: " + std::string(xml.substr(0, begin));
        if (begin == xml.size()) break;
        const std::size_t end = xml.find('>', begin);
        if (end == std::string_view::npos) return "an open tag";
        std::string_view tag = xml.substr(begin + 1, end - begin - 1);
        xml.remove_prefix(end + 1);
        if (tag.starts_with('/')) {
            if (open.empty() || open.back() != tag.substr(1)) return "closing " + std::string(tag);
            open.pop_back();
            continue;
        }
        const bool alone = tag.ends_with('/');
        if (alone) tag.remove_suffix(1);
        const std::size_t name = std::min(tag.find(' '), tag.size());
        if (open.empty()) ++roots;
        if (!alone) open.emplace_back(tag.substr(0, name));
        tag.remove_prefix(name);
        std::vector<std::string> seen;
        while (!tag.empty()) {
            if (!tag.starts_with(' ')) return "attributes: " + std::string(tag);
            const std::size_t equals = tag.find("=\"");
            const std::size_t close = equals == std::string_view::npos ? equals : tag.find('"', equals + 2);
            if (close == std::string_view::npos) return "attributes: " + std::string(tag);
            const std::string key(tag.substr(1, equals - 1));
            if (key.empty() ||
                key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789") !=
                    std::string::npos)
                return "attribute name: " + key;
            if (std::find(seen.begin(), seen.end(), key) != seen.end()) return "twice: " + key;
            seen.push_back(key);
            if (!good_text(tag.substr(equals + 2, close - equals - 2))) return "attribute value of " + key;
            tag.remove_prefix(close + 1);
        }
    }
    if (!open.empty()) return "never closed: " + open.back();
    return roots == 1 ? "" : "not one root";
}

}  // namespace support
