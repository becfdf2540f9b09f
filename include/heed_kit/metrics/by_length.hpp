// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/bleu.hpp>
#include <heed_kit/metrics/require_as_many.hpp>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace heed::inline HEED_TARGET::metrics {

/// Sentences of similar length and their BLEU.
struct length_bucket {
    static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

    std::size_t shortest = 0;         ///< words
    std::size_t longest = unbounded;  ///< words, inclusive
    std::size_t sentences = 0;
    bleu_counts counts;

    /// BLEU of the sentences in this bucket.
    bleu_score bleu(smoothing smooth = smoothing::none) const { return metrics::bleu(counts, smooth); }
    /// The range of lengths: "11-20", "51+" or "7".
    std::string text() const
    {
        if (longest == unbounded) return std::to_string(shortest) + "+";
        return shortest == longest ? std::to_string(shortest)
                                   : std::to_string(shortest) + "-" + std::to_string(longest);
    }
};

/// BLEU by sentence length: `bounds` are the maximum lengths of all buckets except the last, which is unbounded. {10,
/// 20} makes 0-10, 11-20 and 21+ (Bahdanau et al. 2015, figure 2; Luong et al. 2015, figure 6).
///
/// `statistics` are bleu_statistics(), `lengths` the lengths of the source sentences or of the references. Empty
/// buckets are included, so that systems can be compared in one table. Throws heed::error if the numbers of sentences
/// differ, or if the bounds do not ascend.
inline std::vector<length_bucket> bleu_by_length(std::span<const bleu_counts> statistics,
                                                 std::span<const std::size_t> lengths,
                                                 std::span<const std::size_t> bounds)
{
    if (statistics.size() != lengths.size())
        throw error("bleu_by_length: " + counted(statistics.size(), "hypothesis", "hypotheses") + " but " +
                    counted(lengths.size(), "length") + "; expected one of each per sentence");
    std::vector<length_bucket> buckets(1);
    for (const std::size_t bound : bounds) {
        if (bound < buckets.back().shortest || bound == length_bucket::unbounded)
            throw error("bleu_by_length: bucket " + std::to_string(buckets.size()) + " cannot end at " +
                        std::to_string(bound) + "; bounds must ascend, such as {10, 20, 30}");
        buckets.back().longest = bound;
        buckets.push_back({bound + 1, length_bucket::unbounded, 0, {}});
    }
    for (std::size_t i = 0; i < lengths.size(); ++i) {
        const auto bucket =
            std::lower_bound(buckets.begin(), buckets.end(), lengths[i],
                             [](const length_bucket& each, std::size_t length) { return each.longest < length; });
        ++bucket->sentences;
        bucket->counts += statistics[i];
    }
    return buckets;
}

}  // namespace heed::inline HEED_TARGET::metrics
