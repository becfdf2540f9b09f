// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <heed/seq2seq/decoding.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// The divisor of the log-probability of a translation of n words, including the end word.
///
///     none        1                       the most probable translation; favors short ones
///     per_word    n                       the mean over the words
///     gnmt        ((5 + n) / 6)^α         Wu et al. 2016, eq. 14 (where it is written (5 + |Y|)^α / (5 + 1)^α)
enum class length_normalization { none, per_word, gnmt };

/// The options of a beam search. By default, the width is that of Choi et al. 2018, §4.2, and the normalization that of
/// Wu et al.
struct beam_options {
    std::size_t width = 12;
    std::size_t best = 1;  // translations returned per sentence, at most `width`

    length_normalization normalization = length_normalization::gnmt;
    double alpha = 0.6;  // for gnmt; at least 0

    /// β of Wu et al. 2016, eq. 14: a finished translation's score gets
    ///     β Σ_i log min(Σ_j α_{j,i}, 1)      over the source words i and the steps j
    /// heed's choices: the source's end word does not count, and no term is below log 1e-6.
    double coverage = 0;

    std::size_t no_repeat = 0;           // blocks repeated n-grams of this size; 0: off
    std::size_t least_words = 0;         // minimum length of a translation, without the end word
    length_limit at_most{};              // maximum length in words; at least `least_words`
    std::vector<std::uint32_t> never{};  // words that are never emitted, such as the unknown word

    bool with_weights = false;
    special_ids special{};
    bool marks = false;  // allows the padding and the begin word in translations, as ordinary words

    /// The words that are never emitted: `never` and, without `marks`, the padding and the begin word.
    std::vector<std::uint32_t> excluded() const
    {
        std::vector<std::uint32_t> words = never;
        if (!marks) words.insert(words.end(), {special.padding, special.begin});
        std::erase(words, special.end);
        return words;
    }

    /// If not empty, called for each sentence before each step. If it returns false, the sentence gets no translation.
    std::function<bool(std::size_t sentence)> wanted = {};

    /// The divisor of a log-probability.
    double divisor(std::size_t words_and_end) const
    {
        const double n = static_cast<double>(words_and_end);
        if (normalization == length_normalization::per_word) return n;
        return normalization == length_normalization::gnmt ? std::pow((5 + n) / 6, alpha) : 1.0;
    }
};

namespace detail {

template <class T>
class beam_search {
public:
    beam_search(decoding<T>& model, const lengths& source, const beam_options& how)
        : model_(model),
          how_(how),
          never_(how.excluded()),
          looks_(model.has_attention() && (how.with_weights || how.coverage > 0))
    {
        if (how.width == 0 || how.best == 0 || how.best > how.width) {
            throw error("beam: the " + std::to_string(how.best) + " best of a beam of " + std::to_string(how.width) +
                        "; both must be at least 1, and best at most the width");
        }
        if (!(how.alpha >= 0) || !(how.coverage >= 0) || !(how.at_most.factor >= 0)) {
            throw error("beam: alpha is " + std::to_string(how.alpha) + ", coverage " + std::to_string(how.coverage) +
                        " and at_most.factor " + std::to_string(how.at_most.factor) + "; none may be below 0");
        }
        if (how.coverage > 0 && !model.has_attention()) {
            throw error("beam: a coverage penalty needs attention, which this model does not have; set coverage to 0");
        }
        detail::require_rows("beam", source.batch(), model.rows());
        for (std::size_t b = 0; b < source.batch(); ++b) {
            const std::size_t most = std::max(how.least_words, how.at_most.words(source[b]));
            sentences_.push_back({source[b], most, b, 1, {{none, 0, b}}, {}});
        }
        model.expect(how.width);
    }

    /// The translations of each sentence, the best first.
    std::vector<std::vector<translation<T>>> run()
    {
        leave_unwanted();
        for (std::size_t i = 0; any_live(); ++i) {
            model_.step(previous_words());
            find_blocked(i);
            also_.assign(model_.rows(), how_.special.end);
            model_.propose(how_.width + extra_, also_, next_);
            for (sentence& s : sentences_) {
                if (!s.live.empty()) extend(s, i);
            }
            leave_unwanted();
            if (any_live()) go_on();
        }
        std::vector<std::vector<translation<T>>> results;
        for (const sentence& s : sentences_) {
            results.emplace_back();
            for (std::size_t k = 0; k < std::min(how_.best, s.ended.size()); ++k)
                results.back().push_back(write_out(s.ended[k], s.real));
        }
        return results;
    }

private:
    static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

    /// A word of a hypothesis, and the node of the previous word.
    struct node {
        std::uint32_t word;
        std::size_t before;   // a node, or none
        std::size_t weights;  // their first index, if weights are requested
    };
    struct hypothesis {
        std::size_t last;  // the last node; none at first
        double log_p;
        std::size_t row;
    };
    struct finished {
        std::size_t last;
        double log_p, score;
    };
    struct sentence {
        std::size_t real = 0, most = 0;
        std::size_t first = 0, rows = 0;  // its rows in the batch; the live hypotheses come first
        std::vector<hypothesis> live;
        std::vector<finished> ended;  // the best first
    };
    struct candidate {
        double log_p;
        std::size_t parent;
        std::uint32_t word;
    };

    bool any_live() const
    {
        return std::any_of(sentences_.begin(), sentences_.end(), [](const sentence& s) { return !s.live.empty(); });
    }

    /// Ends the search for sentences that are no longer wanted.
    void leave_unwanted()
    {
        for (std::size_t b = 0; how_.wanted && b < sentences_.size(); ++b) {
            sentence& s = sentences_[b];
            if (s.live.empty() || how_.wanted(b)) continue;
            s.live.clear();
            s.ended.clear();
        }
    }

    word_ids previous_words() const
    {
        word_ids words(1, model_.rows(), how_.special.end);
        for (const sentence& s : sentences_) {
            for (const hypothesis& h : s.live)
                words(0, h.row) = h.last == none ? how_.special.begin : nodes_[h.last].word;
        }
        return words;
    }

    /// For each row, the words that would repeat an n-gram, and the number of additional words to consider because of
    /// them.
    void find_blocked(std::size_t step)
    {
        const std::size_t n = how_.no_repeat;
        std::size_t repeats = 0;
        if (n > 0 && step >= n) {
            blocked_.assign(model_.rows(), {});
            std::vector<std::uint32_t> words;
            for (const sentence& s : sentences_) {
                for (const hypothesis& h : s.live) {
                    words_of(h.last, words);
                    const auto tail = words.end() - static_cast<std::ptrdiff_t>(n - 1);
                    for (auto at = words.begin(); at + static_cast<std::ptrdiff_t>(n) <= words.end(); ++at) {
                        if (std::equal(tail, words.end(), at))
                            blocked_[h.row].push_back(*(at + static_cast<std::ptrdiff_t>(n - 1)));
                    }
                    repeats = std::max(repeats, blocked_[h.row].size());
                }
            }
        }
        extra_ = never_.size() + repeats + (step < how_.least_words ? 1 : 0);
    }

    bool allowed(std::uint32_t word, std::size_t row, std::size_t step) const
    {
        const auto has = [word](const std::vector<std::uint32_t>& words) {
            return std::find(words.begin(), words.end(), word) != words.end();
        };
        if (word == how_.special.end) return step >= how_.least_words;
        return !has(never_) && (blocked_.empty() || !has(blocked_[row]));
    }

    /// One step of one sentence: decides which hypotheses end and which continue, and whether to stop.
    void extend(sentence& s, std::size_t step)
    {
        constexpr double lowest = -std::numeric_limits<double>::infinity();
        candidates_.clear();
        const auto propose = [this](double log_p, std::size_t parent, std::uint32_t word) {
            if (log_p > lowest) candidates_.push_back({log_p, parent, word});
        };
        for (std::size_t h = 0; h < s.live.size() && step < s.most; ++h) {
            const std::size_t row = s.live[h].row;
            for (std::size_t k = row * next_.most; k < (row + 1) * next_.most; ++k) {
                if (allowed(next_.words[k], row, step))
                    propose(s.live[h].log_p + static_cast<double>(next_.log_p[k]), h, next_.words[k]);
            }
        }
        // At the maximum length, or if no other word is allowed.
        if (candidates_.empty() && (step >= s.most || s.ended.empty())) {
            for (std::size_t h = 0; h < s.live.size(); ++h) {
                propose(s.live[h].log_p + static_cast<double>(next_.log_p_also[s.live[h].row]), h, how_.special.end);
            }
            if (candidates_.empty() && s.ended.empty()) {
                throw error("beam: no word has a probability above 0 at step " + std::to_string(step) +
                            "; are the model's scores NaN?");
            }
        }
        // Enough hypotheses continue to fill the beam; finished hypotheses keep their places in it.
        const std::size_t places = std::min(how_.width - s.ended.size(), candidates_.size());
        std::partial_sort(candidates_.begin(), candidates_.begin() + static_cast<std::ptrdiff_t>(places),
                          candidates_.end(), [](const candidate& a, const candidate& b) {
                              if (a.log_p != b.log_p) return a.log_p > b.log_p;
                              return a.parent != b.parent ? a.parent < b.parent : a.word < b.word;
                          });
        going_on_.clear();
        parent_weights_.assign(s.live.size(), none);
        for (std::size_t k = 0; k < places; ++k) {
            const candidate& c = candidates_[k];
            const std::size_t row = s.live[c.parent].row;
            if (looks_ && parent_weights_[c.parent] == none) {  // all children of a parent share its weights
                model_.weights(row, row_weights_);
                if (row_weights_.size() < s.real) {
                    throw error("beam: " + counted(row_weights_.size(), "attention weight") + " for a sentence of " +
                                counted(s.real, "position") +
                                "; a model must give one per position, and the lengths must be those of its batch");
                }
                parent_weights_[c.parent] = weights_.size();
                weights_.insert(weights_.end(), row_weights_.begin(), row_weights_.end());
            }
            nodes_.push_back({c.word, s.live[c.parent].last, parent_weights_[c.parent]});
            if (c.word == how_.special.end) {
                const double score = c.log_p / how_.divisor(step + 1) + coverage_of(nodes_.size() - 1, s.real);
                const finished e{nodes_.size() - 1, c.log_p, score};
                s.ended.insert(std::upper_bound(s.ended.begin(), s.ended.end(), e,
                                                [](const auto& a, const auto& b) { return a.score > b.score; }),
                               e);
            } else {
                going_on_.push_back({nodes_.size() - 1, c.log_p, row});
            }
        }
        s.live.swap(going_on_);
        if (s.ended.size() < how_.best || s.live.empty()) return;
        // The log-probability of a live hypothesis cannot increase, and the divisor is largest at the maximum length.
        const double hope = s.live.front().log_p / how_.divisor(s.most + 1);
        if (hope <= s.ended[how_.best - 1].score) s.live.clear();
    }

    /// Assigns each hypothesis a row of its sentence. Rows are reallocated if a sentence needs more or if many are
    /// idle.
    void go_on()
    {
        std::size_t wanted = 0;
        bool anew = false;
        for (const sentence& s : sentences_) {
            wanted += s.live.size();
            anew |= s.live.size() > s.rows;
        }
        anew |= 8 * wanted <= 7 * model_.rows();
        rows_.clear();
        for (sentence& s : sentences_) {
            const std::size_t rows = anew ? s.live.size() : s.rows, first = rows_.size();
            for (hypothesis& h : s.live) {
                rows_.push_back(h.row);
                h.row = rows_.size() - 1;
            }
            while (rows_.size() < first + rows) rows_.push_back(s.live.empty() ? s.first : rows_[first]);
            s.first = first;
            s.rows = rows;
        }
        model_.select(rows_);
    }

    void words_of(std::size_t last, std::vector<std::uint32_t>& words) const
    {
        words.clear();
        for (std::size_t at = last; at != none; at = nodes_[at].before) words.push_back(nodes_[at].word);
        std::reverse(words.begin(), words.end());
    }

    double coverage_of(std::size_t last, std::size_t real) const
    {
        if (!(how_.coverage > 0)) return 0;
        std::vector<double> seen(real > 0 ? real - 1 : 0, 0.0);
        for (std::size_t at = last; at != none; at = nodes_[at].before) {
            for (std::size_t t = 0; t < seen.size(); ++t)
                seen[t] += static_cast<double>(weights_[nodes_[at].weights + t]);
        }
        double sum = 0;
        for (const double x : seen) sum += std::log(std::clamp(x, 1e-6, 1.0));
        return how_.coverage * sum;
    }

    translation<T> write_out(const finished& from, std::size_t real) const
    {
        translation<T> result;
        words_of(from.last, result.words);
        result.words.pop_back();  // the end word
        result.log_probability = from.log_p;
        result.score = from.score;
        if (looks_ && how_.with_weights) {
            for (std::size_t at = from.last; at != none; at = nodes_[at].before) {
                const T* row = weights_.data() + nodes_[at].weights;
                result.weights.emplace_back(row, row + real);
            }
            std::reverse(result.weights.begin(), result.weights.end());
        }
        return result;
    }

    decoding<T>& model_;
    const beam_options& how_;
    std::vector<std::uint32_t> never_;
    bool looks_;
    std::vector<sentence> sentences_;
    std::vector<node> nodes_;
    std::vector<T> weights_;
    // Reused at every step.
    candidates<T> next_;
    std::vector<std::uint32_t> also_;
    std::vector<std::vector<std::uint32_t>> blocked_;
    std::size_t extra_ = 0;
    std::vector<candidate> candidates_;
    std::vector<hypothesis> going_on_;
    std::vector<std::size_t> parent_weights_, rows_;
    std::vector<T> row_weights_;
};

}  // namespace detail

/// Beam search: returns the `best` translations of each sentence, best first.
///
/// At every step, the `width` most probable continuations survive. A finished hypothesis keeps its place, so the beam
/// becomes narrower, as in the code of Bahdanau et al. 2015. A sentence is done when all places of its beam are
/// finished translations, or when no live hypothesis can become one of the `best`.
///
/// `source`: the real positions of each sentence. Throws heed::error for options that contradict each other, and
/// unless `model` has one row per sentence.
template <class T>
std::vector<std::vector<translation<T>>> beam(decoding<T>& model, const lengths& source, const beam_options& how = {})
{
    return detail::beam_search<T>(model, source, how).run();
}

template <class T, class Model>
std::vector<std::vector<translation<T>>> beam(const Model& model, const source_batch& source,
                                              const beam_options& how = {})
{
    const auto running = decode<T>(model, source);
    return beam<T>(*running, source.real, how);
}

}  // namespace heed::inline HEED_TARGET::seq2seq
