// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <heed/ad/lift.hpp>
#include <heed/core/parameters.hpp>
#include <heed/io/archive.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/train/adadelta.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/gradient_accumulation.hpp>
#include <heed/train/sgd.hpp>

#include <heed_translator/options.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

template <class T>
class decoding;

}  // namespace heed::inline HEED_TARGET::seq2seq

namespace heed::translator {

/// Sentence pairs for training.
using batch = heed::seq2seq::training_batch<float>;

/// Describes the first number that is not finite: "decoder.b"[3] is NaN. Empty if all are finite.
std::optional<std::string> not_finite(const std::string& name, std::span<const float> numbers);

/// The part of a batch that one of several processes computes: some of its sentences, with the number of steps of its
/// longest sentences, so that all processes draw the same random numbers.
struct part_of_lesson {
    heed::nn::part_of_batch sentences;
    std::size_t target_words = 0;  ///< of the whole batch
    bool learns = true;  ///< false: there were fewer sentences than processes, and this process contributes zero
};

/// Links (i, j) of source token i and target token j of a sentence pair, both from 0, as heed::penalty::links.
using token_links = std::vector<std::pair<int, int>>;

/// A training batch. `only`: the words of the softmax, which include those of the references; if not given, all words.
struct training_step_input {
    batch examples;
    std::optional<std::vector<std::uint32_t>> only;
    std::optional<part_of_lesson> part{};  ///< if `examples` are only part of the sentences
    std::vector<token_links> links{};      ///< for guided alignment: of each sentence; otherwise empty
};

/// This process's part of a batch, one of `of` parts: sentences are distributed in snake order, so that the parts of a
/// batch sorted by length have about the same cost. A process without sentences gets the first sentence and does not
/// learn from it.
training_step_input part_of(const training_step_input& whole, std::size_t process, std::size_t of);

/// A type-erased model: heed's models are types assembled at compile time, but a program that chooses by a command-line
/// option requires a single type. The virtual functions are called once per batch; code shared by all models is
/// compiled once, in system.cpp. system_of.hpp makes a system of a model.
class system {
public:
    using numbers = std::vector<heed::named_numbers<float>>;
    using constant_numbers = std::vector<heed::named_numbers<const float>>;
    using variables = std::vector<heed::ad::named_variable<float>>;

    virtual ~system() = default;

    struct step_stats {
        double loss;           // Σ −log p, in nats
        double gradient_norm;  // before clipping, of the mean loss per word
    };
    /// The other processes that train the same system, each with a part of every batch.
    struct gradient_exchange {
        virtual ~gradient_exchange() = default;
        /// Called before the backward pass, in a step of one batch: the gradients that the tape then reports as final
        /// (tape::when_final) are those of the step. Not called in a step of several batches.
        virtual void before_backward(heed::ad::tape<float>&, const variables&) {}
        /// Called after the backward pass: the gradients on the tape become the sums over all processes. Returns the
        /// sum of the losses.
        virtual double sum(heed::ad::tape<float>& on, const variables& lifted, double loss) = 0;
    };

    /// One update with the gradient of all these batches, summed over all processes. The gradient includes those of
    /// the penalties and of guided alignment; the returned loss does not. Throws heed::error if these are given, but
    /// has_position_weights() is false.
    step_stats train(std::span<training_step_input> together, const options& how, heed::random_source& random,
                     double rate, gradient_exchange* others = nullptr);

    /// Σ −log p(target | source), in nats, without dropout.
    virtual double loss(const batch& examples) const = 0;

    /// Starts decoding these sentences, for a search. The system must not move or change meanwhile; several threads may
    /// decode concurrently.
    virtual std::unique_ptr<heed::seq2seq::decoding<float>>
    decode(const heed::seq2seq::source_batch& sentences) const = 0;

    /// Whether it has attention weights.
    virtual bool has_attention() const = 0;

    /// Whether it has a single attention weight for each source position, as penalties and guided alignment require.
    virtual bool has_position_weights() const = 0;

    /// The weights of forced decoding, if the model has a weight per dimension: [words + 1][source words + 1,
    /// dimensions], end words included. Otherwise empty.
    virtual std::vector<std::vector<float>> weights_by_dimension(const heed::seq2seq::id_sentence& source,
                                                                 const heed::seq2seq::id_sentence& target) const = 0;

    /// All parameters, in a fixed order. The first overload allows changes.
    virtual numbers parameters() = 0;
    virtual constant_numbers parameters() const = 0;
    /// The number of their numbers.
    std::size_t parameter_count() const;
    /// A copy of all parameters, for restoring them later.
    std::vector<float> copy() const;
    /// The inverse of copy().
    void set(const std::vector<float>& copied);
    /// The first number that is not finite, in a parameter or in the optimizer state, as described by not_finite().
    std::optional<std::string> not_finite() const;
    /// Training steps so far.
    std::size_t updates() const;

    /// Sets whether searches use 8-bit weights on processors where these products are fast; call before the first
    /// search.
    void prefer_int8(bool yes) { prefers_int8_ = yes; }
    /// The current setting.
    bool prefers_int8() const { return prefers_int8_; }

    /// Adds the parameters to a file.
    virtual void put(heed::io::archive& to) const = 0;
    /// The inverse. Throws heed::error if a parameter is missing or has a different shape.
    virtual void take(const heed::io::archive& from) = 0;
    /// Adds the optimizer state to a file.
    void put_optimizer(heed::io::archive& to) const;
    /// The inverse. Throws heed::error if it is missing.
    void take_optimizer(const heed::io::archive& from);

protected:
    /// Sets the optimizer of these options.
    explicit system(const options& how);

    /// Lifts the model onto a tape, records the loss of a batch, and computes the gradients, unless this process does
    /// not learn from its part. Returns the cross-entropy, the mean with the weights of the batch, and adds the
    /// variables of the model to `lifted`, in the order of parameters(). `others` are notified before the backward
    /// pass.
    virtual float record(heed::ad::tape<float>& on, const training_step_input& one, const options& how,
                         const heed::nn::dropout& drop, variables& lifted, gradient_exchange* others) = 0;

private:
    using optimizers = std::variant<heed::train::adam<float>, heed::train::sgd<float>, heed::train::adadelta<float>>;

    heed::ad::tape<float> tape_;
    heed::train::accumulated_gradients<float> sum_;
    optimizers optimizer_;
    bool prefers_int8_ = false;
};

}  // namespace heed::translator
