// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdlib>

/// Shared by both tools.
namespace program {

/// Detects from the environment whether a launcher (mpirun, mpiexec, srun) has started this process. Does not start
/// MPI.
struct launched_as {
    std::size_t rank = 0, size = 1;

    static launched_as of_environment();
};

/// An integer environment variable; `otherwise` if it is not set.
inline std::size_t number_of_environment(const char* name, std::size_t otherwise)
{
    const char* const text = std::getenv(name);
    if (text == nullptr || *text == '\0') return otherwise;
    char* end = nullptr;
    const unsigned long long value = std::strtoull(text, &end, 10);
    return *end == '\0' ? static_cast<std::size_t>(value) : otherwise;
}

inline launched_as launched_as::of_environment()
{
    // OpenMPI's mpirun; the launchers of MPICH and Intel MPI; srun of Slurm with PMIx, which stores the number of
    // processes in its own variables.
    launched_as result;
    result.size = number_of_environment("OMPI_COMM_WORLD_SIZE", number_of_environment("PMI_SIZE", 1));
    result.rank = number_of_environment("OMPI_COMM_WORLD_RANK", number_of_environment("PMI_RANK", 0));
    if (std::getenv("PMIX_RANK") != nullptr && std::getenv("OMPI_COMM_WORLD_SIZE") == nullptr) {
        result.size = number_of_environment("SLURM_STEP_NUM_TASKS", number_of_environment("SLURM_NTASKS", 1));
        result.rank = number_of_environment("PMIX_RANK", 0);
    }
    return result;
}

}  // namespace program
