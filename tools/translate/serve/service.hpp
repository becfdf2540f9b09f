// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <heed_translator/batcher.hpp>

#include "http.hpp"

/// What `translate serve` answers: JSON, metrics, the page. It needs no model, only a function that translates.
namespace translation {

/// How a request wants its sentences translated. Sentences with equal ones share a batch.
struct wishes {
    std::size_t beam = 12, alternatives = 1, block_ngrams = 0;
    double length_penalty = 0.6, coverage_penalty = 0;
    bool alignment = false;

    bool operator==(const wishes&) const = default;
};

/// A translation of a sentence, and its weights between words: a row for each target word, with a number for each
/// source word and one for the source's end.
struct served_translation {
    std::string text;
    std::vector<std::string> words;
    double score = 0, log_probability = 0;
    std::vector<std::vector<float>> weights;
};

struct served_sentence {
    std::vector<std::string> source;
    std::vector<served_translation> best;  // none of an empty sentence
};

struct service_limits {
    std::size_t length = 256;  // tokens of a sentence
    std::size_t beam = 64;
    std::size_t work = 100'000;     // Σ tokens · beam of a request
    std::size_t numbers = 250'000;  // words and weights of an answer
    std::chrono::milliseconds timeout{30'000};
    std::vector<std::string> origins = {};  // whose scripts may ask, in a browser (CORS), beside the page; "*": all
    std::vector<std::string> hosts = {};    // to which requests may be sent, beside this machine; "*": all
    heed::translator::batcher_limits batches{};
};

/// What a service needs from a model.
struct engine {
    std::string name;
    bool has_attention = false;                             // whether it has attention
    std::function<std::size_t(const std::string&)> tokens;  // of a sentence; from any thread
    // Sentences for which `wanted` becomes false get no translation.
    std::function<std::vector<served_sentence>(const std::vector<std::string>&, const wishes&,
                                               const std::function<bool(std::size_t)>& wanted)>
        translate;
    std::string from = {}, to = {};          // the languages, by name or by code ("de"); empty: not known
    std::vector<std::string> examples = {};  // sentences, for the page
};

class service {
public:
    service(engine with, const service_limits& most, const wishes& otherwise);
    ~service();

    /// POST /translate, GET /health, /metrics and / (the page).
    http::answer answer(const http::request& asked);

    /// Counts a request that was answered.
    void observe(const http::record& what);

    /// /metrics also reports this server's.
    void report(std::function<http::counters()> connections);

    /// From now on /health says that the service is stopping. May be called from a signal's handler.
    void stop();

    using batcher = heed::translator::batcher<wishes, served_sentence>;

    /// One line, as a request without a deadline. Null if there is nothing to translate. Throws heed::error if the line
    /// is not text, or too long.
    std::shared_ptr<batcher::request> ask(const std::string& line);

    /// So many sentences may wait.
    std::size_t queue() const;

    /// What it has done so far, in words.
    std::string summary() const;

private:
    class implementation;
    std::unique_ptr<implementation> inside_;
};

/// The page of GET /, one file that needs no other.
std::string page_of_service(const engine& with, std::size_t most_beam);

}  // namespace translation
