// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <cstddef>

namespace heed::inline HEED_TARGET::metrics {

/// Metrics of binary classification.
///
///     accuracy = (tp + tn) / all,  precision = tp / (tp + fp),  recall = tp / (tp + fn)
///     F1 = 2 tp / (2 tp + fp + fn), the harmonic mean of precision and recall
///
/// Fractions 0/0 are 0.
struct two_classes {
    std::size_t true_yes = 0, false_yes = 0, true_no = 0, false_no = 0;

    /// Counts one decision.
    void add(bool predicted, bool expected)
    {
        ++(predicted ? (expected ? true_yes : false_yes) : (expected ? false_no : true_no));
    }

    std::size_t size() const { return true_yes + false_yes + true_no + false_no; }
    double accuracy() const { return share(true_yes + true_no, size()); }
    double precision() const { return share(true_yes, true_yes + false_yes); }
    double recall() const { return share(true_yes, true_yes + false_no); }
    double f1() const { return share(2 * true_yes, 2 * true_yes + false_yes + false_no); }  // of the positive class

private:
    static double share(std::size_t part, std::size_t whole)
    {
        return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
    }
};

}  // namespace heed::inline HEED_TARGET::metrics
