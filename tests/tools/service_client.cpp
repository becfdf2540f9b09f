// SPDX-License-Identifier: BSD-3-Clause
//
// Good and bad clients of `translate serve`.
//
//     service_client PORT ask CLIENTS [BEAM [ROUNDS]] <sentences
//     service_client PORT bombard COUNT LINE [CLIENTS]
//     service_client PORT hold COUNT SECONDS
//
// ask: each client sends a request, waits and repeats; prints the translations in order, and the rate on standard
// error. bombard: COUNT hostile requests, concurrent with clients that translate this line. hold: COUNT connections
// that send a byte from time to time.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <support/http_connection.hpp>

namespace {

using clock_type = std::chrono::steady_clock;
using namespace std::chrono_literals;

int port = 0;

struct connection : support::http_connection {
    connection() : http_connection(port) {}
};

std::string quoted(const std::string& text)
{
    std::string result = "\"";
    for (const char each : text) {
        if (each == '"' || each == '\\') result += '\\';
        result += each;
    }
    return result + '"';
}

std::string post(const std::string& body, const std::string& more = "")
{
    return "POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// The first "text" of an answer. The texts of these tests have no escapes.
std::string text_of(const std::string& body)
{
    const std::string mark = "\"text\":\"";
    const std::size_t at = body.find(mark);
    if (at == body.npos) return "?";
    std::string result;
    for (std::size_t i = at + mark.size(); i < body.size() && body[i] != '"'; ++i) {
        if (body[i] == '\\') ++i;
        result += body[i];
    }
    return result;
}

int ask(std::size_t clients, const std::string& beam, std::size_t rounds)
{
    std::vector<std::string> lines;
    for (std::string line; std::getline(std::cin, line);) lines.push_back(line);
    std::vector<std::string> answers(lines.size());
    std::atomic<std::size_t> next{0}, failed{0}, again{0};
    std::vector<double> latencies;
    std::mutex mutex;
    const auto start = clock_type::now();
    std::vector<std::thread> threads;
    for (std::size_t client = 0; client < clients; ++client) {
        threads.emplace_back([&] {
            connection to;
            std::vector<double> mine;
            for (std::size_t i = next++; i < rounds * lines.size(); i = next++) {
                const std::size_t line = i % lines.size();
                const auto asked = clock_type::now();
                connection::reply reply;
                do {
                    if (!to.send(
                            post("{\"text\":" + quoted(lines[line]) + (beam.empty() ? "" : ",\"beam\":" + beam) + "}")))
                        break;
                    reply = to.receive();
                    if (reply.status == 429) ++again, std::this_thread::sleep_for(100ms);
                } while (reply.status == 429);
                mine.push_back(std::chrono::duration<double>(clock_type::now() - asked).count());
                if (reply.status != 200) {
                    ++failed;
                    break;
                }
                answers[line] = text_of(reply.body);
            }
            const std::lock_guard<std::mutex> lock(mutex);
            latencies.insert(latencies.end(), mine.begin(), mine.end());
        });
    }
    for (std::thread& each : threads) each.join();
    const double seconds = std::chrono::duration<double>(clock_type::now() - start).count();
    std::size_t words = 0;
    for (const std::string& each : answers) {
        std::cout << each << '\n';
        words += each.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(each.begin(), each.end(), ' '));
    }
    std::sort(latencies.begin(), latencies.end());
    const auto part = [&](double share) {
        return latencies.empty()
                   ? 0
                   : 1000 * latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))];
    };
    std::fprintf(stderr,
                 "%zu clients: %zu answers in %.2f s: %.0f words/s; latency %.0f ms median, %.0f ms 99%%; %zu refused "
                 "at first, %zu failed\n",
                 clients, latencies.size(), seconds, static_cast<double>(words * rounds) / seconds, part(0.5),
                 part(0.99), again.load(), failed.load());
    return failed == 0 ? 0 : 1;
}

constexpr std::size_t kinds = 18;

/// One hostile request. Returns whether the response, if any, was an error.
bool attack(std::size_t kind, std::size_t number)
{
    connection to;
    const auto refused = [&](std::chrono::milliseconds in_time = 30s) {
        const int status = to.receive(in_time).status;
        return status == 0 || (status >= 400 && status < 500) || status == 503;
    };
    switch (kind) {
    case 0:
        return to.send(post("{\"text\": \"a" + std::string(number % 7, '[') + "}")) && refused();
    case 1:
        return to.send("POST /translate HTTP/1.1\r\nContent-Length: 999999999999999\r\n\r\n{}") && refused();
    case 2:
        to.send(post(std::string(400'000, 'x')));
        return refused();
    case 3:
        return to.send(post("{\"text\": \"a\"}").substr(0, 40 + number % 50));  // then disconnects
    case 4:
        for (const char each : std::string("POST /translate HTTP")) {
            if (!to.send(std::string(1, each))) break;
            std::this_thread::sleep_for(5ms);
        }
        return true;
    case 5:  // requests a lot, then disconnects
        to.send(post("{\"text\": [\"one two three one two\", \"three two one\"], \"beam\": 12}"));
        if (number % 2 == 0) to.reset();
        return true;
    case 6: {
        std::string flood = "GET /health HTTP/1.1\r\n";
        for (int i = 0; i < 2000; ++i) flood += "X-" + std::to_string(i) + ": " + std::string(40, 'y') + "\r\n";
        to.send(flood + "\r\n");
        return refused();
    }
    case 7: {
        std::string noise;
        for (std::size_t i = 0; i < 200; ++i) noise += static_cast<char>((number * 7919 + i * 104729) % 251);
        return to.send(noise + "\r\n\r\n") && refused();
    }
    case 8:
        return to.send(post(std::string(100'000, '['))) && refused();
    case 9:
        return to.send("POST /translate HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n{}") && refused();
    case 10:
        return to.send(post("{\"text\": \"a\", \"beam\": 1000000000}")) && refused();
    case 11: {
        std::string words;
        for (int i = 0; i < 3000; ++i) words += "one ";
        return to.send(post("{\"text\": \"" + words + "\"}")) && refused();
    }
    case 12: {  // many requests at once, whose answers it does not read
        to.shrink();
        std::string all;
        for (int i = 0; i < 30; ++i) all += "GET / HTTP/1.1\r\n\r\n";
        to.send(all);
        return true;
    }
    case 13:
        return to.send("GET /../../etc/passwd HTTP/1.1\r\nRange: bytes=0-1,0-1,0-1\r\n\r\n") && refused();
    case 14:
        return to.send(post("{\"text\": \"\xff\xfe\"}")) && refused();
    case 15:
        return to.send("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n") && refused();
    case 16:
        return to.send(post("{\"text\": \"a\"}", "Origin: http://evil.example\r\n")) && refused();
    default:
        return to.send(post("x", "Content-Length: 5\r\n")) && refused();
    }
}

int bombard(std::size_t count, const std::string& line, std::size_t clients)
{
    const std::string question = post("{\"text\":" + quoted(line) + "}");
    connection first;
    first.send(question);
    const auto expected = first.receive();
    if (expected.status != 200) {
        std::fprintf(stderr, "the first question got %d: %s\n", expected.status, expected.body.c_str());
        return 1;
    }
    std::atomic<std::size_t> next{0}, accepted{0}, lost{0}, answered{0}, wrong{0}, left{64};
    double slowest = 0;
    std::string others;  // answers received instead of the translation
    std::mutex mutex;
    std::vector<std::thread> threads;
    const auto start = clock_type::now();
    for (std::size_t i = 0; i < 64; ++i) {
        threads.emplace_back([&] {
            for (std::size_t number = next++; number < count; number = next++) {
                try {
                    if (!attack(number % kinds, number)) ++accepted;
                } catch (const std::exception&) {
                    ++lost;  // could not connect
                }
            }
            --left;
        });
    }
    for (std::size_t i = 0; i < clients; ++i) {
        threads.emplace_back([&] {
            try {
                auto to = std::make_unique<connection>();
                while (left > 0) {
                    const auto asked = clock_type::now();
                    connection::reply reply;
                    if (to->send(question)) reply = to->receive();
                    // The service closes a connection after a number of answers, and announces it in the last one.
                    if (reply.head.find("connection: close") != reply.head.npos) to = std::make_unique<connection>();
                    const double seconds = std::chrono::duration<double>(clock_type::now() - asked).count();
                    const bool right = reply.status == 200 && reply.body == expected.body;
                    ++(right ? answered : wrong);
                    const std::lock_guard<std::mutex> lock(mutex);
                    if (!right) others += "\n" + std::to_string(reply.status) + " " + reply.body;
                    if (reply.status == 0) break;
                    slowest = std::max(slowest, seconds);
                }
            } catch (const std::exception&) {
                ++wrong;
            }
        });
    }
    for (std::thread& each : threads) each.join();
    std::fprintf(
        stderr,
        "%zu hostile requests in %.1f s: %zu accepted, %zu without a connection; meanwhile %zu good ones answered, "
        "the slowest in %.2f s, and %zu not, where %s was expected%s\n",
        count, std::chrono::duration<double>(clock_type::now() - start).count(), accepted.load(), lost.load(),
        answered.load(), slowest, wrong.load(), expected.body.c_str(), others.c_str());
    return accepted == 0 && wrong == 0 && answered > 0 && lost == 0 ? 0 : 1;
}

int hold(std::size_t count, double seconds)
{
    std::vector<connection> all(count);
    const std::string text = "POST /translate HTTP/1.1\r\nContent-Length: 1000\r\n\r\n" + std::string(900, ' ');
    const auto end = clock_type::now() + std::chrono::duration<double>(seconds);
    for (std::size_t i = 0; clock_type::now() < end && i < text.size(); ++i) {
        for (connection& each : all) each.send(text.substr(i, 1));
        std::this_thread::sleep_for(20ms);
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> given(argv + 1, argv + argc);
    const auto number = [&](std::size_t i, std::size_t otherwise) {
        return i < given.size() ? static_cast<std::size_t>(std::stoul(given[i])) : otherwise;
    };
    try {
        if (given.size() < 3) throw std::runtime_error("see the head of its source");
        port = std::stoi(given[0]);
        if (given[1] == "ask") return ask(number(2, 32), given.size() > 3 ? given[3] : "", number(4, 1));
        if (given[1] == "bombard" && given.size() > 3) return bombard(number(2, 10000), given[3], number(4, 8));
        if (given[1] == "hold") return hold(number(2, 100), given.size() > 3 ? std::stod(given[3]) : 1);
        throw std::runtime_error(given[1] + " is not known");
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "service_client: %s\n", problem.what());
        return 1;
    }
}
