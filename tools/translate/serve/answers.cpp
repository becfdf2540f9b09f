// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include <nlohmann/json.hpp>

#include <heed/core/utf8.hpp>

#include "http.hpp"

namespace translation::http {

void presence::when_gone(std::function<void()> what)
{
    {
        const std::lock_guard lock(mutex_);
        what_ = std::move(what);
        if (!gone_) return;
        what = std::exchange(what_, nullptr);
    }
    if (what) what();
}

void presence::go()
{
    std::function<void()> what;
    {
        const std::lock_guard lock(mutex_);
        gone_ = true;
        what = std::exchange(what_, nullptr);
    }
    if (what) what();
}

answer refusal(int status, const std::string& why)
{
    // Written without a JSON object: its destructor allocates, and ends the program if memory has run out.
    return {status, "{\"error\":" + nlohmann::json(heed::text::printable(why)).dump() + "}\n"};
}

}  // namespace translation::http
