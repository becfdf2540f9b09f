// SPDX-License-Identifier: BSD-3-Clause
#include "training.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed/train/learning_rate.hpp>

#include "interrupt.hpp"
#include "progress.hpp"

namespace translation {

namespace {

/// Whether the model that was just validated is the best of the run: by BLEU, then by the loss. The first epochs on a
/// small text all have BLEU 0, though each may be better than the one before.
bool better(const quality& now, const standing& at)
{
    return at.best_epoch == 0 || now.bleu.score > at.best || (now.bleu.score == at.best && now.loss < at.best_loss);
}

/// Ends a run with non-finite numbers. The files already written are kept: the best model, and the checkpoint at the
/// end of the last epoch.
[[noreturn]] void diverged(const std::string& what, const standing& at, std::size_t updates,
                           const std::filesystem::path& path)
{
    std::string kept;
    if (!path.empty()) {
        kept = at.best_epoch == 0
                   ? "; no model was written"
                   : fmt::format("; {} is still that of epoch {}, the best", path.string(), at.best_epoch);
    }
    throw error_of_all(fmt::format(  // every rank has these numbers
        "{} in epoch {}, after update {}: training diverged at a learning rate of {:g}; start over with a "
        "lower --learning-rate, or a lower --clip{}",
        what, at.epoch + 1, updates, at.rate, kept));
}

std::string not_finite(const char* what, double value)
{
    return fmt::format("{} is {}", what, std::isnan(value) ? "not a number" : "infinite");
}

/// The learning rate of the next update: from the schedule of the options, or else the rate left by the epochs so far.
double rate_of(const options& how, const standing& at, std::size_t updates)
{
    const double peak = how.learning_rate;
    if (how.warm_up > 0) return heed::train::inverse_square_root{peak, how.warm_up, std::min(1e-7, peak)}(updates + 1);
    if (how.halve_from > 0) return heed::train::halving{peak, how.halve_from}(at.epoch + 1);
    return at.rate;
}

}  // namespace

outcome train(translator_file& model, training_pairs& training, const examples& validation,
              const std::vector<sentence>& references, const written& to, candidate_words* only, any_ranks over)
{
    const bool writes = over.rank() == 0;
    const options& how = model.how;
    const std::filesystem::path& path = to.path;
    const bool resume = to.resume;
    training_log* const log = writes ? to.log : nullptr;
    const std::string text = fingerprint(training, validation);
    const std::string checkpoint = checkpoint_path(path);
    std::optional<averages> means;
    if (how.average > 0) means.emplace(averages{heed::train::average_of_last<float>(how.average)});
    averages* const kept_means = means ? &*means : nullptr;
    standing at;
    at.rate = how.learning_rate;
    if (resume) {
        agree(over, [&] {
            const heed::io::archive archive = heed::io::load(checkpoint);
            at = about(checkpoint, [&] {
                return load_checkpoint(archive, model, text, training.shards(), over.size(), only, kept_means);
            });
            if (at.shard >= training.shards())
                throw heed::error(checkpoint + ": the file contradicts itself: training.shard is " +
                                  std::to_string(at.shard) + " of " + std::to_string(training.shards()));
            if (at.best_epoch > 0 && !std::filesystem::exists(path))
                throw heed::error(path.string() + ": the best model so far is missing; restore it, or start over");
            if (at.best_epoch > 0 && writes) require_same_run(path, checkpoint, model);
        });
    }
    std::uint64_t begun = hash_of(*model.system);
    for (const char letter : text) begun = heed::mix(begun ^ static_cast<unsigned char>(letter));
    require_same(over, heed::mix(begun + at.streams + at.batch), "text, vocabulary or model");
    sums_over sums(over);
    end_with_the_others watch(over, path.empty() ? "" : "; --resume continues from " + checkpoint + " as last written");
    bool ours = resume;  // whether an existing checkpoint belongs to this run
    at.finished = 0;
    std::optional<heed::seq2seq::candidate_lists> lists;
    if (only != nullptr) lists.emplace(only->lists());
    if (log != nullptr) log->begin(resume, at.epoch);
    const double before = at.seconds;
    const clock::time_point start = clock::now();
    clock::time_point saved = start;
    live_line line;
    heed::random_source random{heed::mix(how.seed + 1), at.streams};
    const auto require_free_checkpoint = [&] {
        if (!ours && std::filesystem::exists(checkpoint))
            throw heed::error(checkpoint + ": did not exist when this run began and is not overwritten, so this run "
                                           "ends. Remove it and start over, or choose another --model");
    };
    const auto keep = [&] {
        at.streams = random.streams;
        at.seconds = before + seconds_since(start);
        if (path.empty()) return;
        require_same(over, hash_of(*model.system), "model after the same updates");
        saved = clock::now();
        if (!writes) return;
        require_free_checkpoint();
        save_checkpoint(checkpoint, model, at, text, training.shards(), over.size(), only, kept_means,
                        ours ? heed::io::existing::replace : heed::io::existing::keep);
        ours = true;
    };
    const auto fail = [&](const std::string& what) { diverged(what, at, model.system->updates(), path); };
    const auto check_numbers = [&] {
        if (const auto bad = model.system->not_finite()) fail(*bad);
    };
    std::vector<float> own;  // the model's parameters while the mean is in the model
    const auto leave_mean = [&] {
        if (!own.empty()) model.system->set(own);
        own.clear();
    };
    const auto stop = [&](int signal) {
        watch.end();
        line.clear();
        leave_mean();
        check_numbers();
        keep();
        return outcome{at, true, signal};
    };
    const auto enough = [&] { return how.max_updates > 0 && model.system->updates() >= how.max_updates; };
    // Within an epoch, its validation is still pending.
    while (at.epoch < how.epochs && at.worse <= how.patience && (at.batch > 0 || at.shard > 0 || !enough())) {
        const std::uint64_t epoch_stream = heed::mix(how.seed ^ heed::mix(at.epoch));
        const std::vector<std::size_t> order = training.order(epoch_stream);
        const clock::time_point epoch_start = clock::now();
        double here = 0;                       // words since then
        double columns = 0, batches_here = 0;  // of the output layer, summed over the batches; number of batches
        std::size_t before_shard = 0;          // pairs of this epoch
        for (std::size_t shard = 0; shard < at.shard; ++shard) before_shard += training.size_of(order.at(shard));
        for (;;) {
            const id_pairs& pairs = training.shard(order.at(at.shard));
            const auto batches = heed::seq2seq::shuffled_batches_of(
                pairs.size(), [&](std::size_t i) { return pairs.source.words(i); },
                [&](std::size_t i) { return pairs.target.words(i); }, {how.batch, how.batch_tokens},
                training.stream(epoch_stream, order[at.shard]));
            const double share = static_cast<double>(pairs.size()) / static_cast<double>(training.size());
            const double batches_of_epoch = static_cast<double>(batches.size()) / share;
            while (at.batch < batches.size() && !enough()) {
                if (const int signal = interrupted(over)) return stop(signal);
                std::vector<training_step_input> together;
                std::size_t words = 0;
                const std::size_t end = std::min(at.batch + how.accumulate, batches.size());
                for (; at.batch < end; ++at.batch) {
                    training_step_input& one =
                        together.emplace_back(training_step_input{make_batch(pairs, batches[at.batch]), {}});
                    one.links = training.links(batches[at.batch]);
                    if (lists) one.only = lists->of(one.examples, model.target.vocabulary.size());
                    if (lists) columns += static_cast<double>(one.only->size());
                    words += one.examples.target_words;
                    if (over.size() > 1) one = part_of(one, over.rank(), over.size());
                    ++batches_here;
                }
                at.rate = rate_of(how, at, model.system->updates());
                const auto step =
                    model.system->train(together, how, random, at.rate, over.size() > 1 ? &sums : nullptr);
                watch.step();
                if (!std::isfinite(step.loss)) fail(not_finite("the loss", step.loss));
                at.nats += step.loss;
                at.words += static_cast<double>(words);
                here += static_cast<double>(words);
                if (to.save_minutes > 0 && any_of(over, seconds_since(saved) >= 60 * to.save_minutes)) {
                    check_numbers();
                    keep();
                }
                const double done = static_cast<double>(before_shard) / static_cast<double>(training.size()) +
                                    share * static_cast<double>(at.batch) / static_cast<double>(batches.size());
                const double speed = here / seconds_since(epoch_start);
                const double epoch_seconds = at.words / done / speed;
                double epochs_left = static_cast<double>(how.epochs - at.epoch) - done;
                if (how.max_updates > 0)
                    epochs_left = std::min(
                        epochs_left, static_cast<double>((how.max_updates - model.system->updates()) * how.accumulate) /
                                         batches_of_epoch);
                line.show(fmt::format("epoch {}/{} {:3.0f}%  loss {}  rate {:.3g}  {:.0f} tokens/s  left {}, total {}",
                                      at.epoch + 1, how.epochs, 100 * done, number_text(at.nats / at.words, 3), at.rate,
                                      speed, duration_text((1 - done) * epoch_seconds),
                                      duration_text(epochs_left * epoch_seconds)));
            }
            // At the end of the last shard the position is kept until the epoch is validated.
            if (at.batch < batches.size() || at.shard + 1 == training.shards()) break;
            before_shard += pairs.size();
            ++at.shard;
            at.batch = 0;
        }
        std::string speed_text;
        const double speed = here / seconds_since(epoch_start);
        if (here > 0) speed_text = fmt::format("  {:.0f} tokens/s", speed);
        if (here > 0 && lists) speed_text += fmt::format(", {:.0f} candidates per batch", columns / batches_here);
        line.show("validation …");
        if (means) {
            own = model.system->copy();
            if (means->epoch != at.epoch + 1) means->last.add(own);  // unless this validation was interrupted before
            means->epoch = at.epoch + 1;
            model.system->set(means->last.mean());
        }
        quality now = evaluate_loss(*model.system, validation, references, how.batch, over);
        if (const int signal = interrupted(over))
            return stop(signal);  // when resumed, the epoch is at its end and is validated again
        if (!std::isfinite(now.perplexity)) fail(not_finite("the validation perplexity", now.perplexity));
        check_numbers();
        now.bleu = evaluate_bleu(*model.system, validation, references, model.target, how.batch, over);
        if (const int signal = interrupted(over)) return stop(signal);
        line.clear();
        const bool best = better(now, at);
        say(fmt::format("epoch {:2}  loss {}  rate {:.3g}{}  validation: perplexity {}, BLEU {:.2f}{}  {}",
                        at.epoch + 1, number_text(at.nats / at.words, 3), at.rate, speed_text,
                        number_text(now.perplexity, 2), now.bleu.score, best ? " *" : "",
                        duration_text(before + seconds_since(start))));
        const standing unvalidated = at;
        try {
            ++at.epoch;
            // Before the checkpoint: a run that dies in between repeats the end of this epoch, and its row.
            if (log != nullptr) {
                log->add({at.epoch, model.system->updates(), (before + seconds_since(start)) / 60, at.nats / at.words,
                          at.rate, now.loss, now.bleu.score, here > 0 ? std::optional(speed) : std::nullopt});
            }
            at.batch = at.shard = 0;
            at.nats = at.words = 0;
            if (best) {
                at.best = now.bleu.score;
                at.best_loss = now.loss;
                at.best_epoch = at.epoch;
                at.worse = 0;
                if (!path.empty() && writes) {
                    require_free_checkpoint();
                    save_model(path, model);
                }
            } else {
                ++at.worse;
                if (how.warm_up == 0 && how.halve_from == 0) at.rate /= 2;
            }
        } catch (const heed::io::write_failed&) {  // the log or the model
            at = unvalidated;
            leave_mean();
            keep();
            say(fmt::format("epoch {} is saved before its validation. The same command with --resume continues.",
                            at.epoch + 1));
            throw;
        }
        leave_mean();
        keep();
    }
    at.finished = 1;
    keep();
    return {at, false, 0};
}

}  // namespace translation
