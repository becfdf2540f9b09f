// SPDX-License-Identifier: BSD-3-Clause
// A user's program, started by mpirun: all ranks get the sum.
#include <cstdio>
#include <span>

#include <heed_mpi/mpi.hpp>

int main()
{
    heed::distributed::mpi ranks;
    double sum = 1 + static_cast<double>(ranks.rank());
    ranks.sum(std::span(&sum, 1));
    if (ranks.rank() == 0) std::printf("%zu ranks: %g\n", ranks.size(), sum);
    return 0;
}
