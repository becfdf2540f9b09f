// SPDX-License-Identifier: BSD-3-Clause

// A library for LD_PRELOAD: one call that writes files fails, in any program. The environment variable WRITE_FAULT has
// four words:
//
//     CALL       write, pwrite, open, fsync or rename; opening counts if it is for writing
//     N          the number of the call, from 1, among those of this kind on matching files
//     REASON     an errno value; 0: only half of the bytes are written; kill: the process is killed before the call
//     PATH       part of the name of matching files; /: all files
//
// Standard error never matches. WRITE_FAULT_SEEN is a file that is created when the call fails.

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

std::atomic<long> calls{0};

/// Whether this call on a file of this name must fail; then errno is set.
bool fails(const char* call, const char* path)
{
    const char* const given = std::getenv("WRITE_FAULT");
    char wanted[16] = {}, reason[16] = {}, part[200] = {};
    long number = 0;
    if (given == nullptr || std::sscanf(given, "%15s %ld %15s %199s", wanted, &number, reason, part) != 4) return false;
    if (std::strcmp(call, wanted) != 0) return false;
    if (std::strcmp(part, "/") != 0 && std::strstr(path, part) == nullptr) return false;
    if (++calls != number) return false;
    if (const char* const seen = std::getenv("WRITE_FAULT_SEEN")) {
        const long file = ::syscall(SYS_openat, AT_FDCWD, seen, O_WRONLY | O_CREAT, 0600);
        if (file >= 0) ::syscall(SYS_close, file);
    }
    if (std::strcmp(reason, "kill") == 0) ::kill(::getpid(), SIGKILL);
    errno = std::atoi(reason);
    return true;
}
bool fails(const char* call, int file)
{
    if (file == STDERR_FILENO) return false;
    char name[4096] = {};
    const int error = errno;
    const ssize_t size = ::readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), name, sizeof name - 1);
    errno = error;
    return fails(call, size < 0 ? "" : name);
}

template <class Function>
Function* real(const char* name)
{
    return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

extern "C" {

ssize_t write(int file, const void* bytes, std::size_t size)
{
    static const auto next = real<ssize_t(int, const void*, std::size_t)>("write");
    if (!fails("write", file)) return next(file, bytes, size);
    return errno == 0 ? next(file, bytes, (size + 1) / 2) : -1;
}
ssize_t writev(int file, const iovec* parts, int count)
{
    static const auto next = real<ssize_t(int, const iovec*, int)>("writev");
    if (!fails("write", file)) return next(file, parts, count);
    return errno == 0 ? next(file, parts, 1) : -1;
}
ssize_t pwrite(int file, const void* bytes, std::size_t size, off_t place)
{
    static const auto next = real<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
    if (!fails("pwrite", file)) return next(file, bytes, size, place);
    return errno == 0 ? next(file, bytes, (size + 1) / 2, place) : -1;
}
int fsync(int file)
{
    static const auto next = real<int(int)>("fsync");
    return fails("fsync", file) ? -1 : next(file);
}
int rename(const char* from, const char* to) noexcept
{
    static const auto next = real<int(const char*, const char*)>("rename");
    return fails("rename", to) ? -1 : next(from, to);
}
int open(const char* path, int flags, ...)
{
    static const auto next = real<int(const char*, int, ...)>("open");
    std::va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);  // arbitrary, and ignored, if the caller passes none
    va_end(more);
    return writes(flags) && fails("open", path) ? -1 : next(path, flags, mode);
}

// The same functions: off_t has 64 bits.
ssize_t pwrite64(int file, const void* bytes, std::size_t size, off_t place)
{
    return pwrite(file, bytes, size, place);
}
int open64(const char* path, int flags, ...)
{
    std::va_list more;
    va_start(more, flags);
    const mode_t mode = va_arg(more, mode_t);
    va_end(more);
    return open(path, flags, mode);
}
}
