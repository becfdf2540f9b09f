// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>

#include <cmath>
#include <cstddef>
#include <span>
#include <string>

namespace heed::inline HEED_TARGET::metrics {

/// Computes the perplexity of a text from a model's probability of each word.
///     perplexity = exp(-1/N Σ_i log p_i)
///
/// At least 1 (every word was certain); infinite if a word had probability 0.
class perplexity_counter {
public:
    /// Adds a word, given the natural logarithm of its probability. Throws heed::error if it is above 0 or NaN.
    void add(double log_probability)
    {
        // Sums of float probabilities can round to slightly above 1.
        if (!(log_probability <= 1e-3))
            throw error("perplexity: word " + std::to_string(words_ + 1) + " has the log-probability " +
                        std::to_string(log_probability) + "; it must be 0 or less (natural logarithm)");
        sum_ += log_probability;
        ++words_;
    }

    std::size_t words() const { return words_; }  // number of words so far

    /// −1/N Σ_i log p_i. Throws heed::error without words.
    double nats_per_word() const { return -sum_ / static_cast<double>(checked_words()); }
    /// exp of that; the same error.
    double perplexity() const { return std::exp(nats_per_word()); }

private:
    std::size_t checked_words() const
    {
        if (words_ == 0) throw error("perplexity: no words; at least one is required");
        return words_;
    }

    double sum_ = 0;
    std::size_t words_ = 0;
};

/// The statistics of perplexity, of one sentence or summed over a corpus, for the bootstrap or for sentence
/// probabilities. Models with different subwords can be compared only per word.
struct perplexity_counts {
    double log_probability = 0;  ///< natural logarithm
    std::size_t words = 0;       ///< includes the end of the sentence if its probability is included

    perplexity_counts& operator+=(const perplexity_counts& other)
    {
        log_probability += other.log_probability;
        words += other.words;
        return *this;
    }
};

/// Throws heed::error without words, and for a log-probability above 0.
inline double perplexity(const perplexity_counts& counts)
{
    if (counts.words == 0) throw error("perplexity: no words; at least one is required");
    if (!(counts.log_probability <= 1e-3 * static_cast<double>(counts.words)))
        throw error("perplexity: " + std::to_string(counts.words) + " words have the log-probability " +
                    std::to_string(counts.log_probability) + "; it must be 0 or less (natural logarithm)");
    return std::exp(-counts.log_probability / static_cast<double>(counts.words));
}

/// The perplexity of words with these natural log-probabilities. Throws heed::error as perplexity_counter does.
inline double perplexity(std::span<const double> log_probabilities)
{
    perplexity_counter counter;
    for (const double each : log_probabilities) counter.add(each);
    return counter.perplexity();
}

}  // namespace heed::inline HEED_TARGET::metrics
