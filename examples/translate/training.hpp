// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "candidates.hpp"
#include "checkpoint.hpp"
#include "interrupt.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "training_log.hpp"

/// How a translator is trained: epochs over shuffled batches, a validation after each, the best model kept.
namespace translation {

/// The result of a run.
struct outcome {
    standing at;
    bool stopped = false;  // by Ctrl-C, before it was finished
};

/// Whether the model that was just validated is the best of the run. BLEU decides, then the loss: the first epochs on a
/// small text all have BLEU 0, and yet each may be better than the one before.
inline bool better(const quality& now, const standing& at)
{
    return at.best_epoch == 0 || now.bleu.score > at.best || (now.bleu.score == at.best && now.loss < at.best_loss);
}

/// Ends a run with numbers that are not finite. The files it has written stay: the best model, and the checkpoint of
/// the end of the last epoch.
[[noreturn]] inline void diverged(const std::string& what, const standing& at, std::size_t updates,
                                  const std::filesystem::path& path)
{
    std::string kept;
    if (!path.empty()) {
        kept = at.best_epoch == 0 ? "; no model was written"
                                  : fmt::format("; {} stays that of epoch {}, the best", path.string(), at.best_epoch);
    }
    throw heed::error(fmt::format(
        "{} in epoch {}, after update {}: training has diverged at a learning rate of {:g}; start anew with a "
        "lower --learning-rate, or a lower --clip{}",
        what, at.epoch + 1, updates, at.rate, kept));
}

inline std::string not_finite(const char* what, double value)
{
    return fmt::format("{} is {}", what, std::isnan(value) ? "not a number" : "infinite");
}

/// Trains until validation stops improving, the epochs are over, or Ctrl-C. After each epoch that is not `better` the
/// learning rate is halved. The best model is written to `path` as soon as it is known; --resume continues from
/// `path`.checkpoint. With an empty path nothing is written. Each validation adds a row to `log`, if there is one.
/// `only`: the words that the softmax of a batch runs over, if not all; when resumed, those of the checkpoint.
/// Validation and its perplexity are over all words. Throws heed::error if a loss, a perplexity, a parameter or the
/// optimiser's state is not finite, and does not save that state.
inline outcome train(translator_file& model, const examples& training, const examples& validation,
                     const std::vector<sentence>& references, const std::filesystem::path& path, bool resume,
                     training_log* log = nullptr, candidate_words* only = nullptr)
{
    const options& how = model.how;
    const std::string text = fingerprint(training, validation);
    const std::string checkpoint = checkpoint_path(path);
    standing at;
    at.rate = how.learning_rate;
    if (resume) {
        const heed::io::archive archive = heed::io::load(checkpoint);
        at = about(checkpoint, [&] { return load_checkpoint(archive, model, text, only); });
        if (at.best_epoch > 0 && !std::filesystem::exists(path))
            throw heed::error(path.string() + ": the best model so far is gone; put it back, or start anew");
        if (at.best_epoch > 0) require_same_run(path, checkpoint, model);
    }
    bool ours = resume;  // whether an existing checkpoint is this run's
    at.finished = 0;
    std::optional<heed::seq2seq::candidate_lists> lists;
    if (only != nullptr) lists.emplace(only->lists());
    if (log != nullptr) log->begin(resume, at.epoch);
    const double before = at.seconds;
    const clock::time_point start = clock::now();
    live_line line;
    heed::random_source random{heed::mix(how.seed + 1), at.streams};
    const auto require_free_checkpoint = [&] {
        if (!ours && std::filesystem::exists(checkpoint))
            throw heed::error(checkpoint + ": was not there when this run began; it is not written over, so this run "
                                           "ends. Take it away and start anew, or give another --model");
    };
    const auto keep = [&] {
        at.streams = random.streams;
        at.seconds = before + seconds_since(start);
        if (path.empty()) return;
        require_free_checkpoint();
        save_checkpoint(checkpoint, model, at, text, only,
                        ours ? heed::io::existing::replace : heed::io::existing::keep);
        ours = true;
    };
    const auto fail = [&](const std::string& what) { diverged(what, at, model.system->updates(), path); };
    const auto check_numbers = [&] {
        if (const auto bad = model.system->not_finite()) fail(*bad);
    };
    const auto stop = [&] {
        line.clear();
        check_numbers();
        keep();
        return outcome{at, true};
    };
    while (at.epoch < how.epochs && at.worse <= how.patience) {
        const auto batches = heed::seq2seq::shuffled_batches(
            training.source, training.target, {how.batch, how.batch_tokens}, heed::mix(how.seed ^ heed::mix(at.epoch)));
        const clock::time_point epoch_start = clock::now();
        double here = 0;     // words since then
        double columns = 0;  // of the output layer, over all batches since then
        const std::size_t first = at.batch;
        for (; at.batch < batches.size(); ++at.batch) {
            if (interrupted != 0) return stop();
            batch some = make_batch(training, batches[at.batch]);
            std::vector<std::uint32_t> words;
            if (lists) words = lists->of(some, model.target.vocabulary.size());
            const auto step = model.system->train(some, how, random, at.rate, lists ? &words : nullptr);
            if (!std::isfinite(step.loss)) fail(not_finite("the loss", step.loss));
            at.nats += step.loss;
            at.words += static_cast<double>(some.target_words);
            here += static_cast<double>(some.target_words);
            columns += static_cast<double>(words.size());
            const double done = static_cast<double>(at.batch + 1) / static_cast<double>(batches.size());
            const double speed = here / seconds_since(epoch_start);
            const double epoch_seconds = at.words / done / speed;
            line.show(fmt::format("epoch {}/{} {:3.0f} %  loss {}  {:.0f} tokens/s  left {}, all epochs {}",
                                  at.epoch + 1, how.epochs, 100 * done, number_text(at.nats / at.words, 3), speed,
                                  duration_text((1 - done) * epoch_seconds),
                                  duration_text((static_cast<double>(how.epochs - at.epoch) - done) * epoch_seconds)));
        }
        std::string speed_text;
        const double speed = here / seconds_since(epoch_start);
        if (here > 0) speed_text = fmt::format("  {:.0f} tokens/s", speed);
        if (here > 0 && lists)
            speed_text += fmt::format(", {:.0f} candidates per batch", columns / static_cast<double>(at.batch - first));
        line.show("validation …");
        quality now = evaluate_loss(*model.system, validation, references, how.batch);
        if (interrupted != 0) return stop();  // when resumed, the epoch is at its end and is validated again
        if (!std::isfinite(now.perplexity)) fail(not_finite("the validation perplexity", now.perplexity));
        check_numbers();
        now.bleu = evaluate_bleu(*model.system, validation, references, model.target, how.batch);
        if (interrupted != 0) return stop();
        line.clear();
        const bool best = better(now, at);
        say(fmt::format("epoch {:2}  loss {}{}  validation: perplexity {}, BLEU {:.2f}{}  {}", at.epoch + 1,
                        number_text(at.nats / at.words, 3), speed_text, number_text(now.perplexity, 2), now.bleu.score,
                        best ? " *" : "", duration_text(before + seconds_since(start))));
        ++at.epoch;
        // Before the checkpoint: a run that dies between the two repeats the end of this epoch, and its row.
        if (log != nullptr) {
            log->add({at.epoch, model.system->updates(), (before + seconds_since(start)) / 60, at.nats / at.words,
                      at.rate, now.loss, now.bleu.score, here > 0 ? std::optional(speed) : std::nullopt});
        }
        at.batch = 0;
        at.nats = at.words = 0;
        if (best) {
            at.best = now.bleu.score;
            at.best_loss = now.loss;
            at.best_epoch = at.epoch;
            at.worse = 0;
            if (!path.empty()) {
                require_free_checkpoint();
                save_model(path, model);
            }
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
