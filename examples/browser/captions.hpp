// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/packed.hpp>
#include <heed/seq2seq/systems/sankaran2016.hpp>
#include <heed_translator/language.hpp>

#include "learner.hpp"

/// A translator trained by `translate train --system sankaran`, for translation in a page.
namespace browser {

/// User input converted to the format of Multi30k's tokenized text: lower case, separate punctuation, &apos; for '.
inline std::vector<std::string> caption_words(const std::string& text)
{
    std::string apart;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '.' || c == ',' || c == '!' || c == '?' || c == ';' || c == ':' || c == '(' || c == ')') {
            apart += std::string(" ") + c + ' ';
        } else if (c == '\'') {
            apart += " &apos;";
        } else if (c == '"') {
            apart += " &quot; ";
        } else {
            apart += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
    }
    return heed::text::split(apart);
}

struct caption_model {
    std::string attention;  // additive or temporal
    std::size_t embedding = 0, hidden = 0, alignment = 0;
    heed::translator::language source, target;
};

/// A language from the texts of a model file.
inline heed::translator::language language_of(const std::string& vocabulary, const std::string& codes)
{
    heed::translator::language side;
    side.vocabulary = heed::text::vocabulary::from_text(vocabulary);
    if (!codes.empty()) side.splitting.emplace(heed::text::bpe_codes::from_text(codes, "codes"));
    return side;
}

/// A translator with any attention, with parameters to be filled in later.
class captions {
public:
    explicit captions(caption_model about) : about_(std::move(about)) {}
    captions(const captions&) = delete;
    captions& operator=(const captions&) = delete;
    virtual ~captions() = default;

    /// The parameter with this name. Throws heed::error if it does not exist, or has a different size.
    float* room(const std::string& name, std::size_t size)
    {
        for (const auto& each : numbers()) {
            if (each.name == name && each.numbers.size() == size) return each.numbers.data;
        }
        throw heed::error("the model has no \"" + name + "\" of " + std::to_string(size) + " numbers");
    }
    virtual std::size_t parameter_count() = 0;

    /// The best translation of a beam of this width: words, and their weights over the words of the source.
    looked translate(const std::vector<std::string>& words, std::size_t width)
    {
        const auto ids = about_.source.encode(words);
        const heed::seq2seq::id_sentence* one[] = {&ids};
        heed::seq2seq::beam_options how;
        how.width = width;
        how.with_weights = true;
        const auto found = search(heed::seq2seq::make_source(one), how);
        const auto read = about_.target.read(found.words);
        const auto pieces = about_.source.tokens_of_words(words);
        looked result{words, read.words, {}};
        result.source.push_back("</s>");
        // Weights are summed over the subwords of a source word and averaged over those of a target word.
        for (const auto& rows : read.tokens) {
            for (const auto& columns : pieces) {
                float sum = 0;
                for (const std::size_t row : rows) {
                    for (const std::size_t column : columns) sum += found.weights[row][column];
                }
                result.weights.push_back(sum / static_cast<float>(rows.size()));
            }
        }
        return result;
    }

protected:
    const caption_model& about() const { return about_; }
    virtual std::vector<heed::named_numbers<float>> numbers() = 0;
    virtual heed::seq2seq::translation<float> search(const heed::seq2seq::source_batch& source,
                                                     const heed::seq2seq::beam_options& how) = 0;

private:
    caption_model about_;
};

template <class Model>
class captions_of final : public captions {
public:
    captions_of(caption_model about, Model model) : captions(std::move(about)), model_(std::move(model)) {}

    std::size_t parameter_count() override
    {
        std::size_t count = 0;
        for (const auto& each : numbers()) count += each.numbers.size();
        return count;
    }

private:
    std::vector<heed::named_numbers<float>> numbers() override
    {
        packed_.reset();
        return heed::numbers_of<float>(model_);
    }
    heed::seq2seq::translation<float> search(const heed::seq2seq::source_batch& source,
                                             const heed::seq2seq::beam_options& how) override
    {
        if (!packed_) packed_.emplace(model_);
        return heed::seq2seq::beam<float>(*packed_, source, how)[0][0];
    }

    Model model_;
    std::optional<heed::seq2seq::packed<float, Model>> packed_;
};

/// Throws heed::error for an unknown attention.
inline std::unique_ptr<captions> make_captions(caption_model about)
{
    heed::seq2seq::sizes n;
    n.source_vocabulary = about.source.vocabulary.size();
    n.target_vocabulary = about.target.vocabulary.size();
    n.embedding = about.embedding;
    n.hidden = about.hidden;
    n.alignment = about.alignment;
    const auto with = [&](const auto& attention) -> std::unique_ptr<captions> {
        auto model = heed::papers::sankaran2016::translator<float>(1, n, attention);
        return std::make_unique<captions_of<decltype(model)>>(std::move(about), std::move(model));
    };
    if (about.attention == "additive") return with(heed::seq2seq::attentions::additive_factory{});
    if (about.attention == "temporal") return with(heed::seq2seq::attentions::temporal_factory{});
    throw heed::error("captions support additive and temporal attention, not \"" + about.attention + "\"");
}

}  // namespace browser
