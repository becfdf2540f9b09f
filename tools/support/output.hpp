// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <unistd.h>

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>

/// Output of the programs: every failed write is an error that names the file and the reason.
namespace program {

[[noreturn]] inline void cannot_print(int reason)
{
    throw heed::error(std::string("cannot write to standard output: ") + std::strerror(reason != 0 ? reason : EIO));
}

inline void flush_output()
{
    if (!std::cout.flush()) cannot_print(errno);
}

/// Writes to standard output, without delay.
inline void print(std::string_view text)
{
    errno = 0;
    std::cout << text;
    flush_output();
}

/// Replaces a file as a whole; without a name, prints the text.
inline void write(const std::filesystem::path& output, std::string_view text)
{
    if (output.empty())
        print(text);
    else
        heed::io::write_file(output, text);
}

/// Throws if an output would overwrite an input or cannot be written. This is checked before the work begins. A pipe is
/// not opened: its reader would see the end of the text.
inline void check_output(const std::filesystem::path& output, const std::vector<std::filesystem::path>& inputs)
{
    std::error_code not_there;
    for (const std::filesystem::path& input : inputs) {
        if (std::filesystem::equivalent(output, input, not_there))
            throw heed::error(output.string() + ": would overwrite an input; choose another name");
    }
    if (!std::filesystem::is_fifo(output, not_there))
        heed::io::atomic_file{output};
    else if (::access(output.c_str(), W_OK) != 0)
        throw heed::error(output.string() + ": cannot open for writing: " + std::strerror(errno));
}

/// Calls all functions, even if some throw; then throws the first error. If one output cannot be written, the others
/// are not lost.
template <class... Functions>
void call_each(const Functions&... functions)
{
    std::exception_ptr first;
    const auto call = [&](const auto& function) {
        try {
            function();
        } catch (...) {
            if (!first) first = std::current_exception();
        }
    };
    (call(functions), ...);
    if (first) std::rethrow_exception(first);
}

}  // namespace program
