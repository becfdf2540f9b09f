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

/// HTTP for `translate serve`, without what it is made of.
///
/// One thread waits for all connections at once and reads each request to its end; only then does the request get a
/// thread, in which cpp-httplib reads its first line and writes the answer. So a slow or idle client costs a file
/// descriptor and a few kilobytes, but no thread.
namespace translation::http {

struct limits {
    std::size_t head = std::size_t{16} << 10;   // bytes of the first line and the headers
    std::size_t body = std::size_t{256} << 10;  // bytes
    std::size_t connections = 512;       // open at a time; beyond, that whose request is longest in coming is closed
    std::size_t at_work = 256;           // requests at a time that are complete and not answered
    std::size_t each_connection = 1000;  // requests of one connection
    // For a connection's first request from when it is open, for another one from its first byte; empty lines before it
    // count.
    std::chrono::milliseconds to_arrive{10'000};
    std::chrono::milliseconds between{30'000};  // from an answer to the next request
    std::chrono::milliseconds to_take{10'000};  // for the client to read an answer
};

/// Whether the client is still there.
class presence {
public:
    /// Calls this when the client goes; at once if it is gone.
    void when_gone(std::function<void()> what);
    void go();

private:
    std::mutex mutex_;
    bool gone_ = false;
    std::function<void()> what_;
};

struct request {
    std::string method, path, body;
    std::string host, origin, content_type, fetch_site;  // headers; empty if they are not there
    std::chrono::steady_clock::time_point arrived;       // completely
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

/// What the log and the metrics say of a request. `status` 499: the client went away.
struct record {
    std::string client, method, path, remark;
    int status = 0;
    std::size_t bytes = 0;  // of the answer
    double seconds = 0;
};

struct counters {
    std::size_t connections = 0, at_work = 0, threads = 0;  // now
    std::uint64_t accepted = 0, displaced = 0;              // connections; closed to make room
};

class server {
public:
    using handler = std::function<answer(const request&)>;
    using observer = std::function<void(const record&)>;

    /// Both are called from several threads.
    server(const limits& most, handler answers, observer seen);
    ~server();

    /// Returns the port, which is another one for 0. Throws heed::error.
    int bind(const std::string& host, int port);

    /// Serves until stop() was called and everything that had arrived is answered.
    void run();

    /// May be called from a signal's handler.
    void stop();

    counters count() const;

private:
    class implementation;
    std::unique_ptr<implementation> inside_;
};

}  // namespace translation::http
