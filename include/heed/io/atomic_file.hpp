// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace heed::inline HEED_TARGET::io {

namespace detail {

/// The file of this name in the same folder as `file`, as text: libstdc++ 12's path::operator/= and replace_filename
/// crash when memory runs out.
inline std::string beside(const std::filesystem::path& file, const std::string& name)
{
    const std::string& text = file.native();
    const std::size_t slash = text.rfind('/');
    return slash == text.npos ? name : text.substr(0, slash + 1) + name;
}

}  // namespace detail

/// The end of a chain of symbolic links, whether or not it exists. A relative link starts from the link's own
/// directory. Throws heed::error for a loop.
inline std::filesystem::path end_of_links(const std::filesystem::path& path)
{
    std::filesystem::path at = path;
    std::error_code problem, no_link;
    for (int links = 0; std::filesystem::is_symlink(at, no_link); ++links) {
        const std::filesystem::path next = std::filesystem::read_symlink(at, problem);
        if (links == 40) problem.assign(ELOOP, std::generic_category());  // Linux's limit
        if (problem) throw error(path.string() + ": cannot follow its symbolic links: " + problem.message());
        at = next.is_absolute() ? next : std::filesystem::path(detail::beside(at, next.string()));
    }
    return at;
}

/// Thrown if a file cannot be written, for example because the disk or a quota is full or a server does not respond. A
/// retry may succeed.
struct write_failed : error {
    write_failed(const std::string& what, int why) : error(what), reason(why) {}
    int reason;  ///< an errno value
};

/// The behavior of commit() if the target exists already.
enum class existing { replace, keep };

/// Replaces a file atomically: entirely or not at all.
///
///     atomic_file file("model.safetensors");
///     file.write(bytes);
///     file.commit();
///
/// Data goes to a temporary file next to the target (`.model.safetensors.<process>-<n>.tmp`). commit() makes it durable
/// (fsync) and renames it to the target; until then, and if anything fails or the process dies, the old file is
/// unchanged. Without commit() the temporary file is removed.
///
/// The next atomic_file for the same target removes the temporary file of a killed process. The temporary file of a
/// running process is locked (flock), also across hosts if the file system shares its locks; without locks, nothing is
/// removed.
///
/// Symbolic links are followed, even to a file that does not exist yet. The new file has the permissions of the old
/// one. A target that is not a regular file (/dev/stdout, a pipe) is written directly. Throws heed::error and, for
/// system errors, write_failed with the file, the operation and the reason. POSIX only.
class atomic_file {
public:
    explicit atomic_file(const std::filesystem::path& path) : name_(path.string())
    {
        if (path.empty()) throw error("cannot write to a file without a name: the path is empty");
        struct stat old {};
        const bool exists = ::stat(path.c_str(), &old) == 0;
        if (exists && S_ISDIR(old.st_mode)) fail("open for writing", EISDIR);
        if (exists && !S_ISREG(old.st_mode)) {
            descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
            if (descriptor_ < 0) fail("open for writing", errno);
            return;
        }
        target_ = end_of_links(path);
        folder_ = detail::beside(target_, ".");
        if (target_ != path) name_ += " (a link to " + target_.string() + ")";

        static std::atomic<unsigned> counter{0};
        const std::string stem =
            "." + target_.filename().string().substr(0, 200) + ".";  // a name has at most 255 bytes
        remove_leftovers(stem);
        do {
            temporary_ =
                detail::beside(target_, stem + std::to_string(::getpid()) + "-" + std::to_string(counter++) + ".tmp");
            descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
            if (descriptor_ >= 0 && !lock()) {
                ::close(std::exchange(descriptor_, -1));
                errno = EEXIST;
            }
        } while (descriptor_ < 0 && (errno == EEXIST || errno == EINTR));
        if (descriptor_ < 0) {
            temporary_.clear();  // another process owns it
            fail("create a temporary file next to it", errno);
        }
        if (exists && tried([&] { return ::fchmod(descriptor_, old.st_mode & 07777); }) != 0)
            fail("copy its permissions to the new file", errno);
    }

    atomic_file(const atomic_file&) = delete;
    atomic_file& operator=(const atomic_file&) = delete;
    ~atomic_file() { discard(); }

    /// Appends to the new file. After a failure the new file is deleted and the old one is unchanged.
    void write(std::span<const std::byte> bytes)
    {
        write_all(bytes,
                  [this](const auto& left, std::size_t) { return ::write(descriptor_, left.data(), left.size()); });
    }

    void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

    /// Writes at a byte offset of the new file; gaps are filled with zeros. Also fails for a target that is not a
    /// regular file.
    void write_at(std::uint64_t place, std::span<const std::byte> bytes)
    {
        write_all(bytes, [this, place](const auto& left, std::size_t done) {
            return ::pwrite(descriptor_, left.data(), left.size(), static_cast<::off_t>(place + done));
        });
    }

    /// Renames the new file to the target. Throws heed::error if that fails and, with existing::keep, if the target
    /// exists by then.
    void commit(existing there = existing::replace)
    {
        require_open();
        if (temporary_.empty()) {
            if (::close(std::exchange(descriptor_, -1)) != 0 && errno != EINTR) fail("close", errno);
            return;
        }
        if (tried([&] { return ::fsync(descriptor_); }) != 0) fail("fsync", errno);
        // Closed only after the rename, since closing releases the lock. fsync has reported any write error.
        const int moved = there == existing::keep
                              ? rename_to_free_name()
                              : tried([&] { return ::rename(temporary_.c_str(), target_.c_str()); });
        if (moved != 0) fail("rename the temporary file to it", errno);
        temporary_.clear();
        ::close(std::exchange(descriptor_, -1));
        sync_directory();
    }

private:
    [[noreturn]] void fail(const char* operation, int reason)
    {
        const bool replacing = !temporary_.empty();
        discard();
        throw write_failed(name_ + ": cannot " + operation + ": " + std::strerror(reason) +
                               (replacing ? "; the previous file is unchanged" : ""),
                           reason);
    }

    /// Repeats the call if a signal interrupted it.
    static int tried(const auto& call) noexcept
    {
        int result = call();
        while (result != 0 && errno == EINTR) result = call();
        return result;
    }

    // call(left, done) writes part of the remaining bytes and returns how many.
    void write_all(std::span<const std::byte> bytes, const auto& call)
    {
        require_open();
        for (std::size_t done = 0; done < bytes.size();) {
            const ::ssize_t written = call(bytes.subspan(done), done);
            if (written < 0 && errno == EINTR) continue;
            if (written <= 0) fail("write", written < 0 ? errno : EIO);  // otherwise the loop would never end
            done += static_cast<std::size_t>(written);
        }
    }

    void require_open() const
    {
        if (descriptor_ < 0)
            throw error(name_ + ": written to or committed after commit() or a failure; make a new atomic_file");
    }

    void discard() noexcept
    {
        if (!temporary_.empty()) ::unlink(temporary_.c_str());
        temporary_.clear();
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    }

    // Locks the new temporary file. Returns false if another writer removed it as a leftover before it was locked.
    bool lock() const noexcept
    {
        if (tried([&] { return ::flock(descriptor_, LOCK_EX | LOCK_NB); }) != 0) return errno != EWOULDBLOCK;
        struct stat mine {};
        return ::fstat(descriptor_, &mine) != 0 || mine.st_nlink > 0;
    }

    // Removes temporary files of this target that no process has locked.
    void remove_leftovers(const std::string& stem) const
    {
        // Not std::filesystem::directory_iterator, which terminates the program when memory runs out.
        const auto close = [](DIR* open) { ::closedir(open); };
        const std::unique_ptr<DIR, decltype(close)> folder(::opendir(folder_.c_str()), close);
        if (!folder) return;
        const int in = ::dirfd(folder.get());
        while (const dirent* const each = ::readdir(folder.get())) {
            const char* const name = each->d_name;
            if (!is_temporary(name, stem)) continue;
            // Opened for writing, since NFS grants exclusive locks only then; a read-only file is opened read-only.
            int found = ::openat(in, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (found < 0) found = ::openat(in, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
            if (found < 0) continue;
            struct stat held {};
            struct stat there {};  // the name may refer to another file by now
            if (::flock(found, LOCK_EX | LOCK_NB) == 0 && ::fstat(found, &held) == 0 && S_ISREG(held.st_mode) &&
                ::fstatat(in, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && held.st_dev == there.st_dev &&
                held.st_ino == there.st_ino)
                ::unlinkat(in, name, 0);
            ::close(found);
        }
    }

    // Whether the name is "<stem><process>-<n>.tmp".
    static bool is_temporary(std::string_view name, std::string_view stem)
    {
        constexpr std::string_view end = ".tmp", digits = "0123456789";
        if (!name.starts_with(stem) || !name.ends_with(end) || name.size() < stem.size() + end.size()) return false;
        name = name.substr(stem.size(), name.size() - stem.size() - end.size());
        const std::size_t dash = std::min(name.find_first_not_of(digits), name.size());
        return dash > 0 && dash + 1 < name.size() && name[dash] == '-' &&
               name.find_first_not_of(digits, dash + 1) == name.npos;
    }

    // Like rename(), but fails with EEXIST if the target exists.
    int rename_to_free_name() const noexcept
    {
        if (::link(temporary_.c_str(), target_.c_str()) == 0) {
            ::unlink(temporary_.c_str());
            return 0;
        }
        if (errno == EEXIST) return -1;
        // On a file system without hard links, an empty file reserves the name first.
        const int claim = ::open(target_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (claim < 0) return -1;
        ::close(claim);
        const int moved = tried([&] { return ::rename(temporary_.c_str(), target_.c_str()); });
        if (moved != 0) {
            const int reason = errno;
            ::unlink(target_.c_str());  // remove the reserved name
            errno = reason;
        }
        return moved;
    }

    // The rename survives a power failure only once the directory is on disk. Some file systems cannot sync
    // directories.
    void sync_directory() const noexcept
    {
        const int directory = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (directory < 0) return;
        ::fsync(directory);
        ::close(directory);
    }

    std::string name_;              // as given by the caller, for messages
    std::filesystem::path target_;  // after following its links
    std::string folder_;            // of the target; stored, since commit() must not allocate
    std::string temporary_;         // empty if not in use
    int descriptor_ = -1;
};

/// Atomically replaces a file's contents with this text; see atomic_file.
inline void write_file(const std::filesystem::path& path, std::string_view text)
{
    atomic_file file(path);
    file.write(text);
    file.commit();
}

}  // namespace heed::inline HEED_TARGET::io
