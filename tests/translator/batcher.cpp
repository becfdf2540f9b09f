// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed_translator/batcher.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <iostream>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace {

using namespace std::chrono_literals;
using heed::translator::batcher_limits;
using strings = std::vector<std::string>;
using batcher = heed::translator::batcher<int, std::string>;

#if defined(__SANITIZE_THREAD__)
#define HEED_HAS_THREAD_SANITIZER
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HEED_HAS_THREAD_SANITIZER
#endif
#endif

constexpr auto ever = 60s;

/// A translator that waits at a gate before each batch, and records its batches.
class gated {
public:
    strings operator()(const strings& lines, int how)
    {
        std::unique_lock lock(mutex_);
        ++arrived_;
        changed_.notify_all();
        changed_.wait(lock, [&] { return open_ || let_through_ > 0; });
        if (!open_) --let_through_;
        batches_.push_back(lines);
        strings results;
        for (const std::string& each : lines) {
            if (each == "bad") throw std::runtime_error("bad line");
            results.push_back(each + "/" + std::to_string(how));
        }
        if (lines.front() == "fewer") results.pop_back();
        return results;
    }
    void await(std::size_t batches)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return arrived_ >= batches; });
    }
    void let_through(std::size_t batches)
    {
        const std::lock_guard lock(mutex_);
        let_through_ += batches;
        changed_.notify_all();
    }
    void open()
    {
        const std::lock_guard lock(mutex_);
        open_ = true;
        changed_.notify_all();
    }
    std::vector<strings> batches() const
    {
        const std::lock_guard lock(mutex_);
        return batches_;
    }

private:
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::size_t arrived_ = 0, let_through_ = 0;
    bool open_ = false;
    std::vector<strings> batches_;
};

/// A batcher whose only worker is at the gate with the line "first".
struct held {
    explicit held(batcher_limits limits = {.batch = 4, .queue = 100}) : at(std::ref(gate), limits)
    {
        first = ask("first", 1);
        gate.await(1);
    }
    ~held() { gate.open(); }

    std::shared_ptr<batcher::request> ask(const std::string& text, std::size_t length, int how = 0,
                                          batcher::clock::duration timeout = ever)
    {
        return at.submit({{text, length}}, how, timeout);
    }

    gated gate;
    batcher at;
    std::shared_ptr<batcher::request> first;
};

}  // namespace

TEST_CASE("Lines that arrive during a batch form the next one, oldest and similar lengths first")
{
    held now;
    std::vector<std::shared_ptr<batcher::request>> all;
    for (const std::size_t length : std::vector<std::size_t>{5, 50, 6, 51, 4, 5, 9})
        all.push_back(now.ask(std::to_string(length), length));
    CHECK(now.at.counters().waiting == 7);
    CHECK(now.at.counters().working == 1);
    now.gate.open();
    CHECK(now.first->get() == strings{"first/0"});
    const strings expected{"5/0", "50/0", "6/0", "51/0", "4/0", "5/0", "9/0"};
    for (std::size_t i = 0; i < all.size(); ++i) CHECK(all[i]->get() == strings{expected[i]});
    CHECK(now.gate.batches() == std::vector<strings>{{"first"}, {"5", "6", "4", "5"}, {"50", "51", "9"}});
    now.at.stop();
    const auto count = now.at.counters();
    CHECK(count.requests == 8);
    CHECK(count.lines == 8);
    CHECK(count.batches == 3);
    CHECK(count.batch_sizes[0] == 1);  // 1 line
    CHECK(count.batch_sizes[2] == 2);  // 3 or 4 lines
    CHECK(count.waiting + count.working + count.refused + count.late + count.canceled + count.failed == 0);
    CHECK(count.seconds > 0);
}

TEST_CASE("No line waits forever")
{
    held now({.batch = 2, .queue = 100});
    for (int i = 0; i < 3; ++i) now.ask("short", 1);
    const auto odd = now.ask("long", 100);
    for (int i = 0; i < 40; ++i) now.ask("short", 1);  // all more similar to the lines before them
    now.gate.open();
    CHECK(odd->get() == strings{"long/0"});
    now.at.stop();
    const auto batches = now.gate.batches();
    const auto with = std::find_if(batches.begin(), batches.end(), [](const strings& batch) {
        return std::find(batch.begin(), batch.end(), "long") != batch.end();
    });
    CHECK(with - batches.begin() <= 4);  // "first", and at most three lines before it
}

TEST_CASE("A batch has one set of options, and a request's lines may be spread over batches")
{
    held now;
    const auto one = now.at.submit({{"a", 1}, {"b", 90}, {"c", 1}}, 1, ever);
    const auto two = now.at.submit({{"d", 1}, {"e", 1}, {"f", 1}}, 2, ever);
    const auto more = now.at.submit({{"g", 1}, {"h", 1}}, 1, ever);
    now.gate.open();
    CHECK(one->get() == strings{"a/1", "b/1", "c/1"});
    CHECK(two->get() == strings{"d/2", "e/2", "f/2"});
    CHECK(more->get() == strings{"g/1", "h/1"});
    CHECK(now.gate.batches() == std::vector<strings>{{"first"}, {"a", "c", "g", "h"}, {"b"}, {"d", "e", "f"}});
    CHECK(now.at.submit({}, 1, ever)->get().empty());
}

TEST_CASE("A request that does not fit in the queue is rejected as a whole")
{
    held now({.batch = 4, .queue = 3});
    const auto two = now.at.submit({{"a", 1}, {"b", 1}}, 0, ever);
    CHECK_THROWS_WITH_AS(now.at.submit({{"c", 1}, {"d", 1}}, 0, ever), "2 lines are waiting; at most 3 are allowed",
                         heed::translator::queue_full);
    CHECK(now.at.counters().waiting == 2);
    CHECK(now.at.counters().refused == 1);
    const auto one = now.ask("e", 1);
    CHECK_THROWS_AS(now.ask("f", 1), heed::translator::queue_full);
    CHECK_THROWS_WITH_AS(now.at.submit({{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}}, 0, ever),
                         "4 lines in one request; at most 3 are accepted", heed::error);
    now.gate.open();
    CHECK(two->get() == strings{"a/0", "b/0"});
    CHECK(one->get() == strings{"e/0"});
    CHECK_NOTHROW(now.at.submit({{"a", 1}, {"b", 1}, {"c", 1}}, 0, ever)->get());
    CHECK_THROWS_WITH_AS(batcher(std::ref(now.gate), {.batch = 0}),
                         "batcher: a batch of 0 lines, a queue of 1024 and 1 worker; each must be at least 1",
                         heed::error);
}

TEST_CASE("A full queue suggests when to retry")
{
    std::atomic<bool> slow{true};
    batcher at(
        [&](const strings& lines, int) {
            std::this_thread::sleep_for(slow ? 50ms : 0ms);
            return lines;
        },
        {.batch = 1, .queue = 4});
    at.submit({{"a", 1}}, 0, ever)->get();
    while (at.counters().seconds == 0) std::this_thread::sleep_for(1ms);  // it is measured after the answer
    std::vector<std::shared_ptr<batcher::request>> all;
    try {
        for (int i = 0; i < 6; ++i) all.push_back(at.submit({{"b", 1}}, 0, ever));
        FAIL("the queue accepted more than its limit");
    } catch (const heed::translator::queue_full& full) {
        CHECK(full.retry_after >= 4 * 0.05);
        CHECK(full.retry_after < 60);
    }
    slow = false;
}

TEST_CASE("A deadline ends a request, and its waiting lines are never translated")
{
    held now;
    const auto late = now.at.submit({{"a", 1}, {"b", 1}}, 0, 20ms);
    const auto fine = now.ask("c", 1);
    CHECK_THROWS_AS(late->get(), heed::translator::too_late);
    CHECK(now.at.counters().waiting == 1);
    CHECK(now.at.counters().late == 1);
    const auto unasked = now.ask("d", 1, 0, -1s);  // late before any thread waits for it
    now.gate.open();
    CHECK(fine->get() == strings{"c/0"});
    CHECK_THROWS_AS(unasked->get(), heed::translator::too_late);
    CHECK_THROWS_AS(late->get(), heed::translator::too_late);
    now.at.stop();
    for (const strings& batch : now.gate.batches()) CHECK(std::count(batch.begin(), batch.end(), "a") == 0);
    CHECK(now.at.counters().late == 2);
}

TEST_CASE("A deadline may be at or beyond the maximum of the clock")
{
    held now;
    std::vector<std::shared_ptr<batcher::request>> all;
    for (const auto timeout : {batcher::clock::duration::max(), batcher::clock::duration::max() - 1s})
        all.push_back(now.ask("a", 1, 0, timeout));
    CHECK_THROWS_AS(now.ask("b", 1, 0, batcher::clock::duration::min())->get(), heed::translator::too_late);
    std::thread opens([&] {
        std::this_thread::sleep_for(20ms);
        now.gate.open();
    });
    for (const auto& each : all) CHECK(each->get() == strings{"a/0"});
    opens.join();
}

TEST_CASE("A canceled request leaves the queue, and its running lines are abandoned")
{
    held now;
    const auto gone = now.at.submit({{"a", 1}, {"b", 1}}, 0, ever);
    const auto stays = now.ask("c", 1);
    gone->cancel();
    gone->cancel();
    now.first->cancel();
    CHECK(now.at.counters().waiting == 1);
    CHECK_THROWS_AS(gone->get(), heed::translator::canceled);
    CHECK_THROWS_AS(now.first->get(), heed::translator::canceled);
    now.gate.open();
    CHECK(stays->get() == strings{"c/0"});
    stays->cancel();  // too late, without effect
    now.at.stop();
    CHECK(now.gate.batches() == std::vector<strings>{{"first"}, {"c"}});
    CHECK(now.at.counters().canceled == 2);
    CHECK(now.at.counters().lines == 2);
}

TEST_CASE("A line that throws fails only its own request")
{
    held now({.batch = 8, .queue = 100});
    const auto before = now.ask("a", 1);
    const auto bad = now.at.submit({{"b", 1}, {"bad", 1}, {"c", 1}}, 0, ever);
    const auto after = now.ask("d", 1);
    now.gate.open();
    CHECK(before->get() == strings{"a/0"});
    CHECK(after->get() == strings{"d/0"});
    CHECK_THROWS_WITH_AS(bad->get(), "bad line", std::runtime_error);
    CHECK_THROWS_WITH_AS(now.ask("fewer", 1)->get(), "batcher: the work returned 0 results for 1 line", heed::error);
    CHECK_THROWS_WITH_AS(now.ask("bad", 1)->get(), "bad line", std::runtime_error);
    CHECK(now.ask("e", 1)->get() == strings{"e/0"});
    now.at.stop();
    CHECK(now.at.counters().failed == 3);
    CHECK(now.at.counters().retried == 1);
    CHECK(now.at.counters().working == 0);
}

TEST_CASE("Stopping finishes accepted requests and rejects new ones")
{
    std::shared_ptr<batcher::request> kept;
    {
        held now;
        std::vector<std::shared_ptr<batcher::request>> all;
        for (int i = 0; i < 30; ++i) all.push_back(now.ask(std::to_string(i), 1));
        std::thread stopper([&] { now.at.stop(); });
        for (bool refused = false; !refused; std::this_thread::sleep_for(1ms)) {
            try {
                all.push_back(now.ask("late", 1));
            } catch (const heed::translator::stopping&) {
                refused = true;
            }
        }
        now.gate.open();
        stopper.join();
        for (int i = 0; i < 30; ++i)
            CHECK(all[static_cast<std::size_t>(i)]->get() == strings{std::to_string(i) + "/0"});
        now.at.stop();
        kept = now.first;
    }
    CHECK(kept->get() == strings{"first/0"});
}

TEST_CASE("The code of docs/how_to/service.md")
{
    namespace translator = heed::translator;
    struct how {
        std::size_t beam = 1;
        bool operator==(const how&) const = default;
    };
    const auto translate = [](const strings& lines, const how& with) {
        return strings(lines.size(), lines.front() + "/" + std::to_string(with.beam));
    };
    const std::ostringstream shown;
    std::streambuf* const before = std::cout.rdbuf(shown.rdbuf());
    // section: batcher
    translator::batcher<how, std::string> at(translate, {.batch = 32, .queue = 256});
    const auto result = at.submit({{"a man sleeps .", 4}}, how{.beam = 12}, std::chrono::seconds(10));
    std::cout << result->get().front();
    // end
    std::cout.rdbuf(before);
    CHECK(shown.str() == "a man sleeps ./12");
}

TEST_CASE("Many concurrent clients each get their own answer, and the counters add up")
{
    std::atomic<std::size_t> done{0}, refused{0}, late{0}, canceled{0}, failed{0}, wrong{0};
    batcher at(
        [](const strings& lines, int how) {
            strings results;
            for (const std::string& each : lines) {
                if (each == "bad") throw std::runtime_error("bad");
                results.push_back(each + "/" + std::to_string(how));
            }
            if (lines.size() > 3) std::this_thread::sleep_for(100us);
            return results;
        },
        {.batch = 8, .queue = 24, .workers = 3});
    constexpr std::size_t clients = 16, each = 250;
    std::vector<std::thread> threads;
    for (std::size_t client = 0; client < clients; ++client) {
        threads.emplace_back([&, client] {
            for (std::size_t i = 0; i < each; ++i) {
                const std::size_t kind = (client * 7 + i * 13) % 10;
                const std::string text = std::to_string(client) + "." + std::to_string(i);
                const int how = static_cast<int>(i % 3);
                std::vector<batcher::line> lines(1 + i % 4, {text, i % 20});
                if (kind == 0) lines.back().text = "bad";
                try {
                    const auto asked = at.submit(lines, how, kind == 1 ? batcher::clock::duration(50us) : ever);
                    if (kind == 2) asked->cancel();
                    const strings results = asked->get();
                    ++done;
                    wrong += results != strings(lines.size(), text + "/" + std::to_string(how));
                } catch (const heed::translator::queue_full&) {
                    ++refused;
                    std::this_thread::sleep_for(200us);
                } catch (const heed::translator::too_late&) {
                    ++late;
                } catch (const heed::translator::canceled&) {
                    ++canceled;
                } catch (const std::runtime_error&) {
                    ++failed;
                }
            }
        });
    }
    for (std::thread& each_thread : threads) each_thread.join();
    at.stop();
    const auto count = at.counters();
    CHECK(wrong == 0);
    CHECK(done > 0);
    CHECK(done + refused + late + canceled + failed == clients * each);
    CHECK(count.requests == done + late + canceled + failed);
    CHECK(count.refused == refused);
    CHECK(count.late == late);
    CHECK(count.canceled == canceled);
    CHECK(count.failed == failed);
    CHECK(count.waiting == 0);
    CHECK(count.working == 0);
}

TEST_CASE("A long translation learns which of its lines are no longer wanted")
{
    std::atomic<int> asked{0};
    batcher at(
        [&asked](const strings& lines, int, const batcher::still_wanted& wanted) {
            strings results(lines.size());
            for (std::size_t i = 0; i < lines.size(); ++i) {
                if (lines[i] == "short") results[i] = "done";
                while (lines[i] != "short" && wanted(i)) {  // otherwise forever
                    ++asked;
                    std::this_thread::sleep_for(1ms);
                }
            }
            return results;
        },
        {.batch = 4, .queue = 100});
    const auto late = at.submit({{"long", 1}}, 0, 20ms);  // no thread waits for it
    const auto leaving = at.submit({{"long", 1}}, 1, ever);
    const auto both = at.submit({{"short", 1}, {"short", 2}}, 1, ever);
    while (asked < 3) std::this_thread::sleep_for(1ms);
    while (at.counters().late == 0) std::this_thread::sleep_for(1ms);
    CHECK_THROWS_AS(late->get(), heed::translator::too_late);
    while (at.counters().working != 3) std::this_thread::sleep_for(1ms);
    leaving->cancel();
    CHECK(both->get() == strings{"done", "done"});
    CHECK_THROWS_AS(leaving->get(), heed::translator::canceled);
    at.stop();
    CHECK(at.counters().canceled == 1);
    CHECK(at.counters().late == 1);
    CHECK(at.counters().retried == 0);
}

TEST_CASE("In a child of fork() a batcher can only be destroyed")
{
    held now;
    const auto waiting = now.ask("second", 1);
    std::fflush(nullptr);
    std::cout.flush();
    const ::pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        ::alarm(20);
        int wrong = 0;
        const auto stops = [&](const auto& what) {
            try {
                what();
                ++wrong;
            } catch (const heed::translator::stopping& why) {
                wrong += std::string(why.what()).find("construct another batcher") == std::string::npos;
            }
        };
        stops([&] { now.ask("third", 1); });
        stops([&] { waiting->get(); });
        waiting->cancel();
        wrong += now.at.counters().waiting != 1;
        now.at.~batcher();
#ifndef HEED_HAS_THREAD_SANITIZER  // it forbids threads after a fork()
        {
            gated gate;
            gate.open();
            batcher own(std::ref(gate));  // with its own threads
            wrong += own.submit({{"fourth", 1}}, 5, ever)->get() != strings{"fourth/5"};
        }
#endif
        ::_exit(wrong);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
    now.gate.open();
    CHECK(waiting->get() == strings{"second/0"});
}
