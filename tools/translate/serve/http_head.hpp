// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "http.hpp"

/// The head of a request of HTTP/1.1, in front of its body.   RFC 9112
namespace translation::http {

/// The bytes of the empty lines that a text begins with.
inline std::size_t empty_lines(std::string_view text)
{
    std::size_t at = 0;
    while (text.substr(at).starts_with("\r\n")) at += 2;
    return at;
}

/// The first line and the headers of a request, as far as they are used here.
struct request_head {
    std::string first_line;
    std::size_t body = 0;
    bool keeps = false, closes = false;  // values of Connection
    bool expects = false;                // 100-continue
    std::string host, origin, content_type, fetch_site;
};

inline bool same(std::string_view left, std::string_view right)
{
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), [](char a, char b) {
        return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
    });
}

/// Parses the head, which ends before `text` does. Sets `refused` on errors.
struct read_head {
    request_head head;
    std::optional<answer> refused;

    read_head(std::string_view text, std::size_t most_body)
    {
        std::size_t lines = 0;
        bool has_length = false;
        while (!text.empty() && !refused) {
            const std::size_t end = text.find("\r\n");
            const std::string_view line = text.substr(0, end);
            text.remove_prefix(end == text.npos ? text.size() : end + 2);
            if (line.find_first_of(std::string_view("\r\n\0", 3)) != line.npos)
                refused = refusal(400, "a line of the request head has a stray line end or a NUL");
            else if (lines++ == 0)
                head.first_line = line;
            else
                take(line, has_length, most_body);
        }
    }

private:
    void once(std::string& to, std::string_view value, const char* name)
    {
        if (!to.empty()) refused = refusal(400, std::string(name) + " is given twice");
        to = value;
    }

    void take(std::string_view line, bool& has_length, std::size_t most_body)
    {
        const std::size_t colon = line.find(':');
        const std::string_view name = line.substr(0, colon);
        if (colon == line.npos || name.empty() || name.find_first_of(" \t") != name.npos) {
            refused = refusal(400, "a header is not of the form Name: value");
            return;
        }
        std::string_view value = line.substr(colon + 1);
        while (!value.empty() && (value.front() == ' ' || value.front() == '\t')) value.remove_prefix(1);
        while (!value.empty() && (value.back() == ' ' || value.back() == '\t')) value.remove_suffix(1);
        if (same(name, "content-length")) {
            std::size_t size = 0;
            const bool number =
                !value.empty() && value.size() < 19 && value.find_first_not_of("0123456789") == value.npos;
            for (const char digit : value) size = number ? 10 * size + static_cast<std::size_t>(digit - '0') : 0;
            if (!number && value.find_first_not_of("0123456789") == value.npos && !value.empty())
                size = most_body + 1;
            else if (!number || (has_length && size != head.body))
                refused = refusal(400, "Content-Length is not a single number");
            has_length = true;
            head.body = size;
            if (!refused && size > most_body)
                refused = refusal(413, "the body has " + std::string(value) + " bytes; at most " +
                                           std::to_string(most_body) + " are accepted");
        } else if (same(name, "transfer-encoding")) {
            refused = refusal(411, "Transfer-Encoding is not accepted; send Content-Length");
        } else if (same(name, "content-encoding") && !same(value, "identity")) {
            refused = refusal(415, "Content-Encoding is not accepted; send the body unencoded");
        } else if (same(name, "connection")) {
            for (std::string_view list = value; !list.empty();) {
                std::string_view one = list.substr(0, list.find(','));
                list.remove_prefix(std::min(list.size(), one.size() + 1));
                while (one.starts_with(' ') || one.starts_with('\t')) one.remove_prefix(1);
                while (one.ends_with(' ') || one.ends_with('\t')) one.remove_suffix(1);
                head.keeps = head.keeps || same(one, "keep-alive");
                head.closes = head.closes || same(one, "close");
            }
        } else if (same(name, "host")) {
            once(head.host, value, "Host");
        } else if (same(name, "origin")) {
            once(head.origin, value, "Origin");
        } else if (same(name, "content-type")) {
            once(head.content_type, value, "Content-Type");
        } else if (same(name, "sec-fetch-site")) {
            once(head.fetch_site, value, "Sec-Fetch-Site");
        } else if (same(name, "expect")) {
            head.expects = same(value, "100-continue");
        }
    }
};

}  // namespace translation::http
