// SPDX-License-Identifier: BSD-3-Clause

#include <heed/core/workspace.hpp>

#include <doctest/doctest.h>

#include <thread>

using namespace heed;

TEST_CASE("a thread's workspace is kept between calls, and freed on request")
{
    release_workspace();
    CHECK(workspace_size() == 0);
    const double* first = nullptr;
    for (int call = 0; call < 2; ++call) {
        const scratch here;
        const double* const taken = scratch().take<double>(1000);
        if (call == 0) first = taken;
        CHECK(taken == first);
    }
    const std::size_t kept = workspace_size();
    CHECK(kept >= 1000 * sizeof(double));
    std::thread([] { CHECK(workspace_size() == 0); }).join();
    release_workspace();
    CHECK(workspace_size() == 0);
    scratch here;
    here.take<double>(1000)[999] = 1;
    CHECK(workspace_size() == kept);
}
