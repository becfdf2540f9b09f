// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

/// Finds dimensions of an attention with a weight per dimension that follow a word class. Choi et al. 2018 (section
/// 5.2, figure 4) show manually selected dimensions that attend to articles, to prepositions, to nouns; this searches
/// for such dimensions.
namespace heed::inline HEED_TARGET::metrics {

namespace detail {

inline void require_weights(std::string_view where, std::size_t weights, std::size_t positions, std::size_t dimensions)
{
    if (weights == positions * dimensions) return;
    throw shape_error(std::string(where) + ": a row has " + counted(weights, "weight") + " but must have " +
                      std::to_string(positions * dimensions) + ": " + counted(positions, "position") + " × " +
                      counted(dimensions, "dimension"));
}

}  // namespace detail

/// The attention of each dimension to each source word, relative to a uniform distribution:
///
///     v_id = |X| · A_id,   A_id = (1/|Y|) Σ_j α_jid                Choi et al. 2018, section 5.2, figure 3
///
/// Each of the `rows` [|Y|][positions · dimensions] has the weights of one target word, with `dimensions` numbers per
/// source position. Returns [positions][dimensions]; all 0 without target words. Throws heed::shape_error for rows of
/// a different size.
template <class Rows>
std::vector<std::vector<float>> attention_by_dimension(const Rows& rows, std::size_t positions, std::size_t dimensions)
{
    std::vector<std::vector<float>> result(positions, std::vector<float>(dimensions, 0.0f));
    const float part = static_cast<float>(positions) / static_cast<float>(std::max<std::size_t>(std::size(rows), 1));
    for (const auto& row : rows) {
        detail::require_weights("attention_by_dimension", row.size(), positions, dimensions);
        for (std::size_t i = 0; i < positions; ++i)
            for (std::size_t d = 0; d < dimensions; ++d)
                result[i][d] += part * static_cast<float>(row[i * dimensions + d]);
    }
    return result;
}

/// The sharpness of each dimension for each target word: its largest weight. Arguments as above; returns
/// [|Y|][dimensions]. Throws heed::shape_error for rows of a different size.
template <class Rows>
std::vector<std::vector<float>> sharpness_by_dimension(const Rows& rows, std::size_t positions, std::size_t dimensions)
{
    std::vector<std::vector<float>> result;
    for (const auto& row : rows) {
        detail::require_weights("sharpness_by_dimension", row.size(), positions, dimensions);
        std::vector<float>& largest = result.emplace_back(dimensions, 0.0f);
        for (std::size_t i = 0; i < positions; ++i)
            for (std::size_t d = 0; d < dimensions; ++d)
                largest[d] = std::max(largest[d], static_cast<float>(row[i * dimensions + d]));
    }
    return result;
}

/// A dimension and a word class that it follows.
struct followed_class {
    std::size_t dimension = 0;
    std::string word_class;
    std::size_t count = 0;  ///< words of this class
    /// The probability that the dimension has a larger value for a word of the class than for another word, ties
    /// counting half (the area under the ROC curve): ½ if it ignores the class, 1 if it always attends most to words of
    /// the class.
    double auc = 0.5;
    /// (auc - ½) in standard deviations under chance: the Mann-Whitney statistic, without a correction for ties. With
    /// many dimensions and classes, some reach 3 or 4 by chance.
    double z = 0;
};

/// Options of the search for classes.
struct class_options {
    std::size_t least = 20;  ///< words: rarer classes are ignored, since chance may separate them perfectly
    std::size_t most = 3;    ///< maximum number of classes per dimension
};

/// Collects words: the class of each (its tag, or the word) and its value in each dimension.
class class_search {
public:
    explicit class_search(std::size_t dimensions) : values_(dimensions) {}

    /// Throws heed::shape_error for a different number of values.
    void add(std::string_view word_class, std::span<const float> values)
    {
        if (values.size() != values_.size())
            throw shape_error("class_search: " + counted(values.size(), "value") + " for a word, but " +
                              counted(values_.size(), "dimension") + "; give one value for each dimension");
        const auto found = classes_.emplace(word_class, classes_.size()).first;
        class_of_.push_back(found->second);
        for (std::size_t d = 0; d < values.size(); ++d) values_[d].push_back(values[d]);
    }

    std::size_t words() const { return class_of_.size(); }

    /// For each dimension, the classes that it separates best from all other words; sorted by the best class of each
    /// dimension (of equals, the lower dimension), with the classes of a dimension together. Empty if no class has
    /// enough words, or all words have the same class. Time D · N log N, on heed's threads.
    std::vector<followed_class> best(const class_options& how = {}) const
    {
        std::vector<std::string_view> names(classes_.size());
        for (const auto& [name, number] : classes_) names[number] = name;
        std::vector<std::size_t> counts(classes_.size(), 0);
        for (const std::size_t each : class_of_) ++counts[each];

        std::vector<std::vector<followed_class>> of(values_.size());
        parallel_for(values_.size(), 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t d = begin; d < end; ++d) of[d] = best_of(d, names, counts, how);
        });
        std::vector<std::size_t> order(of.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::erase_if(order, [&](std::size_t d) { return of[d].empty(); });
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return of[a].front().auc > of[b].front().auc; });
        std::vector<followed_class> result;
        for (const std::size_t d : order) result.insert(result.end(), of[d].begin(), of[d].end());
        return result;
    }

private:
    std::vector<followed_class> best_of(std::size_t d, const std::vector<std::string_view>& names,
                                        const std::vector<std::size_t>& counts, const class_options& how) const
    {
        const std::vector<float>& values = values_[d];
        const std::size_t words = values.size();
        std::vector<std::size_t> order(words);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
        // The sum of the ranks of each class; ties share the mean of their ranks.
        std::vector<double> ranks(counts.size(), 0.0);
        for (std::size_t begin = 0, end = 0; begin < words; begin = end) {
            while (end < words && values[order[end]] == values[order[begin]]) ++end;
            const double rank = static_cast<double>(begin + 1 + end) / 2;
            for (std::size_t i = begin; i < end; ++i) ranks[class_of_[order[i]]] += rank;
        }
        std::vector<followed_class> result;
        for (std::size_t c = 0; c < counts.size(); ++c) {
            if (counts[c] < std::max<std::size_t>(how.least, 1) || counts[c] == words) continue;
            const double inside = static_cast<double>(counts[c]), outside = static_cast<double>(words - counts[c]);
            const double auc = (ranks[c] - inside * (inside + 1) / 2) / (inside * outside);
            const double deviation = std::sqrt((inside + outside + 1) / (12 * inside * outside));
            result.push_back({d, std::string(names[c]), counts[c], auc, (auc - 0.5) / deviation});
        }
        std::sort(result.begin(), result.end(), [](const followed_class& a, const followed_class& b) {
            return std::tuple(-a.auc, std::string_view(a.word_class)) <
                   std::tuple(-b.auc, std::string_view(b.word_class));
        });
        if (result.size() > how.most) result.resize(how.most);
        return result;
    }

    std::vector<std::vector<float>> values_;  // [dimensions][words]
    std::vector<std::size_t> class_of_;       // class of each word
    std::map<std::string, std::size_t, std::less<>> classes_;
};

}  // namespace heed::inline HEED_TARGET::metrics
