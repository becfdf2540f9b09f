// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/atomic_file.hpp>

namespace heed::inline HEED_TARGET::train {

/// Prevents two training runs from writing the same files: locks (flock) `.NAME.lock`, next to the file NAME at the end
/// of its symbolic links, for the lifetime of this object or the process.
///
///     const train::training_lock alone("model.safetensors");    // before reading files of an earlier run
class training_lock {
public:
    /// Throws heed::error if another process holds the lock, or if a file that is not a lock has its name.
    explicit training_lock(const std::filesystem::path& file) : path_(io::end_of_links(file))
    {
        path_ = io::detail::beside(path_, "." + path_.filename().string() + ".lock");
        try {
            take(file);
        } catch (...) {
            release();  // out of memory: the lock must not block the next attempt
            throw;
        }
    }

    training_lock(const training_lock&) = delete;
    training_lock& operator=(const training_lock&) = delete;

    ~training_lock()
    {
        if (descriptor_ >= 0) ::unlink(path_.c_str());
        release();
    }

    /// Empty, or on a file system without locks, the reason why other runs are not excluded.
    const std::string& not_locked() const { return problem_; }

private:
    void take(const std::filesystem::path& file)
    {
        do {
            release();
            descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
            if (descriptor_ < 0) throw error(path_.string() + ": cannot be opened: " + std::strerror(errno));
            if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse_or_go_without(file, errno);
        } while (descriptor_ >= 0 && !is_in_place());
        if (descriptor_ >= 0) sign();
    }

    void release() noexcept
    {
        if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
    }

    void refuse_or_go_without(const std::filesystem::path& file, int reason)
    {
        const std::string owner = signature();
        if (reason != EWOULDBLOCK && owner.empty()) ::unlink(path_.c_str());
        release();
        if (reason == EWOULDBLOCK)
            throw error(file.string() + ": is being trained by " + (owner.empty() ? "another process" : owner) +
                        "; wait until that run ends, or stop it, or write to another file");
        problem_ = path_.string() + " cannot be locked (" + std::strerror(reason) +
                   "), so another training run may write to this model";
    }

    // The previous run may have removed the file after it was opened here.
    bool is_in_place() const
    {
        struct stat held {};
        struct stat there {};
        return ::fstat(descriptor_, &held) == 0 && ::stat(path_.c_str(), &there) == 0 && held.st_dev == there.st_dev &&
               held.st_ino == there.st_ino;
    }

    // "process 4711 on host", for the message to a refused run.
    std::string signature() const
    {
        char text[400] = {};
        const ::ssize_t length = ::pread(descriptor_, text, sizeof text - 1, 0);
        return length > 0 ? text::printable(std::string(text, static_cast<std::size_t>(length))) : "";
    }

    void sign()
    {
        const std::string before = signature();
        if (!before.empty() && !before.starts_with("process ")) {
            release();  // without removing it
            throw error(path_.string() +
                        ": is not a lock of this program; move it away, or write the model to another file");
        }
        char host[256] = {};
        ::gethostname(host, sizeof host - 1);
        const std::string text = "process " + std::to_string(::getpid()) + " on " + host;
        if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) < 0) {
            // If this fails, the message to another run is just less precise.
        }
    }

    std::filesystem::path path_;
    std::string problem_;
    int descriptor_ = -1;
};

}  // namespace heed::inline HEED_TARGET::train
