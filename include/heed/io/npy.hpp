// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The .npy format of NumPy, one array:
//
//     6 bytes      \x93NUMPY
//     2 bytes      version: 1, 2 or 3, and 0
//     2 or 4       N, the size of the header, little-endian; 4 bytes from version 2 on
//     N bytes      a Python dictionary, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, padded with spaces
//     the rest     the values
//
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/archive.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/io/mapped_file.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::io {

namespace detail {

inline constexpr std::string_view npy_magic{"\x93NUMPY", 6};

/// A dtype of heed and NumPy's name for it, without the byte order.
struct npy_type {
    std::string_view descr, dtype;
};
inline constexpr npy_type npy_types[] = {{"f8", "F64"}, {"f4", "F32"}, {"f2", "F16"}, {"i8", "I64"},
                                         {"i4", "I32"}, {"i2", "I16"}, {"i1", "I8"},  {"u8", "U64"},
                                         {"u4", "U32"}, {"u2", "U16"}, {"u1", "U8"},  {"b1", "BOOL"}};

/// The header of an .npy file.
struct npy_header {
    std::string descr;
    bool fortran_order = false;
    std::vector<std::size_t> shape;
};

/// Reads the header's dictionary. The dtype of a structured array, which is a list, is kept as text.
class npy_header_reader {
public:
    explicit npy_header_reader(std::string_view text) : text_(text) {}

    /// Whether the text is such a dictionary; if not, `problem` has the reason.
    bool read(npy_header& header)
    {
        bool has[3] = {};
        if (!take("{")) return refuse("does not begin with {");
        while (!take("}")) {
            std::string key;
            if (!quoted(key) || !take(":")) return refuse("has no key where a key is expected");
            const std::string_view keys[] = {"descr", "fortran_order", "shape"};
            const auto which = static_cast<std::size_t>(std::find(keys, keys + 3, key) - keys);
            if (which == 3) return refuse("has the unknown key '" + key + "'");
            if (std::exchange(has[which], true)) return refuse("has the key '" + key + "' twice");
            if (which == 0 && !description(header.descr)) return refuse("has a damaged 'descr'");
            if (which == 1 && !truth(header.fortran_order))
                return refuse("has neither True nor False for 'fortran_order'");
            if (which == 2 && !tuple(header.shape)) return refuse("has a damaged 'shape'");
            if (!take(",")) {
                if (!take("}")) return refuse("has no comma or } after '" + key + "'");
                break;
            }
        }
        skip_spaces();
        if (at_ != text_.size()) return refuse("continues after its }");
        return (has[0] && has[1] && has[2]) || refuse("must have 'descr', 'fortran_order' and 'shape'");
    }

    std::string problem;

private:
    bool refuse(const std::string& what)
    {
        if (problem.empty()) problem = "the header " + what;
        return false;
    }
    void skip_spaces()
    {
        while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    }
    bool take(std::string_view word)
    {
        skip_spaces();
        if (!text_.substr(at_).starts_with(word)) return false;
        at_ += word.size();
        return true;
    }
    bool quoted(std::string& into)
    {
        skip_spaces();
        if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) return false;
        const std::size_t end = text_.find(text_[at_], at_ + 1);
        if (end == text_.npos) return false;
        into = text_.substr(at_ + 1, end - at_ - 1);
        at_ = end + 1;
        return into.find('\\') == into.npos;
    }
    bool truth(bool& into)
    {
        into = take("True");
        return into || take("False");
    }
    bool tuple(std::vector<std::size_t>& into)
    {
        if (!take("(")) return false;
        while (!take(")")) {
            skip_spaces();
            std::size_t extent = 0;
            const char* const begin = text_.data() + at_;
            const auto [end, problem_of_number] = std::from_chars(begin, text_.data() + text_.size(), extent);
            if (problem_of_number == std::errc::result_out_of_range) return refuse("has an extent that is too large");
            if (problem_of_number != std::errc() || into.size() == largest_rank) return false;
            into.push_back(extent);
            at_ += static_cast<std::size_t>(end - begin);
            if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // Python 2 wrote it
            if (!take(",")) return take(")");
        }
        return true;
    }
    bool description(std::string& into)
    {
        skip_spaces();
        if (at_ == text_.size() || text_[at_] != '[') return quoted(into);
        std::size_t depth = 0;
        const std::size_t begin = at_;
        std::string ignored;
        do {
            if (at_ == text_.size()) return false;
            if (text_[at_] == '\'' || text_[at_] == '"') {
                if (!quoted(ignored)) return false;
            } else {
                depth += text_[at_] == '[' ? 1 : 0;
                depth -= text_[at_++] == ']' ? 1 : 0;
            }
        } while (depth > 0);
        into = text_.substr(begin, at_ - begin);
        return true;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

/// Copies an array from column-major to row-major order.
inline std::vector<std::byte> in_row_major_order(const shared_bytes& from, std::span<const std::size_t> shape,
                                                 std::size_t size)
{
    std::vector<std::byte> to(from.size());
    std::vector<std::size_t> index(shape.size(), 0), stride(shape.size(), size);
    for (std::size_t axis = 1; axis < shape.size(); ++axis) stride[axis] = stride[axis - 1] * shape[axis - 1];
    std::size_t source = 0;
    for (std::size_t done = 0; done < to.size(); done += size) {
        std::memcpy(to.data() + done, from.data() + source, size);
        for (std::size_t axis = shape.size(); axis-- > 0;) {
            source += stride[axis];
            if (++index[axis] < shape[axis]) break;
            source -= stride[axis] * std::exchange(index[axis], 0);
        }
    }
    return to;
}

/// The array of an .npy file's bytes; refuse(why) throws.
inline tensor_entry array_of_npy(const shared_bytes& file, std::string name, const auto& refuse)
{
    if (file.size() < npy_magic.size() + 4 || file.text(0, npy_magic.size()) != npy_magic)
        refuse("is not an .npy file: it does not begin with \\x93NUMPY");
    const int major = std::to_integer<int>(file.data()[6]), minor = std::to_integer<int>(file.data()[7]);
    if (major < 1 || major > 3 || minor != 0)
        refuse("has version " + std::to_string(major) + "." + std::to_string(minor) +
               " of the .npy format; heed reads 1.0, 2.0 and 3.0");
    const std::size_t width = major == 1 ? 2 : 4, begin = npy_magic.size() + 2 + width;
    std::uint32_t header_size = 0;
    if (file.size() < begin) refuse("is truncated: it ends within the size of its header");
    std::memcpy(&header_size, file.data() + npy_magic.size() + 2, width);
    if (header_size > file.size() - begin)
        refuse("is truncated: the header should have " + counted(header_size, "byte") + "; " +
               std::to_string(file.size() - begin) + " follow its size");

    npy_header header;
    npy_header_reader reader(file.text(begin, header_size));
    if (!reader.read(header)) refuse("is damaged: " + reader.problem);
    const shared_bytes data = file.part(begin + header_size, file.size() - begin - header_size);

    const char order = header.descr.empty() ? ' ' : header.descr[0];
    const std::string_view type = std::string_view(header.descr).substr(header.descr.empty() ? 0 : 1);
    const auto* const known = std::find_if(std::begin(npy_types), std::end(npy_types),
                                           [&](const npy_type& each) { return each.descr == type; });
    const std::string_view orders = type.ends_with('1') ? "|<>" : "<>";
    if (known == std::end(npy_types) || orders.find(order) == orders.npos) {
        if (dtype_size(header.descr))  // otherwise its bytes would be read as that type
            refuse("is damaged: its 'descr' is '" + header.descr + "', which is not a NumPy type");
        return {std::move(name), std::move(header.descr), std::move(header.shape), data};
    }

    const std::size_t size = *dtype_size(known->dtype);
    const std::optional<std::size_t> bytes = bytes_of(header.shape, size);
    if (!bytes) refuse("has shape " + shape_text(header.shape) + ", more bytes than a file can have");
    if (*bytes != data.size())
        refuse((*bytes > data.size() ? "is truncated: " : "has bytes after its values: ") + shape_text(header.shape) +
               " of '" + header.descr + "' takes " + counted(*bytes, "byte") + ", the file has " +
               std::to_string(data.size()));

    tensor_entry entry{std::move(name), std::string(known->dtype), std::move(header.shape), data};
    const bool turned = header.fortran_order && entry.shape.size() > 1, swapped = order == '>' && size > 1;
    if (turned || swapped) {
        std::vector<std::byte> own =
            turned ? in_row_major_order(data, entry.shape, size) : std::vector<std::byte>(data.begin(), data.end());
        if (swapped) {
            for (auto value = own.begin(); value != own.end(); value += static_cast<std::ptrdiff_t>(size)) {
                std::reverse(value, value + static_cast<std::ptrdiff_t>(size));
            }
        }
        entry.bytes = std::move(own);
    }
    return entry;
}

/// The header of an .npy file with this array. refuse(why) throws.
inline std::string npy_header_of(const tensor_entry& entry, const auto& refuse)
{
    const auto* const known = std::find_if(std::begin(npy_types), std::end(npy_types),
                                           [&](const npy_type& each) { return each.dtype == entry.dtype; });
    if (known == std::end(npy_types))
        refuse("tensor \"" + entry.name + "\" has dtype \"" + entry.dtype + "\", which NumPy does not have; " +
               (entry.dtype == "BF16" ? "store floats" : "it has the types of heed/io/dtype.hpp except BF16"));
    if (bytes_of(entry.shape, *dtype_size(entry.dtype)) != entry.bytes.size())
        refuse("tensor \"" + entry.name + "\" is " + shape_text(entry.shape) + " of " + entry.dtype + " but has " +
               counted(entry.bytes.size(), "byte"));
    if (entry.shape.size() > largest_rank) refuse("tensor \"" + entry.name + "\" has too many dimensions");

    std::string shape;
    for (const std::size_t extent : entry.shape) shape += (shape.empty() ? "" : ", ") + std::to_string(extent);
    if (entry.shape.size() == 1) shape += ',';
    std::string header = std::string("{'descr': '") + (dtype_size(entry.dtype) == 1u ? '|' : '<') +
                         std::string(known->descr) + "', 'fortran_order': False, 'shape': (" + shape + "), }";
    constexpr std::size_t prefix = 10, multiple = 64;  // 32 extents of 20 digits fit in version 1
    header.resize((prefix + header.size() + 1 + multiple - 1) / multiple * multiple - prefix - 1, ' ');
    header += '\n';
    std::string text(npy_magic);
    text += {'\1', '\0', static_cast<char>(header.size() & 0xFF), static_cast<char>(header.size() >> 8)};
    return text + header;
}

}  // namespace detail

/// Reads an array written by numpy.save: versions 1 to 3, any byte order and axis order. It is copied if not
/// little-endian and row-major. An array of a different type, such as strings, keeps its bytes and NumPy's name as its
/// dtype. The name is the file's, without .npy. Throws heed::error "path: reason" if the file cannot be read, is
/// truncated, is not an .npy file, or contradicts itself.
inline tensor_entry load_npy(const std::filesystem::path& path, storage how = storage::mapped)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": " + text::printable(why)); };
    return detail::array_of_npy(bytes_of_file(path, how, "an .npy file"), path.stem().string(), refuse);
}

/// Writes an array in the format of numpy.save (version 1.0, little-endian, row-major), atomically (see atomic_file).
/// Throws heed::error if NumPy does not have its type (BF16), if it contradicts itself or if it cannot be written.
inline void save_npy(const std::filesystem::path& path, const tensor_entry& entry, existing there = existing::replace)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": cannot be saved: " + why); };
    const std::string header = detail::npy_header_of(entry, refuse);
    atomic_file file(path);
    file.write(header);
    file.write(std::span(entry.bytes.data(), entry.bytes.size()));
    file.commit(there);
}

}  // namespace heed::inline HEED_TARGET::io
