// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// Code shared by all fuzz targets. A target is a file in this folder: it passes arbitrary bytes to one of heed's
// readers and checks the guarantees of every reader:
//
//     rejected input throws heed::error, whose message names the file;
//     memory never exceeds `free_bytes` plus a stated multiple of the file's size;
//     data that is read, written and read again is equal.
//
// entry.cpp builds a libFuzzer program from a target, replay.cpp a program for any compiler.

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

/// Mutates bytes without knowledge of the format, up to a size: libFuzzer's mutations, or simple ones.
using scramble = std::function<std::string(std::string bytes, std::size_t most)>;

struct target {
    const char* name;
    void (*run)(std::string_view bytes);
    std::vector<std::string> (*seeds)();
    /// Mutates a file with knowledge of its format; null if bytewise mutations are as good.
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

/// Reports the failure and ends the program.
[[noreturn]] void fail(const std::string& what);

inline void require(bool good, const char* what)
{
    if (!good) fail(what);
}

/// Limits the memory that operator new returns (memory.cpp): the program fails above the limit. Only one instance at a
/// time. HEED_FUZZ_MARGIN multiplies the limit: CI looks for headers that claim more data than the file has, not for
/// exact limits.
class allowance {
public:
    explicit allowance(std::size_t bytes);
    ~allowance();
    allowance(const allowance&) = delete;
    allowance& operator=(const allowance&) = delete;
};

/// Memory that a reader may use for any file: stream buffers, messages.
inline constexpr std::size_t free_bytes = std::size_t{64} << 10;

/// A file of this name in a folder of this process.
std::filesystem::path path_of(const std::string& name);

/// A file of this process with these bytes; the next file of the same name replaces it.
std::filesystem::path file_of(std::string_view bytes, const std::string& name = "read");

/// The result of read(), or nothing if it rejects the file of `size` bytes. Fails if it uses more memory than `free`
/// bytes plus `multiple` times the size, throws anything other than heed::error, or throws an error without `name` in
/// its message.
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

/// Whether f() returns; fails if it throws anything other than heed::error.
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

/// The part of an input before the first line "====", and the rest: for targets that need two texts.
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
