// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/seq2seq/decoding.hpp>

namespace heed::inline HEED_TARGET::seq2seq {

/// Ensembles of models that decode together.
///
///     arithmetic   p = 1/M Σ_m p_m                         a word with high probability in one model survives
///     geometric    p ∝ Π_m p_m^{1/M}                       a word with probability 0 in one model is ruled out
///
/// The models share the target vocabulary. Weights are averaged over the models that have attention.
enum class averaging { arithmetic, geometric };

/// Decodes with several models. Throws heed::error if there are none, or if their numbers of sentences or words differ.
template <class T>
class ensemble final : public decoding<T> {
public:
    explicit ensemble(std::vector<std::unique_ptr<decoding<T>>> members, averaging how = averaging::arithmetic)
        : members_(std::move(members)), how_(how)
    {
        if (members_.empty()) throw error("ensemble: there are no models; give at least one");
        for (const auto& member : members_) {
            if (member->rows() != rows()) {
                throw error("ensemble: the models decode " + std::to_string(rows()) + " and " +
                            std::to_string(member->rows()) + " sentences; they must share the batch");
            }
        }
        require_one_vocabulary();
    }

    std::size_t rows() const override { return members_.front()->rows(); }
    std::size_t vocabulary() const override { return members_.front()->vocabulary(); }

    void step(const word_ids& previous) override
    {
        for (const auto& member : members_) member->step(previous);
        mean_.clear();
    }

    void propose(std::size_t most, std::span<const std::uint32_t> also, candidates<T>& into) override
    {
        if (members_.size() == 1) return members_.front()->propose(most, also, into);
        const std::size_t R = rows(), V = vocabulary();
        kernels::mean_softmax_top(R, V, all_logits(), how_ == averaging::geometric,
                                  into.of_rows(R, std::min(most, V), only_.places(also, R)));
        only_.name(into.words);
    }

    /// The joint log-probabilities, for nested ensembles.
    tensor_view<const T, 2> logits() override
    {
        const std::size_t R = rows(), V = vocabulary();
        if (members_.size() == 1) return members_.front()->logits();
        if (mean_.empty()) {
            candidates<T> all;
            kernels::mean_softmax_top(R, V, all_logits(), how_ == averaging::geometric, all.of_rows(R, V, nullptr));
            mean_.resize(R * V);
            for (std::size_t i = 0; i < R * V; ++i) {
                if (all.words[i] < V) mean_[i / V * V + all.words[i]] = all.log_p[i];
            }
        }
        return {mean_.data(), {R, V}};
    }

    bool has_attention() const override
    {
        return std::any_of(members_.begin(), members_.end(),
                           [](const auto& member) { return member->has_attention(); });
    }

    void weights(std::size_t row, std::vector<T>& to) const override
    {
        to.clear();
        std::vector<T> one;
        T looking = 0;
        for (const auto& member : members_) {
            if (!member->has_attention()) continue;
            member->weights(row, one);
            to.resize(one.size(), T(0));
            for (std::size_t t = 0; t < one.size(); ++t) to[t] += one[t];
            looking += T(1);
        }
        for (T& weight : to) weight /= looking;
    }

    void expect(std::size_t rows_of_sentence) override
    {
        for (const auto& member : members_) member->expect(rows_of_sentence);
    }

    void select(std::span<const std::size_t> rows) override
    {
        for (const auto& member : members_) member->select(rows);
    }

    void restrict_to(std::vector<std::uint32_t> words) override
    {
        for (const auto& member : members_) member->restrict_to(words);
        only_.words = std::move(words);
    }

private:
    void require_one_vocabulary() const
    {
        for (const auto& member : members_) {
            if (member->vocabulary() != vocabulary()) {
                throw error("ensemble: models of " + std::to_string(vocabulary()) + " and " +
                            std::to_string(member->vocabulary()) +
                            " target words; they must share the target vocabulary");
            }
        }
    }

    std::vector<const T*> all_logits() const
    {
        require_one_vocabulary();  // some models know their vocabulary only after the first step
        std::vector<const T*> all;
        for (const auto& member : members_) all.push_back(member->logits().data);
        return all;
    }

    std::vector<std::unique_ptr<decoding<T>>> members_;
    averaging how_;
    detail::word_list only_;
    std::vector<T> mean_;
};

}  // namespace heed::inline HEED_TARGET::seq2seq
