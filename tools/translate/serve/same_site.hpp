// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "http.hpp"
#include "http_head.hpp"

/// Checks which pages may use a service that only this machine can reach. A browser also runs pages of other sites on
/// this machine: they can send requests to 127.0.0.1, or map their own name to that address (DNS rebinding). The
/// browser sends the origin of each request.
namespace translation::http {

/// The host of "example.org:8080" or "[::1]:8080".
inline std::string_view host_of(std::string_view authority)
{
    const std::size_t bracket = authority.starts_with('[') ? authority.find(']') : 0;
    if (bracket == authority.npos) return {};
    return authority.substr(0, authority.find(':', bracket));
}

/// Whether this host always refers to the machine itself.
inline bool is_this_machine(std::string_view host)
{
    constexpr std::string_view name = "localhost";
    if (host.size() >= name.size() && same(host.substr(host.size() - name.size()), name))
        return host.size() == name.size() || host[host.size() - name.size() - 1] == '.';
    return host == "[::1]" || host == "::1" ||
           (host.starts_with("127.") && host.find_first_not_of("0123456789.") == host.npos);
}

/// Whether the request was sent to one of these hosts, or to this machine. Requests without Host do not come from a
/// browser.
inline bool is_for(const request& asked, const std::vector<std::string>& hosts)
{
    const std::string_view host = host_of(asked.host);
    return asked.host.empty() || is_this_machine(host) ||
           std::any_of(hosts.begin(), hosts.end(),
                       [&](const auto& each) { return each == "*" || same(each, host) || same(each, asked.host); });
}

/// Whether the request comes from a page of the service, from one of these origins, or not from a page.
inline bool is_from(const request& asked, const std::vector<std::string>& origins)
{
    if (asked.origin.empty() || same(asked.fetch_site, "same-origin")) return true;
    const std::size_t scheme = asked.origin.find("://");
    if (scheme != asked.origin.npos && same(std::string_view(asked.origin).substr(scheme + 3), asked.host)) return true;
    return std::any_of(origins.begin(), origins.end(),
                       [&](const std::string& each) { return each == "*" || same(each, asked.origin); });
}

/// Whether a body is JSON according to Content-Type. A page of another origin must send a preflight request before such
/// a request.
inline bool is_json(std::string_view type)
{
    type = type.substr(0, type.find(';'));
    while (type.ends_with(' ') || type.ends_with('\t')) type.remove_suffix(1);
    return same(type, "application/json");
}

}  // namespace translation::http
