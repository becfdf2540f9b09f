// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

/// A program that does the same work with another library, alternating with heed.
namespace bench {

struct answer {
    double seconds = 0, digest = 0;
};

/// A child process that reads requests from standard input and answers on standard output.
class peer {
public:
    peer(const std::string& program, int threads, const char* way = "")
    {
        int in[2], out[2];  // closed in every child, which otherwise would never see the end of its input
        if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) fail("cannot create a pipe");
        child_ = fork();
        if (child_ < 0) fail("cannot start a process");
        if (child_ == 0) {
            dup2(in[0], 0);
            dup2(out[1], 1);
            // The peer's best setup, see README.md.
#if defined(__x86_64__)
            if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq")) {
                setenv("ATEN_CPU_CAPABILITY", "avx512", 0);
            }
#endif
            setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), 1);
            setenv("OPENBLAS_NUM_THREADS", std::to_string(threads).c_str(), 1);
            setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
            setenv("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=1073741824:glibc.malloc.trim_threshold=4294967296",
                   1);
            setenv("PEER_WAY", way, 0);
            execl(program.c_str(), program.c_str(), static_cast<char*>(nullptr));
            std::perror(program.c_str());
            _exit(127);
        }
        close(in[0]);
        close(out[1]);
        to_ = fdopen(in[1], "w");
        from_ = fdopen(out[0], "r");
    }
    peer(const peer&) = delete;
    peer& operator=(const peer&) = delete;
    ~peer()
    {
        std::fclose(to_);
        std::fclose(from_);
        waitpid(child_, nullptr, 0);
    }

    answer run(const std::string& work)
    {
        std::fprintf(to_, "%s\n", work.c_str());
        std::fflush(to_);
        answer result;
        if (std::fscanf(from_, "%lf %lf", &result.seconds, &result.digest) != 2) fail("the peer does not respond");
        return result;
    }

private:
    [[noreturn]] static void fail(const char* why)
    {
        std::fprintf(stderr, "peer: %s\n", why);
        std::exit(1);
    }

    pid_t child_ = 0;
    std::FILE *to_ = nullptr, *from_ = nullptr;
};

}  // namespace bench
