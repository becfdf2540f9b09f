// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <vector>

#include "candidates.hpp"
#include "checkpoint.hpp"
#include "model_file.hpp"
#include "quality.hpp"
#include "training_log.hpp"

/// How a translator is trained: epochs over shuffled batches, a validation after each, the best model kept.
namespace translation {

/// The result of a run.
struct outcome {
    standing at;
    bool stopped = false;  // by Ctrl-C, before it was finished
};

/// Trains until validation stops improving, the epochs or updates are over, or Ctrl-C. Without a schedule among the
/// options, the learning rate is halved after each epoch that is not `better`. With --average, what is validated and
/// written is the mean of the last epochs' parameters. The best model is written to `path` as soon as it is known;
/// --resume continues from `path`.checkpoint. With an empty path nothing is written. Each validation adds a row to
/// `log`, if there is one. `only`: the words that the softmax of a batch runs over, if not all; when resumed, those of
/// the checkpoint. Validation and its perplexity are over all words. Throws heed::error if a loss, a perplexity, a
/// parameter or the optimiser's state is not finite, and does not save that state.
outcome train(translator_file& model, const examples& training, const examples& validation,
              const std::vector<sentence>& references, const std::filesystem::path& path, bool resume,
              training_log* log = nullptr, candidate_words* only = nullptr);

}  // namespace translation
