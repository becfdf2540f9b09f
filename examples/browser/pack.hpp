// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <heed/io/atomic_file.hpp>
#include <heed/io/safetensors.hpp>

#include "playground.hpp"

/// Packs a model of `translate` as a script for a page: its texts, and its numbers as 16-bit floats in base64.
namespace browser {

/// IEEE 754 binary16, rounded to even; numbers out of range become infinite.
inline std::uint16_t half_of(float x)
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    const std::uint32_t sign = bits >> 16 & 0x8000u;
    const float size = std::fabs(x);
    if (!(size < 65520.0f)) return static_cast<std::uint16_t>(sign | (size != size ? 0x7e00u : 0x7c00u));
    if (size < 0x1p-14f)
        return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(std::nearbyint(size * 0x1p24f)));
    const std::uint32_t kept = (bits & 0x7fffffffu) - (112u << 23);
    return static_cast<std::uint16_t>(sign | (kept + 0xfffu + (kept >> 13 & 1u)) >> 13);
}

/// The number encoded by half_of.
inline float float_of(std::uint16_t half)
{
    const int exponent = half >> 10 & 31;
    const auto fraction = static_cast<float>(half & 1023);
    float size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 31) {
        using limits = std::numeric_limits<float>;
        size = fraction == 0 ? limits::infinity() : limits::quiet_NaN();
    }
    return half & 0x8000 ? -size : size;
}

inline std::string base64(const std::vector<std::uint8_t>& bytes)
{
    constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t three = 0;
        for (std::size_t k = 0; k < 3; ++k) three = three << 8 | (i + k < bytes.size() ? bytes[i + k] : 0u);
        for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? digits[three >> (18 - 6 * k) & 63u] : '=';
    }
    return text;
}

inline constexpr std::size_t most_bytes = 8'000'000;  // maximum size of a script

/// The model with the numbers of the page: every number rounded to 16 bits.
inline void round(const std::filesystem::path& model, const std::filesystem::path& rounded)
{
    heed::io::archive all = heed::io::load(model);
    for (auto& each : all.tensors) {
        std::vector<float> values = each.values<float>();
        for (float& x : values) x = float_of(half_of(x));
        each = heed::io::tensor_entry::of(each.name, each.shape, values);
    }
    heed::io::save(rounded, all);
}

/// Throws heed::error for models not supported by captions.hpp, and for a script larger than most_bytes.
inline void pack(const std::filesystem::path& model, const std::filesystem::path& script)
{
    const heed::io::archive from = heed::io::load(model);
    const auto entry = [&](const std::string& name) {
        const auto found = from.metadata.find(name);
        return found == from.metadata.end() ? std::string() : found->second;
    };
    if (entry("options.system") != "sankaran")
        throw heed::error(model.string() + ": pages support only models of `translate train --system sankaran`");
    std::string tensors = "[";
    std::vector<std::uint8_t> bytes;
    for (const auto& each : from.tensors) {
        const std::vector<float> values = each.values<float>();
        tensors += (tensors.size() > 1 ? "," : "") + ("[" + json(each.name)) + "," + json(values.size()) + "]";
        for (const float x : values) {
            const std::uint16_t half = half_of(x);
            bytes.push_back(static_cast<std::uint8_t>(half & 255u));
            bytes.push_back(static_cast<std::uint8_t>(half >> 8));
        }
    }
    std::string text = "'use strict';\nconst heed_captions = {";
    for (const char* name : {"attention", "embedding", "hidden", "alignment"})
        text += std::string(name) + ": " + json(entry(std::string("options.") + name)) + ", ";
    text += "texts: [" + json(entry("vocabulary.source")) + ",\n" + json(entry("vocabulary.target")) + ",\n" +
            json(entry("bpe.source")) + ",\n" + json(entry("bpe.target")) + "],\ntensors: " + tensors +
            "],\nhalves: \"" + base64(bytes) + "\"};\n";
    if (text.size() > most_bytes)
        throw heed::error(model.string() + ": its script would have " + std::to_string(text.size()) +
                          " bytes; the limit is " + std::to_string(most_bytes) + "; train a smaller model");
    heed::io::write_file(script, text);
}

}  // namespace browser
