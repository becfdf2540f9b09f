// SPDX-License-Identifier: BSD-3-Clause

// Each allocation of the service of `translate serve`, and each system call that sends or receives client data, fails
// once: at most the connection that needed it is affected, the service shuts down normally, and no memory leaks.

#include <support/faults.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

#include <support/http_connection.hpp>
#include <support/stub_service.hpp>

extern "C" {
ssize_t __real_recv(int socket, void* bytes, std::size_t size, int flags);
ssize_t __real_send(int socket, const void* bytes, std::size_t size, int flags);
int __real_accept4(int socket, sockaddr* from, socklen_t* size, int flags);
int __real_poll(pollfd* all, nfds_t count, int timeout);

ssize_t __wrap_recv(int socket, void* bytes, std::size_t size, int flags);
ssize_t __wrap_send(int socket, const void* bytes, std::size_t size, int flags);
int __wrap_accept4(int socket, sockaddr* from, socklen_t* size, int flags);
int __wrap_poll(pollfd* all, nfds_t count, int timeout);

ssize_t __wrap_recv(int socket, void* bytes, std::size_t size, int flags)
{
    return support::fails("recv") ? -1 : __real_recv(socket, bytes, size, flags);
}
ssize_t __wrap_send(int socket, const void* bytes, std::size_t size, int flags)
{
    if (!support::fails("send")) return __real_send(socket, bytes, size, flags);
    return support::fails_with == 0 ? __real_send(socket, bytes, (size + 1) / 2, flags) : -1;
}
int __wrap_accept4(int socket, sockaddr* from, socklen_t* size, int flags)
{
    return support::fails("accept4") ? -1 : __real_accept4(socket, from, size, flags);
}
int __wrap_poll(pollfd* all, nfds_t count, int timeout)
{
    return support::fails("poll") ? -1 : __real_poll(all, count, timeout);
}
}

namespace {

using support::ask;
using support::eventually;
using support::http_connection;

const std::string health = "GET /health HTTP/1.1\r\n\r\n";

constexpr std::chrono::seconds patience{10};

/// The results of the clients.
struct outcome {
    int harmed = 0;       // connections without their response
    bool hung = false;    // a connection got neither an answer nor an end, or an error other than out of memory
    bool failed = false;  // a fault was injected

    void see(http_connection& client, std::initializer_list<const char*> expected)
    {
        for (const char* each : expected) {
            const auto reply = client.receive(patience);
            if (reply.status == 200 && reply.body.find(each) != reply.body.npos) continue;
            hung = hung || (!reply.ended && reply.status != 503);
            ++harmed;
            return;
        }
    }
    /// Sends no request that could be answered.
    void see_end(http_connection& client)
    {
        const auto reply = client.receive(patience);
        hung = hung || (!reply.ended && reply.status != 503);
    }
};

/// Runs a service from the first client to shutdown, while faults are injected. Two answers become ready at once, after
/// the first client has sent another request.
outcome serve_while(const auto& fail)
{
    outcome seen;
    std::atomic<bool> holds{false};
    support::stub_service* now = nullptr;
    support::stub_service at([&](const translation::http::record&) {
        if (!holds.exchange(false)) return;
        now->model.set(true);  // the thread of all connections waits here until both answers are ready
        static_cast<void>(eventually([&] { return now->at_work() == 0; }));
    });
    now = &at;
    at.model.set(false);
    support::has_failed = false;
    fail();
    {
        http_connection first(at.port), second(at.port), idle(at.port), half(at.port);
        half.send(ask("half").substr(0, 30));
        first.send(ask("first") + ask("again"));
        second.send(ask("second"));
        const auto over = [](const http_connection& client) { return std::size_t{client.is_readable()}; };
        static_cast<void>(eventually([&] { return at.at_work() + over(first) + over(second) >= 2; }));
        holds = true;
        http_connection third(at.port);
        third.send(health);
        seen.see(third, {"\"status\":\"ok\""});
        at.model.set(true);
        seen.see(first, {"FIRST", "AGAIN"});
        seen.see(second, {"SECOND"});
        http_connection last(at.port);
        last.send(ask("last"));
        seen.see(last, {"LAST"});
        at.stop();
        seen.see_end(half);
        seen.see_end(idle);
    }
    at.join();
    seen.failed = support::has_failed;
    support::failing_allocation = 0;
    support::failing_call = "";
    return seen;
}

/// This thread runs the clients; one-time initialization of the service is done.
struct clients {
    clients()
    {
        support::spared = true;
        serve_while([] {});
        std::this_thread::sleep_for(std::chrono::milliseconds(100));  // its threads end shortly after it
        before = support::living_allocations;
    }
    clients(const clients&) = delete;
    clients& operator=(const clients&) = delete;
    ~clients() { support::spared = false; }

    bool none_lost() const
    {
        return eventually([&] { return support::living_allocations == before; });
    }

    long before = 0;
};

}  // namespace

TEST_CASE("if an allocation of a service fails, at most one connection is affected")
{
    long count = 0;
    CAPTURE(count);
    const clients here;
    for (outcome seen{0, false, true}; seen.failed; ++count) {
        seen = serve_while([&] { support::failing_allocation = count + 1; });
        REQUIRE(!seen.hung);
        CHECK(seen.harmed <= (seen.failed ? 1 : 0));
        CHECK(here.none_lost());
    }
    CHECK(count > 100);
}

TEST_CASE("if a system call for client data fails, at most one connection is affected")
{
    struct fault {
        const char* call;
        int reason;
        bool passes;  // the call is retried
    };
    fault now{};
    long count = 0;
    CAPTURE(now.call);
    CAPTURE(now.reason);
    CAPTURE(count);
    const clients here;
    for (const fault& each : {fault{"recv", EINTR, true},
                              {"recv", EAGAIN, true},
                              {"recv", ECONNRESET, false},
                              {"recv", ENOMEM, false},
                              {"send", EINTR, true},
                              {"send", EAGAIN, true},
                              {"send", 0, true},
                              {"send", EPIPE, false},
                              {"send", ENOBUFS, false},
                              {"accept4", EINTR, true},
                              {"accept4", ECONNABORTED, true},
                              {"accept4", EMFILE, true},
                              {"accept4", ENOMEM, true},
                              {"poll", EINTR, true},
                              {"poll", ENOMEM, true}}) {
        now = each;
        count = 0;
        for (outcome seen{0, false, true}; seen.failed; ++count) {
            seen = serve_while([&] {
                support::calls_before = count;
                support::fails_with = each.reason;
                support::failing_call = each.call;
            });
            REQUIRE(!seen.hung);
            CHECK(seen.harmed <= (each.passes ? 0 : 1));
            CHECK(here.none_lost());
        }
        CHECK(count > 3);
    }
}
