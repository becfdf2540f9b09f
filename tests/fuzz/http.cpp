// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <tools/translate/serve/http_head.hpp>

namespace fuzz::http {

namespace serve = translation::http;

/// The bytes that a client sends, up to the end of the request header.
void run(std::string_view bytes)
{
    constexpr std::size_t most = 1000;
    const allowance limited(free_bytes + 16 * bytes.size());
    const std::size_t empty = serve::empty_lines(bytes);
    require(empty <= bytes.size() && !bytes.substr(empty).starts_with("\r\n"), "a leading empty line remains");
    const std::string_view text = bytes.substr(empty, bytes.find("\r\n\r\n", empty) - empty);
    const serve::read_head found(text, most);
    if (found.refused) {
        require(found.refused->status >= 400 && found.refused->status < 500, "rejected with a server error");
        require(found.refused->body.starts_with("{\"error\":"), "rejected without a reason");
        return;
    }
    require(found.head.body <= most, "a body that is too long");
    require(found.head.first_line.find_first_of(std::string_view("\r\n\0", 3)) == std::string::npos,
            "two lines in one");
    require(text.starts_with(found.head.first_line), "wrong first line");
}

std::vector<std::string> seeds()
{
    return {"POST /translate HTTP/1.1\r\nHost: a\r\nContent-Length: 20\r\nExpect: 100-continue\r\n\r\n{}",
            "\r\n\r\nGET / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Encoding: identity\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 5\r\ncontent-length:\t5 \r\n\r\n12345"};
}

const registered target({"http", run, seeds});

}  // namespace fuzz::http
