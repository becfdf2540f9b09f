// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <csignal>

#include <signal.h>

#include <heed/train/stop_signals.hpp>

using namespace heed;

TEST_CASE("the first signal requests a stop, the second ends the process, and handlers are restored afterward")
{
    const auto handler_of = [](int number) {
        struct sigaction now {};
        ::sigaction(number, nullptr, &now);
        return now.sa_handler;
    };
    std::signal(SIGHUP, SIG_IGN);
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);  // doctest has its own
    {
        const train::stop_signals stop;
        CHECK(!stop);
        CHECK(stop.status() == 0);
        CHECK(bool(handler_of(SIGHUP) == SIG_IGN));  // as under nohup
        ::raise(SIGINT);
        CHECK(bool(stop));
        CHECK(stop.number() == SIGINT);
        CHECK(stop.status() == 130);
        CHECK(bool(handler_of(SIGINT) == SIG_DFL));
        CHECK(bool(handler_of(SIGTERM) != SIG_DFL));
    }
    CHECK(bool(handler_of(SIGTERM) == SIG_DFL));
    std::signal(SIGHUP, SIG_DFL);
    const train::stop_signals anew;
    CHECK(!anew);
    ::raise(SIGHUP);
    ::raise(SIGHUP);
    CHECK(anew.status() == 129);
}
