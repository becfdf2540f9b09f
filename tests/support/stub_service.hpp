// SPDX-License-Identifier: BSD-3-Clause
#pragma once

// The service of `translate serve`, with a stub instead of a model.

#include <atomic>
#include <cctype>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../tools/translate/serve/http.hpp"
#include "../../tools/translate/serve/service.hpp"

namespace support {

/// Requests wait here while the gate is shut.
class gate {
public:
    void pass()
    {
        std::unique_lock lock(mutex_);
        opened_.wait(lock, [&] { return open_; });
    }
    void set(bool open)
    {
        const std::lock_guard lock(mutex_);
        open_ = open;
        opened_.notify_all();
    }

private:
    std::mutex mutex_;
    std::condition_variable opened_;
    bool open_ = true;
};

/// A service that translates to capitals, on a free port for its whole lifetime.
class stub_service {
public:
    explicit stub_service(
        std::function<void(const translation::http::record&)> seen = [](const auto&) {},
        const translation::service_limits& most = limits(), const translation::http::limits& of_connections = {})
        : at_(engine(), most, {}),
          server_(
              of_connections, [this](const translation::http::request& asked) { return at_.answer(asked); },
              [this, seen = std::move(seen)](const translation::http::record& what) {
                  at_.observe(what);
                  seen(what);
              })
    {
        at_.report([this] { return server_.count(); });
        port = server_.bind("127.0.0.1", 0);
        runs_ = std::thread([this] { server_.run(); });
    }
    stub_service(const stub_service&) = delete;
    stub_service& operator=(const stub_service&) = delete;
    ~stub_service()
    {
        model.set(true);
        stop();
        join();
    }

    /// Stops the service, as SIGTERM does.
    void stop()
    {
        at_.stop();
        server_.stop();
    }
    /// Returns when the service has ended.
    void join()
    {
        if (runs_.joinable()) runs_.join();
    }
    std::size_t at_work() const { return server_.count().at_work; }

    gate model;
    std::atomic<int> begun{0}, given_up{0};  // searches for "forever" that have begun, have ended
    int port = 0;

    static translation::service_limits limits()
    {
        translation::service_limits most;
        most.batches = {.batch = 4, .queue = 100, .workers = 2};
        return most;
    }

private:
    /// The sentence "forever" is translated until it is canceled; others become capitals. A sentence has one token per
    /// byte, and is one word; its weights have a row per byte.
    translation::engine engine()
    {
        return {"stub", true, [](const std::string& text) { return text.size(); },
                [this](const std::vector<std::string>& lines, const translation::wishes& how,
                       const std::function<bool(std::size_t)>& wanted) {
                    model.pass();
                    std::vector<translation::served_sentence> all;
                    for (std::size_t i = 0; i < lines.size(); ++i) {
                        const std::string& line = lines[i];
                        if (line == "forever") {
                            ++begun;
                            while (wanted(i)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            ++given_up;
                            all.emplace_back();
                            continue;
                        }
                        std::string text = line;
                        for (char& each : text)
                            each = static_cast<char>(std::toupper(static_cast<unsigned char>(each)));
                        translation::served_translation one{text, {text}, 0, 0, {}};
                        if (how.alignment) one.weights.assign(line.size(), std::vector<float>(line.size(), 0.1234f));
                        all.push_back({{line}, std::vector(how.alternatives, one)});
                    }
                    return all;
                }};
    }

    translation::service at_;
    translation::http::server server_;
    std::thread runs_;
};

/// POST /translate with this body. `more`: headers, each with its line end.
inline std::string post(const std::string& body, const std::string& more = "", const std::string& version = "1.1")
{
    return "POST /translate HTTP/" + version + "\r\nContent-Type: application/json\r\n" + more +
           "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

/// A request for a translation.
inline std::string ask(const std::string& text, const std::string& version = "1.1")
{
    const std::string body = "{\"text\": \"" + text + "\"}";
    return post(body, "", version);
}

/// Waits until the condition holds, or a timeout.
inline bool eventually(const auto& is_so)
{
    for (const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30); !is_so();) {
        if (std::chrono::steady_clock::now() > end) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
}

}  // namespace support
