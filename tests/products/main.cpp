// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cinttypes>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <products/programs.hpp>

// Judges the products that to_be_judged (policies.hpp) selects, and runs their random programs (programs.hpp), with a
// new seed each day. --programs N [seed] runs N random programs, --replay a given one; --markdown prints
// docs/explanation/composition.md; --allocations prints the products that allocate memory in a steady step_into; --bits
// prints a hash of each product's results and gradients, to compare two versions of heed.

void composition::add_row(table& to, const std::string& score, const char* normalizer, const std::string& combiner,
                          heed::weight_kind kind, heed::composition_fault fault, many queries,
                          std::unique_ptr<product> judged)
{
    if (judged) {
        judged->score = score;
        judged->normalizer = normalizer;
        judged->combiner = combiner;
    }
    to.push_back({score, normalizer, combiner, kind, fault, queries, std::move(judged)});
}

namespace {

using namespace composition;

/// The pairs of policies of the products that `chosen` selects; with HEED_TEST_EACH_POLICY the policies alone.
template <class Chosen>
std::set<std::string> pairs_of(const table& lines, const Chosen& chosen)
{
    std::set<std::string> pairs;
    for (const row& line : lines) {
        if (!chosen(line)) continue;
#ifdef HEED_TEST_EACH_POLICY
        pairs.insert({line.score, line.normalizer, line.combiner});
#else
        pairs.insert(line.score + ", " + line.normalizer);
        pairs.insert(line.score + ", " + line.combiner);
        pairs.insert(line.normalizer + ", " + line.combiner);
#endif
    }
    return pairs;
}

/// Whether a pair of policies of a legal product is in no judged product; prints such pairs.
bool misses_a_pair(const table& lines)
{
    const auto judged = pairs_of(lines, [](const row& line) { return line.judged != nullptr; });
    bool misses = false;
    for (const std::string& pair : pairs_of(lines, [](const row& line) { return line.legal(); })) {
        if (judged.contains(pair)) continue;
        std::fprintf(stderr, "no product of %s is judged\n", pair.c_str());
        misses = true;
    }
    return misses;
}

/// Prints the mistakes that `judge` overlooks in attention{additive, softmax, .}; true if there are any, or if no such
/// product is judged.
bool overlooks_a_mistake(const table& lines)
{
    bool tried = false;
    for (const row& line : lines) {
        if (line.score != "additive" || line.normalizer != "softmax" || !line.judged) continue;
        tried = true;
        const std::string overlooked = overlooked_mistakes(*line.judged);
        if (overlooked.empty()) continue;
        std::fprintf(stderr, "judge overlooks the mistakes%s in attention{additive, softmax, %s}\n", overlooked.c_str(),
                     line.combiner.c_str());
        return true;
    }
    return !tried;
}

/// Prints the entries of the interpreter's tables in which no judged product reveals a wrong value and a wrong
/// derivative; true if there are any.
bool misses_a_wrong_equation(const table& lines, const table& own)
{
    bool misses = false;
    for (const std::string& entry : interpreter::entries()) {
        for (const bool of_derivative : {false, true}) {
            if (of_derivative && (entry == "normalize argmax" || entry == "normalize monotonic_hard")) continue;
            const auto reveals = [&, policy = entry.substr(entry.find(' ') + 1)](const row& line) {
                return line.judged &&
                       (line.score + line.normalizer + line.combiner).find(policy) != std::string::npos &&
                       !compare_with_equations(*line.judged, {entry, of_derivative}).empty();
            };
            if (std::any_of(lines.begin(), lines.end(), reveals) || std::any_of(own.begin(), own.end(), reveals))
                continue;
            std::fprintf(stderr, "no product reveals a wrong %s of %s\n", of_derivative ? "derivative" : "value",
                         entry.c_str());
            misses = true;
        }
    }
    return misses;
}

struct verdict {
    std::size_t judged = 0, wrong = 0;
};

/// Judges the selected products among these lines.
verdict judge_all(const table& lines)
{
    verdict all;
    for (const row& line : lines) {
        if (!line.judged) continue;
        ++all.judged;
        const std::string what = judge(*line.judged);
        if (what.empty()) continue;
        ++all.wrong;
        std::fprintf(stderr, "attention{%s, %s, %s}: %s\n", line.score.c_str(), line.normalizer.c_str(),
                     line.combiner.c_str(), what.c_str());
    }
    return all;
}

/// The number of days since 1970: a new seed each day.
std::uint64_t seed_of_today() { return static_cast<std::uint64_t>(std::time(nullptr)) / 86400; }

std::string running;  // the program that runs, for the signal handler

/// Prints the program during which the process ends.
extern "C" void print_running(int signal)
{
    std::fprintf(stderr, "signal %d in the program\n%s", signal, running.c_str());
    std::_Exit(1);
}

/// Runs the programs that had a fault once; true if all are right.
bool repeats_found_programs(const table& lines)
{
    bool right = true;
    for (const std::string& found : found_programs()) {
        running = found + "\n";
        const std::string fault = fault_of(lines, program_from(found));
        if (fault.empty()) continue;
        std::fprintf(stderr, "%s\nIts fault: %s\n", found.c_str(), fault.c_str());
        right = false;
    }
    return right;
}

/// Runs random programs; prints the smallest version of the first one with a fault. True if all were right.
bool runs_programs(const table& lines, std::uint64_t count, std::uint64_t seed)
{
    std::printf("%" PRIu64 " random programs, seed %" PRIu64 "\n", count, seed);
    std::fflush(stdout);
    for (const int signal : {SIGSEGV, SIGABRT, SIGFPE}) std::signal(signal, print_running);
    for (std::uint64_t i = 0; i < count; ++i) {
        const program drawn = draw(lines, seed * 0x9e3779b97f4a7c15 + i);
        running = text(drawn);
        if (fault_of(lines, drawn).empty()) continue;
        const program smallest = shrunk(lines, drawn);
        std::fprintf(stderr, "program %" PRIu64 " is wrong. Run --replay with:\n%sIts fault: %s\n", i,
                     text(smallest).c_str(), fault_of(lines, smallest).c_str());
        return false;
    }
    return true;
}

/// FNV-1a of the bits and sizes of all results.
std::uint64_t hash_of(std::uint64_t hash, const outcome& all)
{
    const auto add = [&](std::uint64_t bits) { hash = (hash ^ bits) * 0x100000001b3; };
    for (const numbers& series : all) {
        add(series.size());
        for (const double x : series) add(std::bit_cast<std::uint64_t>(x));
    }
    return hash;
}

void print_bits(const table& lines)
{
    constexpr std::uint64_t start = 0xcbf29ce484222325;
    for (const row& line : lines) {
        if (!line.judged) continue;
        const taped_outcome back = line.judged->on_tape();
        std::printf("%016" PRIx64 " %016" PRIx64 " %016" PRIx64 "  attention{%s, %s, %s}\n",
                    hash_of(start, line.judged->steps()), hash_of(start, {line.judged->at_once()}),
                    hash_of(hash_of(start, back.values), back.slopes), line.score.c_str(), line.normalizer.c_str(),
                    line.combiner.c_str());
    }
}

void print_allocations(const table& lines)
{
    std::size_t judged = 0, allocating = 0;
    for (const row& line : lines) {
        if (!line.judged) continue;
        ++judged;
        const std::size_t count = line.judged->allocations();
        if (count == 0) continue;
        ++allocating;
        std::printf("%5.1f  attention{%s, %s, %s}\n", static_cast<double>(count) / 2, line.score.c_str(),
                    line.normalizer.c_str(), line.combiner.c_str());
    }
    std::printf("%zu of %zu products allocate memory in a steady step_into\n", allocating, judged);
}

}  // namespace

int main(int argc, char** argv)
{
    const std::vector<std::string> options(argv + 1, argv + argc);
    const std::string option = options.empty() ? "" : options[0];
    const bool single = option == "--markdown" || option == "--allocations" || option == "--bits";
    const std::size_t values = options.empty() ? 0 : options.size() - 1;
    if (!(options.empty() || (single && values == 0) || (option == "--replay" && values == 1) ||
          (option == "--programs" && (values == 1 || values == 2)))) {
        std::fputs("usage: composition_products [--markdown | --allocations | --bits | --programs <count> [<seed>] | "
                   "--replay <program>]\n",
                   stderr);
        return 2;
    }
    table lines, own;
    add_scores_of_similarity(lines);
    add_scores_of_indices(lines);
    add_scores_of_one_matrix(lines);
    add_additive_scores(lines);
    add_scores_that_remember(lines);
    add_scores_per_dimension(lines);
    add_scores_per_group(lines);
    add_own_score(own);

    if (option == "--allocations") {
        print_allocations(lines);
        print_allocations(own);
        return 0;
    }
    if (option == "--bits") {
        print_bits(lines);
        print_bits(own);
        return 0;
    }
    if (option == "--markdown") {
        std::fputs(markdown(lines).c_str(), stdout);
        return 0;
    }
    if (option == "--programs") {
        const std::uint64_t seed = values == 2 ? std::stoull(options[2]) : seed_of_today();
        return runs_programs(lines, std::stoull(options[1]), seed) ? 0 : 1;
    }
    if (option == "--replay") {
        const std::string fault = fault_of(lines, program_from(options[1]));
        std::printf("%s\n", fault.empty() ? "no fault" : fault.c_str());
        return fault.empty() ? 0 : 1;
    }
    if (overlooks_a_mistake(lines) || misses_a_pair(lines) || misses_a_wrong_equation(lines, own)) return 1;
    const verdict of_heed = judge_all(lines), of_own = judge_all(own);
    const auto legal = std::count_if(lines.begin(), lines.end(), [](const row& line) { return line.legal(); });
    std::printf(
        "%zu products, %td legal, %zu judged, %zu of these wrong; %zu with a score that is not heed's, %zu wrong\n",
        lines.size(), legal, of_heed.judged, of_heed.wrong, of_own.judged, of_own.wrong);
    const bool right = repeats_found_programs(lines) && runs_programs(lines, 1000, seed_of_today());
    return right && of_heed.wrong + of_own.wrong == 0 && of_heed.judged > 0 && of_own.judged > 0 ? 0 : 1;
}
