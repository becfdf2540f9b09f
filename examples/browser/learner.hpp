// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/packed.hpp>
#include <heed/seq2seq/systems/luong2015.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>
#include <heed_kit/text/sentence.hpp>
#include <heed_kit/text/vocabulary.hpp>

#include "../support/number_words.hpp"

/// A translator of number words that is small enough for training in a page, with a choice of attentions.
namespace browser {

/// Words, and their weights over the words of the source.
struct looked {
    std::vector<std::string> source, words;  // both with the end word
    std::vector<float> weights;              // [words][source]; empty without attention
};

struct settings {
    std::uint64_t seed = 1;
    std::size_t pairs = 12000, held_out = 200;
    std::size_t embedding = 32, hidden = 64, alignment = 32, batch = 32;
    double rate = 4e-3, last_rate = 1e-3;  // Adam's learning rate, decreasing linearly over `updates`
    std::size_t updates = 600;
    double dropout = 0.1, clip = 1;
};

/// English and German number words, as words and as ids.
struct lessons {
    numbers::split data;
    heed::text::vocabulary english, german;
    std::vector<heed::seq2seq::id_sentence> sources, targets;  // examples from data.train

    explicit lessons(const settings& how) : data(numbers::sample(how.seed, how.pairs, 0, how.held_out))
    {
        std::vector<heed::text::sentence> from, to;
        for (const auto& each : data.train) {
            from.push_back(each.english);
            to.push_back(each.german);
        }
        english = heed::text::vocabulary::build(from);
        german = heed::text::vocabulary::build(to);
        for (std::size_t i = 0; i < from.size(); ++i) {
            sources.push_back(english.encode(from[i]));
            targets.push_back(german.encode(to[i]));
        }
    }
};

/// A model in training, with any attention.
class learner {
public:
    explicit learner(const settings& how) : how_(how), lessons_(how) {}
    learner(const learner&) = delete;
    learner& operator=(const learner&) = delete;
    virtual ~learner() = default;

    const settings& how() const { return how_; }
    const lessons& text() const { return lessons_; }
    std::size_t updates() const { return updates_; }
    bool finished() const { return updates_ >= how_.updates; }

    /// One update; returns the loss of its batch before the update, in nats per word.
    double learn()
    {
        if (next_ == batches_.size()) {
            batches_ = heed::seq2seq::shuffled_batches(lessons_.sources, lessons_.targets, how_.batch,
                                                       heed::mix(how_.seed ^ heed::mix(epoch_++)));
            next_ = 0;
        }
        std::vector<const heed::seq2seq::id_sentence*> sources, targets;
        for (const std::size_t i : batches_[next_]) {
            sources.push_back(&lessons_.sources[i]);
            targets.push_back(&lessons_.targets[i]);
        }
        ++next_;
        auto batch = heed::seq2seq::make_training_batch<float>(sources, targets);
        for (float& each : batch.targets.weights) each /= static_cast<float>(batch.target_words);
        const double done = static_cast<double>(updates_++) / static_cast<double>(how_.updates);
        const double rate = how_.rate + (how_.last_rate - how_.rate) * (done < 1 ? done : 1);
        return update(batch, rate);
    }

    /// Translates English words; returns the German words and their weights. Unknown words are read as the unknown
    /// word.
    looked translate(const std::vector<std::string>& words) const
    {
        const auto ids = lessons_.english.encode(words);
        const heed::seq2seq::id_sentence* one[] = {&ids};
        const auto found = search(heed::seq2seq::make_source(one));
        looked result{with_end(words), with_end(lessons_.german.decode(found.words)), {}};
        for (const auto& row : found.weights) result.weights.insert(result.weights.end(), row.begin(), row.end());
        return result;
    }

    /// The attention in forced decoding of the reference translation of a number.
    looked align(std::uint32_t number) const
    {
        const numbers::pair right = numbers::say(number);
        const auto from = lessons_.english.encode(right.english), to = lessons_.german.encode(right.german);
        const heed::seq2seq::id_sentence *source[] = {&from}, *target[] = {&to};
        looked result{with_end(right.english), with_end(right.german), {}};
        for (const auto& row : teacher_force(heed::seq2seq::make_source(source), target).weights)
            result.weights.insert(result.weights.end(), row.begin(), row.end());
        return result;
    }

    /// The share of exact translations among the first held-out numbers.
    double exact(std::size_t count) const
    {
        const std::size_t n = count < lessons_.data.test.size() ? count : lessons_.data.test.size();
        std::size_t right = 0;
        for (std::size_t i = 0; i < n; ++i) {
            auto words = translate(lessons_.data.test[i].english).words;
            words.pop_back();
            right += words == lessons_.data.test[i].german ? 1 : 0;
        }
        return n == 0 ? 0 : static_cast<double>(right) / static_cast<double>(n);
    }

    virtual std::size_t parameter_count() const = 0;

protected:
    virtual double update(const heed::seq2seq::training_batch<float>& batch, double rate) = 0;
    virtual heed::seq2seq::translation<float> search(const heed::seq2seq::source_batch& source) const = 0;
    virtual heed::seq2seq::forced_decoding<float>
    teacher_force(const heed::seq2seq::source_batch& source,
                  std::span<const heed::seq2seq::id_sentence* const> targets) const = 0;

private:
    static std::vector<std::string> with_end(std::vector<std::string> words)
    {
        words.push_back("</s>");
        return words;
    }

    settings how_;
    lessons lessons_;
    std::vector<std::vector<std::size_t>> batches_;
    std::size_t next_ = 0, updates_ = 0;
    std::uint64_t epoch_ = 0;
};

/// The learner with a model of this type.
template <class Model>
class learner_of final : public learner {
public:
    learner_of(const settings& how, const auto& make) : learner(how), model_(make(sizes_of(how, text()))) {}

    std::size_t parameter_count() const override
    {
        std::size_t count = 0;
        for (const auto& each : heed::numbers_of<const float>(model_)) count += each.numbers.size();
        return count;
    }

private:
    static heed::seq2seq::sizes sizes_of(const settings& how, const lessons& text)
    {
        heed::seq2seq::sizes n;
        n.source_vocabulary = text.english.size();
        n.target_vocabulary = text.german.size();
        n.embedding = how.embedding;
        n.hidden = how.hidden;
        n.alignment = how.alignment;
        return n;
    }

    double update(const heed::seq2seq::training_batch<float>& batch, double rate) override
    {
        tape_.clear();
        const auto lifted = heed::ad::lift(tape_, model_);
        const auto loss = lifted.loss(batch, 0.0f, heed::nn::dropout{how().dropout, &random_});
        tape_.backward(loss);
        optimizer_.settings.rate = rate;
        optimizer_.step(model_, lifted, tape_, how().clip);
        return static_cast<double>(*loss.data());
    }

    heed::seq2seq::translation<float> search(const heed::seq2seq::source_batch& source) const override
    {
        return heed::seq2seq::greedy<float>(model_, source, {.with_weights = true})[0];
    }

    heed::seq2seq::forced_decoding<float>
    teacher_force(const heed::seq2seq::source_batch& source,
                  std::span<const heed::seq2seq::id_sentence* const> targets) const override
    {
        return heed::seq2seq::force<float>(model_, source, targets)[0];
    }

    Model model_;
    heed::ad::tape<float> tape_;
    heed::train::adam<float> optimizer_;
    heed::random_source random_{2, 0};
};

/// User input as English number words: digits are converted to words, and "and", commas and hyphens are omitted. Throws
/// heed::error for a number not covered by the grammar.
inline std::vector<std::string> typed_words(const std::string& text)
{
    std::vector<std::string> words(1);
    for (const char c : text) {
        if (c == ' ' || c == '-' || c == '\t' || c == '\n') {
            words.emplace_back();
        } else if (c != ',' && c != '.') {
            words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
        }
    }
    std::vector<std::string> result;
    for (const std::string& word : words) {
        if (word.empty() || word == "and") continue;
        if (word.find_first_not_of("0123456789") == std::string::npos) {
            if (word.size() > 6) throw heed::error("only numbers from 0 to 999999 are supported");
            const auto said = numbers::say(static_cast<std::uint32_t>(std::stoul(word))).english;
            result.insert(result.end(), said.begin(), said.end());
        } else {
            result.push_back(word);
        }
    }
    return result;
}

/// The available attentions by name; the first is the one of the paper.
inline const std::vector<std::string>& attentions()
{
    static const std::vector<std::string> names{"additive", "general", "temporal", "local-p", "none"};
    return names;
}

/// A new RNNsearch with this attention. Throws heed::error for names not in `attentions`.
inline std::unique_ptr<learner> make_learner(const std::string& attention, const settings& how = {})
{
    using heed::seq2seq::sizes;
    namespace made = heed::seq2seq::attentions;
    namespace luong = heed::papers::luong2015;
    using heed::seq2seq::attention_factory;
    const auto with = [&](const auto& factory) -> std::unique_ptr<learner> {
        const auto make = [&](const sizes& n) { return heed::seq2seq::make_translator<float>(how.seed, n, factory); };
        return std::make_unique<learner_of<decltype(make(sizes{}))>>(how, make);
    };
    if (attention == "additive") return with(made::additive_factory{});
    if (attention == "general") return with(attention_factory{luong::general_factory{}});
    if (attention == "temporal") return with(made::temporal_factory{});
    if (attention == "local-p") {
        return with(attention_factory{made::additive_score_factory{}, luong::local_p_factory{4}});
    }
    if (attention == "none") return with(heed::seq2seq::fixed_context{});
    throw heed::error("there is no attention \"" + attention + "\"");
}

}  // namespace browser
