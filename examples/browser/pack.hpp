// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <heed/io/atomic_file.hpp>
#include <heed/io/safetensors.hpp>

#include "playground.hpp"

/// A model of `translate` as a script for a page: its texts, and its numbers as 16-bit floats in base64.
namespace browser {

/// IEEE 754 binary16, rounded to even; numbers that are too great become infinite.
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

/// Throws heed::error for a model that captions.hpp does not read.
inline void pack(const std::filesystem::path& model, const std::filesystem::path& script)
{
    const heed::io::archive from = heed::io::load(model);
    const auto entry = [&](const std::string& name) {
        const auto found = from.metadata.find(name);
        return found == from.metadata.end() ? std::string() : found->second;
    };
    if (entry("options.system") != "sankaran")
        throw heed::error(model.string() + ": pages take models of `translate train --system sankaran` alone");
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
    heed::io::write_file(script, text);
}

}  // namespace browser
