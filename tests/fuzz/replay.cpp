// SPDX-License-Identifier: BSD-3-Clause
//
// Runs every target without libFuzzer, with any compiler:
//
//     fuzz_replay FOLDER              its seeds, a few fixed mutations of each, and the inputs that once broke
//                                     it, FOLDER/<target>/*
//     fuzz_replay TARGET FILE…        these inputs
//     fuzz_replay --seeds FOLDER      writes the seeds to FOLDER/<target>/, for libFuzzer
//     fuzz_replay --targets           their names
//
// If an input fails, prints it and how to reproduce the failure.

#include "fuzz.hpp"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <random>

extern "C" [[gnu::weak]] void __sanitizer_set_death_callback(void (*function_ref)());

namespace {

/// The target that is running.
const char* running = "";
std::string_view input;

/// Prints how to reproduce the failure, with the input in base64.
void say_input()
{
    if (*running == '\0') return;
    constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::fprintf(stderr, "target %s broke; to repeat it:\nbase64 -d >input <<END\n", running);
    for (std::size_t i = 0; i < input.size(); i += 3) {
        const auto byte = [&](std::size_t k) {
            return i + k < input.size() ? static_cast<unsigned char>(input[i + k]) : 0u;
        };
        const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for (std::size_t k = 0; k < 4; ++k)
            std::fputc(i + k > input.size() ? '=' : digits[group >> (18 - 6 * k) & 63], stderr);
        if (i % 90 == 87) std::fputc('\n', stderr);
    }
    std::fprintf(stderr, "\nEND\nfuzz_replay %s input\n", running);
    running = "";
}

void say_input_and_end(int signal)
{
    say_input();
    std::signal(signal, SIG_DFL);
    std::raise(signal);
}

void run_on(const fuzz::target& one, std::string_view bytes)
{
    running = one.name;
    input = bytes;
    one.run(bytes);
    running = "";
}

std::string contents(const std::filesystem::path& path)
{
    std::ifstream stream(path, std::ios::binary);
    if (!stream) fuzz::fail(path.string() + ": cannot be read");
    return {std::istreambuf_iterator<char>(stream), {}};
}

class changer {
public:
    explicit changer(unsigned seed) : random_(seed) {}

    std::size_t operator()(std::size_t end) { return random_() % std::max<std::size_t>(end, 1); }

    /// Changes, removes or inserts one to three bytes, or repeats a part.
    std::string scrambled(std::string bytes, std::size_t most)
    {
        for (std::size_t n = (*this)(3) + 1; n-- > 0;) {
            const std::size_t at = (*this)(bytes.size() + 1);
            const char byte = static_cast<char>((*this)(256));
            const std::size_t kind = (*this)(4);
            if (kind == 0 && at < bytes.size()) bytes[at] = byte;
            if (kind == 1) bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), byte);
            if (kind == 2) bytes.erase(at, (*this)(8));
            if (kind == 3) bytes.insert(at, bytes.substr((*this)(bytes.size() + 1), (*this)(64)));
        }
        bytes.resize(std::min(bytes.size(), most));
        return bytes;
    }

private:
    std::minstd_rand random_;
};

void replay(const fuzz::target& one, const std::filesystem::path& found)
{
    const auto run = [&](const std::string& bytes) { run_on(one, bytes); };
    std::size_t inputs = 0;
    changer change(1);
    const fuzz::dice roll = [&](std::size_t end) { return change(end); };
    const fuzz::scramble bytewise = [&](std::string bytes, std::size_t most) {
        return change.scrambled(std::move(bytes), most);
    };
    std::error_code none;
    for (const auto& each : std::filesystem::directory_iterator(found / one.name, none)) {
        std::printf("%s\n", each.path().c_str());
        std::fflush(stdout);
        run(contents(each.path()));
        ++inputs;
    }
    run("");
    for (const std::string& seed : one.seeds()) {
        run(seed);
        std::string changed = seed;
        for (int round = 0; round < 100; ++round, ++inputs) {
            if (round % 10 == 0) changed = seed;
            changed = one.mutate != nullptr && round % 4 != 0 ? one.mutate(changed, roll, bytewise)
                                                              : bytewise(changed, seed.size() + 4096);
            run(changed);
        }
    }
    std::printf("%s: %zu inputs\n", one.name, inputs);
    std::fflush(stdout);
}

}  // namespace

int main(int count, char** values)
{
    const std::vector<std::string> arguments(values + 1, values + count);
    std::signal(SIGABRT, say_input_and_end);
    if (__sanitizer_set_death_callback != nullptr)
        __sanitizer_set_death_callback(say_input);
    else
        std::signal(SIGSEGV, say_input_and_end);
    std::sort(fuzz::targets().begin(), fuzz::targets().end(),
              [](const fuzz::target& a, const fuzz::target& b) { return std::string(a.name) < b.name; });
    if (arguments.size() == 1 && arguments[0] == "--targets") {
        for (const fuzz::target& each : fuzz::targets()) std::printf("%s\n", each.name);
        return 0;
    }
    if (arguments.size() == 2 && arguments[0] == "--seeds") {
        for (const fuzz::target& each : fuzz::targets()) {
            const std::filesystem::path folder = std::filesystem::path(arguments[1]) / each.name;
            std::filesystem::create_directories(folder);
            std::size_t number = 0;
            for (const std::string& seed : each.seeds())
                std::ofstream(folder / ("seed" + std::to_string(++number)), std::ios::binary) << seed;
        }
        return 0;
    }
    if (arguments.size() == 1) {
        for (const fuzz::target& each : fuzz::targets()) replay(each, arguments[0]);
        return 0;
    }
    for (const fuzz::target& each : fuzz::targets()) {
        if (arguments.size() < 2 || arguments[0] != each.name) continue;
        for (std::size_t i = 1; i < arguments.size(); ++i) run_on(each, contents(arguments[i]));
        return 0;
    }
    std::fprintf(stderr, "usage: fuzz_replay FOLDER | TARGET FILE… | --seeds FOLDER | --targets\n");
    return 2;
}
