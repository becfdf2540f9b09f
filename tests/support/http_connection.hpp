// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cctype>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace support {

/// A client's connection to this machine.
class http_connection {
public:
    explicit http_connection(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(static_cast<std::uint16_t>(port));
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const int yes = 1;
        ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return;
        ::close(socket_);
        throw std::runtime_error("cannot connect");
    }
    http_connection(const http_connection&) = delete;
    http_connection& operator=(const http_connection&) = delete;
    ~http_connection() { ::close(socket_); }

    bool send(const std::string& text)
    {
        for (std::size_t sent = 0; sent < text.size();) {
            const ssize_t count = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
            if (count <= 0) return false;
            sent += static_cast<std::size_t>(count);
        }
        return true;
    }

    struct reply {
        int status = 0;  // 0: none
        std::string head, body;
        bool ended = false;  // the peer has closed the connection
    };

    /// The next response, if it arrives in time.
    reply receive(std::chrono::milliseconds in_time = std::chrono::seconds(60))
    {
        const auto deadline = clock::now() + in_time;
        reply result;
        for (;;) {
            const std::size_t end = text_.find("\r\n\r\n");
            if (end != text_.npos) {
                result.head = text_.substr(0, end + 2);
                for (char& each : result.head) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
                const std::size_t at = result.head.find("content-length: ");
                const std::size_t size =
                    at == result.head.npos ? 0 : std::strtoul(result.head.c_str() + at + 16, nullptr, 10);
                if (text_.size() >= end + 4 + size) {
                    result.status = std::atoi(result.head.c_str() + 9);
                    result.body = text_.substr(end + 4, size);
                    text_.erase(0, end + 4 + size);
                    if (result.status != 100) return result;
                    continue;
                }
            }
            pollfd one{socket_, POLLIN, 0};
            const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - clock::now());
            if (left.count() <= 0 || ::poll(&one, 1, static_cast<int>(left.count())) <= 0) return {};
            char buffer[16384];
            const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
            if (count <= 0) return {0, {}, {}, true};
            text_.append(buffer, static_cast<std::size_t>(count));
        }
    }

    /// Whether receive() would return anything, including the end.
    bool is_readable() const
    {
        pollfd one{socket_, POLLIN, 0};
        return ::poll(&one, 1, 0) > 0;
    }
    /// Closes the sending side; responses can still be read.
    void end() const { ::shutdown(socket_, SHUT_WR); }
    /// Closes the connection so that the peer gets an error instead of an end.
    void reset() const
    {
        const linger now{1, 0};
        ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    }
    void shrink() const
    {
        const int size = 1024;
        ::setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    }

private:
    using clock = std::chrono::steady_clock;

    int socket_;
    std::string text_;
};

}  // namespace support
