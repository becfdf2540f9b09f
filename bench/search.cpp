// SPDX-License-Identifier: BSD-3-Clause

// Search: sentences per second of heed, of its matrix products alone, and of libtorch.
//
//     build-bench/bench/search [--threads=N] [--rounds=N] [--work=NAME]
//     [--peer=build-bench/peers/peer_libtorch_search]
//
// heed, its products and two compositions of the peer (a separate program) take turns on the same sentences with the
// same weights. Ratios are medians of the ratios within a round. Seconds are CPU time with one thread, wall time with
// more.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

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

/// heed's searches with a model.
template <class Model>
class heeds {
public:
    heeds(Model model, int threads) : threads_{threads}, model_(std::move(model)) {}

    answer run(const work& what)
    {
        const auto batches = bench::search::batches(what.batch);
        const double begin = bench::search::now(threads_);
        answer result;
        for (const auto& batch : batches) {
            if (what.width == 0) {
                for (const auto& each : seq2seq::greedy<float>(fast_, batch, {.at_most = limit, .marks = true}))
                    result.digest += each.log_probability;
            } else {
                seq2seq::beam_options how;
                how.width = what.width;
                how.at_most = limit;
                how.marks = true;  // as in the search of the peers
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
    Model model_;
    seq2seq::packed<float, Model> fast_{model_};
};

using searching = std::function<answer(const work&)>;

template <class Model>
searching search_with(Model model, int threads)
{
    const auto with = std::make_shared<heeds<Model>>(std::move(model), threads);
    return [with](const work& what) { return with->run(what); };
}

searching make(const std::string& model, int threads)
{
    if (model == "rnnsearch") return search_with(bench::search::make_rnnsearch(), threads);
    return search_with(bench::search::make_transformer(bench::search::size_of(model)), threads);
}

/// The matrix products of a search: those of the encoder and the memory once per batch; then those of each step, with
/// one row per hypothesis of the unfinished sentences (in the first step one per sentence, then the beam width).
class products {
public:
    products(const std::string& model, int threads) : threads_{threads}, multiply_{threads, bench::floor::sharing::ours}
    {
        if (model == "rnnsearch") {
            list_rnnsearch();
        } else {
            list_transformer(bench::search::size_of(model));
        }
        multiply_.begin();  // OpenBLAS's threads spin briefly after a product and would disturb the others
        const long rows = 64 * 32;
        long widest = 0;
        for (const auto* list : {&once_, &recurrent_, &step_}) {
            for (const shape& each : *list) {
                widest = std::max({widest, each.in, each.out});
                weights_.try_emplace({each.in, each.out}, bench::floor::numbers(each.in * each.out, 1));
            }
        }
        input_ = bench::floor::numbers(rows * widest, 2);
        result_ = std::vector<float>(static_cast<std::size_t>(rows * widest), 0.0F);
    }

    answer run(const work& what)
    {
        const auto batches = bench::search::batches(what.batch);
        const double begin = bench::search::now(threads_);
        for (const auto& batch : batches) {
            const long B = static_cast<long>(batch.words.batch), T = static_cast<long>(batch.words.steps);
            for (const shape& each : once_) product(each, B * T);
            for (long t = 0; t < T; ++t) {
                for (const shape& each : recurrent_) product(each, B);
            }
            for (std::size_t step = 0;; ++step) {
                long rows = 0;
                for (std::size_t b = 0; b < batch.words.batch; ++b) rows += step <= batch.real[b] ? 1 : 0;
                if (rows == 0) break;
                if (what.width > 0 && step > 0) rows *= static_cast<long>(what.width);
                for (const shape& each : step_) product(each, rows);
            }
        }
        return {bench::search::now(threads_) - begin, 0};
    }

private:
    struct shape {
        long in, out;
    };

    void list_rnnsearch()
    {
        // E y W, keys; both directions of s U_rz and (r s) U
        once_ = {{256, 768}, {256, 768}, {512, 256}};
        recurrent_ = {{256, 512}, {256, 256}, {256, 512}, {256, 256}};
        // E y W, s W_a, c C, s U_rz, (r s) U; s U_o, E y V_o, c C_o, t W_o
        step_ = {{256, 768}, {256, 256}, {512, 768}, {256, 512}, {256, 256},
                 {256, 512}, {256, 512}, {512, 512}, {256, 8000}};
    }

    void list_transformer(const bench::search::transformer_size& z)
    {
        const long D = z.model;
        for (long i = 0; i < z.layers; ++i) {
            // queries, keys and values, W_O, feed-forward; the decoder's keys and values of the source
            for (const shape& each : {shape{D, 3 * D}, {D, D}, {D, z.hidden}, {z.hidden, D}, {D, 2 * D}})
                once_.push_back(each);
            // query, key, value and W_O of self-attention; query and W_O of cross-attention
            for (const shape& each : {shape{D, 3 * D}, {D, D}, {D, D}, {D, D}, {D, z.hidden}, {z.hidden, D}})
                step_.push_back(each);
        }
        step_.push_back({D, z.vocabulary});
    }

    void product(const shape& of, long rows)
    {
        multiply_(false, false, rows, of.out, of.in, input_.data(), weights_.at({of.in, of.out}).data(),
                  result_.data());
    }

    int threads_;
    bench::floor::gemm multiply_;
    std::vector<shape> once_, recurrent_, step_;
    std::vector<float> input_, result_;
    std::map<std::pair<long, long>, std::vector<float>> weights_;
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
    std::string model;
    searching ours;
    std::unique_ptr<products> alone;
    std::vector<std::unique_ptr<peer>> others;  // started once; they wait while the others run
    if (!program.empty()) {
        for (const char* way : {"plain", "tuned"})
            others.push_back(std::make_unique<peer>(program, chosen.threads, way));
    }
    std::printf("%-26s %9s %9s %9s %9s   %s\n", "sentences/s", "heed", "products", "libtorch", "tuned",
                "times: heed / products, libtorch / heed, tuned / heed");
    for (const work& what : bench::search::works()) {
        if (!only.empty() && what.name.find(only) == std::string::npos) continue;
        if (what.model != model) {
            model = what.model;
            ours = make(model, chosen.threads);
            alone = std::make_unique<products>(model, chosen.threads);
        }
        std::vector<double> seconds[4], ratios[4];
        for (int round = -1; round < rounds; ++round) {
            const answer a = ours(what);
            std::vector<double> of_round{a.seconds, alone->run(what).seconds};
            for (const auto& other : others) {
                const answer c = other->run(what.name);
                if (!(std::abs(a.digest - c.digest) <= 1e-3 * std::abs(a.digest))) {
                    std::fprintf(stderr, "search: %s: heed's translations have log-probability %g and libtorch's %g\n",
                                 what.name.c_str(), a.digest, c.digest);
                    return 1;
                }
                of_round.push_back(c.seconds);
            }
            if (round < 0) continue;  // warm-up
            for (std::size_t i = 0; i < of_round.size(); ++i) {
                seconds[i].push_back(of_round[i]);
                ratios[i].push_back(of_round[i] / a.seconds);
            }
        }
        std::printf("%-26s", what.name.c_str());
        for (const auto& each : seconds)
            std::printf(" %9.1f",
                        each.empty() ? 0.0 : static_cast<double>(bench::search::sentences) / bench::median(each));
        std::printf("   %.2f  %.2f  %.2f\n", 1 / bench::median(ratios[1]), bench::median(ratios[2]),
                    bench::median(ratios[3]));
        std::fflush(stdout);
    }
    return 0;
}
