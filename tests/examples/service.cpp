// SPDX-License-Identifier: BSD-3-Clause

// The service of `translate serve` without a model. Built a second time with ThreadSanitizer.

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <support/http_connection.hpp>
#include <support/stub_service.hpp>

using support::ask;
using support::eventually;
using support::http_connection;
using support::stub_service;

namespace {

const std::string health = "GET /health HTTP/1.1\r\n\r\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("A client that sends no more gets its answer; the request of one that has gone is abandoned")
{
    std::atomic<int> abandoned{0};
    stub_service at([&](const translation::http::record& what) { abandoned += what.status == 499; });
    at.model.set(false);
    http_connection half(at.port), older(at.port), two(at.port);
    half.send(ask("half"));
    half.end();
    older.send(ask("older", "1.0"));
    older.end();
    two.send(ask("first") + ask("second"));
    two.end();
    {
        http_connection closed(at.port), reset(at.port);
        closed.send(ask("closed"));
        reset.send(ask("reset"));
        reset.reset();
        CHECK(eventually([&] { return at.at_work() == 5; }));
    }
    CHECK(eventually([&] { return abandoned == 2; }));  // while the model works
    CHECK(at.at_work() == 3);
    at.model.set(true);
    for (const auto& [client, expected] :
         {std::pair(&half, "HALF"), std::pair(&older, "OLDER"), std::pair(&two, "FIRST"), std::pair(&two, "SECOND")}) {
        const auto reply = client->receive();
        CHECK(reply.status == 200);
        CHECK(has(reply.body, expected));
    }
    CHECK(half.receive().ended);
    CHECK(older.receive().ended);
    CHECK(two.receive().ended);
    CHECK(abandoned == 2);
}

TEST_CASE("While it stops, what has come is answered, and open connections read that it is stopping")
{
    stub_service at;
    at.model.set(false);
    http_connection working(at.port), probing(at.port), idle(at.port), sending(at.port);
    for (http_connection* each : {&probing, &idle, &sending}) {
        each->send(health);
        const auto reply = each->receive();
        CHECK(reply.status == 200);
        CHECK(has(reply.body, "\"status\":\"ok\""));
    }
    working.send(ask("working"));
    sending.send(ask("sending").substr(0, 30));
    CHECK(eventually([&] { return at.at_work() == 1; }));
    at.stop();
    CHECK(eventually([&] {
        try {
            const http_connection another(at.port);
            return false;
        } catch (const std::exception&) {
            return true;
        }
    }));
    probing.send(health);
    const auto probed = probing.receive();
    CHECK(probed.status == 503);
    CHECK(has(probed.body, "\"status\":\"stopping\""));
    CHECK(has(probed.head, "connection: close"));
    const auto refused = sending.receive();
    CHECK(refused.status == 503);
    CHECK(has(refused.body, "the service is stopping"));
    at.model.set(true);
    CHECK(has(working.receive().body, "WORKING"));
    at.join();
    CHECK(idle.receive().ended);
    CHECK(probing.receive().ended);
}

TEST_CASE("Clients of all kinds at once, and its end while they ask")
{
    auto at = std::make_unique<stub_service>();
    std::atomic<std::size_t> wrong{0}, answered{0};
    std::vector<std::thread> clients;
    for (std::size_t client = 0; client < 4; ++client) {
        clients.emplace_back([&, client, port = at->port] {
            try {
                for (std::size_t round = 0; round < 20; ++round) {
                    http_connection to(port);
                    const std::string text = "t" + std::to_string(round);
                    to.send(ask(text) + health + "GET /metrics HTTP/1.1\r\n\r\n");
                    if ((client + round) % 4 == 0) continue;  // goes
                    if ((client + round) % 4 == 1) to.end();
                    for (int i = 0; i < 3; ++i) {
                        const auto reply = to.receive();
                        if (reply.status == 200) ++answered;
                        if (reply.status == 200 && i == 0 && !has(reply.body, "T" + std::to_string(round))) ++wrong;
                        if (reply.status != 200 && reply.status != 503 && !reply.ended) ++wrong;
                        if (reply.ended) break;
                    }
                }
            } catch (const std::exception&) {}  // it has ended
        });
    }
    CHECK(eventually([&] { return answered >= 60; }));
    at = nullptr;
    for (std::thread& each : clients) each.join();
    CHECK(wrong == 0);
}
