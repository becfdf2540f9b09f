// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <heed/core/parallel.hpp>
#include <heed/metrics/bleu.hpp>

#include "model_file.hpp"
#include "progress.hpp"

/// How a translator is trained: epochs over shuffled batches, a validation after each, the best model kept; stopped at
/// any moment and resumed as if nothing had happened.
namespace translation {

using heed::seq2seq::id_sentence;
using heed::text::sentence;

/// Parallel text as numbers.
struct examples {
    std::vector<id_sentence> source, target;
};

/// The signal that asked for an end: Ctrl-C or SIGTERM. The second one ends the program at once.
inline volatile std::sig_atomic_t interrupted = 0;

inline void stop_politely()
{
    for (const int each : {SIGINT, SIGTERM}) {
        std::signal(each, [](int number) {
            interrupted = number;
            std::signal(number, SIG_DFL);
        });
    }
}

inline batch make_batch(const examples& from, const std::vector<std::size_t>& which)
{
    std::vector<const id_sentence*> sources, targets;
    for (const std::size_t i : which) {
        sources.push_back(&from.source[i]);
        targets.push_back(&from.target[i]);
    }
    return heed::seq2seq::make_training_batch<float>(sources, targets);
}

/// Batches of sentences of like length, in a fixed order: little padding, and the same every time.
inline std::vector<std::vector<std::size_t>> batches_by_length(const std::vector<id_sentence>& sentences,
                                                               std::size_t size)
{
    std::vector<std::size_t> order(sentences.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return sentences[a].size() < sentences[b].size(); });
    std::vector<std::vector<std::size_t>> batches;
    for (std::size_t i = 0; i < order.size(); i += size) {
        batches.emplace_back(order.begin() + static_cast<std::ptrdiff_t>(i),
                             order.begin() + static_cast<std::ptrdiff_t>(std::min(order.size(), i + size)));
    }
    return batches;
}

/// Greedy translations of all sentences, in their order.
inline std::vector<heed::seq2seq::translation<float>>
translate_all(const system& with, const std::vector<id_sentence>& sources, std::size_t batch_size, bool with_weights)
{
    std::vector<heed::seq2seq::translation<float>> all(sources.size());
    for (const auto& which : batches_by_length(sources, batch_size)) {
        if (interrupted != 0) break;
        std::vector<const id_sentence*> some;
        for (const std::size_t i : which) some.push_back(&sources[i]);
        auto done = with.translate(heed::seq2seq::make_source(some), with_weights);
        for (std::size_t k = 0; k < which.size(); ++k) all[which[k]] = std::move(done[k]);
    }
    return all;
}

struct quality {
    heed::metrics::bleu_score bleu;
    double perplexity = 0;
};

/// Perplexity of the references and BLEU of the greedy translations, against the references as they were given.
/// Once interrupted, it is over soon and means nothing.
inline quality evaluate(const system& with, const examples& pairs, const std::vector<sentence>& references,
                        const heed::text::vocabulary& words, std::size_t batch_size)
{
    double nats = 0, count = 0;
    for (const auto& which : batches_by_length(pairs.target, batch_size)) {
        if (interrupted != 0) break;
        const batch some = make_batch(pairs, which);
        nats += with.loss(some);
        count += static_cast<double>(some.target_words);
    }
    std::vector<sentence> hypotheses;
    hypotheses.reserve(references.size());
    for (const auto& t : translate_all(with, pairs.source, batch_size, false))
        hypotheses.push_back(words.decode(t.words));
    return {heed::metrics::bleu(hypotheses, references), std::exp(nats / count)};
}

/// Where a run stands. Together with the weights and the optimiser's state this is all that the future depends on.
struct standing {
    std::size_t epoch = 0, batch = 0;       // the next batch to do
    std::size_t streams = 0;                // random streams used by dropout
    double rate = 0;                        // learning rate
    double nats = 0, words = 0;             // of the epoch so far
    double best = 0;                        // validation BLEU of the best model
    std::size_t best_epoch = 0, worse = 0;  // its epoch, from 1, and how many since then
    double seconds = 0;                     // of training and validation so far
    std::size_t finished = 0;               // 1 when there was nothing more to do

    static void each(auto& self, auto&& member)
    {
        member("epoch", self.epoch);
        member("batch", self.batch);
        member("streams", self.streams);
        member("rate", self.rate);
        member("nats", self.nats);
        member("words", self.words);
        member("best", self.best);
        member("best-epoch", self.best_epoch);
        member("worse", self.worse);
        member("seconds", self.seconds);
        member("finished", self.finished);
    }
};

inline std::string checkpoint_path(const std::filesystem::path& model) { return model.string() + ".checkpoint"; }

/// What the text is, in one number: a run cannot be resumed on another text.
inline std::string fingerprint(const examples& training, const examples& validation)
{
    std::uint64_t hash = 1;
    for (const auto* side : {&training.source, &training.target, &validation.source, &validation.target}) {
        for (const id_sentence& words : *side) {
            for (const std::uint32_t word : words) hash = heed::mix(hash ^ word);
            hash = heed::mix(hash + 1);
        }
    }
    return std::to_string(hash);
}

inline void save_checkpoint(const std::filesystem::path& path, const translator_file& model, const standing& at,
                            const std::string& text)
{
    heed::io::archive archive = to_archive(model);
    model.system->put_optimiser(archive);
    archive.metadata["training.text"] = text;
    archive.metadata["training.threads"] = std::to_string(heed::threads());
    standing::each(at, [&](const char* name, const auto& value) {
        archive.metadata["training." + std::string(name)] = text_of(value);
    });
    heed::io::save(path, archive);
}

/// Goes on from a checkpoint: fills the model and says where the run stands.
inline standing load_checkpoint(const heed::io::archive& archive, translator_file& model, const std::string& text)
{
    standing at;
    standing::each(at, [&](const char* name, auto& value) {
        read_entry(archive.metadata, "training." + std::string(name), value);
    });
    metadata wanted;
    model.how.write(wanted);
    for (const auto& [name, value] : wanted) {
        const std::string option = name.substr(name.find('.') + 1), &before = entry(archive.metadata, name);
        if (option != "epochs" && option != "patience" && before != value) {
            throw heed::error("this run was started with --" + option + " " + before + ", not " + value +
                              "; give the same options to resume it");
        }
    }
    translator_file stored = from_archive(archive);
    if (entry(archive.metadata, "training.text") != text || stored.source != model.source ||
        stored.target != model.target) {
        throw heed::error("this run was started on another text; give the same files to resume it");
    }
    if (const std::string& threads = entry(archive.metadata, "training.threads");
        threads != std::to_string(heed::threads())) {
        say(fmt::format("note: started with --threads {}, resumed with {}: the result will differ in its last digits",
                        threads, heed::threads()));
    }
    stored.system->take_optimiser(archive);
    model.system = std::move(stored.system);
    return at;
}

/// What a run has come to.
struct outcome {
    standing at;
    bool stopped = false;  // by Ctrl-C: there is more to do
};

/// Trains until validation BLEU stops improving, the epochs are over, or Ctrl-C. After each epoch the learning rate is
/// halved unless BLEU improved. The best model is written to `path` as soon as it is known; `path`.checkpoint is where
/// --resume goes on. With an empty path nothing is written.
inline outcome train(translator_file& model, const examples& training, const examples& validation,
                     const std::vector<sentence>& references, const std::filesystem::path& path, bool resume)
{
    const options& how = model.how;
    const std::string text = fingerprint(training, validation);
    const std::string checkpoint = checkpoint_path(path);
    standing at;
    at.rate = how.learning_rate;
    if (resume) {
        const heed::io::archive archive = heed::io::load(checkpoint);
        at = about(checkpoint, [&] { return load_checkpoint(archive, model, text); });
        if (at.best_epoch > 0 && !std::filesystem::exists(path))
            throw heed::error(path.string() + ": the best model so far is gone; put it back, or start anew");
    }
    at.finished = 0;
    const double before = at.seconds;
    const clock::time_point start = clock::now();
    live_line line;
    heed::random_source random{heed::mix(how.seed + 1), at.streams};
    const auto keep = [&] {
        at.streams = random.streams;
        at.seconds = before + seconds_since(start);
        if (!path.empty()) save_checkpoint(checkpoint, model, at, text);
    };
    const auto stop = [&] {
        line.clear();
        keep();
        return outcome{at, true};
    };
    while (at.epoch < how.epochs && at.worse <= how.patience) {
        const auto batches = heed::seq2seq::shuffled_batches(training.source, training.target, how.batch,
                                                             heed::mix(how.seed ^ heed::mix(at.epoch)));
        const clock::time_point epoch_start = clock::now();
        double here = 0;  // words since then
        for (; at.batch < batches.size(); ++at.batch) {
            if (interrupted != 0) return stop();
            batch some = make_batch(training, batches[at.batch]);
            const auto step = model.system->train(some, how, random, at.rate);
            if (!std::isfinite(step.loss)) {
                throw heed::error(fmt::format("the loss is {} in epoch {}, batch {}; lower --learning-rate or --clip",
                                              step.loss, at.epoch + 1, at.batch + 1));
            }
            at.nats += step.loss;
            at.words += static_cast<double>(some.target_words);
            here += static_cast<double>(some.target_words);
            const double done = static_cast<double>(at.batch + 1) / static_cast<double>(batches.size());
            const double speed = here / seconds_since(epoch_start);
            const double epoch_seconds = at.words / done / speed;
            line.show(fmt::format("epoch {}/{} {:3.0f} %  loss {:.3f}  {:.0f} tokens/s  left {}, all epochs {}",
                                  at.epoch + 1, how.epochs, 100 * done, at.nats / at.words, speed,
                                  duration_text((1 - done) * epoch_seconds),
                                  duration_text((static_cast<double>(how.epochs - at.epoch) - done) * epoch_seconds)));
        }
        const double speed = here / seconds_since(epoch_start);
        line.show("validation …");
        const quality now = evaluate(*model.system, validation, references, model.target, how.batch);
        if (interrupted != 0) return stop();  // resumed, the epoch is at its end and validated once more
        line.clear();
        const bool better = at.best_epoch == 0 || now.bleu.score > at.best;
        say(fmt::format("epoch {:2}  loss {:.3f}{}  validation: perplexity {:.2f}, BLEU {:.2f}{}  {}", at.epoch + 1,
                        at.nats / at.words, here > 0 ? fmt::format("  {:.0f} tokens/s", speed) : "", now.perplexity,
                        now.bleu.score, better ? " *" : "", duration_text(before + seconds_since(start))));
        ++at.epoch;
        at.batch = 0;
        at.nats = at.words = 0;
        if (better) {
            at.best = now.bleu.score;
            at.best_epoch = at.epoch;
            at.worse = 0;
            if (!path.empty()) save_model(path, model);
        } else {
            ++at.worse;
            at.rate /= 2;
        }
        keep();
    }
    at.finished = 1;
    keep();
    return {at, false};
}

}  // namespace translation
