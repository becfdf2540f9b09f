// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

/// HTTP for `translate serve`, independent of the implementation.
///
/// One thread polls all connections and receives each request completely; only then does the request get a thread, in
/// which cpp-httplib parses its first line and writes the response. A slow or idle client therefore costs a file
/// descriptor and a few kilobytes, but no thread.
namespace translation::http {

struct limits {
    std::size_t head = std::size_t{16} << 10;   // bytes of the first line and the headers
    std::size_t body = std::size_t{256} << 10;  // bytes
    std::size_t connections = 512;              // open at a time; beyond that, the slowest incoming request is closed
    std::size_t at_work = 256;                  // concurrent requests that are complete and not answered
    std::size_t each_connection = 1000;         // requests per connection
    // Time limit of a request: the first one counts from the opening of the connection, later ones from their first
    // byte, not counting empty lines.
    std::chrono::milliseconds to_arrive{10'000};
    std::chrono::milliseconds between{30'000};  // from a response to the next request
    std::chrono::milliseconds to_take{10'000};  // for the client to read a response
};

/// Whether the client is still connected.
class presence {
public:
    /// Calls this when the client disconnects; immediately if it has disconnected already.
    void when_gone(std::function<void()> what);
    void go();

private:
    std::mutex mutex_;
    bool gone_ = false;
    std::function<void()> what_;
};

struct request {
    std::string method, path, body;
    std::string host, origin, content_type, fetch_site;  // headers; empty if missing
    std::chrono::steady_clock::time_point arrived;       // of the complete request
    presence* client = nullptr;
};

struct answer {
    int status = 200;
    std::string body;
    std::string type = "application/json";
    std::vector<std::pair<std::string, std::string>> headers = {};
    std::string remark = {};  // for the log
};

/// {"error": …}
answer refusal(int status, const std::string& why);

/// The record of a request for the log and the metrics. `status` 499: the client disconnected.
struct record {
    std::string client, method, path, remark;
    int status = 0;
    std::size_t bytes = 0;  // of the response
    double seconds = 0;
};

struct counters {
    std::size_t connections = 0, at_work = 0, threads = 0;  // currently
    std::uint64_t accepted = 0, displaced = 0;              // connections; connections closed to make room
    std::uint64_t cut = 0;                                  // responses that the client did not take completely
};

class server {
public:
    using handler = std::function<answer(const request&)>;
    using observer = std::function<void(const record&)>;

    /// Both are called from several threads.
    server(const limits& most, handler answers, observer seen);
    ~server();

    /// Returns the port; for 0, a free port. Throws heed::error.
    int bind(const std::string& host, int port);

    /// Serves until stop() was called and all received requests are answered.
    void run();

    /// May be called from a signal handler.
    void stop();

    counters count() const;

private:
    class implementation;
    std::unique_ptr<implementation> inside_;
};

}  // namespace translation::http
