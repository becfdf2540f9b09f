// SPDX-License-Identifier: BSD-3-Clause

// Training steps of complete systems, compared with their matrix products alone.
//
//     build-bench/bench/systems [--threads=N] [--rounds=N] [--work=NAME]
//     [--peer=build-bench/peers/peer_libtorch_systems]
//
// A system, its products and the peer (only for the Transformer) take turns, round after round; ratios are the medians
// of the ratios within a round. Seconds are CPU time with one thread, wall time with more. A batch has 4,096 tokens on
// either side, 273 sentences of 15 tokens with the end word, and vocabularies of 10,000 (RNNsearch: 64 sentences, 8,000
// words, as in bench/training).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/systems/gehring2017.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>

#include "floor.hpp"
#include "harness.hpp"
#include "peer.hpp"
#include "search.hpp"

namespace {

using namespace heed;

constexpr long length = 15, vocabulary = 10000, sentences = 273;

/// x [rows,K] times W [K,N] in training: forward and gradient of x at each of `steps`, gradient of W once; all repeated
/// `times` times.
struct dense {
    long rows, K, N, steps, times;
};

/// The products of multi-head attention: for each sentence and head two forward and four backward.
struct attended {
    long sentences, heads, S, T, d, times;
};

/// The matrix products of a step.
class products {
public:
    products(int threads, const std::vector<dense>& layers, std::vector<attended> pairs)
        : multiply_{threads, bench::floor::sharing::ours}, pairs_(std::move(pairs))
    {
        for (const dense& each : layers) {  // on separate memory, as in a model
            for (long i = 0; i < each.times; ++i)
                layers_.emplace_back(each.steps, bench::floor::product{each.rows, each.K, each.N, each.steps});
        }
        long most = 0;
        for (const attended& a : pairs_)
            most = std::max(most, a.sentences * a.heads * std::max({a.S * a.d, a.T * a.d, a.S * a.T}));
        for (auto* const each : {&queries_, &keys_, &scores_}) *each = bench::floor::numbers(most, 1);
    }

    void run()
    {
        multiply_.begin();
        for (auto& [steps, product] : layers_) {
            for (long t = 0; t < steps; ++t) product.forward(multiply_, t);
        }
        for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) {
            for (long t = layer->first; t-- > 0;) layer->second.backward(multiply_, t);
            layer->second.weight_gradient(multiply_);
        }
        for (const attended& a : pairs_) {
            for (long i = 0; i < a.times * a.sentences * a.heads; ++i) attend(a, i % (a.sentences * a.heads));
        }
        multiply_.end();
        benchmark::ClobberMemory();
        // Repeated products would grow without bound, and numbers out of range are slow.
        for (auto* const each : {&queries_, &keys_}) std::fill(each->begin(), each->end(), 0.01F);
    }

private:
    void attend(const attended& a, long k)
    {
        float *const q = queries_.data() + k * a.S * a.d, *const h = keys_.data() + k * a.T * a.d;
        float* const e = scores_.data() + k * a.S * a.T;
        multiply_(false, true, a.S, a.T, a.d, q, h, e);   // scores
        multiply_(false, false, a.S, a.d, a.T, e, h, q);  // contexts
        multiply_(false, true, a.S, a.T, a.d, q, h, e);   // gradient of the weights
        multiply_(true, false, a.T, a.d, a.S, e, q, h);   // of the values
        multiply_(false, false, a.S, a.d, a.T, e, h, q);  // of the queries
        multiply_(true, false, a.T, a.d, a.S, e, q, h);   // of the keys
    }

    bench::floor::gemm multiply_;
    std::vector<std::pair<long, bench::floor::product>> layers_;  // its steps
    std::vector<attended> pairs_;
    std::vector<float> queries_, keys_, scores_;
};

seq2seq::training_batch<float> make_batch(long count, long words)
{
    std::vector<seq2seq::id_sentence> all[2];
    for (unsigned side = 0; side < 2; ++side) {
        const auto numbers = bench::words(static_cast<std::size_t>(count * (length - 1)), words, 11 + side);
        for (std::size_t next = 0; next < numbers.size();) {
            auto& sentence = all[side].emplace_back();
            for (long i = 0; i + 1 < length; ++i) sentence.push_back(static_cast<std::uint32_t>(numbers[next++]));
        }
    }
    std::vector<const seq2seq::id_sentence*> source, target;
    for (const auto& each : all[0]) source.push_back(&each);
    for (const auto& each : all[1]) target.push_back(&each);
    return seq2seq::make_training_batch<float>(source, target);
}

/// A training step: forward, backward, Adam.
template <class Model>
std::function<void()> step_of(Model model, const seq2seq::training_batch<float>& batch)
{
    struct training {
        training(Model of, const seq2seq::training_batch<float>& from) : model(std::move(of)), batch(from) {}

        Model model;
        seq2seq::training_batch<float> batch;
        train::adam<float> adam{};
        ad::tape<float> tape;
    };
    const auto s = std::make_shared<training>(std::move(model), batch);
    return [s] {
        s->tape.clear();
        const auto lifted = ad::lift(s->tape, s->model);
        const auto loss = ops::scale(lifted.loss(s->batch), 1.0F / static_cast<float>(s->batch.target_words));
        s->tape.backward(loss);
        benchmark::DoNotOptimize(s->adam.step(s->model, lifted, s->tape, 1.0));
    };
}

struct work {
    std::string name;
    std::function<std::function<void()>()> make;
    std::vector<dense> layers;
    std::vector<attended> pairs;
};

work transformer(const std::string& name, long D, long F, long heads, long layers)
{
    const long rows = sentences * length;
    return {name,
            [=] {
                papers::vaswani2017::translator_sizes n;
                n.source_vocabulary = n.target_vocabulary = vocabulary;
                n.model = static_cast<std::size_t>(D);
                n.hidden = static_cast<std::size_t>(F);
                n.heads = static_cast<std::size_t>(heads);
                n.encoder_layers = n.decoder_layers = static_cast<std::size_t>(layers);
                return step_of(papers::vaswani2017::translator<float>(1, n), make_batch(sentences, vocabulary));
            },
            {{rows, D, D, 1, 12 * layers},
             {rows, D, F, 1, 2 * layers},
             {rows, F, D, 1, 2 * layers},
             {rows, D, vocabulary, 1, 1}},
            {{sentences, heads, length, length, D / heads, 3 * layers}}};
}

work convolutional(const std::string& name, long E, long H)
{
    const long rows = sentences * length, encoder = 4, decoder = 3;
    return {name,
            [=] {
                seq2seq::convolutional_sizes n;
                n.source_vocabulary = n.target_vocabulary = vocabulary;
                n.embedding = static_cast<std::size_t>(E);
                n.hidden = static_cast<std::size_t>(H);
                n.encoder_layers = encoder;
                n.decoder_layers = decoder;
                return step_of(papers::gehring2017::translator<float>(1, n), make_batch(sentences, vocabulary));
            },
            {{rows, E, H, 1, 2},
             {rows, H, E, 1, 2},
             {rows, 3 * H, 2 * H, 1, encoder + decoder},
             {rows, H, E, 1, decoder},
             {rows, E, H, 1, decoder},
             {rows, E, vocabulary, 1, 1}},
            {{sentences, 1, length, length, E, decoder}}};
}

/// RNNsearch with `gates` · H numbers in each product of a cell.
work recurrent(const std::string& name, long gates, std::function<std::function<void()>()> make)
{
    const bench::training_size z;
    const long H = z.hidden, E = z.embedding, A = z.alignment, B = z.batch, T = z.source_length, S = z.target_length;
    return {name,
            std::move(make),
            {{B * T, E, gates * H, 1, 2},
             {B, H, gates * H, T, 2},
             {B * T, 2 * H, A, 1, 1},
             {B * S, E, gates * H, 1, 1},
             {B, H, gates * H, S, 1},
             {B, H, A, S, 1},
             {B, 2 * H, gates * H, S, 1},
             {B * S, H, 2 * z.maxout, 1, 1},
             {B * S, E, 2 * z.maxout, 1, 1},
             {B * S, 2 * H, 2 * z.maxout, 1, 1},
             {B * S, z.maxout, z.vocabulary, 1, 1}},
            {}};
}

template <class Cells>
std::function<std::function<void()>()> rnnsearch(const Cells& cells)
{
    return [=] {
        const bench::training_size z;
        const auto size = [](long n) { return static_cast<std::size_t>(n); };
        const seq2seq::sizes n{size(z.vocabulary), size(z.vocabulary), size(z.embedding), size(z.hidden),
                               size(z.alignment)};
        return step_of(seq2seq::make_translator<float>(1, n, seq2seq::attentions::additive_factory{},
                                                       nn::initializer<float>(nullptr), cells),
                       make_batch(z.batch, z.vocabulary));
    };
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    int rounds = 7;
    std::string only, program;
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        if (argument.starts_with("--rounds=")) {
            rounds = std::atoi(argv[i] + 9);
        } else if (argument.starts_with("--work=")) {
            only = argument.substr(7);
        } else if (argument.starts_with("--peer=")) {
            program = argument.substr(7);
        } else {
            std::fprintf(stderr, "systems: unknown argument %s\n", argv[i]);
            return 2;
        }
    }
    set_threads(static_cast<std::size_t>(chosen.threads));
    const work all[] = {transformer("transformer/128/256/4+4", 128, 256, 4, 4),
                        transformer("transformer/512/2048/6+6", 512, 2048, 8, 6),
                        convolutional("convs2s/256/256/4+3", 256, 256),
                        recurrent("rnnsearch/gru/256", 3, rnnsearch(nn::gru_factory{})),
                        recurrent("rnnsearch/lstm/256", 4, rnnsearch(nn::lstm_factory{}))};
    std::unique_ptr<bench::peer> other;  // started once; it waits while heed runs
    if (!program.empty()) other = std::make_unique<bench::peer>(program, chosen.threads);
    std::printf("%-26s %9s %9s %9s   %s\n", "training step, ms", "heed", "products", "libtorch",
                "times: heed / products, libtorch / heed");
    for (const work& what : all) {
        if (!only.empty() && what.name.find(only) == std::string::npos) continue;
        const auto step = what.make();
        products alone{chosen.threads, what.layers, what.pairs};
        const auto timed = [&](const auto& run) {
            const double begin = bench::search::now(chosen.threads);
            run();
            return 1e3 * (bench::search::now(chosen.threads) - begin);
        };
        const bool compared = other != nullptr && what.name.starts_with("transformer");
        std::vector<double> ours, theirs, ratios, peers, behind;
        for (int round = -1; round < rounds; ++round) {
            const double a = timed(step), b = timed([&] { alone.run(); });
            const double c = compared ? 1e3 * other->run(what.name).seconds : 0;
            if (round < 0) continue;  // warm-up
            if (compared) {
                peers.push_back(c);
                behind.push_back(c / a);
            }
            ours.push_back(a);
            theirs.push_back(b);
            ratios.push_back(a / b);
        }
        std::printf("%-26s %9.1f %9.1f %9.1f   %.2f  %.2f\n", what.name.c_str(), bench::median(ours),
                    bench::median(theirs), bench::median(peers), bench::median(ratios), bench::median(behind));
        std::fflush(stdout);
    }
    return 0;
}
