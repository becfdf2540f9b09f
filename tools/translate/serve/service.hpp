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

/// The responses of `translate serve`: JSON, metrics, the page. It does not require a model, only a translation
/// function.
namespace translation {

/// The options of a request for its sentences. Sentences with equal options share a batch.
struct wishes {
    std::size_t beam = 12, alternatives = 1, block_ngrams = 0;
    double length_penalty = 0.6, coverage_penalty = 0;
    bool alignment = false;

    bool operator==(const wishes&) const = default;
};

/// A translation of a sentence, and its weights between words: a row for each target word, with a number for each
/// source word and one for the end of the source.
struct served_translation {
    std::string text;
    std::vector<std::string> words;
    double score = 0, log_probability = 0;
    std::vector<std::vector<float>> weights;
};

struct served_sentence {
    std::vector<std::string> source;
    std::vector<served_translation> best;  // empty for an empty sentence
};

struct service_limits {
    std::size_t length = 256;  // tokens of a sentence
    std::size_t beam = 64;
    std::size_t work = 100'000;     // Σ tokens · beam of a request
    std::size_t numbers = 250'000;  // words and weights per answer
    std::chrono::milliseconds timeout{30'000};
    std::vector<std::string> origins = {};  // other origins whose scripts may send requests (CORS); "*": all
    std::vector<std::string> hosts = {};    // other host names accepted in requests; "*": all
    heed::translator::batcher_limits batches{};
};

/// The functions of a model that the service requires.
struct engine {
    std::string name;
    bool has_attention = false;
    std::function<std::size_t(const std::string&)> tokens;  // tokens of a sentence; called from any thread
    // Sentences for which `wanted` becomes false get no translation.
    std::function<std::vector<served_sentence>(const std::vector<std::string>&, const wishes&,
                                               const std::function<bool(std::size_t)>& wanted)>
        translate;
    std::string from = {}, to = {};          // the languages, by name or code ("de"); empty: unknown
    std::vector<std::string> examples = {};  // example sentences for the page
};

class service {
public:
    service(engine with, const service_limits& most, const wishes& otherwise);
    ~service();

    /// POST /translate, GET /health, /metrics and / (the page).
    http::answer answer(const http::request& asked);

    /// Counts an answered request.
    void observe(const http::record& what);

    /// /metrics also reports the counters of this server.
    void report(std::function<http::counters()> connections);

    /// Makes /health report that the service is stopping. May be called from a signal handler.
    void stop();

    using batcher = heed::translator::batcher<wishes, served_sentence>;

    /// Translates one line without a deadline. Null if there is nothing to translate. Throws heed::error if the line is
    /// not valid text, or too long.
    std::shared_ptr<batcher::request> ask(const std::string& line);

    /// The capacity of the queue, in sentences.
    std::size_t queue() const;

    /// A summary of the work so far.
    std::string summary() const;

private:
    class implementation;
    std::unique_ptr<implementation> inside_;
};

/// The self-contained page of GET /.
std::string page_of_service(const engine& with, std::size_t most_beam);

}  // namespace translation
