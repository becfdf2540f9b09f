// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heed/core/errors.hpp>

/// A file's bytes, mapped into memory or copied.
namespace heed::inline HEED_TARGET::io {

/// Immutable bytes and their owner: allocated memory, or the mapping of a file. Parts share the owner, and copies copy
/// no bytes.
class shared_bytes {
public:
    shared_bytes() = default;
    shared_bytes(std::vector<std::byte> own)
    {
        auto kept = std::make_shared<const std::vector<std::byte>>(std::move(own));
        all_ = *kept;
        owner_ = std::move(kept);
    }
    /// Bytes that `owner` keeps valid.
    shared_bytes(std::span<const std::byte> bytes, std::shared_ptr<const void> owner)
        : all_(bytes), owner_(std::move(owner))
    {}

    const std::byte* data() const { return all_.data(); }
    std::size_t size() const { return all_.size(); }
    bool empty() const { return all_.empty(); }
    const std::byte* begin() const { return all_.data(); }
    const std::byte* end() const { return all_.data() + all_.size(); }

    /// The `count` bytes from `first`.
    shared_bytes part(std::size_t first, std::size_t count) const { return {all_.subspan(first, count), owner_}; }
    /// The `count` bytes from `first` as text.
    std::string_view text(std::size_t first, std::size_t count) const
    {
        return {reinterpret_cast<const char*>(all_.data()) + first, count};
    }

    /// Compares the bytes, not their addresses.
    friend bool operator==(const shared_bytes& a, const shared_bytes& b)
    {
        return std::equal(a.begin(), a.end(), b.begin(), b.end());
    }

private:
    std::span<const std::byte> all_;
    std::shared_ptr<const void> owner_;
};

/// How the numbers of a file are stored after reading: still in the file, mapped into memory, or copied. A mapped file
/// may be replaced, as by atomic_file, but not truncated or overwritten in place while its numbers are in use: the
/// system would then terminate the program (SIGBUS), or the numbers would change.
enum class storage { mapped, copied };

/// The whole file. Throws heed::error "path: reason"; `needed` is the expected kind of file, for the message.
inline shared_bytes bytes_of_file(const std::filesystem::path& path, storage how = storage::mapped,
                                  const std::string& needed = "a file")
{
    const auto refuse = [&](const std::string& why) { throw error(path.string() + ": " + why); };
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // does not block on a pipe
    if (file < 0) refuse(std::string("cannot be opened: ") + std::strerror(errno));
    const auto close = [](const int* descriptor) { ::close(*descriptor); };
    const std::unique_ptr<const int, decltype(close)> closed(&file, close);
    struct stat about {};
    if (::fstat(file, &about) != 0) refuse(std::string("cannot be read: ") + std::strerror(errno));
    if (S_ISDIR(about.st_mode)) refuse("is a directory; " + needed + " is needed");
    if (!S_ISREG(about.st_mode)) refuse("is not a regular file");

    if (static_cast<std::uintmax_t>(about.st_size) > std::numeric_limits<std::size_t>::max() / 2)
        refuse("is larger than a program of " + std::to_string(8 * sizeof(std::size_t)) + " bits can read");
    const auto size = static_cast<std::size_t>(about.st_size);
    if (size == 0) return {};
    if (how == storage::mapped) {
        void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (at != MAP_FAILED) {
            std::shared_ptr<const void> owner(
                at, [size](const void* mapped) { ::munmap(const_cast<void*>(mapped), size); });
            return {{static_cast<const std::byte*>(at), size}, std::move(owner)};
        }
        // Some file systems support reading but not mapping.
    }
    std::vector<std::byte> bytes(size);
    for (std::size_t done = 0; done < size;) {
        const ::ssize_t count = ::read(file, bytes.data() + done, size - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) refuse(std::string("cannot be read: ") + std::strerror(errno));
        if (count == 0) refuse("cannot be read to its end; did it change while it was being read?");
        done += static_cast<std::size_t>(count);
    }
    return bytes;
}

}  // namespace heed::inline HEED_TARGET::io
