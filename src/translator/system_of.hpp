// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/combine/elementwise_sum.hpp>
#include <heed/combine/grouped_sum.hpp>
#include <heed/io/weights.hpp>
#include <heed/seq2seq/decoding.hpp>
#include <heed/seq2seq/packed.hpp>

#include "choice.hpp"
#include "kernels.hpp"

/// Include this only in the file of one model: it compiles the model.
namespace heed::translator {

// The parts of a model that are compiled in separate files: see src/CMakeLists.txt.

/// system::record of a model.
template <class Model>
float record_step(heed::ad::tape<float>& on, const Model& of, const training_step_input& one, const options& how,
                  const heed::nn::dropout& drop, system::variables& lifted, system::gradient_exchange* others);

/// A model prepared for searching.
template <class Model>
using packed_of = heed::seq2seq::packed<float, Model>;

template <class Model>
std::shared_ptr<const packed_of<Model>> pack_weights(const Model& model, heed::seq2seq::weight_numbers numbers);
/// `packed` is this model, or null.
template <class Model>
std::unique_ptr<heed::seq2seq::decoding<float>> begin_search(const Model& model, const packed_of<Model>* packed,
                                                             const heed::seq2seq::source_batch& sentences);

namespace detail {

/// Whether the result of this attention has a single weight for each source position: not fixed_context, and no weights
/// per dimension or group of dimensions.
template <class Attention>
inline constexpr bool weighs_each_position = false;
template <class Attention>
    requires requires(const Attention& attention) { attention.combine; }
inline constexpr bool weighs_each_position<Attention> = requires(const Attention& attention)
{
    requires !std::is_same_v<std::remove_cvref_t<decltype(attention.combine)>, heed::combine::elementwise_sum>;
    requires !std::is_same_v<std::remove_cvref_t<decltype(attention.combine)>, heed::combine::grouped_sum>;
};

}  // namespace detail

/// As above, for a model. The models without `decoder.attention` average over heads and layers.
template <class Model>
inline constexpr bool weighs_positions = true;
template <class Model>
    requires requires(const Model& model) { model.decoder.attention; }
inline constexpr bool weighs_positions<Model> =
    detail::weighs_each_position<std::remove_cvref_t<decltype(std::declval<const Model&>().decoder.attention)>>;

/// Wraps a model as a system: any model with the training interface of heed::seq2seq::translator, and decoding.
template <class Model>
class system_of final : public system {
public:
    system_of(Model model, const options& how) : system(how), model_(std::move(model)) {}

    double loss(const batch& examples) const override { return static_cast<double>(model_.loss(examples).data()[0]); }

    std::unique_ptr<heed::seq2seq::decoding<float>> decode(const heed::seq2seq::source_batch& sentences) const override
    {
        {
            const std::lock_guard once(packing_);
            if (!packed_) packed_ = pack_weights(model_, numbers_of_weights());  // shared by all batches
        }
        return begin_search<Model>(model_, packed_.get(), sentences);
    }

    bool has_attention() const override
    {
        const heed::seq2seq::id_sentence empty;
        const auto one = heed::seq2seq::make_source(std::vector<const heed::seq2seq::id_sentence*>{&empty});
        return begin_search<Model>(model_, nullptr, one)->has_attention();
    }

    bool has_position_weights() const override { return weighs_positions<Model>; }

    std::vector<std::vector<float>> weights_by_dimension(const heed::seq2seq::id_sentence& source,
                                                         const heed::seq2seq::id_sentence& target) const override
    {
        std::vector<std::vector<float>> rows;
        if constexpr (has_dimensions) {
            const heed::seq2seq::special_ids special;
            const auto one = heed::seq2seq::make_source(std::vector<const heed::seq2seq::id_sentence*>{&source});
            const auto start = model_.open(one);
            auto state = start.state;
            for (std::size_t i = 0; i <= target.size(); ++i) {
                const heed::word_ids previous(1, 1, i == 0 ? special.begin : target[i - 1]);
                auto next = model_.advance(start.memory, state, previous);
                const auto weights = heed::view_of(next.seen.weights);  // [1,T,D]
                rows.emplace_back(weights.data, weights.data + weights.size());
                state = std::move(next.state);
            }
        }
        return rows;
    }

    numbers parameters() override
    {
        packed_.reset();
        return heed::numbers_of<float>(model_);
    }
    constant_numbers parameters() const override { return heed::numbers_of<const float>(model_); }

    void put(heed::io::archive& to) const override { heed::io::put(to, model_); }
    void take(const heed::io::archive& from) override
    {
        packed_.reset();
        heed::io::take(from, model_);
    }

protected:
    float record(heed::ad::tape<float>& on, const training_step_input& one, const options& how,
                 const heed::nn::dropout& drop, variables& lifted, gradient_exchange* others) override
    {
        return record_step(on, model_, one, how, drop, lifted, others);
    }

private:
    heed::seq2seq::weight_numbers numbers_of_weights() const
    {
        using heed::seq2seq::weight_numbers;
        return prefers_int8() && heed::kernels::int8_is_fast() ? weight_numbers::int8 : weight_numbers::full;
    }

    /// Whether the context is a sum with a weight per dimension (heed::combine::elementwise_sum).
    static constexpr bool has_dimensions = requires(const Model& model)
    {
        requires std::is_same_v<std::remove_cvref_t<decltype(model.decoder.attention.combine)>,
                                heed::combine::elementwise_sum>;
    };

    Model model_;
    mutable std::mutex packing_;
    mutable std::shared_ptr<const packed_of<Model>> packed_;  // the model prepared for searching
};

/// The result of Maker::make(options, source words, target words).
template <class Maker>
using model_of = decltype(Maker::make(std::declval<const options&>(), std::size_t{}, std::size_t{}));

template <class Maker>
std::unique_ptr<system> make(const options& how, std::size_t source_words, std::size_t target_words)
{
    return std::make_unique<system_of<model_of<Maker>>>(Maker::make(how, source_words, target_words), how);
}

}  // namespace heed::translator
