// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <vector>

#include <heed_translator/model_file.hpp>

#include "candidates.hpp"
#include "checkpoint.hpp"
#include "library.hpp"
#include "quality.hpp"
#include "ranks.hpp"
#include "training_log.hpp"
#include "training_pairs.hpp"

/// Training of a translator: epochs over shuffled batches, validation after each, and the best model is kept.
namespace translation {

/// The result of a run.
struct outcome {
    standing at;
    bool stopped = false;  // by Ctrl-C, before completion
    int signal = 0;        // the signal
};

/// Where and how often a run is written.
struct written {
    std::filesystem::path path;   // path of the model; empty: no files are written
    bool resume = false;          // continue from the checkpoint
    double save_minutes = 0;      // interval between checkpoints within an epoch; 0: none
    training_log* log = nullptr;  // gets a row for each validation
};

/// Trains until validation stops improving, the epochs or updates are over, or Ctrl-C. Without a schedule among the
/// options, the learning rate is halved after each epoch that is not `better`. With --average, the mean of the
/// parameters of the last epochs is validated and written. The best model is written to `to.path` as soon as it is
/// known; --resume continues from `to.path`.checkpoint. An epoch reads the shards of the text and the batches of each
/// shard in random order; both depend only on the seed. `only`: the words of the softmax of a batch, if not all; when
/// resumed, those of the checkpoint. Validation and its perplexity cover all words. Throws heed::error if a loss, a
/// perplexity, a parameter or the optimizer's state is not finite, and does not save that state.
///
/// `over`: the ranks that train together, all with the same arguments. Each computes a part of every batch, and
/// gradients are summed; only rank 0 writes. Except for rounding, the updates equal those of one process.
outcome train(translator_file& model, training_pairs& training, const examples& validation,
              const std::vector<sentence>& references, const written& to, candidate_words* only = nullptr,
              any_ranks over = alone());

}  // namespace translation
