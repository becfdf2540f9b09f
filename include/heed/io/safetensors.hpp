// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The safetensors format:
//
//     8 bytes     N, the size of the header, little-endian
//     N bytes     JSON: {"name": {"dtype": "F32", "shape": [2,3], "data_offsets": [0,24]}, …,
//                        "__metadata__": {"key": "text", …}}, padded with spaces
//     the rest    the tensors' values, little-endian, row-major; every byte belongs to exactly one tensor
//
// A model file may come from anywhere, so load() trusts nothing: each claim of the header is checked before it is used,
// and no size it states is allocated before the file is known to be that long.

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/text/utf8.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace heed::io {

static_assert(std::endian::native == std::endian::little,
              "heed reads and writes safetensors on little-endian machines");

/// A number type that heed stores: float ("F32"), double ("F64"), std::int64_t ("I64").
template <class T>
concept storable = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::int64_t>;

/// The format's name for T.
template <storable T>
inline constexpr std::string_view dtype_name = std::same_as<T, float>    ? "F32"
                                               : std::same_as<T, double> ? "F64"
                                                                         : "I64";

/// Bytes per value of this dtype; none for a dtype that heed does not store.
constexpr std::optional<std::size_t> dtype_size(std::string_view dtype)
{
    if (dtype == "F32") return 4;
    if (dtype == "F64" || dtype == "I64") return 8;
    return std::nullopt;
}

namespace detail {

inline constexpr std::size_t largest_header = 100'000'000;
inline constexpr std::size_t largest_rank = 32;
inline constexpr std::string_view metadata_key = "__metadata__";

/// Π shape · value_size; none if that overflows std::size_t.
constexpr std::optional<std::size_t> bytes_of(std::span<const std::size_t> shape, std::size_t value_size)
{
    // A zero anywhere makes the product zero, whatever the other extents.
    if (std::find(shape.begin(), shape.end(), std::size_t{0}) != shape.end()) return 0;
    std::size_t bytes = value_size;
    for (const std::size_t extent : shape) {
        if (bytes > std::numeric_limits<std::size_t>::max() / extent) return std::nullopt;
        bytes *= extent;
    }
    return bytes;
}

}  // namespace detail

/// One tensor of a file. The shape is row-major; the empty shape is a single number.
struct tensor_entry {
    std::string name;
    std::string dtype;  ///< "F32", "F64" or "I64"
    std::vector<std::size_t> shape;
    std::vector<std::byte> bytes;

    /// Copies values in. Throws shape_error unless their number matches the shape.
    template <class Values>
    static tensor_entry of(std::string name, std::vector<std::size_t> shape, const Values& values)
    {
        const std::span view(values);
        using value_type = std::remove_const_t<typename decltype(view)::element_type>;
        static_assert(storable<value_type>, "a tensor_entry holds float, double or std::int64_t");

        tensor_entry entry{std::move(name), std::string(dtype_name<value_type>), std::move(shape), {}};
        const std::span<const std::byte> raw = std::as_bytes(view);
        if (detail::bytes_of(entry.shape, sizeof(value_type)) != raw.size())
            throw shape_error("safetensors: tensor \"" + entry.name + "\" is " + shape_text(entry.shape) + " but " +
                              std::to_string(view.size()) + " values were given");
        entry.bytes.assign(raw.begin(), raw.end());
        return entry;
    }

    /// The number of values.
    std::size_t size() const
    {
        const std::optional<std::size_t> value_size = dtype_size(dtype);
        return value_size ? bytes.size() / *value_size : 0;
    }

    /// Copies the values into existing storage. Throws heed::error if they are not T, and shape_error unless `values`
    /// has size() elements.
    template <storable T>
    void copy_to(std::span<T> values) const
    {
        if (dtype != dtype_name<T>)
            throw error("safetensors: tensor \"" + name + "\" holds " + dtype + " but was read as " +
                        std::string(dtype_name<T>));
        if (values.size_bytes() != bytes.size())
            throw shape_error("safetensors: tensor \"" + name + "\" is " + shape_text(shape) + " but was read into " +
                              std::to_string(values.size()) + " values");
        if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    }

    /// Copies the values out. Throws heed::error if they are not T.
    template <storable T>
    std::vector<T> values() const
    {
        std::vector<T> result(dtype == dtype_name<T> ? size() : 0);
        copy_to(std::span<T>(result));
        return result;
    }

    friend bool operator==(const tensor_entry&, const tensor_entry&) = default;
};

/// The contents of a safetensors file.
struct archive {
    std::vector<tensor_entry> tensors;
    std::map<std::string, std::string> metadata;

    /// The tensor of this name, or null.
    const tensor_entry* find(std::string_view name) const
    {
        const auto found =
            std::find_if(tensors.begin(), tensors.end(), [&](const tensor_entry& each) { return each.name == name; });
        return found == tensors.end() ? nullptr : &*found;
    }

    /// The tensor of this name. Throws heed::error if there is none.
    const tensor_entry& at(std::string_view name) const
    {
        if (const tensor_entry* entry = find(name)) return *entry;
        throw error("safetensors: there is no tensor \"" + std::string(name) + "\" among the " +
                    std::to_string(tensors.size()));
    }
};

namespace detail {

/// A header's claim about one tensor.
struct claim {
    std::string name, dtype;
    std::vector<std::size_t> shape, range;
    std::set<std::string> seen;
};

/// Reads the header while it is parsed, so that a hostile one (deep, repetitive, huge) is refused at its first wrong
/// token and never becomes a document in memory.
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
            return refuse("has a list of more than " + std::to_string(largest_rank) + " numbers");
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
        if (place_ == place::tensor) claims.push_back({key_, {}, {}, {}, {}});
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
        if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets")
            return refuse("has the unknown key \"" + key_ + "\"");
        return claims.back().seen.insert(key_).second || refuse("has the key \"" + key_ + "\" twice");
    }

    bool end_object() override
    {
        if (place_ == place::tensor && claims.back().seen.size() != 3)
            return refuse("must have \"dtype\", \"shape\" and \"data_offsets\"");
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

/// The claims of a header, in the order of their data, each checked against the others and the data's size.
inline std::vector<claim> check_claims(std::vector<claim> claims, std::size_t data_size, auto&& refuse)
{
    for (const claim& each : claims) {
        const std::string tensor = "tensor \"" + each.name + "\" ";
        const std::optional<std::size_t> value_size = dtype_size(each.dtype);
        if (!value_size) refuse(tensor + "has dtype \"" + each.dtype + "\"; heed reads F32, F64 and I64");
        if (each.range.size() != 2 || each.range[0] > each.range[1])
            refuse(tensor + "has data_offsets " + shape_text(each.range) + "; they must be [begin,end]");
        const std::optional<std::size_t> bytes = bytes_of(each.shape, *value_size);
        if (!bytes) refuse(tensor + "has shape " + shape_text(each.shape) + ", more bytes than a file can have");
        if (*bytes != each.range[1] - each.range[0])
            refuse(tensor + shape_text(each.shape) + " of " + each.dtype + " takes " + std::to_string(*bytes) +
                   " bytes but its data_offsets " + shape_text(each.range) + " span " +
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
        refuse("truncated: the header promises " + std::to_string(end) + " bytes of data, the file has " +
               std::to_string(data_size) + "; it was not copied or saved to its end");
    if (end < data_size)
        refuse(std::to_string(data_size - end) +
               " bytes after the last tensor belong to nothing; the header accounts for " + std::to_string(end) +
               " of " + std::to_string(data_size));
    return claims;
}

}  // namespace detail

/// Writes an archive as atomic_file does: the file at `path` is the old one or the new one, never a part. Tensors of
/// 8-byte values go first, so that every value lies at a multiple of its size; otherwise they keep their order. Throws
/// heed::error if the file cannot be written and, before touching it, if the archive contradicts itself. With
/// existing::keep it also throws if there is a file already.
inline void save(const std::filesystem::path& path, const archive& contents, existing there = existing::replace)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": cannot be saved: " + why); };

    std::vector<const tensor_entry*> order;
    std::set<std::string_view> names;
    for (const tensor_entry& each : contents.tensors) {
        const std::optional<std::size_t> value_size = dtype_size(each.dtype);
        if (!value_size)
            refuse("tensor \"" + each.name + "\" has dtype \"" + each.dtype + "\"; heed stores F32, F64 and I64");
        if (detail::bytes_of(each.shape, *value_size) != each.bytes.size())
            refuse("tensor \"" + each.name + "\" is " + shape_text(each.shape) + " of " + each.dtype + " but has " +
                   std::to_string(each.bytes.size()) + " bytes");
        if (each.name == detail::metadata_key) refuse("a tensor cannot be called __metadata__");
        if (each.shape.size() > detail::largest_rank) refuse("tensor \"" + each.name + "\" has too many dimensions");
        if (!names.insert(each.name).second) refuse("two tensors are called \"" + each.name + "\"");
        order.push_back(&each);
    }
    std::stable_partition(order.begin(), order.end(),
                          [](const tensor_entry* each) { return dtype_size(each->dtype) == 8u; });

    nlohmann::ordered_json header = nlohmann::ordered_json::object();
    if (!contents.metadata.empty()) header[std::string(detail::metadata_key)] = contents.metadata;
    std::size_t offset = 0;
    for (const tensor_entry* each : order) {
        // Not header[name]: ordered_json finds a key by linear search.
        nlohmann::ordered_json description;
        description["dtype"] = each->dtype;
        description["shape"] = each->shape;
        description["data_offsets"] = {offset, offset + each->bytes.size()};
        header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(each->name, std::move(description));
        offset += each->bytes.size();
    }
    std::string text;
    try {
        text = header.dump();
    } catch (const nlohmann::json::exception&) {
        refuse("a tensor's name or the metadata is not valid UTF-8");
    }
    text.resize((text.size() + 7) / 8 * 8, ' ');
    if (text.size() > detail::largest_header)
        refuse("its header would take " + std::to_string(text.size()) + " bytes; the limit is " +
               std::to_string(detail::largest_header));

    atomic_file file(path);
    const std::uint64_t header_size = text.size();
    file.write(std::as_bytes(std::span(&header_size, 1)));
    file.write(text);
    for (const tensor_entry* each : order) file.write(each->bytes);
    file.commit(there);
}

/// Reads an archive, its tensors in the order of their data. Throws heed::error "path: reason" if the file cannot be
/// read, is truncated, is not a safetensors file, or contradicts itself.
inline archive load(const std::filesystem::path& path)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": " + text::printable(why)); };

    std::error_code status;
    const std::filesystem::file_status kind = std::filesystem::status(path, status);
    if (std::filesystem::is_directory(kind)) refuse("is a directory; a safetensors file is needed");
    if (std::filesystem::exists(kind) && !std::filesystem::is_regular_file(kind)) refuse("is not a regular file");
    errno = 0;
    std::ifstream stream(path, std::ios::binary);
    const std::uintmax_t on_disk = stream ? std::filesystem::file_size(path, status) : 0;
    if (!stream || status)
        refuse(std::string("cannot be opened: ") + (status ? status.message() : std::strerror(errno)));

    const auto read = [&](void* to, std::size_t count) {
        if (count > 0 && !stream.read(static_cast<char*>(to), static_cast<std::streamsize>(count)))
            refuse("cannot be read to its end; did it change meanwhile?");
    };

    constexpr std::size_t prefix = sizeof(std::uint64_t);
    if (on_disk == 0) refuse("is empty; not a safetensors file");
    if (on_disk < prefix + 2)
        refuse("is only " + std::to_string(on_disk) + " bytes long; not a safetensors file, or truncated");
    std::uint64_t header_size = 0;
    read(&header_size, prefix);
    char first = 0;
    read(&first, 1);
    if (first != '{' || header_size > detail::largest_header)
        refuse("is not a safetensors file: it does not begin with a header of a sensible size" +
               std::string(first == '{' ? " (it claims " + std::to_string(header_size) + " bytes)" : ""));
    if (header_size < 2 || header_size > on_disk - prefix)
        refuse("truncated: the header should have " + std::to_string(header_size) + " bytes, the file has " +
               std::to_string(on_disk - prefix) + " after its size");

    std::string header(static_cast<std::size_t>(header_size), '\0');
    header[0] = first;
    read(header.data() + 1, header.size() - 1);
    detail::header_reader reader;
    if (!nlohmann::json::sax_parse(header, &reader)) refuse("is damaged: " + reader.problem);

    const auto data_size = static_cast<std::size_t>(on_disk - prefix - header_size);
    archive contents;
    contents.metadata = std::move(reader.metadata);
    for (detail::claim& each : detail::check_claims(std::move(reader.claims), data_size, refuse)) {
        tensor_entry entry{std::move(each.name), std::move(each.dtype), std::move(each.shape), {}};
        entry.bytes.resize(each.range[1] - each.range[0]);
        read(entry.bytes.data(), entry.bytes.size());
        contents.tensors.push_back(std::move(entry));
    }
    return contents;
}

}  // namespace heed::io
