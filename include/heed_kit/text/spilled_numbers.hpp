// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace heed::inline HEED_TARGET::text {

/// A long sequence of 32-bit numbers, written once and then read from its beginning any number of times. Up to `most`
/// numbers are in memory; the rest is in an unnamed file in the given folder, which disappears with the process.
class spilled_numbers {
public:
    explicit spilled_numbers(std::filesystem::path folder, std::size_t most = std::size_t{1} << 24)
        : folder_(std::move(folder)), most_(std::max<std::size_t>(1, most))
    {}

    /// Throws heed::error if the file cannot be written.
    void push_back(std::uint32_t number)
    {
        if (waiting_.size() == most_) spill();
        waiting_.push_back(number);
    }

    std::size_t size() const { return spilled_ + waiting_.size(); }

    /// Reads the numbers in order. Do not call push_back() meanwhile.
    class reader {
    public:
        explicit reader(const spilled_numbers& of) : of_(&of) {}
        explicit reader(const spilled_numbers&&) = delete;

        /// The next number; throws heed::error after the last one.
        std::uint32_t next()
        {
            if (at_ == some_.size()) refill();
            return some_[at_++];
        }
        /// The next `count` numbers; throws heed::error after the last one.
        void next(std::size_t count, std::vector<std::uint32_t>& to)
        {
            to.clear();
            while (to.size() < count) {
                if (at_ == some_.size()) refill();
                const std::size_t here = std::min(count - to.size(), some_.size() - at_);
                to.insert(to.end(), some_.begin() + static_cast<std::ptrdiff_t>(at_),
                          some_.begin() + static_cast<std::ptrdiff_t>(at_ + here));
                at_ += here;
            }
        }

    private:
        void refill()
        {
            done_ += some_.size();
            at_ = 0;
            if (done_ >= of_->spilled_) {
                some_ = std::span(of_->waiting_).subspan(done_ - of_->spilled_);
                if (some_.empty()) throw error("spilled_numbers: read past the end");
                return;
            }
            buffer_.resize(std::min<std::size_t>(of_->spilled_ - done_, 1 << 16));
            of_->get(done_, buffer_);
            some_ = buffer_;
        }

        const spilled_numbers* of_;
        std::vector<std::uint32_t> buffer_;
        std::span<const std::uint32_t> some_;  // position in the buffer, or in the numbers in memory
        std::size_t done_ = 0, at_ = 0;        // numbers before the buffer, and position of the next number
    };

private:
    [[noreturn]] void fail(const char* what, int reason) const
    {
        throw error(folder_.string() + ": cannot " + what + " a temporary file there: " + std::strerror(reason));
    }

    void spill()
    {
        if (!file_) {
            int file = ::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
            if (file < 0) {  // some file systems do not support unnamed files
                std::string name = (folder_ / ".heed-XXXXXX").string();
                file = ::mkstemp(name.data());
                if (file < 0) fail("create", errno);
                ::unlink(name.c_str());
            }
            file_ = std::shared_ptr<const int>(new int(file), [](const int* descriptor) {
                ::close(*descriptor);
                delete descriptor;
            });
        }
        std::span<const std::byte> bytes = std::as_bytes(std::span(waiting_));
        auto place = static_cast<::off_t>(4 * spilled_);
        while (!bytes.empty()) {
            const ::ssize_t count = ::pwrite(*file_, bytes.data(), bytes.size(), place);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) fail("write", count < 0 ? errno : EIO);
            place += count;
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
        spilled_ += waiting_.size();
        waiting_.clear();
    }

    void get(std::size_t first, std::span<std::uint32_t> numbers) const
    {
        std::span<std::byte> bytes = std::as_writable_bytes(numbers);
        auto place = static_cast<::off_t>(4 * first);
        while (!bytes.empty()) {
            const ::ssize_t count = ::pread(*file_, bytes.data(), bytes.size(), place);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) fail("read", count < 0 ? errno : EIO);
            place += count;
            bytes = bytes.subspan(static_cast<std::size_t>(count));
        }
    }

    std::filesystem::path folder_;
    std::size_t most_;
    std::vector<std::uint32_t> waiting_;  // those after the numbers in the file
    std::size_t spilled_ = 0;             // numbers in the file
    std::shared_ptr<const int> file_;
};

}  // namespace heed::inline HEED_TARGET::text
