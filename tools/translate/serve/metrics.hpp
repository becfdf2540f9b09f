// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <heed_translator/batcher.hpp>

#include "http.hpp"

/// The response of /metrics, in Prometheus's text format 0.0.4.
namespace translation {

class metrics {
public:
    void observe(const http::record& what)
    {
        // Clients choose paths, but the number of labels must stay small.
        const bool known =
            what.path == "/translate" || what.path == "/health" || what.path == "/metrics" || what.path == "/";
        const std::lock_guard lock(mutex_);
        ++requests_[{known ? what.path : "other", what.status}];
        if (what.path != "/translate" || what.status != 200) return;
        seconds_ += what.seconds;
        ++answered_;
        for (std::size_t i = 0; i < bounds.size(); ++i) within_[i] += what.seconds <= bounds[i];
    }

    void translated(std::size_t sentences, std::size_t source_words, std::size_t target_words)
    {
        const std::lock_guard lock(mutex_);
        sentences_ += sentences;
        source_words_ += source_words;
        target_words_ += target_words;
        second& now = this_second();
        now.sentences += sentences;
        now.words += target_words;
    }

    std::string text(const heed::translator::batcher_counters& batches, const heed::translator::batcher_limits& most,
                     const http::counters& connections)
    {
        const std::lock_guard lock(mutex_);
        std::string out;
        const auto one = [&out](const char* name, const char* type, const char* help, auto value) {
            out += fmt::format("# HELP {0} {1}\n# TYPE {0} {2}\n{0} {3}\n", name, help, type, value);
        };
        out += "# HELP heed_requests_total Requests by path and status; 499: the client disconnected.\n"
               "# TYPE heed_requests_total counter\n";
        for (const auto& [what, count] : requests_)
            out += fmt::format("heed_requests_total{{path=\"{}\",code=\"{}\"}} {}\n", what.first, what.second, count);
        out += "# HELP heed_request_seconds Time from the arrival of a translation request to its response.\n"
               "# TYPE heed_request_seconds histogram\n";
        for (std::size_t i = 0; i < bounds.size(); ++i)
            out += fmt::format("heed_request_seconds_bucket{{le=\"{}\"}} {}\n", bounds[i], within_[i]);
        out += fmt::format("heed_request_seconds_bucket{{le=\"+Inf\"}} {0}\nheed_request_seconds_sum {1}\n"
                           "heed_request_seconds_count {0}\n",
                           answered_, seconds_);
        out += "# HELP heed_batch_sentences Sentences per batch.\n# TYPE heed_batch_sentences histogram\n";
        std::uint64_t up_to = 0;
        for (std::size_t i = 0; i + 1 < batches.batch_sizes.size(); ++i) {
            up_to += batches.batch_sizes[i];
            out += fmt::format("heed_batch_sentences_bucket{{le=\"{}\"}} {}\n", std::size_t{1} << i, up_to);
        }
        out += fmt::format("heed_batch_sentences_bucket{{le=\"+Inf\"}} {0}\nheed_batch_sentences_sum {1}\n"
                           "heed_batch_sentences_count {0}\n",
                           batches.batches, batches.lines);
        one("heed_queue_sentences", "gauge", "Sentences in the queue.", batches.waiting);
        one("heed_queue_limit", "gauge", "Capacity of the queue.", most.queue);
        one("heed_working_sentences", "gauge", "Sentences being translated.", batches.working);
        one("heed_requests_refused_total", "counter", "Requests rejected because the queue was full.", batches.refused);
        one("heed_requests_late_total", "counter", "Requests that timed out.", batches.late);
        one("heed_requests_canceled_total", "counter", "Requests whose client disconnected.", batches.canceled);
        one("heed_requests_failed_total", "counter", "Requests that could not be translated.", batches.failed);
        one("heed_busy_seconds_total", "counter", "Time spent translating.", batches.seconds);
        one("heed_sentences_total", "counter", "Translated sentences.", sentences_);
        one("heed_source_words_total", "counter", "Words of translated sentences.", source_words_);
        one("heed_words_total", "counter", "Words of translations.", target_words_);
        const auto [sentences, words] = per_second();
        one("heed_sentences_per_second", "gauge", "Translated sentences, mean of the last minute.", sentences);
        one("heed_words_per_second", "gauge", "Words of translations, mean of the last minute.", words);
        one("heed_connections", "gauge", "Open connections.", connections.connections);
        one("heed_connections_total", "counter", "Connections so far.", connections.accepted);
        one("heed_connections_displaced_total", "counter", "Connections with slow requests, closed to make room.",
            connections.displaced);
        one("heed_responses_cut_total", "counter", "Responses that the client did not take completely.",
            connections.cut);
        one("heed_requests_at_work", "gauge", "Requests received and not yet answered.", connections.at_work);
        one("heed_request_threads", "gauge", "Threads that answer requests.", connections.threads);
        one("process_resident_memory_bytes", "gauge", "Memory in use.", resident());
        rusage used{};
        ::getrusage(RUSAGE_SELF, &used);
        const auto seconds = [](const timeval& time) {
            return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
        };
        one("process_cpu_seconds_total", "counter", "Processor time.", seconds(used.ru_utime) + seconds(used.ru_stime));
        one("process_start_time_seconds", "gauge", "Start time, in seconds since 1970.", started_);
        return out;
    }

private:
    static constexpr std::array<double, 12> bounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
    static constexpr std::size_t window = 60;

    struct second {
        std::int64_t when = -1;
        std::size_t sentences = 0, words = 0;
    };

    static std::int64_t now()
    {
        return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count();
    }

    second& this_second()
    {
        second& here = last_[static_cast<std::size_t>(now()) % window];
        if (here.when != now()) here = {now(), 0, 0};
        return here;
    }

    std::pair<double, double> per_second() const
    {
        const std::int64_t current = now();
        double sentences = 0, words = 0;
        for (const second& each : last_) {
            if (each.when < 0 || current - each.when >= static_cast<std::int64_t>(window)) continue;
            sentences += static_cast<double>(each.sentences);
            words += static_cast<double>(each.words);
        }
        const double over =
            static_cast<double>(std::clamp<std::int64_t>(current - began_, 1, static_cast<std::int64_t>(window)));
        return {sentences / over, words / over};
    }

    static std::size_t resident()
    {
        std::ifstream file("/proc/self/statm");
        std::size_t all = 0, pages = 0;
        file >> all >> pages;
        return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    }

    std::mutex mutex_;
    std::map<std::pair<std::string, int>, std::uint64_t> requests_;
    std::array<std::uint64_t, bounds.size()> within_ = {};
    std::uint64_t answered_ = 0, sentences_ = 0, source_words_ = 0, target_words_ = 0;
    double seconds_ = 0;
    std::array<second, window> last_ = {};
    std::int64_t began_ = now();
    double started_ = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
};

}  // namespace translation
