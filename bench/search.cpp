// SPDX-License-Identifier: BSD-3-Clause

// Searching: sentences per second of heed, of the matrix products of the same search alone, and of libtorch.
//
//     build-bench/bench/search [--threads=N] [--rounds=N] [--peer=build-bench/bench/peer_libtorch_search]
//
// heed, its products and the peer in two compositions (a separate program) take turns on the same sentences with the
// same weights, round after round; ratios are medians of the ratios within a round. Seconds are CPU time with one
// thread, wall time with more.

#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <utility>

#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/packed.hpp>

#include "floor.hpp"
#include "peer.hpp"
#include "search.hpp"

namespace {

using namespace heed;
using bench::search::work;

using bench::answer;
using bench::peer;

/// heed's own searches.
class heeds {
public:
    explicit heeds(int threads) : threads_{threads} {}

    answer run(const work& what)
    {
        const auto batches = bench::search::batches(what.batch);
        const double begin = bench::search::now(threads_);
        answer result;
        for (const auto& batch : batches) {
            if (what.width == 0) {
                for (const auto& each : seq2seq::greedy<float>(fast_, batch, false, {}, limit))
                    result.digest += each.log_probability;
            } else {
                seq2seq::beam_options how;
                how.width = what.width;
                how.at_most = limit;
                for (const auto& each : seq2seq::beam<float>(fast_, batch, how))
                    result.digest += each.front().log_probability;
            }
        }
        result.seconds = bench::search::now(threads_) - begin;
        return result;
    }

private:
    static constexpr seq2seq::length_limit limit{1, 0};
    int threads_;
    decltype(bench::search::make_model()) model_ = bench::search::make_model();
    seq2seq::packed<float, decltype(model_)> fast_{model_};
};

/// The matrix products of a search and nothing else: the encoder's and the keys' once per batch; then step by step,
/// with one row per hypothesis of the unfinished sentences: at first one per sentence, then the width.
///
///     E y W [R,256]x[256,768]   s W_a [R,256]x[256,256]   c C [R,512]x[512,768]   s U_rz [R,256]x[256,512]
///     (r s) U [R,256]x[256,256]   s U_o, E y V_o [R,256]x[256,512]   c C_o [R,512]x[512,512]   t W_o
///     [R,256]x[256,8000]
class products {
public:
    explicit products(int threads) : threads_{threads}, multiply_{threads, bench::floor::sharing::ours}
    {
        multiply_.begin();  // or OpenBLAS's own threads, which spin for a while, would disturb the others
        const long rows = 12 * 64, T = 32;
        input_ = bench::floor::numbers(std::max(rows, 64 * T) * 512, 2);
        result_ = std::vector<float>(static_cast<std::size_t>(rows) * 8000, 0.0F);
        for (const auto& [in, out] : shapes) weights_.push_back(bench::floor::numbers(in * out, 1));
    }

    answer run(const work& what)
    {
        const auto batches = bench::search::batches(what.batch);
        const double begin = bench::search::now(threads_);
        for (const auto& batch : batches) {
            const long B = static_cast<long>(batch.words.batch), T = static_cast<long>(batch.words.steps);
            for (int direction = 0; direction < 2; ++direction) {
                product(0, B * T);
                for (long t = 0; t < T; ++t) {
                    product(3, B);
                    product(1, B);
                }
            }
            product(7, B * T);  // keys
            product(1, B);      // start
            for (std::size_t step = 0;; ++step) {
                long rows = 0;
                for (std::size_t b = 0; b < batch.words.batch; ++b) rows += step <= batch.real[b] ? 1 : 0;
                if (rows == 0) break;
                if (what.width > 0 && step > 0) rows *= static_cast<long>(what.width);
                for (const std::size_t of_step : std::to_array<std::size_t>({0, 1, 2, 3, 1, 3, 3, 4, 5}))
                    product(of_step, rows);
            }
        }
        return {bench::search::now(threads_) - begin, 0};
    }

private:
    static constexpr std::pair<long, long> shapes[] = {{256, 768}, {256, 256},  {512, 768}, {256, 512},
                                                       {512, 512}, {256, 8000}, {0, 0},     {512, 256}};

    void product(std::size_t which, long rows)
    {
        const auto& [in, out] = shapes[which];
        multiply_(false, false, rows, out, in, input_.data(), weights_[which].data(), result_.data());
    }

    int threads_;
    bench::floor::gemm multiply_;
    std::vector<float> input_, result_;
    std::vector<std::vector<float>> weights_;
};

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    int rounds = 9;
    std::string program, only;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument.starts_with("--rounds=")) {
            rounds = std::atoi(argv[i] + 9);
        } else if (argument.starts_with("--peer=")) {
            program = argument.substr(7);
        } else if (argument.starts_with("--work=")) {
            only = argument.substr(7);
        } else {
            std::fprintf(stderr, "search: unknown argument %s\n", argv[i]);
            return 2;
        }
    }
    set_threads(static_cast<std::size_t>(chosen.threads));
    heeds ours{chosen.threads};
    products alone{chosen.threads};
    std::vector<std::unique_ptr<peer>> others;  // started once; they wait while others work
    if (!program.empty()) {
        for (const char* way : {"plain", "tuned"})
            others.push_back(std::make_unique<peer>(program, chosen.threads, way));
    }
    std::printf("%-12s %9s %9s %9s %9s   %s\n", "sentences/s", "heed", "products", "libtorch", "tuned",
                "times: heed / products, libtorch / heed, tuned / heed");
    for (const work& what : bench::search::works()) {
        if (!only.empty() && what.name.find(only) == std::string::npos) continue;
        std::vector<double> seconds[4], ratios[4];
        for (int round = -1; round < rounds; ++round) {
            const answer a = ours.run(what);
            std::vector<double> of_round{a.seconds, alone.run(what).seconds};
            for (const auto& other : others) {
                const answer c = other->run(what.name);
                if (!(std::abs(a.digest - c.digest) <= 1e-3 * std::abs(a.digest))) {
                    std::fprintf(stderr, "search: %s: heed's translations have log-probability %g and libtorch's %g\n",
                                 what.name.c_str(), a.digest, c.digest);
                    return 1;
                }
                of_round.push_back(c.seconds);
            }
            if (round < 0) continue;  // pages and caches
            for (std::size_t i = 0; i < of_round.size(); ++i) {
                seconds[i].push_back(of_round[i]);
                ratios[i].push_back(of_round[i] / a.seconds);
            }
        }
        std::printf("%-12s", what.name.c_str());
        for (const auto& each : seconds)
            std::printf(" %9.1f",
                        each.empty() ? 0.0 : static_cast<double>(bench::search::sentences) / bench::median(each));
        std::printf("   %.2f  %.2f  %.2f\n", 1 / bench::median(ratios[1]), bench::median(ratios[2]),
                    bench::median(ratios[3]));
        std::fflush(stdout);
    }
    return 0;
}
