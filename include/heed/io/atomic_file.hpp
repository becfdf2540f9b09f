// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heed::io {

/// Replaces a file as a whole or not at all.
///
///     atomic_file file("model.safetensors");
///     file.write(bytes);
///     file.commit();
///
/// What is written goes to a temporary beside the target (`.model.safetensors.<process>-<n>.tmp`). commit() makes it
/// durable (fsync) and puts it in the target's place (rename); before that, or if anything fails, or if the process
/// dies, the old file is untouched. Without commit() the temporary is removed; only a killed process leaves one behind.
///
/// A link is followed, an existing file keeps its permissions. A target that is no regular file (/dev/stdout, a pipe)
/// holds nothing to keep whole: it is written directly.
///
/// Errors are heed::error and name the file, the operation and the system's reason. POSIX.
class atomic_file {
public:
    explicit atomic_file(const std::filesystem::path& path) : name_(path.string())
    {
        std::error_code status;
        target_ = std::filesystem::is_symlink(path, status) ? std::filesystem::weakly_canonical(path, status) : path;
        if (status || target_.empty()) target_ = path;

        struct stat old {};
        const bool exists = ::stat(target_.c_str(), &old) == 0;
        if (exists && S_ISDIR(old.st_mode)) fail("open for writing", EISDIR);
        if (exists && !S_ISREG(old.st_mode)) {
            descriptor_ = ::open(target_.c_str(), O_WRONLY | O_CLOEXEC);
            if (descriptor_ < 0) fail("open for writing", errno);
            return;
        }

        static std::atomic<unsigned> counter{0};
        const std::string stem = target_.filename().string().substr(0, 200);  // file names end at 255 bytes
        do {
            temporary_ = target_;
            temporary_.replace_filename("." + stem + "." + std::to_string(::getpid()) + "-" +
                                        std::to_string(counter++) + ".tmp");
            descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
        if (descriptor_ < 0) {
            temporary_.clear();  // it is not ours to remove
            fail("create a temporary beside it", errno);
        }
        if (exists && ::fchmod(descriptor_, old.st_mode & 07777) != 0) fail("keep its permissions", errno);
    }

    atomic_file(const atomic_file&) = delete;
    atomic_file& operator=(const atomic_file&) = delete;
    ~atomic_file() { discard(); }

    /// Appends to the new file. After a failure nothing is left of it, and the old one is still there.
    void write(std::span<const std::byte> bytes)
    {
        require_open();
        while (!bytes.empty()) {
            const ::ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
            if (written < 0) {
                if (errno == EINTR) continue;
                fail("write", errno);
            }
            bytes = bytes.subspan(static_cast<std::size_t>(written));
        }
    }

    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

    /// Puts the new file in the target's place.
    void commit()
    {
        require_open();
        const bool direct = temporary_.empty();
        if (!direct && ::fsync(descriptor_) != 0) fail("fsync", errno);
        if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail("close", errno);
        if (direct) return;
        if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename the temporary to it", errno);
        temporary_.clear();
        sync_directory();
    }

private:
    [[noreturn]] void fail(const char* operation, int reason)
    {
        const bool replacing = !temporary_.empty();
        discard();
        throw error(name_ + ": cannot " + operation + ": " + std::strerror(reason) +
                    (replacing ? "; what was there before is unchanged" : ""));
    }

    void require_open() const
    {
        if (descriptor_ < 0) throw error(name_ + ": written to after it was committed or had failed");
    }

    void discard() noexcept
    {
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
        temporary_.clear();
    }

    // The rename itself survives a power cut only once the directory is on disk. Some file systems cannot sync
    // directories; there is nothing to do about it, and either file is whole.
    void sync_directory() const noexcept
    {
        const std::filesystem::path parent =
            target_.has_parent_path() ? target_.parent_path() : std::filesystem::path(".");
        const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0) return;
        ::fsync(directory);
        ::close(directory);
    }

    std::string name_;                 // as the caller spelled it, for messages
    std::filesystem::path target_;     // after following a link
    std::filesystem::path temporary_;  // empty when there is none
    int descriptor_ = -1;
};

/// Replaces a file by this text, as atomic_file does.
inline void write_file(const std::filesystem::path& path, std::string_view text)
{
    atomic_file file(path);
    file.write(text);
    file.commit();
}

}  // namespace heed::io
