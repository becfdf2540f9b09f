// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

/// Gray pictures as uncompressed PNG files, for small pictures embedded in other documents.
namespace heed::inline HEED_TARGET::view {

namespace detail {

inline void put_number(std::string& to, std::uint32_t number)  // big-endian
{
    for (const int shift : {24, 16, 8, 0}) to += static_cast<char>(number >> shift & 0xff);
}

/// The checksum of PNG's chunks: CRC-32 of ISO 3309.
inline std::uint32_t crc32(std::string_view bytes)
{
    std::uint32_t crc = 0xffffffff;
    for (const char c : bytes) {
        crc ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    return ~crc;
}

/// The checksum of a zlib stream, RFC 1950.
inline std::uint32_t adler32(std::string_view bytes)
{
    std::uint32_t a = 1, b = 0;
    for (const char c : bytes) {
        a = (a + static_cast<unsigned char>(c)) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

/// A zlib stream of stored blocks, RFC 1951 §3.2.4.
inline std::string stored(std::string_view bytes)
{
    constexpr std::size_t most = 65535;
    std::string result = "\x78\x01";
    std::size_t at = 0;
    do {
        const std::size_t n = std::min(most, bytes.size() - at);
        result += static_cast<char>(at + n == bytes.size() ? 1 : 0);  // the last block?
        for (const std::size_t size : {n, ~n}) {
            result += static_cast<char>(size & 0xff);
            result += static_cast<char>(size >> 8 & 0xff);
        }
        result += bytes.substr(at, n);
        at += n;
    } while (at < bytes.size());
    put_number(result, adler32(bytes));
    return result;
}

inline void put_chunk(std::string& to, const std::string& type, std::string_view content)
{
    put_number(to, static_cast<std::uint32_t>(content.size()));
    const std::string checked = type + std::string(content);
    to += checked;
    put_number(to, crc32(checked));
}

inline std::string base64(std::string_view bytes)
{
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string result;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t three = 0;
        for (std::size_t i = at; i < at + 3; ++i)
            three = three << 8 | (i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u);
        for (std::size_t i = 0; i < 4; ++i) result += at + i > bytes.size() ? '=' : digits[three >> (18 - 6 * i) & 63];
    }
    return result;
}

}  // namespace detail

/// The bytes of a PNG file of height × width pixels, line by line: 0 is black, 1 white; other values are clamped; NaN
/// is black. Throws shape_error if the number of pixels differs.
inline std::string png(std::size_t height, std::size_t width, std::span<const float> pixels)
{
    if (height == 0 || width == 0 || pixels.size() != height * width) {
        throw shape_error("view::png: " + counted(pixels.size(), "pixel") + " for a picture of " +
                          counted(height, "line") + " of " + std::to_string(width) +
                          "; expected one per position, and at least one");
    }
    std::string lines;
    for (std::size_t i = 0; i < pixels.size(); ++i) {
        if (i % width == 0) lines += '\0';  // each line begins with its filter: none
        const float gray = pixels[i] > 0 ? std::min(pixels[i], 1.0f) : 0.0f;
        lines += static_cast<char>(std::lround(255 * gray));
    }
    std::string header;
    detail::put_number(header, static_cast<std::uint32_t>(width));
    detail::put_number(header, static_cast<std::uint32_t>(height));
    header.append({8, 0, 0, 0, 0});  // 8 bits, gray, deflated, not filtered, not interlaced
    std::string result = "\x89PNG\r\n\x1a\n";
    detail::put_chunk(result, "IHDR", header);
    detail::put_chunk(result, "IDAT", detail::stored(lines));
    detail::put_chunk(result, "IEND", "");
    return result;
}

}  // namespace heed::inline HEED_TARGET::view
