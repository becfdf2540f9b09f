// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/papers/sentence_pairs.hpp>
#include <heed/train/adam.hpp>

#include "corpus.hpp"

namespace sentence_pairs {

namespace yin = heed::papers::yin2016;

/// A type-erased model of any form.
class model {
public:
    virtual ~model() = default;

    /// One training step; returns Σ −log p over the batch.
    virtual double learn(const heed::pairs::batch<float>& batch, double rate, double dropout,
                         heed::random_source& random) = 0;
    virtual std::vector<float> probabilities(const heed::pairs::batch<float>& batch) const = 0;
    virtual std::size_t parameters() const = 0;
    virtual void put(heed::io::archive& to) const = 0;
    virtual void take(const heed::io::archive& from) = 0;
};

template <class Matcher>
class model_of final : public model {
public:
    explicit model_of(Matcher matcher) : matcher_(std::move(matcher)) {}

    double learn(const heed::pairs::batch<float>& batch, double rate, double dropout,
                 heed::random_source& random) override
    {
        tape_.clear();
        const auto lifted = heed::ad::lift(tape_, matcher_);
        const auto loss = lifted.loss(batch, heed::nn::dropout{dropout, &random});
        tape_.backward(heed::ops::scale(loss, 1.0 / static_cast<double>(batch.size())));
        optimizer_.settings.rate = rate;
        optimizer_.step(matcher_, lifted, tape_, 1.0);
        return static_cast<double>(*loss.data());
    }
    std::vector<float> probabilities(const heed::pairs::batch<float>& batch) const override
    {
        return matcher_.probabilities(batch);
    }
    std::size_t parameters() const override { return heed::parameter_count(matcher_); }
    void put(heed::io::archive& to) const override { heed::io::put(to, matcher_); }
    void take(const heed::io::archive& from) override { heed::io::take(from, matcher_); }

private:
    Matcher matcher_;
    heed::ad::tape<float> tape_;
    heed::train::adam<float> optimizer_;
};

inline std::vector<std::string> forms() { return {"bcnn", "abcnn1", "abcnn2", "abcnn3"}; }

inline std::unique_ptr<model> make_model(const std::string& form, const yin::sizes& sizes, std::uint64_t seed)
{
    const auto with = [&](const auto& block) -> std::unique_ptr<model> {
        auto matcher = yin::matcher<float>(seed, sizes, block);
        return std::make_unique<model_of<decltype(matcher)>>(std::move(matcher));
    };
    if (form == "bcnn") return with(yin::bcnn_factory{});
    if (form == "abcnn1") return with(yin::abcnn1_factory{});
    if (form == "abcnn2") return with(yin::abcnn2_factory{});
    if (form == "abcnn3") return with(yin::abcnn3_factory{});
    throw heed::error("there is no form \"" + form + "\" of ABCNN; choose bcnn, abcnn1, abcnn2 or abcnn3");
}

/// The sizes stored in a file, by name; for `sizes` or `const sizes`.
template <class Sizes>
auto named(Sizes& n)
{
    return std::map<std::string, decltype(&n.maps)>{{"embedding", &n.embedding},
                                                    {"maps", &n.maps},
                                                    {"width", &n.width},
                                                    {"blocks", &n.blocks},
                                                    {"longest", &n.longest}};
}

/// A trained model in one file: weights, vocabularies, form and sizes.
struct matcher_file {
    std::string form = "abcnn3";
    yin::sizes sizes;
    languages words;
    std::unique_ptr<sentence_pairs::model> model;

    static constexpr const char* format = "heed sentence pairs 1";

    void make(std::uint64_t seed)
    {
        sizes.first_vocabulary = words.first.size();
        sizes.second_vocabulary = words.second.size();
        words.longest = sizes.longest;
        model = make_model(form, sizes, seed);
    }

    void save(const std::filesystem::path& path) const
    {
        heed::io::archive archive;
        archive.metadata = {{"format", format},
                            {"form", form},
                            {"vocabulary.first", words.first.to_text()},
                            {"vocabulary.second", words.second.to_text()}};
        for (const auto& [name, size] : named(sizes)) archive.metadata[name] = std::to_string(*size);
        model->put(archive);
        heed::io::save(path, archive);
    }

    static matcher_file load(const std::filesystem::path& path)
    {
        const heed::io::archive archive = heed::io::load(path);
        const auto entry = [&](const std::string& name) -> const std::string& {
            const auto found = archive.metadata.find(name);
            if (found == archive.metadata.end()) {
                throw heed::error(path.string() + ": has no \"" + name + "\"; expected a file of sentence_pairs");
            }
            return found->second;
        };
        if (entry("format") != format) {
            throw heed::error(path.string() + ": its format is \"" + entry("format") + "\", but this program reads \"" +
                              format + "\"");
        }
        matcher_file file;
        file.form = entry("form");
        file.words.first = heed::text::vocabulary::from_text(entry("vocabulary.first"));
        file.words.second = heed::text::vocabulary::from_text(entry("vocabulary.second"));
        for (const auto& [name, size] : named(file.sizes)) {
            const std::string& text = entry(name);
            if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos) {
                throw heed::error(path.string() + ": \"" + name + "\" is \"" + heed::text::printable(text) +
                                  "\"; it must be a number of at most four digits");
            }
            *size = std::stoul(text);
        }
        file.make(1);
        file.model->take(archive);
        return file;
    }
};

}  // namespace sentence_pairs
