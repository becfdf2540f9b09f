// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/forks.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <utility>

#include <sys/wait.h>
#include <unistd.h>

using namespace heed;

TEST_CASE("each child counts one more fork than its parent")
{
    const unsigned before = detail::forks_so_far();
    const pid_t child = fork();
    if (child == 0) {
        const pid_t grandchild = fork();
        if (grandchild == 0) _exit(detail::forks_so_far() == before + 2 ? 0 : 1);
        int status = 1;
        waitpid(grandchild, &status, 0);
        _exit(status == 0 && detail::forks_so_far() == before + 1 ? 0 : 1);
    }
    REQUIRE(child > 0);
    int status = 1;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(detail::forks_so_far() == before);
}

TEST_CASE("an object passed to leave_undestroyed lives as long as the program")
{
    std::weak_ptr<int> seen;
    {
        auto object = std::make_shared<int>(5);
        seen = object;
        detail::leave_undestroyed(std::move(object));
    }
    CHECK_FALSE(seen.expired());
}
