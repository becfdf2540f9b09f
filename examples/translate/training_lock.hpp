// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/text/utf8.hpp>

#include "progress.hpp"

namespace translation {

/// Keeps two trainings from writing the same model and checkpoint: `.MODEL.lock`, a file beside the model, is locked
/// (flock) for the lifetime of this object. The system unlocks it when the process ends, however that happens, so a
/// killed run blocks no other.
class training_lock {
public:
    /// Throws heed::error if another process holds the lock.
    explicit training_lock(const std::filesystem::path& model) : path_(heed::io::end_of_links(model))
    {
        path_.replace_filename("." + path_.filename().string() + ".lock");
        do {
            release();
            descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
            if (descriptor_ < 0) throw heed::error(path_.string() + ": cannot be opened: " + std::strerror(errno));
            if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) refuse_or_go_without(model, errno);
        } while (descriptor_ >= 0 && !is_in_place());
        if (descriptor_ >= 0) sign();
    }

    training_lock(const training_lock&) = delete;
    training_lock& operator=(const training_lock&) = delete;

    ~training_lock()
    {
        if (descriptor_ >= 0) ::unlink(path_.c_str());
        release();
    }

private:
    void release() noexcept
    {
        if (descriptor_ >= 0) ::close(descriptor_);
        descriptor_ = -1;
    }

    void refuse_or_go_without(const std::filesystem::path& model, int reason)
    {
        const std::string owner = signature();
        if (reason != EWOULDBLOCK && owner.empty()) ::unlink(path_.c_str());
        release();
        if (reason == EWOULDBLOCK)
            throw heed::error(fmt::format("{}: is being trained by {}; wait until that run ends, or stop it, or give "
                                          "another --model",
                                          model.string(), owner.empty() ? "another process" : owner));
        say(fmt::format("note: {} cannot be locked ({}), so nothing keeps another training away from this model",
                        path_.string(), std::strerror(reason)));
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
        return length > 0 ? heed::text::printable(std::string(text, static_cast<std::size_t>(length))) : "";
    }

    void sign()
    {
        const std::string before = signature();
        if (!before.empty() && !before.starts_with("process ")) {
            release();  // and not removed
            throw heed::error(path_.string() +
                              ": is not a lock of this program; move it away, or give another --model");
        }
        char host[256] = {};
        ::gethostname(host, sizeof host - 1);
        const std::string text = fmt::format("process {} on {}", ::getpid(), host);
        if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) < 0) {
            // On failure, only the message to another run is less precise.
        }
    }

    std::filesystem::path path_;
    int descriptor_ = -1;
};

}  // namespace translation
