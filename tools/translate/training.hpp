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

/// How a translator is trained: epochs over shuffled batches, a validation after each, the best model kept.
namespace translation {

/// The result of a run.
struct outcome {
    standing at;
    bool stopped = false;  // by Ctrl-C, before it was finished
    int signal = 0;        // which said so
};

/// Where a run is written, and how often.
struct written {
    std::filesystem::path path;   // of the model; empty: nothing is written
    bool resume = false;          // continue from the checkpoint
    double save_minutes = 0;      // within an epoch, the checkpoint is written so often; 0: not
    training_log* log = nullptr;  // gets a row for each validation
};

/// Trains until validation stops improving, the epochs or updates are over, or Ctrl-C. Without a schedule among the
/// options, the learning rate is halved after each epoch that is not `better`. With --average, what is validated and
/// written is the mean of the last epochs' parameters. The best model is written to `to.path` as soon as it is known;
/// --resume continues from `to.path`.checkpoint. An epoch takes the shards of the text in random order, and the batches
/// of each in random order; both depend on the seed alone. `only`: the words that the softmax of a batch runs over, if
/// not all; when resumed, those of the checkpoint. Validation and its perplexity are over all words. Throws heed::error
/// if a loss, a perplexity, a parameter or the optimizer's state is not finite, and does not save that state.
///
/// `over`: the ranks that train together, all with the same arguments. Each learns from its part of every batch, and
/// their gradients are summed; rank 0 alone writes. The updates are those of one process but for rounding.
outcome train(translator_file& model, training_pairs& training, const examples& validation,
              const std::vector<sentence>& references, const written& to, candidate_words* only = nullptr,
              any_ranks over = alone());

}  // namespace translation
