// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/archive.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/zip.hpp>

/// The .npz files of NumPy: a ZIP file (zip.hpp) of which each member "name.npy" is an array (npy.hpp). Needs zlib:
/// link heed::npz, or -lz.
namespace heed::io {

/// load_npz decompresses arrays to at most this many times the file's size, or to `always_inflated` bytes if that is
/// more: a file of a megabyte could otherwise fill a gigabyte with zeros.
inline constexpr std::size_t largest_inflation = 100;
inline constexpr std::size_t always_inflated = std::size_t{16} << 20;  ///< bytes, of all arrays together

namespace detail {

inline constexpr std::string_view npy_suffix = ".npy";

/// Throws if a file's arrays would become too large: deflate makes a byte of 1032 zeros.
inline void require_inflates_little(const std::vector<zip_member>& members, std::size_t file, std::size_t most,
                                    const auto& refuse)
{
    std::uint64_t stored = 0, size = 0;
    for (const zip_member& each : members) {
        if (each.method == 0 || !std::string_view(each.name).ends_with(npy_suffix)) continue;
        stored += each.stored;
        size += each.size;  // at most 1033 times what is stored, and nothing is stored twice: no overflow
    }
    if (size <= always_inflated || size / most <= file) return;
    refuse("would decompress " + std::to_string(stored) + " bytes to " + std::to_string(size) + ", more than " +
           std::to_string(most) +
           " times the file; if you know where it is from, give load_npz a larger limit, or "
           "store it without compression (numpy.savez)");
}

/// `largest`: see zip_writer.
inline void save_npz(const std::filesystem::path& path, const archive& contents, compression how, existing there,
                     std::uint64_t largest)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": cannot be saved: " + why); };
    if (!contents.metadata.empty())
        refuse("an .npz file has no place for metadata; clear it, or save a safetensors file");
    std::vector<std::string> headers;
    std::set<std::string_view> names;
    for (const tensor_entry& each : contents.tensors) {
        if (!names.insert(each.name).second) refuse("two tensors are called \"" + each.name + "\"");
        if (each.name.size() + npy_suffix.size() > std::numeric_limits<std::uint16_t>::max())
            refuse("the name of a tensor has " + std::to_string(each.name.size()) +
                   " bytes; a ZIP file has place for 65531");
        headers.push_back(npy_header_of(each, refuse));
    }
    atomic_file file(path);
    zip_writer zip(file, largest);
    for (std::size_t i = 0; i < headers.size(); ++i) {
        const tensor_entry& each = contents.tensors[i];
        zip.add(each.name + std::string(npy_suffix), std::as_bytes(std::span(headers[i])),
                {each.bytes.data(), each.bytes.size()}, how);
    }
    zip.finish();
    file.commit(there);
}

}  // namespace detail

/// Reads what numpy.savez or numpy.savez_compressed wrote. Stored arrays stay in the mapped file (see `held`), others
/// are decompressed; every checksum is checked. An array of a type that heed does not read is there, too, with NumPy's
/// name for the type and its bytes; members that are no arrays are left out. Throws heed::error "path: reason" if the
/// file cannot be read, is damaged, is no .npz file, or would be decompressed to more than `most_inflation` times its
/// size (and more than always_inflated).
inline archive load_npz(const std::filesystem::path& path, held how = held::mapped,
                        std::size_t most_inflation = largest_inflation)
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": " + text::printable(why)); };
    const shared_bytes file = bytes_of_file(path, how, "an .npz file");
    archive contents;
    contents.path = path.string();
    std::string_view other;
    const std::vector<detail::zip_member> members = detail::zip_members(file, refuse);
    detail::require_inflates_little(members, file.size(), std::max<std::size_t>(most_inflation, 1), refuse);
    for (const detail::zip_member& member : members) {
        if (!std::string_view(member.name).ends_with(detail::npy_suffix)) {
            other = member.name;
            continue;
        }
        std::string name = member.name.substr(0, member.name.size() - detail::npy_suffix.size());
        contents.tensors.push_back(
            detail::array_of_npy(detail::contents_of(member, refuse), std::move(name),
                                 [&](const std::string& why) { refuse("\"" + member.name + "\" " + why); }));
    }
    if (contents.tensors.empty() && !other.empty())
        refuse("is a ZIP file without arrays: it holds \"" + std::string(other) +
               "\", for example. A .pt file of PyTorch is one; store its state_dict by safetensors.torch.save_file");
    return contents;
}

/// Writes all tensors, each as "name.npy", as numpy.savez does (or savez_compressed: compression::deflated), and as
/// atomic_file does. Throws heed::error if NumPy does not have a type (BF16), if the archive contradicts itself or has
/// metadata, or if the file cannot be written.
inline void save_npz(const std::filesystem::path& path, const archive& contents, compression how = compression::stored,
                     existing there = existing::replace)
{
    detail::save_npz(path, contents, how, there, std::numeric_limits<std::uint32_t>::max());
}

}  // namespace heed::io
