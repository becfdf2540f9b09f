// SPDX-License-Identifier: BSD-3-Clause
#include "http.hpp"
#include "http_head.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <list>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <httplib.h>

#include <heed/core/errors.hpp>

namespace translation::http {

using clock = std::chrono::steady_clock;

namespace {

constexpr std::size_t chunk = 16384;
constexpr std::chrono::milliseconds patience{250};  // for the first byte of a new client, if there are many connections
constexpr std::chrono::seconds grace{5};            // for the next request, if there are many connections

constexpr const char* no_memory = "out of memory; send less, or use a smaller beam";
constexpr std::string_view go_on = "HTTP/1.1 100 Continue\r\n\r\n";

/// The stream from which httplib reads a request and to which it writes the response.
class memory_stream final : public httplib::Stream {
public:
    explicit memory_stream(std::string in) : in_(std::move(in)) {}

    bool is_readable() const override { return at_ < in_.size(); }
    bool is_writable() const override { return true; }
    ssize_t read(char* to, std::size_t size) override
    {
        const std::size_t count = in_.copy(to, size, at_);
        at_ += count;
        return static_cast<ssize_t>(count);
    }
    ssize_t write(const char* from, std::size_t size) override
    {
        out.append(from, size);
        return static_cast<ssize_t>(size);
    }
    void get_remote_ip_and_port(std::string&, int&) const override {}
    void get_local_ip_and_port(std::string&, int&) const override {}
    socket_t socket() const override { return INVALID_SOCKET; }

    std::string out;

private:
    std::string in_;
    std::size_t at_ = 0;
};

/// httplib's server without its socket loop.
class interpreter final : public httplib::Server {
public:
    interpreter(const limits& most, const server::handler& answers)
    {
        set_keep_alive_max_count(most.each_connection);
        set_keep_alive_timeout(std::chrono::duration_cast<std::chrono::seconds>(most.between).count());
        // By default, a second server may bind the same port, and requests go to either.
        set_socket_options([](socket_t socket) {
            const int yes = 1;
            ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
        });
        set_pre_routing_handler([&answers](const httplib::Request& asked, httplib::Response& response) {
            current& now = *here;
            now.what.method = asked.method;
            now.what.path = asked.path;
            answer said;
            try {
                said = answers(now.what);
            } catch (const std::bad_alloc&) {
                throw;
            } catch (const std::exception& problem) {
                said = refusal(500, problem.what());
            }
            now.status = response.status = said.status;
            now.remark = std::move(said.remark);
            for (const auto& [name, value] : said.headers) response.set_header(name, value);
            response.set_content(said.body, said.type);
            return HandlerResponse::Handled;
        });
        set_exception_handler([](const httplib::Request&, httplib::Response&, std::exception_ptr why) {
            std::rethrow_exception(std::move(why));  // out of memory: run() throws it
        });
        set_error_handler([](const httplib::Request& asked, httplib::Response& response) {
            if (!response.body.empty()) return;
            current& now = *here;
            now.status = response.status;
            now.what.method = asked.method;
            now.what.path = asked.path;
            now.close = true;  // the start of the next request is unknown
            response.set_content(refusal(response.status, "not a supported HTTP/1.0 or HTTP/1.1 request").body,
                                 "application/json");
        });
    }

    /// A request during its processing by httplib.
    struct current {
        request what;
        int status = 400;
        std::string remark;
        bool close = false;
    };

    /// The bytes of the response. Throws std::bad_alloc.
    std::string run(const request_head& head, current& now)
    {
        if (!head.first_line.ends_with(" HTTP/1.1") && !head.keeps) now.close = true;
        memory_stream stream(head.first_line +
                             (head.closes  ? "\r\nConnection: close"
                              : head.keeps ? "\r\nConnection: Keep-Alive"
                                           : "") +
                             "\r\n\r\n");
        here = &now;
        bool closed = now.close;
        const bool good = process_request(stream, now.close, closed, nullptr);
        here = nullptr;
        now.close = now.close || closed || !good || stream.out.empty();
        if (now.close) announce_end(stream.out);
        return std::move(stream.out);
    }

    int bind(const std::string& host, int port)
    {
        const bool done = port == 0 ? (port = bind_to_any_port(host)) > 0 : bind_to_port(host, port);
        if (!done) {
            const std::string reason = errno == 0 ? "no such address" : std::strerror(errno);
            throw heed::error("cannot listen at " + host + ", port " + std::to_string(std::max(port, 0)) + ": " +
                              reason);
        }
        return port;
    }
    int socket() const { return svr_sock_; }

private:
    /// httplib writes the connection headers before it is known whether this is the last response.
    static void announce_end(std::string& out)
    {
        const std::size_t end = out.find("\r\n\r\n");
        if (end == out.npos) return;
        std::string head;
        for (std::size_t at = 0; at < end;) {
            const std::size_t next = std::min(end, out.find("\r\n", at)) + 2;
            const std::string_view line = std::string_view(out).substr(at, next - at);
            const std::string_view name = line.substr(0, line.find(':'));
            if (!same(name, "Connection") && !same(name, "Keep-Alive")) head += line;
            at = next;
        }
        out.replace(0, end + 2, head + "Connection: close\r\n");
    }

    static inline thread_local current* here = nullptr;
};

/// A response without httplib, for invalid requests.
std::string as_http(const answer& what)
{
    std::string text = "HTTP/1.1 " + std::to_string(what.status) + " ";
    switch (what.status) {
    case 408:
        text += "Request Timeout";
        break;
    case 411:
        text += "Length Required";
        break;
    case 413:
        text += "Payload Too Large";
        break;
    case 415:
        text += "Unsupported Media Type";
        break;
    case 429:
        text += "Too Many Requests";
        break;
    case 431:
        text += "Request Header Fields Too Large";
        break;
    case 503:
        text += "Service Unavailable";
        break;
    default:
        text += "Bad Request";
        break;
    }
    text += "\r\nConnection: close\r\nContent-Type: " + what.type +
            "\r\nContent-Length: " + std::to_string(what.body.size()) + "\r\n";
    for (const auto& [name, value] : what.headers) text += name + ": " + value + "\r\n";
    return text + "\r\n" + what.body;
}

std::string address_of(const sockaddr_storage& from, socklen_t size)
{
    char host[NI_MAXHOST] = "?";
    ::getnameinfo(reinterpret_cast<const sockaddr*>(&from), size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
    return host;
}

}  // namespace

class server::implementation {
public:
    implementation(const limits& most, handler answers, observer seen)
        : most_(most),
          answers_(std::move(answers)),
          seen_(std::move(seen)),
          parser_(most_, answers_),
          out_of_memory_(as_http(refusal(503, no_memory))),
          wake_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC))
    {
        if (wake_ < 0) throw heed::error(std::string("cannot make an eventfd: ") + std::strerror(errno));
        leave_descriptors();
    }

    ~implementation()
    {
        {
            const std::lock_guard lock(mutex_);
            ending_ = true;
        }
        more_.notify_all();
        for (std::unique_lock lock(mutex_); threads_ > 0;) thread_ended_.wait(lock);
        for (auto& each : connections_) ::close(each.second.socket);
        if (listener_ >= 0) ::close(listener_);
        ::close(wake_);
    }

    int bind(const std::string& host, int port)
    {
        errno = 0;
        port = parser_.bind(host, port);
        listener_ = parser_.socket();
        if (::listen(listener_, 1024) != 0) throw heed::error(std::string("cannot listen: ") + std::strerror(errno));
        ::fcntl(listener_, F_SETFL, ::fcntl(listener_, F_GETFL) | O_NONBLOCK);
        return port;
    }

    void stop()
    {
        stopping_ = true;
        wake();
    }

    void run()
    {
        while (!(listener_ < 0 && connections_.empty())) {
            try {
                wait();
                if (stopping_) finish();
            } catch (const std::bad_alloc&) {  // pending signals are still there
                std::this_thread::sleep_for(std::chrono::milliseconds(10));
            }
        }
    }

    counters count() const
    {
        counters now;
        now.connections = open_.load();
        now.accepted = accepted_.load();
        now.displaced = displaced_.load();
        now.cut = cut_.load();
        const std::lock_guard lock(mutex_);
        now.at_work = jobs_.size() + busy_;
        now.threads = threads_;
        return now;
    }

private:
    using identity = std::uint64_t;

    enum class state {
        reading,  // reading a request, or waiting for the next
        working,
        writing,
        leaving  // the response is sent; further bytes from the client are read and dropped so that it can read the
                 // response
    };

    struct connection {
        int socket;
        std::string client;
        state now = state::reading;
        std::string in, out;
        std::size_t whole = 0;  // bytes of the request being received, once its head is known
        std::size_t sent = 0, served = 0;
        bool close = false, continued = false;
        bool sends_no_more = false;  // the client may still read
        bool knows_go_on = false;    // HTTP/1.1
        bool begun = true;           // the time limit of the next request has started
        clock::time_point deadline;
        clock::time_point began;  // waiting for the client since: first byte of a request, or the last response
        std::shared_ptr<presence> there;
        std::size_t dropped = 0;
    };

    struct finished {
        identity to;
        std::string out;
        bool close;
        record what;
    };

    struct job {
        identity from;
        request_head head;
        interpreter::current now;
        std::shared_ptr<presence> there;
        std::string client;
        std::list<finished> done;  // a single record: for the log
    };

    /// Every connection is a file descriptor; the program and its models need some as well.
    void leave_descriptors()
    {
        rlimit now{};
        if (::getrlimit(RLIMIT_NOFILE, &now) != 0) return;
        now.rlim_cur = std::min<rlim_t>(now.rlim_max, std::max<rlim_t>(now.rlim_cur, most_.connections + 64));
        ::setrlimit(RLIMIT_NOFILE, &now);
        if (now.rlim_cur < most_.connections + 64)
            most_.connections = now.rlim_cur > 96 ? static_cast<std::size_t>(now.rlim_cur) - 64 : 32;
    }

    void wake() const
    {
        const std::uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(wake_, &one, sizeof one);
    }

    // ---- the thread of all connections

    void wait()
    {
        polled_.clear();
        who_.clear();
        polled_.push_back({wake_, POLLIN, 0});
        const bool accepts = clock::now() >= accept_again_;
        polled_.push_back({accepts ? listener_ : -1, POLLIN, 0});  // ignored if negative
        auto nearest = accepts ? clock::time_point::max() : accept_again_;
        {
            const std::lock_guard lock(mutex_);
            start_threads(0);  // which the system refused earlier
            if (threads_ < busy_ + jobs_.size()) nearest = clock::now() + std::chrono::milliseconds(100);
        }
        for (const auto& [id, each] : connections_) {
            const int working = each.sends_no_more ? 0 : POLLRDHUP;
            const int events = each.now == state::working ? working : each.now == state::writing ? POLLOUT : POLLIN;
            polled_.push_back({each.socket, static_cast<short>(events), 0});
            who_.push_back(id);
            if (each.now != state::working) nearest = std::min(nearest, each.deadline);
        }
        int timeout = -1;
        if (nearest != clock::time_point::max()) {
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(nearest - clock::now()).count();
            timeout = static_cast<int>(std::clamp<long>(static_cast<long>(left) + 1, 0, 60'000));
        }
        if (::poll(polled_.data(), polled_.size(), timeout) < 0) {
            if (errno == ENOMEM) throw std::bad_alloc();
            if (errno != EINTR && errno != EAGAIN) throw heed::error(std::string("poll: ") + std::strerror(errno));
            for (pollfd& each : polled_) each.revents = 0;  // no events
        }

        std::uint64_t ignored = 0;
        [[maybe_unused]] const ssize_t read = ::read(wake_, &ignored, sizeof ignored);
        for (std::size_t i = 0; i < who_.size(); ++i) {
            if (polled_[i + 2].revents != 0) for_one(who_[i], [&](identity id) { ready(id, polled_[i + 2].revents); });
        }
        deliver();
        const clock::time_point now = clock::now();
        for (const identity each : who_) for_one(each, [&](identity id) { expire(id, now); });
        if (listener_ >= 0 && polled_[1].revents != 0) accept_all();
    }

    /// If memory runs out for one connection, it gets an error and is closed; the others are not affected.
    void for_one(identity id, const auto& what)
    {
        try {
            what(id);
        } catch (const std::bad_alloc&) {
            const auto it = connections_.find(id);
            if (it == connections_.end()) return;
            connection& here = it->second;
            if (here.now == state::reading) {  // no response has been started
                [[maybe_unused]] const ssize_t sent =
                    ::send(here.socket, out_of_memory_.data(), out_of_memory_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            }
            leave(here);
        }
    }

    void accept_all()
    {
        for (std::size_t i = 0; i < 256; ++i) {
            if (connections_.size() >= most_.connections) {
                pollfd one{listener_, POLLIN, 0};
                if (::poll(&one, 1, 0) <= 0) return;  // room is not required
                while (connections_.size() >= most_.connections && make_room()) {}
                if (connections_.size() >= most_.connections && patient_) {  // the next client waits
                    accept_again_ = clock::now() + std::chrono::milliseconds(10);
                    return;
                }
            }
            sockaddr_storage from{};
            socklen_t size = sizeof from;
            const int socket =
                ::accept4(listener_, reinterpret_cast<sockaddr*>(&from), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (socket < 0) {
                if (errno == EINTR || errno == ECONNABORTED) continue;
                if ((errno == EMFILE || errno == ENFILE) && make_room()) continue;
                // No descriptors or no memory: the client waits in the queue of the system. poll would return
                // immediately, since the client is ready.
                if (errno != EAGAIN && errno != EWOULDBLOCK)
                    accept_again_ = clock::now() + std::chrono::milliseconds(100);
                return;
            }
            const int yes = 1;
            ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            ++accepted_;
            const clock::time_point now = clock::now();
            try {
                connections_[++last_].socket = socket;
            } catch (const std::bad_alloc&) {
                ::close(socket);
                continue;
            }
            open_ = connections_.size();
            for_one(last_, [&](identity id) {
                connection& added = connections_.find(id)->second;
                added.began = now;
                added.deadline = now + most_.to_arrive;
                added.client = address_of(from, size);
                receive(id);  // bytes that arrived with it
            });
        }
    }

    /// Closes a connection that has ended, or else one that the program waits for: preferably one whose response is
    /// sent, otherwise the request that has been arriving longest. A client that sends single bytes does not keep its
    /// place, and a client that has received a response has a few seconds for its next request. False if there is none;
    /// then `patient_` means that there will be one soon, since the first byte of a new client is awaited briefly.
    bool make_room()
    {
        identity slowest = 0;
        bool answered = false;
        clock::time_point since{};
        const clock::time_point now = clock::now();
        patient_ = false;
        for (const auto& [id, each] : connections_) {
            if (each.now == state::working) continue;
            char next = 0;
            const ssize_t count = ::recv(each.socket, &next, 1, MSG_PEEK | MSG_DONTWAIT);
            if (count == 0 || (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
                drop(id);
                return true;
            }
            const bool leaves = each.now == state::leaving;
            const bool asks_next = each.now == state::reading && each.in.empty();
            if (asks_next && count > 0) continue;  // a complete request may have arrived that has not been read
            if (asks_next && each.served == 0 && now < each.began + patience) {
                patient_ = true;
                continue;
            }
            const clock::time_point began = each.began + (asks_next && each.served > 0 ? grace : grace.zero());
            if (slowest == 0 || leaves > answered || (leaves == answered && began < since)) {
                slowest = id;
                answered = leaves;
                since = began;
            }
        }
        if (slowest == 0) return false;
        if (!answered) ++displaced_;
        drop(slowest);
        return true;
    }

    void drop(identity id)
    {
        const auto it = connections_.find(id);
        if (it->second.now == state::writing) ++cut_;
        ::close(it->second.socket);
        connections_.erase(it);
        open_ = connections_.size();
    }

    void ready(identity id, int events)
    {
        const auto it = connections_.find(id);
        if (it == connections_.end()) return;
        connection& here = it->second;
        switch (here.now) {
        case state::working:
            if ((events & (POLLHUP | POLLERR | POLLNVAL)) == 0 && stays(here)) return;
            if (here.there) here.there->go();
            drop(id);
            return;
        case state::writing:
            return send(id);
        case state::reading:
        case state::leaving:
            if ((events & POLLNVAL) != 0) return drop(id);
            return receive(id);
        }
    }

    /// A client that has stopped sending has either gone or waits for its response; only sending something tells which.
    /// A client that has gone responds with a reset, which poll reports. False if sending fails.
    static bool stays(connection& here)
    {
        here.sends_no_more = true;
        if (!here.knows_go_on) return true;  // HTTP/1.0: its response will tell
        const ssize_t sent = ::send(here.socket, go_on.data(), go_on.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
        return static_cast<std::size_t>(sent) == go_on.size();  // a partial one would be read as part of the response
    }

    void expire(identity id, clock::time_point now)
    {
        const auto it = connections_.find(id);
        if (it == connections_.end()) return;
        connection& here = it->second;
        if (here.now == state::working || here.deadline > now) return;
        if (here.now != state::reading || here.in.empty()) return drop(id);
        refuse(id, refusal(408, "the request did not arrive completely within " +
                                    std::to_string(most_.to_arrive.count() / 1000) + " s"));
    }

    void receive(identity id)
    {
        connection& here = connections_.find(id)->second;
        char buffer[chunk];
        for (;;) {
            const ssize_t count = ::recv(here.socket, buffer, sizeof buffer, 0);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (count <= 0) return drop(id);
            if (here.now == state::leaving) {
                here.dropped += static_cast<std::size_t>(count);
                if (here.dropped > (std::size_t{4} << 20)) return drop(id);
                continue;
            }
            if (!std::exchange(here.begun, true)) {  // later bytes do not change it
                here.began = clock::now();
                here.deadline = here.began + most_.to_arrive;
            }
            here.in.append(buffer, static_cast<std::size_t>(count));
            if (take(id)) return;
            if (static_cast<std::size_t>(count) < sizeof buffer) return;  // poll reports further bytes
        }
    }

    /// Starts processing the request in `in` if it is complete. Returns whether the connection has stopped reading.
    bool take(identity id)
    {
        connection& here = connections_.find(id)->second;
        if (here.in.size() < here.whole) return false;  // the head is not parsed again for each packet of the body
        here.in.erase(0, empty_lines(here.in));         // some clients send an extra line end
        const std::size_t end = here.in.find("\r\n\r\n");
        if (end == here.in.npos || end > most_.head) {
            if (here.in.size() <= most_.head) return false;
            refuse(id, refusal(431, "the head of the request has more than " + heed::counted(most_.head, "byte")));
            return true;
        }
        read_head head(std::string_view(here.in).substr(0, end), most_.body);
        if (head.refused) {
            refuse(id, *head.refused, head.head.first_line);
            return true;
        }
        here.whole = end + 4 + head.head.body;
        if (here.in.size() < here.whole) {
            if (head.head.expects && !std::exchange(here.continued, true)) {
                [[maybe_unused]] const ssize_t sent =
                    ::send(here.socket, go_on.data(), go_on.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
            }
            return false;
        }
        const std::string first_line = head.head.first_line;
        here.knows_go_on = first_line.ends_with(" HTTP/1.1");
        job next{id, std::move(head.head), {}, std::make_shared<presence>(), here.client, {}};
        // Allocated before the work, when memory is available.
        next.done.push_back({id, out_of_memory_, true, record{here.client, "", "", "", 503, 0, 0}});
        next.now.what.body = here.in.substr(end + 4, next.head.body);
        next.now.what.host = next.head.host;
        next.now.what.origin = next.head.origin;
        next.now.what.content_type = next.head.content_type;
        next.now.what.fetch_site = next.head.fetch_site;
        next.now.what.arrived = clock::now();
        next.now.what.client = next.there.get();
        next.now.close = stopping_ || ++here.served >= most_.each_connection;
        here.in.erase(0, std::exchange(here.whole, 0));
        if (here.in.empty()) here.in.shrink_to_fit();
        here.continued = false;
        {
            const std::lock_guard lock(mutex_);
            // Keeps some room for /health and /metrics when all other room is taken.
            const std::size_t room = most_.at_work + (next.head.first_line.starts_with("GET ") ? 16 : 0);
            if (jobs_.size() + busy_ < room) {
                start_threads(1);
                auto there = next.there;
                jobs_.push_back(std::move(next));
                here.now = state::working;
                here.there = std::move(there);
                more_.notify_one();
                return true;
            }
        }
        answer full = refusal(429, "too many concurrent requests; retry later");
        full.headers.emplace_back("Retry-After", "1");
        refuse(id, full, first_line);
        return true;
    }

    /// Sends this response, and closes the connection. `first_line`: of the request, for the log.
    void refuse(identity id, const answer& what, const std::string& first_line = "")
    {
        connection& here = connections_.find(id)->second;
        here.in.clear();
        here.whole = 0;
        record said{here.client, "", "", "", what.status, 0, 0};
        if (const std::size_t space = first_line.find(' '); space != first_line.npos) {
            said.method = first_line.substr(0, space);
            said.path = first_line.substr(space + 1, first_line.find_first_of(" ?", space + 1) - space - 1);
        }
        write(id, as_http(what), true, std::move(said));
    }

    void write(identity id, std::string out, bool close, record what)
    {
        connection& here = connections_.find(id)->second;
        here.now = state::writing;
        here.there = nullptr;
        here.out = std::move(out);
        here.sent = 0;
        here.close = close;
        here.began = clock::now();
        here.deadline = here.began + most_.to_take;
        what.bytes = here.out.size();
        tell(what);
        send(id);
    }

    void send(identity id)
    {
        connection& here = connections_.find(id)->second;
        while (here.sent < here.out.size()) {
            const ssize_t count =
                ::send(here.socket, here.out.data() + here.sent, here.out.size() - here.sent, MSG_NOSIGNAL);
            if (count < 0 && errno == EINTR) continue;
            if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
            if (count <= 0) return drop(id);
            here.sent += static_cast<std::size_t>(count);
        }
        here.out = {};
        if (here.close) return leave(here);
        here.now = state::reading;
        here.began = clock::now();
        here.in.erase(0, empty_lines(here.in));
        here.begun = !here.in.empty();
        here.deadline = here.began + (here.begun ? most_.to_arrive : most_.between);
        if (!here.in.empty()) take(id);  // the next request has already arrived
    }

    /// The response is sent completely.
    static void leave(connection& here)
    {
        ::shutdown(here.socket, SHUT_WR);
        here.now = state::leaving;
        here.deadline = clock::now() + std::chrono::seconds(1);
        std::string().swap(here.in);
    }

    /// The log and the counters may miss a request when memory runs out; its response is still sent.
    void tell(const record& what) noexcept
    {
        try {
            seen_(what);
        } catch (const std::bad_alloc&) {}
    }

    void deliver()
    {
        std::list<finished> ready;
        {
            const std::lock_guard lock(mutex_);
            ready.swap(finished_);
        }
        for (finished& each : ready) {
            if (connections_.contains(each.to)) {
                // The next request of the connection may allocate as well.
                for_one(each.to,
                        [&](identity id) { write(id, std::move(each.out), each.close, std::move(each.what)); });
            } else {
                each.what.status = 499;
                each.what.bytes = 0;
                tell(each.what);
            }
        }
    }

    /// Accepts no new connections and answers all requests received so far. Open connections may send one more request
    /// while there is work, so that a load balancer reads that the service is stopping.
    void finish()
    {
        if (listener_ >= 0) {
            accept_all();
            ::close(std::exchange(listener_, -1));
        }
        const auto each_that_reads = [this](const auto& what) {
            for (auto next = connections_.begin(); next != connections_.end();) {
                const auto it = next++;  // may be removed from the map
                if (it->second.now == state::reading) for_one(it->first, what);
            }
        };
        each_that_reads([this](identity id) {
            receive(id);
            const auto it = connections_.find(id);
            if (it != connections_.end() && it->second.now == state::reading && !it->second.in.empty())
                refuse(id, refusal(503, "the service is stopping"));
        });
        const bool work = std::any_of(connections_.begin(), connections_.end(), [](const auto& each) {
            return each.second.now == state::working || each.second.now == state::writing;
        });
        if (!work) each_that_reads([this](identity id) { leave(connections_.find(id)->second); });
    }

    // ---- the threads that answer

    // Requires the lock: one thread for each job, and `more` additional threads.
    void start_threads(std::size_t more)
    {
        while (threads_ < busy_ + jobs_.size() + more) {
            try {
                std::thread([this] { work(); }).detach();  // the destructor waits for all threads
                ++threads_;
            } catch (const std::exception&) {               // no more threads, or no memory
                if (threads_ == 0) throw std::bad_alloc();  // otherwise it is retried later
                return;
            }
        }
    }

    void work()
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            const bool wanted =
                more_.wait_for(lock, std::chrono::seconds(2), [&] { return ending_ || !jobs_.empty(); });
            if (jobs_.empty() && (ending_ || !wanted)) break;  // an idle thread ends
            job next = std::move(jobs_.front());
            jobs_.pop_front();
            ++busy_;
            lock.unlock();
            finished& done = next.done.front();
            try {
                done.out = parser_.run(next.head, next.now);
                done.close = next.now.close;
                done.what.method = std::move(next.now.what.method);
                done.what.path = std::move(next.now.what.path);
                done.what.remark = std::move(next.now.remark);
                done.what.status = next.now.status;
            } catch (const std::exception&) {}  // the response is the one prepared earlier
            done.what.seconds = std::chrono::duration<double>(clock::now() - next.now.what.arrived).count();
            std::list<finished> ended = std::move(next.done);
            next = {};
            lock.lock();
            --busy_;
            finished_.splice(finished_.end(), ended);
            wake();
        }
        --threads_;
        thread_ended_.notify_all();
    }

    limits most_;
    handler answers_;
    observer seen_;
    interpreter parser_;
    const std::string out_of_memory_;  // a response
    int wake_ = -1, listener_ = -1;
    std::atomic<bool> stopping_{false};
    static_assert(std::atomic<bool>::is_always_lock_free);

    std::unordered_map<identity, connection> connections_;
    identity last_ = 0;
    clock::time_point accept_again_ = clock::time_point::min();  // after a system error, or during make_room
    bool patient_ = false;                                       // see make_room
    std::vector<pollfd> polled_;
    std::vector<identity> who_;
    std::atomic<std::size_t> open_{0};
    std::atomic<std::uint64_t> accepted_{0}, displaced_{0}, cut_{0};

    mutable std::mutex mutex_;  // protects the following members
    std::condition_variable more_, thread_ended_;
    std::deque<job> jobs_;
    std::list<finished> finished_;
    std::size_t threads_ = 0, busy_ = 0;
    bool ending_ = false;
};

server::server(const limits& most, handler answers, observer seen)
    : inside_(std::make_unique<implementation>(most, std::move(answers), std::move(seen)))
{}
server::~server() = default;
int server::bind(const std::string& host, int port) { return inside_->bind(host, port); }
void server::run() { inside_->run(); }
void server::stop() { inside_->stop(); }
counters server::count() const { return inside_->count(); }

}  // namespace translation::http
