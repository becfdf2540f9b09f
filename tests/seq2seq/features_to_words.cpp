// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/features.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adamw.hpp>
#include <support/tensors.hpp>

#include <utility>
#include <vector>

// A translator from features to words: the lines of docs/guide.md (tests/quotes.cmake compares them), and one that
// learns.

using namespace heed;
using support::random;

TEST_CASE("features instead of words")
{
    const std::size_t B = 2, T = 6, F = 5, V = 9;
    const auto frames = random<float>({B, T, F}, 1);
    const std::vector<seq2seq::id_sentence> texts{{4, 5}, {6}};
    const std::vector<const seq2seq::id_sentence*> targets{&texts[0], &texts[1]};

    // section: features
    using namespace heed::seq2seq;
    auto model =
        make_translator<float>(1, {.source_vocabulary = F, .target_vocabulary = V, .embedding = 16, .hidden = 16},
                               attentions::additive<float>{}, parts{}.with_embeddings(embeds::new_projected{}));
    feature_batch speech{frames, lengths{6, 4}};  // frames [B,T,F]
    auto loss = model.loss(speech, make_training_batch<float>(speech, targets));
    const reading at_work{model, speech};  // for searches
    auto found = greedy<float>(at_work, source_of(speech));
    // end
    CHECK(loss() > 0);
    CHECK(found.size() == B);
}

namespace {

/// Words drawn as strokes: word w is `steps` noisy frames around a direction of its own.
struct strokes {
    seq2seq::feature_batch<array<float, 3>> from;
    std::vector<seq2seq::id_sentence> words;

    std::vector<const seq2seq::id_sentence*> targets() const
    {
        std::vector<const seq2seq::id_sentence*> all;
        for (const auto& each : words) all.push_back(&each);
        return all;
    }
};

constexpr std::size_t frames = 4, kinds = 4;
constexpr std::uint32_t first_word = 4;

strokes draw_strokes(std::size_t rows, std::uint64_t stream)
{
    strokes all;
    const std::size_t longest = 3;
    all.from.features = zeros<float>(rows, longest * 3, frames);
    std::vector<std::size_t> counts;
    for (std::size_t b = 0; b < rows; ++b) {
        const std::size_t n = 1 + below(longest, mix(stream), 10 * b);
        seq2seq::id_sentence words;
        std::size_t t = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t w = below(kinds, mix(stream + 1), 10 * b + i);
            words.push_back(first_word + static_cast<std::uint32_t>(w));
            for (std::size_t k = 0; k < 3; ++k, ++t)
                for (std::size_t f = 0; f < frames; ++f)
                    all.from.features(b, t, f) =
                        (f == w ? 1.0f : 0.0f) + (k == 0 ? 0.5f : 0.0f) +  // a word begins
                        0.1f * static_cast<float>(normal(mix(stream + 2), (b * 64 + t) * 8 + f));
        }
        counts.push_back(t);
        all.words.push_back(std::move(words));
    }
    all.from.real = lengths(std::move(counts));
    return all;
}

}  // namespace

TEST_CASE("end to end: frames are read as words, of lengths unknown")
{
    using namespace seq2seq;
    auto model =
        make_translator<float>(7,
                               {.source_vocabulary = frames,
                                .target_vocabulary = first_word + kinds,
                                .embedding = 12,
                                .hidden = 16,
                                .alignment = 12},
                               attentions::additive<float>{}, parts{}.with_embeddings(embeds::new_projected{}));
    train::adamw<float> optimiser({.rate = 0.01, .decays = train::matrices_only});
    ad::tape<float> tape;
    double first = 0, last = 0;
    for (std::uint64_t i = 0; i < 120; ++i) {
        const strokes all = draw_strokes(24, 100 * i);
        const auto targets = all.targets();
        const auto batch = make_training_batch<float>(all.from, targets);
        tape.clear();
        const auto lifted = ad::lift(tape, model);
        const auto loss = lifted.loss(all.from, batch);
        tape.backward(ops::scale(loss, 1.0 / static_cast<double>(batch.target_words)));
        optimiser.step(model, lifted, tape, 1.0);
        last = static_cast<double>(loss.value().data[0]) / static_cast<double>(batch.target_words);
        if (i == 0) first = last;
    }
    CHECK(first > 1.5);
    CHECK(last < 0.1);

    const strokes unseen = draw_strokes(16, 99999);
    const reading at_work{model, unseen.from};
    const auto found = greedy<float>(at_work, source_of(unseen.from));
    std::size_t right = 0;
    for (std::size_t b = 0; b < 16; ++b) right += found[b].words == unseen.words[b] ? 1 : 0;
    CHECK(right >= 14);
}
