// SPDX-License-Identifier: BSD-3-Clause

// The service of `translate serve`, tested without a model. Built a second time with ThreadSanitizer.

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
using support::post;
using support::stub_service;

namespace {

const std::string health = "GET /health HTTP/1.1\r\n\r\n";

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

}  // namespace

TEST_CASE("A client that stops sending gets its answer; the request of a disconnected client is abandoned")
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

TEST_CASE("On shutdown, received requests are answered, and open connections read that it is stopping")
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

TEST_CASE("Clients of all kinds at once, and shutdown while they send requests")
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
                    if ((client + round) % 4 == 0) continue;  // disconnects
                    if ((client + round) % 4 == 1) to.end();
                    for (int i = 0; i < 3; ++i) {
                        const auto reply = to.receive();
                        if (reply.status == 200) ++answered;
                        if (reply.status == 200 && i == 0 && !has(reply.body, "T" + std::to_string(round))) ++wrong;
                        if (reply.status != 200 && reply.status != 503 && !reply.ended) ++wrong;
                        if (reply.ended) break;
                    }
                }
            } catch (const std::exception&) {}  // the service has stopped
        });
    }
    CHECK(eventually([&] { return answered >= 60; }));
    at = nullptr;
    for (std::thread& each : clients) each.join();
    CHECK(wrong == 0);
}

TEST_CASE("Requests of disconnected clients and requests that time out are not translated to the end")
{
    auto most = stub_service::limits();
    stub_service at([](const auto&) {}, most);
    {
        http_connection gone(at.port);
        gone.send(ask("forever"));
        CHECK(eventually([&] { return at.begun == 1; }));
        gone.reset();
    }
    CHECK(eventually([&] { return at.given_up == 1; }));
    most.timeout = std::chrono::milliseconds(1500);
    stub_service hurried([](const auto&) {}, most);
    http_connection waiting(hurried.port);
    waiting.send(ask("forever"));
    CHECK(eventually([&] { return hurried.begun == 1; }));
    const auto late = waiting.receive();
    CHECK(late.status == 504);
    CHECK(has(late.body, "not translated within 1.5 s"));
    CHECK(eventually([&] { return hurried.given_up == 1; }));
}

TEST_CASE("The work of a request and the size of its answer are limited")
{
    auto most = stub_service::limits();
    most.work = 1000;
    most.numbers = 2000;
    stub_service at([](const auto&) {}, most);
    http_connection to(at.port);
    const auto answer_to = [&](const std::string& body) {
        to.send(post(body));
        return to.receive();
    };
    const std::string text = R"("text": ["0123456789", "0123456789"])";  // 20 tokens
    CHECK(answer_to("{" + text + R"(, "beam": 50})").status == 200);
    const auto work = answer_to("{" + text + R"(, "beam": 51})");
    CHECK(work.status == 413);
    CHECK(has(work.body, "20 tokens and a beam of 51 make 1020; at most 1000 are accepted per request"));
    CHECK(answer_to("{" + text + R"(, "beam": 10, "alternatives": 6, "alignment": true})").status == 200);
    const auto numbers = answer_to("{" + text + R"(, "beam": 10, "alternatives": 7, "alignment": true})");
    CHECK(numbers.status == 413);  // 8 times 131, for two sentences
    CHECK(has(numbers.body, "about 2096 words and weights; at most 2000 are written"));
    CHECK(answer_to("{" + text + R"(, "beam": 50, "alternatives": 50})").status == 200);
}

TEST_CASE("The timeout of an answer also applies while it is written")
{
    auto most = stub_service::limits();
    most.length = 2000;
    most.numbers = 10'000'000;
    most.timeout = std::chrono::milliseconds(150);
    stub_service at([](const auto&) {}, most);
    http_connection to(at.port);
    to.send(post("{\"beam\": 1, \"alignment\": true, \"text\": \"" + std::string(1900, 'x') + "\"}"));
    const auto late = to.receive();
    CHECK(late.status == 504);
    to.send("GET /metrics HTTP/1.1\r\n\r\n");
    if (!has(to.receive().body, "\nheed_requests_late_total 0\n")) return;  // translating took too long on this machine
    CHECK(has(late.body, "not written within 0.15 s"));
}

TEST_CASE("Responses that clients do not take completely are counted, and other clients are served")
{
    auto most = stub_service::limits();
    most.length = 2000;
    most.numbers = 10'000'000;
    translation::http::limits brief;
    brief.to_take = std::chrono::milliseconds(300);
    stub_service at([](const auto&) {}, most, brief);
    const auto cut = [&](const std::string& count) {
        http_connection to(at.port);
        to.send("GET /metrics HTTP/1.1\r\n\r\n");
        const auto reply = to.receive();
        return reply.status == 200 && has(reply.body, "\nheed_responses_cut_total " + count + "\n");
    };
    // More than the buffers of the connection hold.
    const std::string much = post("{\"beam\": 1, \"alignment\": true, \"text\": \"" + std::string(1200, 'x') + "\"}");
    http_connection taken(at.port);
    taken.send(much);
    CHECK(taken.receive().status == 200);
    CHECK(cut("0"));
    http_connection slow(at.port);  // reads nothing
    slow.shrink();
    slow.send(much);
    {
        http_connection gone(at.port);  // disconnects in the middle of its response
        gone.shrink();
        gone.send(much);
        CHECK(eventually([&] { return gone.is_readable(); }));
        gone.reset();
    }
    CHECK(eventually([&] { return cut("2"); }));
    taken.send(ask("again"));
    CHECK(has(taken.receive().body, "AGAIN"));
}

TEST_CASE("Occasional bytes give a request no more time")
{
    translation::http::limits brief;
    brief.to_arrive = std::chrono::milliseconds(200);
    stub_service at([](const auto&) {}, stub_service::limits(), brief);
    for (const bool again : {false, true}) {
        for (const std::string drops : {"\r\n", "x", "\r"}) {
            CAPTURE(again);
            CAPTURE(drops);
            http_connection slow(at.port);
            if (again) {
                slow.send(health + "\r\n");
                CHECK(slow.receive().status == 200);
            }
            std::size_t sent = 0;
            for (; sent < 200 && !slow.is_readable(); ++sent) {
                slow.send(drops.substr(sent % drops.size(), 1));
                std::this_thread::sleep_for(std::chrono::milliseconds(20));
            }
            CHECK(sent < 200);  // it was reported as too slow, or its connection was closed
        }
    }
}

TEST_CASE("Pages of other origins cannot use a service on this machine")
{
    const std::string body = R"({"text": "a"})", json = "application/json";
    const auto asked = [&](int port, const std::string& head, const std::string& type) {
        http_connection to(port);
        to.send("POST /translate HTTP/1.1\r\n" + head + (type.empty() ? "" : "Content-Type: " + type + "\r\n") +
                "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
        return to.receive();
    };
    stub_service at;
    const std::string port = std::to_string(at.port);
    for (const std::string& host : {"127.0.0.1:" + port, std::string("localhost"), "[::1]:" + port,
                                    std::string("LOCALHOST:1"), std::string("a.localhost")})
        CHECK(asked(at.port, "Host: " + host + "\r\n", json).status == 200);
    for (const std::string host : {"evil.example", "evil.example:8080", "127.0.0.1.evil.example", "127.evil.example",
                                   "notlocalhost", "[::2]", "192.0.2.1", "[", ":", "localhost.evil.example"}) {
        CAPTURE(host);
        const auto reply = asked(at.port, "Host: " + host + "\r\n", json);
        CHECK(reply.status == 403);
        CHECK(has(reply.body, "--allow-host"));
    }
    CHECK(asked(at.port, "Host: localhost\r\nHost: localhost\r\n", json).status == 400);
    http_connection reads(at.port);
    reads.send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n");
    CHECK(reads.receive().status == 403);

    const std::string here = "Host: localhost:" + port + "\r\n";
    CHECK(asked(at.port, here + "Origin: http://localhost:" + port + "\r\n", json).status == 200);
    const std::string proxied = "Origin: https://proxy.example\r\nSec-Fetch-Site: same-origin\r\n";
    CHECK(asked(at.port, here + proxied, json).status == 200);
    for (const std::string origin : {"http://evil.example", "null", "http://localhost:1", "http://localhost"}) {
        CAPTURE(origin);
        const auto reply = asked(at.port, here + "Sec-Fetch-Site: cross-site\r\nOrigin: " + origin + "\r\n", json);
        CHECK(reply.status == 403);
        CHECK(has(reply.body, "--allow-origin"));
    }
    for (const std::string type : {"application/json; charset=utf-8", "Application/JSON"})
        CHECK(asked(at.port, here, type).status == 200);
    for (const std::string type : {"", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"}) {
        CAPTURE(type);
        const auto reply = asked(at.port, here, type);
        CHECK(reply.status == 415);
        CHECK(has(reply.body, "Content-Type must be application/json"));
    }

    auto most = stub_service::limits();
    most.hosts = {"translate.example"};
    most.origins = {"https://one.example", "https://two.example"};
    stub_service open([](const auto&) {}, most);
    const auto two = asked(open.port, "Host: Translate.example:80\r\nOrigin: https://two.example\r\n", json);
    CHECK(two.status == 200);
    CHECK(has(two.head, "access-control-allow-origin: https://two.example\r\n"));
    CHECK(has(two.head, "vary: origin\r\n"));
    CHECK(asked(open.port, "Host: evil.example\r\n", json).status == 403);
    const auto three = asked(open.port, "Host: localhost\r\nOrigin: https://three.example\r\n", json);
    CHECK(three.status == 403);
    CHECK(!has(three.head, "access-control"));
}

TEST_CASE("Only connections that stay open announce Keep-Alive")
{
    translation::http::limits few;
    few.each_connection = 2;
    stub_service at([](const auto&) {}, stub_service::limits(), few);
    const auto stays_open = [&](const std::string& request) {
        CAPTURE(request);
        http_connection to(at.port);
        to.send(request);
        const auto reply = to.receive();
        CHECK(reply.status > 0);
        const bool stays = has(reply.head, "keep-alive: timeout=");
        CHECK(has(reply.head, "connection: close\r\n") == !stays);
        if (!stays) CHECK(to.receive().ended);
        return stays;
    };
    CHECK(stays_open(health));
    CHECK(stays_open("GET /health HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    CHECK(stays_open("GET /nothing HTTP/1.1\r\n\r\n"));
    CHECK(!stays_open("GET /health HTTP/1.0\r\n\r\n"));
    CHECK(!stays_open("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"));
    CHECK(!stays_open("GET /health HTTP/1.1\r\nConnection: TE, Close\r\n\r\n"));
    CHECK(!stays_open("NONSENSE /health HTTP/1.1\r\n\r\n"));
    CHECK(!stays_open("GET /health\r\n\r\n"));
    http_connection twice(at.port);
    twice.send(health + health);
    CHECK(has(twice.receive().head, "keep-alive: "));
    const auto last = twice.receive();
    CHECK(!has(last.head, "keep-alive: "));
    CHECK(has(last.head, "connection: close\r\n"));
    CHECK(twice.receive().ended);
}
