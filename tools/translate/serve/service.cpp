// SPDX-License-Identifier: BSD-3-Clause
#include "service.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>

#include "metrics.hpp"
#include "same_site.hpp"

namespace translation {

namespace {

using http::refusal;
using nlohmann::json;
using namespace heed::translator;

/// Thrown to answer a request with this response.
struct refused {
    http::answer answer;
    std::string why;
};

[[noreturn]] void refuse(int status, const std::string& why) { throw refused{refusal(status, why), why}; }

constexpr const char* example =
    "{\"text\": \"a man is sleeping .\", \"beam\": 12, \"alternatives\": 3, \"alignment\": true}";

/// The members of the object in a request. Not stored as a JSON tree: its destructor allocates, and ends the program if
/// memory has run out.
class members : public nlohmann::json_sax<json> {
public:
    struct member {
        json value;  // null for a list or an object
        std::vector<std::string> texts;
        bool is_list_of_texts = false;
    };

    explicit members(const std::string& body) : body_(body)
    {
        json::sax_parse(body, this);
        if (!is_object_) refuse(400, std::string("the body is not an object; expected ") + example);
    }

    std::map<std::string, member> all;  // the last of equal names wins

    bool null() override { return put(nullptr); }
    bool boolean(bool value) override { return put(value); }
    bool number_integer(number_integer_t value) override { return put(value); }
    bool number_unsigned(number_unsigned_t value) override { return put(value); }
    bool number_float(number_float_t value, const string_t&) override { return put(value); }
    bool binary(binary_t&) override { return true; }  // not valid in JSON
    bool string(string_t& value) override
    {
        if (depth_ == 2 && now_ != nullptr && now_->is_list_of_texts)
            now_->texts.push_back(std::move(value));
        else
            put(std::move(value));
        return true;
    }
    bool key(string_t& name) override
    {
        if (depth_ == 1 && is_object_) *(now_ = &all[name]) = {};
        return true;
    }
    bool start_object(std::size_t) override
    {
        is_object_ = is_object_ || depth_ == 0;
        return enter(false);
    }
    bool start_array(std::size_t) override { return enter(true); }
    bool end_object() override { return leave(); }
    bool end_array() override { return leave(); }
    bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& problem) override
    {
        std::string what = problem.what();  // "[json.exception.parse_error.101] parse error at …"
        if (const auto begin = what.find("] "); begin != what.npos) what.erase(0, begin + 2);
        refuse(400, (body_.empty() ? "no body" : what.substr(0, 300)) + "; expected " + example);
    }

private:
    bool put(auto&& value)
    {
        if (depth_ == 1 && now_ != nullptr) now_->value = std::forward<decltype(value)>(value);
        if (depth_ == 2 && now_ != nullptr) now_->is_list_of_texts = false;
        return true;
    }
    bool enter(bool list)
    {
        constexpr int deepest = 3;  // {"text": ["…"]} has depth 2
        if (now_ != nullptr) now_->is_list_of_texts = list && depth_ == 1;
        if (++depth_ > deepest) refuse(400, "JSON has more than 3 levels; expected " + std::string(example));
        return true;
    }
    bool leave()
    {
        --depth_;
        return true;
    }

    const std::string& body_;
    int depth_ = 0;
    bool is_object_ = false;
    member* now_ = nullptr;
};

std::size_t number(const json& value, const std::string& name, std::size_t least, std::size_t most)
{
    const std::string wanted = fmt::format("{} must be an integer from {} to {}", name, least, most);
    if (!value.is_number_integer()) refuse(400, wanted);
    if (value.is_number_unsigned() ? value.get<std::uint64_t>() > most || value.get<std::uint64_t>() < least : true)
        refuse(400, wanted + ", not " + value.dump());
    return value.get<std::size_t>();
}

double real(const json& value, const std::string& name, double most)
{
    if (!value.is_number() || !(value.get<double>() >= 0 && value.get<double>() <= most))
        refuse(400, fmt::format("{} must be a number from 0 to {}", name, most));
    return value.get<double>();
}

/// The text as one line.
std::string one_line(std::string text)
{
    for (char& each : text) {
        if (static_cast<unsigned char>(each) < 0x20 || each == 0x7f) each = ' ';
    }
    return text;
}

std::string quoted(const std::string& text) { return json(text).dump(); }

/// Six digits, as in scores of `translate run --n-best`.
std::string rounded(double value, double digits = 1e6) { return json(std::round(value * digits) / digits).dump(); }

/// [a,b,…] of the results of `write`.
std::string list(const auto& all, const auto& write)
{
    std::string text;
    for (const auto& each : all) (text += text.empty() ? '[' : ',') += write(each);
    return text.empty() ? "[]" : text + ']';
}

/// The members of a translation. `in_time` throws when the time limit is exceeded.
std::string as_json(const served_translation& one, const wishes& how, const std::function<void()>& in_time)
{
    in_time();
    std::string text = "\"text\":" + quoted(one.text) + ",\"words\":" + list(one.words, quoted) +
                       ",\"score\":" + rounded(one.score) + ",\"log_probability\":" + rounded(one.log_probability);
    if (how.alignment) {
        text += ",\"alignment\":" + list(one.weights, [&in_time](const std::vector<float>& row) {
                    in_time();
                    return list(row, [](float weight) { return rounded(static_cast<double>(weight), 1e4); });
                });
    }
    return text;
}

std::string as_json(const served_sentence& sentence, const wishes& how, const std::function<void()>& in_time)
{
    std::string text =
        '{' + as_json(sentence.best.empty() ? served_translation{} : sentence.best.front(), how, in_time);
    if (how.alignment) {
        std::vector<std::string> source = sentence.source;
        source.push_back("</s>");
        text += ",\"source\":" + list(source, quoted);
    }
    if (how.alternatives > 1) {
        text += ",\"alternatives\":" + list(sentence.best, [&](const served_translation& each) {
                    return '{' + as_json(each, how, in_time) + '}';
                });
    }
    return text + '}';
}

}  // namespace

class service::implementation {
public:
    implementation(engine with, const service_limits& most, const wishes& otherwise)
        : engine_(std::move(with)),
          most_(most),
          otherwise_(otherwise),
          page_(page_of_service(engine_, most.beam)),
          batches_([this](const std::vector<std::string>& lines, const wishes& how,
                          const batcher::still_wanted& wanted) { return translate(lines, how, wanted); },
                   most.batches)
    {}

    http::answer answer(const http::request& asked)
    {
        try {
            if (!http::is_for(asked, most_.hosts))
                refuse(403, "Host: this service does not serve " + asked.host.substr(0, 100) +
                                "; to allow it, start with --allow-host");
            if (!http::is_from(asked, most_.origins))
                refuse(403, "Origin: pages of " + asked.origin.substr(0, 100) +
                                " are not allowed; to allow them, start with --allow-origin");
            if (asked.path == "/translate") return with_origin(translate_request(asked), asked);
            if (asked.path != "/" && asked.path != "/health" && asked.path != "/metrics")
                refuse(404,
                       asked.path +
                           ": not found; choose from POST /translate, GET /health, GET /metrics and the page GET /");
            allow(asked, {"GET", "HEAD"});
            if (asked.path == "/health") return health();
            if (asked.path == "/metrics")
                return {200,
                        metrics_.text(batches_.counters(), batches_.limits(),
                                      connections_ ? connections_() : http::counters{}),
                        "text/plain; version=0.0.4; charset=utf-8"};
            return {200,
                    page_,
                    "text/html; charset=utf-8",
                    {{"Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; "
                                                 "script-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
                                                 "form-action 'none'; frame-ancestors 'none'"},
                     {"X-Content-Type-Options", "nosniff"}}};
        } catch (const refused& why) {
            return why.answer;
        }
    }

    metrics metrics_;
    std::function<http::counters()> connections_;
    std::atomic<bool> stopping_{false};
    static_assert(std::atomic<bool>::is_always_lock_free);

    std::size_t queue() const { return most_.batches.queue; }

    std::shared_ptr<batcher::request> ask(const std::string& line)
    {
        if (const auto bad = heed::text::find_invalid_utf8(line))
            throw heed::error(fmt::format("byte {} is not valid UTF-8", *bad + 1));
        std::vector<std::string> texts{one_line(line)};
        try {
            const std::size_t tokens = length(texts, 0);
            if (tokens == 0) return nullptr;
            return batches_.submit({{std::move(texts.front()), tokens}}, otherwise_, std::chrono::hours(24 * 365));
        } catch (const refused& why) {
            throw heed::error(why.why);
        }
    }

    std::string summary() const
    {
        const auto now = batches_.counters();
        std::string text = fmt::format("translated {} in {} in {:.1f} s", heed::counted(now.lines, "sentence"),
                                       heed::counted(now.batches, "batch", "batches"), now.seconds);
        for (const auto& [count, what] : {std::pair(now.refused, "refused"), std::pair(now.late, "late"),
                                          std::pair(now.canceled, "abandoned"), std::pair(now.failed, "failed")}) {
            if (count > 0) text += fmt::format(", {} {}", count, what);
        }
        return text;
    }

private:
    void allow(const http::request& asked, std::initializer_list<const char*> methods) const
    {
        std::string all;
        for (const char* const each : methods) {
            if (asked.method == each) return;
            all += (all.empty() ? "" : ", ") + std::string(each);
        }
        refused no{refusal(405, asked.method + " " + asked.path + ": only " + all + " is allowed"), {}};
        no.answer.headers.emplace_back("Allow", all);
        throw no;
    }

    http::answer translate_request(const http::request& asked)
    {
        try {
            if (!most_.origins.empty() && asked.method == "OPTIONS")
                return {204,
                        "",
                        "text/plain",
                        {{"Access-Control-Allow-Methods", "POST"},
                         {"Access-Control-Allow-Headers", "Content-Type"},
                         {"Access-Control-Max-Age", "86400"}}};
            allow(asked, {"POST"});
            if (!http::is_json(asked.content_type))
                refuse(415, "Content-Type must be application/json; it is " +
                                (asked.content_type.empty() ? "missing" : asked.content_type.substr(0, 100)));
            return translated(asked);
        } catch (const refused& why) {
            return why.answer;
        }
    }

    http::answer with_origin(http::answer said, const http::request& asked) const
    {
        const std::vector<std::string>& all = most_.origins;
        const auto has = [&](const std::string& origin) {
            return std::find(all.begin(), all.end(), origin) != all.end();
        };
        const std::string* const one = has("*")            ? &any_origin_
                                       : has(asked.origin) ? &asked.origin
                                       : all.size() == 1   ? &all.front()
                                                           : nullptr;
        if (one != nullptr) said.headers.emplace_back("Access-Control-Allow-Origin", *one);
        if (all.size() > 1) said.headers.emplace_back("Vary", "Origin");
        return said;
    }

    http::answer health() const
    {
        const auto now = batches_.counters();
        const bool stopping = stopping_;
        return {stopping ? 503 : 200,
                fmt::format("{{\"status\":\"{}\",\"model\":{},\"alignment\":{},\"waiting\":{},\"working\":{}}}\n",
                            stopping ? "stopping" : "ok", quoted(engine_.name), engine_.has_attention, now.waiting,
                            now.working)};
    }

    struct question {
        std::vector<std::string> texts;
        wishes how;
    };

    question read(const std::string& body) const
    {
        const members asked(body);
        question result{{}, otherwise_};
        for (const auto& [name, member] : asked.all) {
            const json& value = member.value;
            if (name == "text") {
                if (value.is_string())
                    result.texts = {one_line(value.get<std::string>())};
                else if (member.is_list_of_texts)
                    for (const std::string& each : member.texts) result.texts.push_back(one_line(each));
                else
                    refuse(400, "text must be a string or a list of strings");
            } else if (name == "beam") {
                result.how.beam = number(value, name, 1, most_.beam);
            } else if (name == "alternatives") {
                result.how.alternatives = number(value, name, 1, most_.beam);
            } else if (name == "block_ngrams") {
                result.how.block_ngrams = number(value, name, 0, 100);
            } else if (name == "length_penalty") {
                result.how.length_penalty = real(value, name, 10);
            } else if (name == "coverage_penalty") {
                result.how.coverage_penalty = real(value, name, 100);
            } else if (name == "alignment") {
                if (!value.is_boolean()) refuse(400, "alignment must be true or false");
                result.how.alignment = value.get<bool>();
            } else {
                refuse(400, "\"" + name.substr(0, 50) +
                                "\" is not known; choose from text, beam, alternatives, alignment, "
                                "length_penalty, coverage_penalty and block_ngrams");
            }
        }
        if (!asked.all.contains("text")) refuse(400, std::string("text is missing; expected ") + example);
        if (result.how.alternatives > result.how.beam) {
            if (asked.all.contains("beam"))
                refuse(400, fmt::format("{} alternatives with a beam of {}; beam must be at least alternatives",
                                        result.how.alternatives, result.how.beam));
            result.how.beam = result.how.alternatives;
        }
        if (!engine_.has_attention && result.how.alignment) refuse(400, "alignment: this model has no attention");
        if (!engine_.has_attention && result.how.coverage_penalty > 0)
            refuse(400, "coverage_penalty: this model has no attention");
        return result;
    }

    /// The number of tokens of a text to translate.
    std::size_t length(const std::vector<std::string>& texts, std::size_t i) const
    {
        const std::string where = texts.size() == 1 ? "text" : fmt::format("text {}", i);
        constexpr std::size_t each = 32;  // maximum mean number of bytes per token: rejects texts that are too long in
                                          // any case without tokenizing them
        if (texts[i].size() > each * most_.length)
            refuse(413, fmt::format("{} has {} bytes; at most {} are accepted", where, texts[i].size(),
                                    each * most_.length));
        const std::size_t tokens = engine_.tokens(texts[i]);
        if (tokens > most_.length)
            refuse(413, fmt::format("{} has {} tokens; at most {} are accepted: send sentences separately", where,
                                    tokens, most_.length));
        return tokens;
    }

    /// The number of times an answer contains translation k of a sentence.
    static std::size_t times_written(const wishes& how, std::size_t k)
    {
        return k == 0 && how.alternatives > 1 ? 2 : 1;
    }

    /// Limits the number of words and weights.
    void require_short(std::size_t numbers) const
    {
        if (numbers > most_.numbers)
            refuse(413, fmt::format("the answer has about {} words and weights; at most {} are written: request fewer "
                                    "sentences, fewer alternatives, or no alignment",
                                    numbers, most_.numbers));
    }
    [[noreturn]] void refuse_late(const char* what) const
    {
        refuse(504, fmt::format("not {} within {} s; send less, or use a smaller beam", what,
                                static_cast<double>(most_.timeout.count()) / 1000));
    }

    http::answer translated(const http::request& asked)
    {
        const question what = read(asked.body);
        if (what.texts.size() > most_.batches.queue)
            refuse(413, fmt::format("{} texts in one request; at most {} are accepted", what.texts.size(),
                                    most_.batches.queue));
        std::vector<batcher::line> lines;
        std::vector<std::size_t> places;
        std::size_t tokens_of_all = 0, expected = 0;
        for (std::size_t i = 0; i < what.texts.size(); ++i) {
            const std::size_t tokens = length(what.texts, i);
            if (tokens == 0) continue;  // no text to translate
            tokens_of_all += tokens;
            for (std::size_t k = 0; k < what.how.alternatives; ++k)
                expected +=
                    times_written(what.how, k) * (tokens + (what.how.alignment ? (tokens + 1) * (tokens + 1) : 0));
            lines.push_back({what.texts[i], tokens});
            places.push_back(i);
        }
        if (const std::size_t work = tokens_of_all * what.how.beam; work > most_.work)
            refuse(413, fmt::format("{} tokens and a beam of {} make {}; at most {} are accepted per request: send "
                                    "fewer sentences, or use a smaller beam",
                                    tokens_of_all, what.how.beam, work, most_.work));
        require_short(expected);
        const auto deadline = asked.arrived + most_.timeout;
        std::vector<served_sentence> done;
        try {
            const auto pending =
                batches_.submit(std::move(lines), what.how, deadline - std::chrono::steady_clock::now());
            if (asked.client != nullptr) asked.client->when_gone([pending] { pending->cancel(); });
            done = pending->get();
            if (asked.client != nullptr) asked.client->when_gone(nullptr);
        } catch (const queue_full& full) {
            refused later{refusal(429, full.what()), {}};
            const double seconds = std::clamp(std::ceil(full.retry_after), 1.0, 60.0);
            later.answer.headers.emplace_back("Retry-After", fmt::format("{:.0f}", seconds));
            throw later;
        } catch (const stopping& why) {
            refuse(503, why.what());
        } catch (const too_late&) {
            refuse_late("translated");
        } catch (const canceled& why) {
            refuse(503, why.what());  // the client has disconnected
        } catch (const std::bad_alloc&) {
            refuse(503, "out of memory; send less, or use a smaller beam");
        } catch (const std::exception& why) {
            refuse(500, why.what());
        }
        std::vector<served_sentence> all(what.texts.size());
        for (std::size_t i = 0; i < places.size(); ++i) all[places[i]] = std::move(done[i]);
        std::size_t numbers = 0;
        for (const served_sentence& each : all) {
            for (std::size_t k = 0; k < each.best.size(); ++k) {
                std::size_t written = each.best[k].words.size();
                for (const auto& row : each.best[k].weights) written += row.size();
                numbers += times_written(what.how, k) * written;
            }
        }
        require_short(numbers);
        const std::function<void()> in_time = [&] {
            if (std::chrono::steady_clock::now() >= deadline) refuse_late("written");
        };
        http::answer said{200, "{\"translations\":" + list(all, [&](const served_sentence& each) {
                                   return as_json(each, what.how, in_time);
                               }) + "}\n"};
        said.remark = fmt::format("{} sentence{}", what.texts.size(), what.texts.size() == 1 ? "" : "s");
        return said;
    }

    std::vector<served_sentence> translate(const std::vector<std::string>& lines, const wishes& how,
                                           const batcher::still_wanted& wanted)
    {
        std::vector<served_sentence> all = engine_.translate(lines, how, wanted);
        std::size_t sentences = 0, source = 0, target = 0;
        for (const served_sentence& each : all) {
            if (each.best.empty()) continue;  // no longer wanted
            ++sentences;
            source += each.source.size();
            target += each.best.front().words.size();
        }
        metrics_.translated(sentences, source, target);
        return all;
    }

    engine engine_;
    service_limits most_;
    wishes otherwise_;
    std::string page_;
    const std::string any_origin_ = "*";
    service::batcher batches_;  // last: its threads use the other members
};

service::service(engine with, const service_limits& most, const wishes& otherwise)
    : inside_(std::make_unique<implementation>(std::move(with), most, otherwise))
{}
service::~service() = default;
http::answer service::answer(const http::request& asked) { return inside_->answer(asked); }
void service::observe(const http::record& what) { inside_->metrics_.observe(what); }
void service::report(std::function<http::counters()> connections) { inside_->connections_ = std::move(connections); }
void service::stop() { inside_->stopping_ = true; }
std::size_t service::queue() const { return inside_->queue(); }
std::shared_ptr<service::batcher::request> service::ask(const std::string& line) { return inside_->ask(line); }
std::string service::summary() const { return inside_->summary(); }

}  // namespace translation
