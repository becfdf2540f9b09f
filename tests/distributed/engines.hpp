// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>

#include <heed/distributed/ranks.hpp>

namespace support {

/// f(ranks) on every rank: under mpirun once, on the ranks that it has started; otherwise on 1, 2, 3 and 4 ranks which
/// are threads of this process.
void on_ranks(const std::function<void(heed::distributed::any_ranks&)>& f);

/// Whether the ranks are those of MPI.
bool by_mpi();

}  // namespace support
