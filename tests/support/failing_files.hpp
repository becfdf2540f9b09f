// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The system calls that write files, each of which can fail: see faults.hpp.

#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <support/faults.hpp>

extern "C" {
ssize_t __real_write(int file, const void* bytes, std::size_t size);
ssize_t __real_pwrite(int file, const void* bytes, std::size_t size, off_t place);
int __real_fsync(int file);
int __real_rename(const char* from, const char* to);
int __real_close(int file);
int __real_open(const char* path, int flags, mode_t mode);
int __real_link(const char* from, const char* to);
int __real_fchmod(int file, mode_t mode);
int __real_flock(int file, int what);

ssize_t __wrap_write(int file, const void* bytes, std::size_t size);
ssize_t __wrap_pwrite(int file, const void* bytes, std::size_t size, off_t place);
int __wrap_fsync(int file);
int __wrap_rename(const char* from, const char* to);
int __wrap_close(int file);
int __wrap_open(const char* path, int flags, mode_t mode);
int __wrap_link(const char* from, const char* to);
int __wrap_fchmod(int file, mode_t mode);
int __wrap_flock(int file, int what);

ssize_t __wrap_write(int file, const void* bytes, std::size_t size)
{
    if (!support::fails("write")) return __real_write(file, bytes, size);
    return support::fails_with == 0 ? __real_write(file, bytes, (size + 1) / 2) : -1;
}
ssize_t __wrap_pwrite(int file, const void* bytes, std::size_t size, off_t place)
{
    if (!support::fails("pwrite")) return __real_pwrite(file, bytes, size, place);
    return support::fails_with == 0 ? __real_pwrite(file, bytes, (size + 1) / 2, place) : -1;
}
int __wrap_fsync(int file) { return support::fails("fsync") ? -1 : __real_fsync(file); }
int __wrap_rename(const char* from, const char* to) { return support::fails("rename") ? -1 : __real_rename(from, to); }
int __wrap_close(int file)
{
    const bool fails = support::fails("close");
    const int reason = errno, done = __real_close(file);  // Linux closes the file anyway
    if (fails) errno = reason;
    return fails ? -1 : done;
}
// Without a mode if none is needed; the register then holds an arbitrary value, which the system ignores.
int __wrap_open(const char* path, int flags, mode_t mode)
{
    return support::fails("open") ? -1 : __real_open(path, flags, mode);
}
int __wrap_link(const char* from, const char* to) { return support::fails("link") ? -1 : __real_link(from, to); }
int __wrap_fchmod(int file, mode_t mode) { return support::fails("fchmod") ? -1 : __real_fchmod(file, mode); }
int __wrap_flock(int file, int what) { return support::fails("flock") ? -1 : __real_flock(file, what); }
}
