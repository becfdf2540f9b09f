// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <signal.h>  // sigaction
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/utf8.hpp>

#include "../support/misuse.hpp"
#include "command_line.hpp"
#include "serve/engine.hpp"
#include "serve/lines.hpp"
#include "serve/same_site.hpp"
#include "serve/service.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate serve`
struct serve_command {
    std::vector<fs::path> paths;
    std::string host = "127.0.0.1", title, from, to;
    std::vector<std::string> origins, hosts, examples;
    std::size_t port = 8080, batch = 64, queue = 1024, most_length = 256, most_beam = 64, most_bytes = 256 * 1024,
                connections = 512, most_work = 100'000, most_numbers = 250'000;
    double timeout = 30;
    bool lines = false, quiet = false;
    wishes otherwise;

    void declare(CLI::App& app)
    {
        app.description("Serve translations: HTTP with JSON and a page, or lines on standard input.");
        app.footer(
            "Requests that arrive during a batch form the next batch. POST /translate, GET /health, /metrics,\n"
            "and / for the page; see docs/how_to/service.md. SIGINT and SIGTERM finish the pending requests and\n"
            "exit; a second signal exits immediately. Only this machine can connect unless --host is given.\n\n"
            "Examples:\n"
            "  translate serve --model en-de.safetensors\n"
            "  curl http://127.0.0.1:8080/translate --json '{\"text\": \"a man is sleeping .\", \"alternatives\": 3}'\n"
            "  tail -f log | translate serve --model en-de.safetensors --stdin");
        add_models(app, paths);
        app.add_option("--host", host, "address to listen on; 0.0.0.0: all addresses of this machine")
            ->type_name("HOST")
            ->capture_default_str()
            ->group("HTTP");
        add_count(app, "--port", port, "0: any free port; the address is printed on standard output",
                  CLI::Range(std::size_t{0}, std::size_t{65535}).description(""))
            ->group("HTTP");
        add_count(app, "--max-size", most_bytes, "maximum size of a request body in bytes",
                  CLI::Range(std::size_t{100}, std::size_t{64} << 20).description(""))
            ->group("HTTP");
        add_count(app, "--connections", connections,
                  "maximum number of connections; beyond that, the slowest is closed",
                  CLI::Range(std::size_t{1}, std::size_t{100'000}).description(""))
            ->group("HTTP");
        app.add_option("--timeout", timeout, "maximum seconds from a request to its response")
            ->check(CLI::Range(0.001, 86400.0).description(""))
            ->check(number)
            ->type_name("S")
            ->capture_default_str()
            ->group("HTTP");
        app.add_option("--allow-host", hosts,
                       "host names accepted in requests, or *; default: localhost\n"
                       "and 127.0.0.1, or any if other machines can reach --host")
            ->take_all()
            ->type_name("NAME")
            ->group("HTTP");
        app.add_option("--allow-origin", origins,
                       "origins whose pages may send requests (CORS), or *; default: only\n"
                       "the page of the service")
            ->take_all()
            ->type_name("ORIGIN")
            ->group("HTTP");
        app.add_option("--title", title, "title of the page; default: the model's name")
            ->type_name("TEXT")
            ->group("Page");
        CLI::Option* const source = app.add_option("--from", from, "source language, by name or code: English, en")
                                        ->type_name("LANGUAGE")
                                        ->group("Page");
        app.add_option("--to", to, "target language")->type_name("LANGUAGE")->needs(source)->group("Page");
        source->needs("--to");
        app.add_option("--example", examples, "example sentence on the page; may be repeated")
            ->take_all()
            ->type_name("TEXT")
            ->group("Page");
        app.add_flag("--quiet", quiet, "do not log requests to standard error")->group("HTTP");
        app.add_flag("--stdin", lines, "no HTTP: read lines, write each translation immediately");
        add_count(app, "--max-length", most_length, "maximum number of tokens per sentence");
        add_count(app, "--max-beam", most_beam, "maximum beam of a request",
                  CLI::Range(std::size_t{1}, std::size_t{1024}).description(""));
        add_count(app, "--max-work", most_work, "maximum of tokens × beam per request", any_number)->group("HTTP");
        add_count(app, "--max-answer", most_numbers, "maximum number of words and weights per answer", any_number)
            ->group("HTTP");
        add_count(app, "--queue", queue, "sentences in the queue; beyond that, requests are rejected");
        add_count(app, "--batch", batch, "sentences per batch");
        app.add_option("--beam", otherwise.beam, "beam of requests that do not set it")
            ->check(CLI::Range(std::size_t{1}, std::size_t{1024}).description(""))
            ->type_name("N")
            ->capture_default_str()
            ->group("Search");
        app.add_option("--length-penalty", otherwise.length_penalty, "length penalty of requests that do not set it")
            ->check(CLI::Range(0.0, 10.0).description(""))
            ->check(number)
            ->type_name("A")
            ->capture_default_str()
            ->group("Search");
    }

    int run()
    {
        if (otherwise.beam > most_beam)
            throw program::misuse(fmt::format("--beam {} is greater than --max-beam {}", otherwise.beam, most_beam));
#ifndef HEED_HTTPLIB
        if (!lines)
            throw heed::error("serve: this program was built without cpp-httplib (Debian: libcpp-httplib-dev) and has "
                              "no HTTP; --stdin is available");
#endif
        engine model = engine_of(paths, batch);
        if (!title.empty()) model.name = title;
        model.from = from;
        model.to = to;
        if (!examples.empty()) model.examples = examples;
        // Each thread has separate batches, which uses the threads better than one shared batch.
        const std::size_t threads = heed::threads();
        heed::set_threads(1);
        service_limits most;
        most.length = most_length;
        most.beam = most_beam;
        most.timeout = std::chrono::milliseconds(static_cast<long>(1000 * timeout));
        most.work = most_work;
        most.numbers = most_numbers;
        most.origins = origins;
        most.hosts = hosts;
        // A service for other machines accepts any host name, unless --allow-host lists some.
        if (hosts.empty() && !is_local()) most.hosts = {"*"};
        most.batches = {.batch = batch, .queue = queue, .workers = threads};
        // Lines wait until there is room; lines being translated count: see serve_lines.
        if (lines) most.batches.queue = std::max(queue, queue + batch * threads);
        service at(model, most, otherwise);
        const int status = lines ? serve_standard_input(at) : serve_http(at);
        if (!quiet || lines) say(at.summary());
        return status;
    }

private:
    bool is_local() const { return http::is_this_machine(host); }

    static void say(const std::string& text) { std::fputs(("translate: " + text + '\n').c_str(), stderr); }

    static inline volatile std::sig_atomic_t asked_to_stop = 0;
    static inline void (*when_asked)() = nullptr;

    /// Calls this on the first SIGINT or SIGTERM; the next one ends the program.
    static void on_signal(void (*what)())
    {
        when_asked = what;
        struct sigaction how {};
        how.sa_handler = [](int number) {
            const int error = errno;
            asked_to_stop = 1;
            std::signal(number, SIG_DFL);
            if (when_asked != nullptr) when_asked();
            errno = error;
        };
        for (const int each : {SIGINT, SIGTERM})
            ::sigaction(each, &how, nullptr);  // reading must be interrupted as well
    }

    int serve_standard_input(service& at) const
    {
        // Reading is retried after a signal; then the input must have ended.
        on_signal([] {
            if (const int nothing = ::open("/dev/null", O_RDONLY); nothing >= 0) ::dup2(nothing, STDIN_FILENO);
        });
        return serve_lines(at, std::cin, std::cout, [] { return asked_to_stop != 0; }) == 0 ? 0 : 1;
    }

    int serve_http([[maybe_unused]] service& at) const
    {
#ifdef HEED_HTTPLIB
        static http::server* now = nullptr;
        static service* health = nullptr;
        http::limits limits;
        limits.body = most_bytes;
        limits.connections = connections;
        http::server server(
            limits, [&at](const http::request& asked) { return at.answer(asked); },
            [this, &at](const http::record& what) {
                at.observe(what);
                if (!quiet) log(what);
            });
        at.report([&server] { return server.count(); });
        const int listening = server.bind(host, static_cast<int>(port));
        const std::string address =
            fmt::format("http://{}:{}", host.find(':') == host.npos ? host : "[" + host + "]", listening);
        now = &server;
        health = &at;
        on_signal([] {
            health->stop();
            now->stop();
        });
        if (!is_local())
            say("note: other machines can reach " + host + "; docs/how_to/service_deployment.md has a TLS proxy");
        program::print(address + '\n');
        say("serving at " + address + "/, which is a page; Ctrl-C finishes pending requests and exits");
        server.run();
        on_signal(nullptr);
        at.report(nullptr);
        return 0;
#else
        return 1;
#endif
    }

    static void log(const http::record& what)
    {
        const std::time_t seconds = std::time(nullptr);
        std::tm utc{};
        ::gmtime_r(&seconds, &utc);
        char when[32];
        std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
        std::string line = fmt::format("{} {} \"{} {}\" {} {} B {:.3f} s", when, what.client,
                                       what.method.empty() ? "-" : what.method.substr(0, 16),
                                       what.path.empty() ? "-" : heed::text::printable(what.path.substr(0, 200)),
                                       what.status, what.bytes, what.seconds);
        if (!what.remark.empty()) line += ", " + what.remark;
        std::fputs((line + '\n').c_str(), stderr);
    }
};

}  // namespace translation
