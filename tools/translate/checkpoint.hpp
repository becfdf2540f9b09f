// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/train/averaging.hpp>
#include <heed_translator/model_file.hpp>

#include "candidates.hpp"
#include "library.hpp"
#include "progress.hpp"
#include "quality.hpp"
#include "training_pairs.hpp"

/// A training run on disk: it can be stopped at any time and resumed without changing the result.
namespace translation {

/// The position of a run. Together with the weights and the optimizer state, it determines the rest of the run.
struct standing {
    std::size_t epoch = 0, batch = 0;  // next batch
    std::size_t shard = 0;             // its shard, in the order of this epoch
    std::size_t streams = 0;           // random streams used by dropout
    double rate = 0;                   // learning rate
    double nats = 0, words = 0;        // sums of the current epoch
    double best = 0;                   // validation BLEU of the best model
    // its validation loss, nats per token. Infinite if unknown, so that the next equally good model replaces it.
    double best_loss = std::numeric_limits<double>::max();
    std::size_t best_epoch = 0, worse = 0;  // its epoch, from 1, and the epochs since then
    double seconds = 0;                     // of training and validation so far
    std::size_t finished = 0;               // 1 if the run was complete

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
        member("best-loss", self.best_loss);
        member("shard", self.shard);
    }
};

/// The parameters at the ends of the last epochs, for --average.
struct averages {
    heed::train::average_of_last<float> last;
    std::size_t epoch = 0;  // number of the last completed epoch, from 1

    void put(heed::io::archive& to) const
    {
        to.metadata["average.epoch"] = text_of(epoch);
        to.metadata["average.count"] = text_of(last.size());
        for (std::size_t k = 0; k < last.size(); ++k) {
            const std::vector<float>& each = last.state()[k];
            to.tensors.push_back(heed::io::tensor_entry::of("average." + std::to_string(k), {each.size()}, each));
        }
    }

    void take(const heed::io::archive& from, std::size_t parameters)
    {
        std::size_t count = 0;
        read_entry(from.metadata, "average.epoch", epoch);
        read_entry(from.metadata, "average.count", count);
        std::deque<std::vector<float>> all;
        for (std::size_t k = 0; k < count; ++k) {
            const std::string name = "average." + std::to_string(k);
            all.push_back(from.at(name).values<float>());
            if (all.back().size() != parameters)
                throw heed::error("the file contradicts itself: \"" + name + "\" has " +
                                  heed::counted(all.back().size(), "number") + ", but its model " +
                                  std::to_string(parameters));
            if (const auto bad = not_finite(name, all.back())) throw heed::error(*bad + "; the file is damaged");
        }
        last.restore(std::move(all));
    }
};

inline constexpr std::string_view checkpoint_ending = ".checkpoint";
inline std::string checkpoint_path(const std::filesystem::path& model)
{
    return model.string() + std::string(checkpoint_ending);
}

/// A hash of the text: a run cannot be resumed on another text.
inline std::string fingerprint(const training_pairs& training, const examples& validation)
{
    std::uint64_t hash = training.hash();
    for (const auto* side : {&validation.source, &validation.target}) {
        for (const id_sentence& words : *side) {
            for (const std::uint32_t word : words) hash = heed::mix(hash ^ word);
            hash = heed::mix(hash + 1);
        }
    }
    return std::to_string(hash);
}

inline void save_checkpoint(const std::filesystem::path& path, const translator_file& model, const standing& at,
                            const std::string& text, std::size_t shards, std::size_t ranks, const candidate_words* only,
                            const averages* means, heed::io::existing there)
{
    heed::io::archive archive = to_archive(model);
    model.system->put_optimizer(archive);
    if (only != nullptr) only->put(archive);
    if (means != nullptr) means->put(archive);
    archive.metadata["training.text"] = text;
    archive.metadata["training.shards"] = std::to_string(shards);
    archive.metadata["training.threads"] = std::to_string(heed::threads());
    archive.metadata["training.ranks"] = std::to_string(ranks);
    standing::each(at, [&](const char* name, const auto& value) {
        archive.metadata["training." + std::string(name)] = text_of(value);
    });
    heed::io::save(path, archive, there);
}

/// Calls difference(option, one, other) for each differing option that --resume requires to be equal.
void compare(const options& one, const options& other, auto&& difference)
{
    metadata right;
    other.each_text([&](const std::string& option, const std::string& value) { right[option] = value; });
    one.each_text([&](const std::string& option, const std::string& value) {
        if (option != "epochs" && option != "patience" && right[option] != value)
            difference(option, value, right[option]);
    });
}

/// Throws if the options differ from those in the metadata of the checkpoint.
inline void require_same_options(const options& how, const metadata& stored)
{
    compare(how, options::read(stored), [](const auto& option, const auto& wanted, const auto& before) {
        throw heed::error("this run was started with --" + option + " " + before + ", not " + wanted +
                          "; pass the same options to resume");
    });
}

[[noreturn]] inline void refuse_other_codes()
{
    throw heed::error("this run was started with other byte-pair codes; pass the same codes to resume");
}

/// Throws if a model does not belong to the run of this checkpoint.
inline void require_same_run(const std::filesystem::path& path, const std::filesystem::path& checkpoint,
                             const translator_file& resumed)
{
    const translator_file best = load_model(path);
    const auto refuse = [&](const std::string& what) {
        throw heed::error(
            fmt::format("{}: {}; they are not from the same run; restore the matching file, or start over "
                        "without either",
                        path.string(), what));
    };
    if (best.weights != "F32")
        throw heed::error(fmt::format("{}: its weights are {}, rounded by `translate quantize`, but training requires "
                                      "unrounded weights; restore the model written by `translate train`",
                                      path.string(), best.weights));
    compare(best.how, resumed.how, [&](const auto& option, const auto& in_model, const auto& in_checkpoint) {
        refuse(fmt::format("trained with --{} {}, but {} with --{} {}", option, in_model, checkpoint.string(), option,
                           in_checkpoint));
    });
    if (best.source != resumed.source || best.target != resumed.target)
        refuse("its vocabularies or byte-pair codes are not those of " + checkpoint.string());
}

/// Resumes from a checkpoint: restores the model and, if present, the candidates and averages, and returns the position
/// of the run. If it throws, nothing has changed.
inline standing load_checkpoint(const heed::io::archive& archive, translator_file& model, const std::string& text,
                                std::size_t shards, std::size_t ranks, candidate_words* only = nullptr,
                                averages* means = nullptr)
{
    standing at;
    metadata all = archive.metadata;
    all.emplace("training.best-loss", text_of(at.best_loss));  // missing in the earliest checkpoints
    all.emplace("training.shard", text_of(at.shard));
    standing::each(at, [&](const char* name, auto& value) { read_entry(all, "training." + std::string(name), value); });
    require_same_options(model.how, archive.metadata);
    translator_file stored = from_archive(archive);
    if (stored.source.codes() != model.source.codes() || stored.target.codes() != model.target.codes())
        refuse_other_codes();
    all.emplace("training.shards", "1");
    if (const std::string& before = entry(all, "training.shards"); before != std::to_string(shards))
        throw heed::error(fmt::format("this run was started on a text in {} shards, now {}; pass the same "
                                      "files and the same --shard to resume",
                                      before, shards));
    if (entry(archive.metadata, "training.text") != text || stored.source != model.source ||
        stored.target != model.target) {
        throw heed::error("this run was started on another text; pass the same files to resume");
    }
    if (const std::string& threads = entry(archive.metadata, "training.threads");
        threads != std::to_string(heed::threads())) {
        say(fmt::format("note: started with --threads {}, resumed with {}: the result will differ in its last digits",
                        threads, heed::threads()));
    }
    all.emplace("training.ranks", "1");
    if (const std::string& before = entry(all, "training.ranks"); before != std::to_string(ranks)) {
        say(fmt::format(
            "note: started with {} under mpirun, resumed with {}: the result will differ in its last digits", before,
            ranks));
    }
    stored.system->take_optimizer(archive);
    std::optional<averages> kept;
    if (means != nullptr) {
        kept = *means;
        kept->take(archive, stored.system->parameter_count());
    }
    require_finite(*stored.system);
    if (only != nullptr) only->take(archive, model.source.vocabulary.size(), model.target.vocabulary.size());
    if (means != nullptr) *means = std::move(*kept);
    model.system = std::move(stored.system);
    return at;
}

}  // namespace translation
