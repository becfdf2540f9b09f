// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/metrics/symmetrize.hpp>

#include <algorithm>

namespace fuzz::links {

namespace metrics = heed::metrics;

/// A line of links, "====", and another line.
void run(std::string_view bytes)
{
    const two_texts given(bytes);
    const auto gold = read("links:1", bytes.size(), 64, [&] { return metrics::parse_gold(given.first, "links:1"); });
    if (!gold) return;
    const std::string text = metrics::pharaoh(gold->sure, gold->possible);
    const metrics::gold_links again = metrics::parse_gold(text);
    require(again.sure == gold->sure && again.possible == gold->possible, "the links change in a round trip");
    const auto other = read("links:2", bytes.size(), 64, [&] { return metrics::parse_links(given.second, "links:2"); });
    if (!other) return;
    const allowance limited(free_bytes + 1024 * bytes.size());  // positions are not sizes
    const auto all = metrics::symmetrize(gold->sure, *other, metrics::symmetrization::all);
    const auto both = metrics::symmetrize(gold->sure, *other, metrics::symmetrization::intersection);
    for (const auto& [name, method] : metrics::symmetrizations) {
        const auto made = metrics::symmetrize(gold->sure, *other, method);
        require(std::includes(all.begin(), all.end(), made.begin(), made.end()), "a link that is in neither direction");
        require(std::includes(made.begin(), made.end(), both.begin(), both.end()),
                "a link of both directions is missing");
    }
    metrics::alignment_score score;
    score.add(*other, *gold);
    require(score.aer() >= 0 && score.aer() <= 1 && score.f1() >= 0 && score.f1() <= 1, "a score outside [0, 1]");
}

std::vector<std::string> seeds()
{
    return {"", "0-0 1-2 2p1", "0-0 1-1 2-2\n====\n0-0 2-1 2147483647-2147483647",
            "0-0 0-1 1-1 2-3\n====\n0-0 1-0 3-3"};
}

const registered target({"links", run, seeds});

}  // namespace fuzz::links
