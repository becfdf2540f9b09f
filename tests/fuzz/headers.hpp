// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Mutations of files whose header gives the positions of the data. Bytewise mutations rarely pass the checks of a
// header; these change a value, a name or the data, and make the rest of the file consistent with it, or not.

#include "fuzz.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fuzz {

inline constexpr std::size_t most_mutated = 4096;

/// Numbers at which sizes overflow, signs change, or sizes become 0.
inline std::uint64_t odd_number(const dice& roll)
{
    constexpr std::uint64_t all[] = {0,          1,          2,          3,          4,          7,
                                     8,          127,        128,        255,        256,        65535,
                                     65536,      0x7fffffff, 0x80000000, 0xfffffffe, 0xffffffff, 0x100000000,
                                     1ull << 53, 1ull << 60, 1ull << 61, 1ull << 62, 1ull << 63, ~0ull};
    const std::uint64_t number = all[roll(std::size(all))];
    return roll(3) == 0 ? number + roll(3) - 1 : number;
}

template <class T>
T number_at(std::string_view bytes, std::size_t at)
{
    T number{};
    if (at + sizeof(T) <= bytes.size()) std::memcpy(&number, bytes.data() + at, sizeof(T));
    return number;
}

template <class T>
void put_number(std::string& bytes, T number)
{
    bytes.append(reinterpret_cast<const char*>(&number), sizeof(T));
}

template <class T>
void set_number(std::string& bytes, std::size_t at, T number)
{
    if (at + sizeof(T) <= bytes.size()) std::memcpy(bytes.data() + at, &number, sizeof(T));
}

/// Replaces one of the numbers in a text with another.
inline std::string with_odd_number(std::string text, const dice& roll)
{
    std::vector<std::pair<std::size_t, std::size_t>> numbers;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t begin = text.find_first_of("0123456789", at);
        if (begin == text.npos) break;
        at = std::min(text.find_first_not_of("0123456789", begin), text.size());
        numbers.emplace_back(begin, at - begin);
    }
    if (numbers.empty()) return text;
    const auto [begin, size] = numbers[roll(numbers.size())];
    return text.replace(begin, size, std::to_string(odd_number(roll)));
}

// ---- safetensors ------------------------------------------------------------------------------------------------

inline std::string safetensors_of(const std::string& header, std::string_view data)
{
    std::string bytes;
    put_number(bytes, std::uint64_t{header.size()});
    return bytes.append(header).append(data);
}

/// Any string of the header: a tensor's name, a dtype, metadata.
inline void change_metadata(nlohmann::ordered_json& header, const dice& roll, const scramble& bytewise)
{
    nlohmann::ordered_json& metadata = header["__metadata__"];
    if (!metadata.is_object()) metadata = nlohmann::ordered_json::object();
    if (metadata.empty() || roll(8) == 0) {
        metadata["key" + std::to_string(roll(4))] = std::to_string(odd_number(roll));
        return;
    }
    auto entry = metadata.begin();
    std::advance(entry, static_cast<std::ptrdiff_t>(roll(metadata.size())));
    if (!entry->is_string()) return;
    const std::string value = entry->get<std::string>();
    switch (roll(4)) {
    case 0:
        *entry = with_odd_number(value, roll);
        break;
    case 1:
        metadata.erase(entry);
        break;
    default:
        *entry = bytewise(value, value.size() + 16);
        break;
    }
}

inline void change_tensor(nlohmann::ordered_json& header, const dice& roll)
{
    if (header.empty()) return;
    auto entry = header.begin();
    std::advance(entry, static_cast<std::ptrdiff_t>(roll(header.size())));
    if (entry.key() == "__metadata__" || !entry->is_object()) return;
    nlohmann::ordered_json& tensor = *entry;
    const char* const lists[] = {"shape", "data_offsets"};
    nlohmann::ordered_json& list = tensor[lists[roll(2)]];
    constexpr const char* types[] = {"F64", "F32", "F16", "BF16", "I64", "I8", "U8", "BOOL", "F8_E4M3", "F4", ""};
    switch (roll(7)) {
    case 0:
        tensor["dtype"] = types[roll(std::size(types))];
        break;
    case 1:
        if (list.is_array() && !list.empty()) list[roll(list.size())] = odd_number(roll);
        break;
    case 2:
        if (list.is_array()) list.push_back(odd_number(roll));
        break;
    case 3:
        if (list.is_array() && !list.empty()) list.erase(roll(list.size()));
        break;
    case 4:
        if (list.is_array() && list.size() > 1) std::swap(list[0], list[1]);
        break;
    case 5: {
        nlohmann::ordered_json copy = tensor;
        header[entry.key() + (roll(2) == 0 ? ".scale" : "2")] = std::move(copy);
        break;
    }
    default:
        header.erase(entry.key());
        break;
    }
}

/// Consecutive offsets that match shapes and types, with data of the same size; offsets of a too large shape are
/// unchanged.
inline std::string with_offsets(nlohmann::ordered_json& header, std::string data)
{
    const std::map<std::string, std::uint64_t> sizes{{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"I64", 8},
                                                     {"I32", 4}, {"I8", 1},  {"U8", 1},  {"BOOL", 1}};
    std::uint64_t end = 0;
    for (auto& [name, tensor] : header.items()) {
        if (name == "__metadata__" || !tensor.is_object() || !tensor["dtype"].is_string()) continue;
        const auto size = sizes.find(tensor["dtype"].get<std::string>());
        std::uint64_t bytes = size == sizes.end() ? 0 : size->second;
        for (const auto& extent : tensor["shape"])
            bytes =
                extent.is_number_unsigned() ? bytes * std::min<std::uint64_t>(extent.get<std::uint64_t>(), 4096) : 0;
        if (end + bytes > most_mutated) bytes = 0;
        tensor["data_offsets"] = {end, end + bytes};
        end += bytes;
    }
    data.resize(end, '\1');
    return data;
}

inline std::string mutated_safetensors(std::string_view bytes, const dice& roll, const scramble& bytewise)
{
    if (bytes.size() < 8) return {};
    const auto claimed = std::min<std::uint64_t>(number_at<std::uint64_t>(bytes, 0), bytes.size() - 8);
    const std::string text(bytes.substr(8, claimed));
    std::string data(bytes.substr(8 + claimed));
    const std::size_t kind = roll(8);
    if (kind == 0) return safetensors_of(bytewise(text, text.size() + 64), data);
    if (kind == 1) return safetensors_of(text, bytewise(data, data.size() + 64));
    if (kind == 2) return safetensors_of(with_odd_number(text, roll), data);
    nlohmann::ordered_json header = nlohmann::ordered_json::parse(text, nullptr, false);
    if (!header.is_object()) return safetensors_of(bytewise(text, text.size() + 64), data);
    if (kind == 3)
        change_metadata(header, roll, bytewise);
    else
        change_tensor(header, roll);
    if (roll(4) != 0) data = with_offsets(header, std::move(data));
    return safetensors_of(header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace), data);
}

// ---- .npy -------------------------------------------------------------------------------------------------------

inline std::string npy_of(const std::string& header, std::string_view data, char version = 1)
{
    std::string bytes = std::string("\x93NUMPY", 6) + version + '\0';
    if (version == 1)
        put_number(bytes, static_cast<std::uint16_t>(header.size()));
    else
        put_number(bytes, static_cast<std::uint32_t>(header.size()));
    return bytes.append(header).append(data);
}

inline std::string npy_header(const std::string& type, bool fortran, const std::string& shape)
{
    return "{'descr': '" + type + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': " + shape +
           ", }\n";
}

inline std::string mutated_npy(std::string_view bytes, const dice& roll, const scramble& bytewise)
{
    if (bytes.size() < 10) return {};
    const bool wide = bytes[6] != 1;
    const std::size_t begin = wide ? 12 : 10;
    if (bytes.size() < begin) return {};
    const std::size_t claimed = wide ? number_at<std::uint32_t>(bytes, 8) : number_at<std::uint16_t>(bytes, 8);
    const std::string text(bytes.substr(begin, claimed));
    std::string data(bytes.substr(begin + text.size()));
    const char version = static_cast<char>(1 + roll(3));
    switch (roll(5)) {
    case 0:
        return npy_of(bytewise(text, text.size() + 32), data, version);
    case 1:
        return npy_of(text, bytewise(data, data.size() + 32), version);
    case 2:
        return npy_of(with_odd_number(text, roll), data, version);
    case 3: {
        constexpr const char* types[] = {"f8", "f4", "f2", "i8", "i1", "u2", "b1", "U3", "V8", "O", ""};
        constexpr const char* orders[] = {"<", ">", "|", "="};
        std::string shape;
        std::size_t size = 1;
        for (std::size_t n = roll(4); n-- > 0;) {
            const std::size_t extent = roll(8) == 0 ? static_cast<std::size_t>(odd_number(roll)) : roll(5);
            shape += std::to_string(extent) + ",";
            size *= extent;
        }
        const std::size_t type = roll(std::size(types));
        constexpr std::size_t sizes[] = {8, 4, 2, 8, 1, 2, 1, 12, 8, 8, 1};
        data.resize(std::min(size * sizes[type], most_mutated), '\2');
        return npy_of(npy_header(std::string(orders[roll(4)]) + types[type], roll(2) == 0, "(" + shape + ")"), data,
                      version);
    }
    default: {
        std::string whole(bytes);
        set_number(whole, 8, static_cast<std::uint32_t>(odd_number(roll)));
        return whole;
    }
    }
}

}  // namespace fuzz
