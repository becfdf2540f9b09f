// SPDX-License-Identifier: BSD-3-Clause

// heed's RNNsearch training step, in float and with products in bfloat16, and its floor.

#include <cstdint>
#include <memory>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/gemm/products_in_bfloat16.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>

#include "floor.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;

/// Sentences of equal length, including the end word.
std::vector<seq2seq::id_sentence> sentences(long batch, long length, long vocabulary, unsigned seed)
{
    const auto numbers = bench::words(static_cast<std::size_t>(batch * (length - 1)), vocabulary, seed);
    std::vector<seq2seq::id_sentence> result(static_cast<std::size_t>(batch));
    std::size_t next = 0;
    for (auto& sentence : result) {
        for (long i = 0; i + 1 < length; ++i) sentence.push_back(static_cast<std::uint32_t>(numbers[next++]));
    }
    return result;
}

seq2seq::training_batch<float> make_batch(const bench::training_size& z)
{
    const auto sources = sentences(z.batch, z.source_length, z.vocabulary, 11);
    const auto targets = sentences(z.batch, z.target_length, z.vocabulary, 12);
    std::vector<const seq2seq::id_sentence*> source, target;
    for (const auto& sentence : sources) source.push_back(&sentence);
    for (const auto& sentence : targets) target.push_back(&sentence);
    return seq2seq::make_training_batch<float>(source, target);
}

auto make_model(const bench::training_size& z)
{
    const auto size = [](long n) { return static_cast<std::size_t>(n); };
    const seq2seq::sizes sizes{size(z.vocabulary), size(z.vocabulary), size(z.embedding), size(z.hidden),
                               size(z.alignment)};
    return seq2seq::make_translator<float>(1, sizes, seq2seq::attentions::additive_factory{});
}

bench::work training_step(bool in_bfloat16)
{
    struct training {
        bench::training_size z;
        seq2seq::training_batch<float> batch = make_batch(z);
        decltype(make_model(z)) model = make_model(z);
        train::adam<float> adam{};
        ad::tape<float> tape;
    };
    const auto s = std::make_shared<training>();
    return {[s, in_bfloat16] {
        const products_in_bfloat16 guard{in_bfloat16};
        s->tape.clear();
        const auto lifted = ad::lift(s->tape, s->model);
        const auto cost = ops::scale(lifted.loss(s->batch), 1.0F / static_cast<float>(s->batch.target_words));
        s->tape.backward(cost);
        benchmark::DoNotOptimize(s->adam.step(s->model, lifted, s->tape, bench::clip_norm));
    }};
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    bench::add(std::string{bench::training_step}, [] { return training_step(false); });
    bench::add(std::string{bench::training_step} + "_in_bfloat16", [] { return training_step(true); });
    bench::floor::register_training(chosen);
    return bench::run(argc, argv, chosen);
}
