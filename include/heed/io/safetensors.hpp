// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The safetensors format:
//
//     8 bytes     N, the size of the header, little-endian
//     N bytes     JSON: {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, …,
//                        "__metadata__": {"key": "text", …}}, padded with spaces
//     the rest    the tensors' values, little-endian, row-major; every byte belongs to exactly one tensor
//
// Files are untrusted: each claim of the header is checked before it is used, and memory is allocated only for sizes
// that the file's length confirms.

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/archive.hpp>
#include <heed/io/atomic_file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::io {

namespace detail {

inline constexpr std::size_t largest_header = 100'000'000;
inline constexpr std::string_view metadata_key = "__metadata__";

/// A header's claim about one tensor.
struct claim {
    std::string name, dtype;
    std::vector<std::size_t> shape, range;
    bool has_dtype = false, has_shape = false, has_range = false;
};

/// Reads the header during parsing, so that a hostile one (deep, repetitive, huge) is refused at its first wrong token
/// and never becomes a document in memory.
class header_reader : public nlohmann::json_sax<nlohmann::json> {
public:
    std::vector<claim> claims;
    std::map<std::string, std::string> metadata;
    std::string problem;

    bool null() override { return unexpected("null"); }
    bool boolean(bool) override { return unexpected("true or false"); }
    bool number_integer(number_integer_t) override { return unexpected("a negative number"); }
    bool number_float(number_float_t, const string_t&) override
    {
        return unexpected("a number that is not an integer");
    }
    bool binary(binary_t&) override { return unexpected("binary data"); }

    bool number_unsigned(number_unsigned_t value) override
    {
        if (place_ != place::numbers) return unexpected("a number");
        if (numbers_->size() == largest_rank)
            return refuse("has a list of more than " + counted(largest_rank, "number"));
        if (value > std::numeric_limits<std::size_t>::max()) return refuse("has a number that is too large");
        numbers_->push_back(static_cast<std::size_t>(value));
        return true;
    }

    bool string(string_t& text) override
    {
        if (place_ == place::metadata) {
            metadata[key_] = std::move(text);
            return true;
        }
        if (place_ != place::tensor || key_ != "dtype") return unexpected("a string");
        claims.back().dtype = std::move(text);
        return true;
    }

    bool start_object(std::size_t) override
    {
        if (place_ == place::outside) {
            place_ = place::header;
            return true;
        }
        if (place_ != place::header) return unexpected("an object");
        place_ = key_ == metadata_key ? place::metadata : place::tensor;
        if (place_ == place::tensor) claims.emplace_back().name = key_;
        return true;
    }

    bool key(string_t& text) override
    {
        key_ = std::move(text);
        if (place_ == place::header) {
            name_ = key_;
            return names_.insert(key_).second || refuse("appears twice");
        }
        if (place_ == place::metadata)
            return metadata.find(key_) == metadata.end() || refuse("has the key \"" + key_ + "\" twice");
        claim& last = claims.back();
        bool* const has = key_ == "dtype"          ? &last.has_dtype
                          : key_ == "shape"        ? &last.has_shape
                          : key_ == "data_offsets" ? &last.has_range
                                                   : nullptr;
        if (has == nullptr) return refuse("has the unknown key \"" + key_ + "\"");
        return !std::exchange(*has, true) || refuse("has the key \"" + key_ + "\" twice");
    }

    bool end_object() override
    {
        if (place_ == place::tensor) {
            const claim& last = claims.back();
            if (!last.has_dtype || !last.has_shape || !last.has_range)
                return refuse("must have \"dtype\", \"shape\" and \"data_offsets\"");
        }
        place_ = place_ == place::header ? place::outside : place::header;
        return true;
    }

    bool start_array(std::size_t) override
    {
        if (place_ != place::tensor || key_ == "dtype") return unexpected("a list");
        numbers_ = key_ == "shape" ? &claims.back().shape : &claims.back().range;
        place_ = place::numbers;
        return true;
    }

    bool end_array() override
    {
        place_ = place::tensor;
        return true;
    }

    bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override
    {
        problem = "the header is not valid JSON (at its byte " + std::to_string(position) + ")";
        return false;
    }

private:
    enum class place { outside, header, metadata, tensor, numbers };

    bool refuse(const std::string& what)
    {
        problem = (name_ == metadata_key ? name_ : "tensor \"" + name_ + "\"") + " " + what;
        return false;
    }

    bool unexpected(const std::string& what)
    {
        if (place_ == place::outside || name_.empty()) {
            problem = "the header has " + what + " where a tensor's description belongs";
            return false;
        }
        return refuse("has " + what + (place_ == place::header ? " for its description" : " for \"" + key_ + "\""));
    }

    place place_ = place::outside;
    std::string name_, key_;
    std::set<std::string> names_;
    std::vector<std::size_t>* numbers_ = nullptr;
};

/// A JSON string in quotation marks. Throws nlohmann::json::exception if it is not valid UTF-8.
inline std::string json_text(std::string_view text) { return nlohmann::json(text).dump(); }

/// The claims of a header, in the order of their data, each checked against the others and the size of the data.
inline std::vector<claim> check_claims(std::vector<claim> claims, std::size_t data_size, auto&& refuse)
{
    for (const claim& each : claims) {
        const std::string tensor = "tensor \"" + each.name + "\" ";
        if (each.range.size() != 2 || each.range[0] > each.range[1])
            refuse(tensor + "has data_offsets " + shape_text(each.range) + "; they must be [begin,end]");
        const std::optional<std::size_t> value_size = dtype_size(each.dtype);
        const std::optional<std::size_t> bytes = bytes_of(each.shape, value_size.value_or(1));
        if (!bytes) refuse(tensor + "has shape " + shape_text(each.shape) + ", more bytes than a file can have");
        // The size of values of an unknown dtype is unknown: it may be less than a byte.
        if (value_size && *bytes != each.range[1] - each.range[0])
            refuse(tensor + shape_text(each.shape) + " of " + each.dtype + " takes " + counted(*bytes, "byte") +
                   " but its data_offsets " + shape_text(each.range) + " span " +
                   std::to_string(each.range[1] - each.range[0]));
    }
    std::stable_sort(claims.begin(), claims.end(), [](const claim& a, const claim& b) { return a.range < b.range; });
    std::size_t end = 0;
    for (const claim& each : claims) {
        const std::string tensor = "tensor \"" + each.name + "\" begins at byte " + std::to_string(each.range[0]);
        if (each.range[0] < end) refuse(tensor + ", inside the tensor before it, which ends at " + std::to_string(end));
        if (each.range[0] > end) refuse(tensor + " but the one before it ends at " + std::to_string(end));
        end = each.range[1];
    }
    if (end > data_size)
        refuse("truncated: the header promises " + counted(end, "byte") + " of data, the file has " +
               std::to_string(data_size) + "; it was not copied or saved completely");
    if (end < data_size)
        refuse(counted(data_size - end, "byte") + " after the last tensor: the header accounts for " +
               std::to_string(end) + " of " + counted(data_size, "byte"));
    return claims;
}

}  // namespace detail

/// Writes an archive atomically (see atomic_file). Tensors of larger values are written first, so that every value is
/// aligned to its size; otherwise tensors keep their order. Throws heed::error if the file cannot be written and,
/// before touching the file, if the archive contradicts itself.
inline void save(const std::filesystem::path& path, const archive& contents, existing there = existing::replace)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": cannot be saved: " + why); };

    std::vector<const tensor_entry*> order;
    std::set<std::string_view> names;
    for (const tensor_entry& each : contents.tensors) {
        const std::optional<std::size_t> value_size = dtype_size(each.dtype);
        if (!value_size)
            refuse("tensor \"" + each.name + "\" has dtype \"" + each.dtype + "\"; heed writes " +
                   std::string(dtype_names));
        if (detail::bytes_of(each.shape, *value_size) != each.bytes.size())
            refuse("tensor \"" + each.name + "\" is " + shape_text(each.shape) + " of " + each.dtype + " but has " +
                   counted(each.bytes.size(), "byte"));
        if (each.name == detail::metadata_key) refuse("a tensor cannot be called __metadata__");
        if (each.shape.size() > detail::largest_rank) refuse("tensor \"" + each.name + "\" has too many dimensions");
        if (!names.insert(each.name).second) refuse("two tensors are called \"" + each.name + "\"");
        order.push_back(&each);
    }
    std::stable_sort(order.begin(), order.end(), [](const tensor_entry* a, const tensor_entry* b) {
        return dtype_size(a->dtype) > dtype_size(b->dtype);
    });

    // Written manually: the destructor of a JSON object allocates, and would terminate the program without memory.
    std::string text;
    try {
        const auto add = [&text](std::string_view name) {
            text += text.empty() ? '{' : ',';
            text += detail::json_text(name) + ':';
        };
        const auto numbers = [](const auto& all) {
            std::string list;
            for (const std::size_t each : all) list += (list.empty() ? "" : ",") + std::to_string(each);
            return '[' + list + ']';
        };
        if (!contents.metadata.empty()) {
            add(detail::metadata_key);
            char before = '{';
            for (const auto& [name, value] : contents.metadata)
                text += std::exchange(before, ',') + detail::json_text(name) + ':' + detail::json_text(value);
            text += '}';
        }
        std::size_t offset = 0;
        for (const tensor_entry* each : order) {
            add(each->name);
            const std::array<std::size_t, 2> range{offset, offset + each->bytes.size()};
            text += "{\"dtype\":" + detail::json_text(each->dtype) + ",\"shape\":" + numbers(each->shape) +
                    ",\"data_offsets\":" + numbers(range) + '}';
            offset = range[1];
        }
        text += text.empty() ? "{}" : "}";
    } catch (const nlohmann::json::exception&) {
        refuse("a tensor's name or the metadata is not valid UTF-8");
    }
    text.resize((text.size() + 7) / 8 * 8, ' ');
    if (text.size() > detail::largest_header)
        refuse("its header would take " + counted(text.size(), "byte") + "; the limit is " +
               std::to_string(detail::largest_header));

    atomic_file file(path);
    const std::uint64_t header_size = text.size();
    file.write(std::as_bytes(std::span(&header_size, 1)));
    file.write(text);
    for (const tensor_entry* each : order) file.write(std::span(each->bytes.data(), each->bytes.size()));
    file.commit(there);
}

/// Reads an archive; its tensors are in the order of their data. Tensors of an unknown dtype keep their shape and
/// bytes. Throws heed::error "path: reason" if the file cannot be read, is truncated, is not a safetensors file, or
/// contradicts itself.
inline archive load(const std::filesystem::path& path, storage how = storage::mapped)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": " + text::printable(why)); };
    const shared_bytes file = bytes_of_file(path, how, "a safetensors file");

    constexpr std::size_t prefix = sizeof(std::uint64_t);
    if (file.empty()) refuse("is empty; not a safetensors file");
    if (file.size() < prefix + 2)
        refuse("is only " + counted(file.size(), "byte") + " long; not a safetensors file, or truncated");
    std::uint64_t header_size = 0;
    std::memcpy(&header_size, file.data(), prefix);
    const bool begins = file.data()[prefix] == std::byte{'{'};
    if (!begins || header_size > detail::largest_header)
        refuse("is not a safetensors file: it does not begin with a header of a sensible size" +
               std::string(begins ? " (it claims " + counted(header_size, "byte") + ")" : ""));
    const std::size_t rest = file.size() - prefix;
    if (header_size < 2 || header_size > rest)
        refuse("truncated: the header should have " + counted(header_size, "byte") + "; " + std::to_string(rest) +
               " follow its size");

    const auto header_bytes = static_cast<std::size_t>(header_size);
    detail::header_reader reader;
    if (!nlohmann::json::sax_parse(file.text(prefix, header_bytes), &reader)) refuse("is damaged: " + reader.problem);

    const shared_bytes data = file.part(prefix + header_bytes, rest - header_bytes);
    archive contents;
    contents.path = path.string();
    contents.metadata = std::move(reader.metadata);
    for (detail::claim& each : detail::check_claims(std::move(reader.claims), data.size(), refuse)) {
        contents.tensors.push_back({std::move(each.name), std::move(each.dtype), std::move(each.shape),
                                    data.part(each.range[0], each.range[1] - each.range[0])});
    }
    return contents;
}

}  // namespace heed::inline HEED_TARGET::io
