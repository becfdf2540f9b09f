// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// What all fuzz targets share. A target is a file of this folder: it gives arbitrary bytes to one of heed's readers and
// checks what every reader promises:
//
//     what it refuses, it refuses with heed::error, which names the file;
//     it never has more memory than `free_bytes` and a stated multiple of the file's size;
//     what it has read and written again reads equal.
//
// entry.cpp makes a program for libFuzzer of the targets, replay.cpp one for any compiler.

#include <heed/core/errors.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fuzz {

/// A pseudo-random number below `end`.
using dice = std::function<std::size_t(std::size_t end)>;

/// Changes a piece of bytes without knowing what it is, up to a size: libFuzzer's mutations, or simple ones.
using scramble = std::function<std::string(std::string bytes, std::size_t most)>;

struct target {
    const char* name;
    void (*run)(std::string_view bytes);
    std::vector<std::string> (*seeds)();
    /// Changes a file as one who knows its format; null if scrambled bytes are as good.
    std::string (*mutate)(std::string_view bytes, const dice& roll, const scramble& bytewise) = nullptr;
};

/// All targets of the program.
inline std::vector<target>& targets()
{
    static std::vector<target> all;
    return all;
}

struct registered {
    explicit registered(const target& one) { targets().push_back(one); }
};

/// Says what is wrong and ends the program.
[[noreturn]] void fail(const std::string& what);

inline void require(bool good, const char* what)
{
    if (!good) fail(what);
}

/// Limits what operator new gives (memory.cpp): beyond it the program fails. One at a time. HEED_FUZZ_MARGIN multiplies
/// it: CI looks for files that claim what they do not have, and not for the last byte of a limit.
class allowance {
public:
    explicit allowance(std::size_t bytes);
    ~allowance();
    allowance(const allowance&) = delete;
    allowance& operator=(const allowance&) = delete;
};

/// What a reader may use whatever the file: buffers of streams, messages.
inline constexpr std::size_t free_bytes = std::size_t{64} << 10;

/// A file of this process's own with these bytes; the next one with the same name takes its place.
std::filesystem::path file_of(std::string_view bytes, const std::string& name = "read");

/// What read() returns, or nothing if it refuses the file of `size` bytes. Fails if it has more than `free` bytes and
/// `multiple` times the size, if it throws anything but heed::error, or an error without `name` in its message.
template <class Read>
auto read(const std::string& name, std::size_t size, std::size_t multiple, const Read& reader,
          std::size_t free = free_bytes) -> std::optional<decltype(reader())>
{
    const allowance limited(free + multiple * size);
    try {
        return reader();
    } catch (const heed::error& problem) {
        const std::string what = problem.what();
        if (what.empty() || what.find(name) == what.npos) fail("the message \"" + what + "\" does not name " + name);
    } catch (const std::exception& problem) {
        fail(std::string("not a heed::error: ") + problem.what());
    }
    return std::nullopt;
}

/// Whether f() returns; fails if it throws anything but heed::error.
template <class F>
bool accepts(const F& f)
{
    try {
        f();
        return true;
    } catch (const heed::error&) {
        return false;
    } catch (const std::exception& problem) {
        fail(std::string("not a heed::error: ") + problem.what());
    }
}

/// The part of an input before the first line "====", and what follows it: for targets that need two texts.
struct two_texts {
    std::string first, second;

    explicit two_texts(std::string_view bytes)
    {
        constexpr std::string_view mark = "====\n";
        const std::size_t at = bytes.find(mark);
        first = bytes.substr(0, at);
        if (at != bytes.npos) second = bytes.substr(at + mark.size());
    }
};

}  // namespace fuzz
