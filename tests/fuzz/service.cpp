// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <functional>

#include <tools/translate/serve/service.hpp>

#include <heed_kit/text/sentence.hpp>

#include <nlohmann/json.hpp>

namespace fuzz::service {

/// A service whose translations reverse the words and that never times out.
translation::service& served()
{
    translation::engine with;
    with.name = "backwards";
    with.has_attention = true;
    with.tokens = [](const std::string& line) { return heed::text::split(line).size(); };
    with.translate = [](const std::vector<std::string>& lines, const translation::wishes& how,
                        const std::function<bool(std::size_t)>&) {
        std::vector<translation::served_sentence> all;
        for (const std::string& line : lines) {
            translation::served_sentence& one = all.emplace_back();
            one.source = heed::text::split(line);
            const std::vector<std::string> words(one.source.rbegin(), one.source.rend());
            for (std::size_t k = 0; k < how.alternatives; ++k) {
                one.best.push_back({heed::text::join(words), words, -0.5, -1, {}});
                if (how.alignment) one.best.back().weights.assign(2, std::vector<float>(one.source.size() + 1, 0.25f));
            }
        }
        return all;
    };
    static translation::service all(
        with, {.length = 16, .beam = 4, .timeout = std::chrono::hours(1000), .batches = {.batch = 8, .queue = 16}}, {});
    return all;
}

/// The body of a request.
void run(std::string_view bytes)
{
    using nlohmann::json;
    translation::http::request asked{};
    asked.method = "POST";
    asked.path = "/translate";
    asked.body = bytes;
    asked.content_type = "application/json";
    asked.arrived = std::chrono::steady_clock::now();
    translation::service& all = served();
    translation::http::answer said;
    {
        // A list of a thousand empty lists needs a value and a slot for each.
        const allowance limited(4 * free_bytes + 128 * bytes.size());
        said = all.answer(asked);
    }
    require(said.status == 200 || (said.status >= 400 && said.status < 500), "rejected with a server error");
    const json read = json::parse(said.body, nullptr, false);
    require(read.is_object(), "an answer that is not JSON");
    if (said.status != 200) {
        require(read.contains("error") && !read.at("error").get<std::string>().empty(), "rejected without a reason");
        return;
    }
    const json text = json::parse(bytes).at("text");
    require(read.at("translations").size() == (text.is_string() ? 1 : text.size()), "not an answer for each text");
}

std::vector<std::string> seeds()
{
    return {R"({"text": "a man is sleeping .", "beam": 3, "alternatives": 2, "alignment": true})",
            R"({"text": ["a", "", "zwei H\u00e4user \ud83d\ude00"], "length_penalty": 0.6, "coverage_penalty": 1})",
            R"({"block_ngrams": 3, "text": "a\tb", "beam": 4})",
            R"({"text": [[["deep"]]]})",
            "[1, 2]",
            R"({"text": "a", "beam": 5, "other": null})"};
}

const registered target({"service", run, seeds});

}  // namespace fuzz::service
