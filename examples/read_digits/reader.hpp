// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/papers/captioning.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/own_model.hpp>
#include <heed/seq2seq/systems/xu2015.hpp>
#include <heed/train/adam.hpp>

#include "drawing.hpp"

namespace read_digits {

namespace xu = heed::papers::xu2015;
using heed::seq2seq::id_sentence;

/// Ids of the decoder's words: padding, begin and end as in heed::seq2seq::special_ids, then the digits.
inline constexpr std::uint32_t first_digit = 4, vocabulary = first_digit + 10;

/// A batch of pictures, with their numbers.
struct batch {
    heed::array<float, 3> pictures;  // [B,H·W,1], each with mean 0
    std::vector<id_sentence> numbers;

    heed::seq2seq::training_batch<float> words() const
    {
        std::vector<const id_sentence*> all;
        for (const id_sentence& each : numbers) all.push_back(&each);
        return heed::seq2seq::make_training_batch<float>(all, all);  // the source is not read
    }
};

inline batch make_batch(const std::vector<picture>& pictures)
{
    const std::size_t pixels = pictures.at(0).size.size();
    batch result{heed::array<float, 3>(heed::shape_of_rank<3>{pictures.size(), pixels, 1}), {}};
    float* to = result.pictures.data();
    for (const picture& each : pictures) {
        const float mean = std::accumulate(each.pixels.begin(), each.pixels.end(), 0.0f) / static_cast<float>(pixels);
        for (const float p : each.pixels) *to++ = 4 * (p - mean);  // contrasts of about 1/2 become about 2
        id_sentence number;
        for (const std::uint32_t digit : each.digits) number.push_back(first_digit + digit);
        result.numbers.push_back(std::move(number));
    }
    return result;
}

/// The result of reading a picture.
struct reading {
    std::vector<std::uint32_t> digits;
    std::vector<std::vector<float>> weights;  // for each digit, over the regions

    std::string text() const
    {
        std::string result;
        for (const std::uint32_t digit : digits) result += digit < 10 ? std::to_string(digit) : "?";
        return result;
    }
};

/// A model and its settings.
class reader {
public:
    using model_type = decltype(xu::reader<float>(1, {}, heed::normalize::softmax{}));

    xu::sizes sizes;
    bool hard = false;
    model_type model;

    reader(const xu::sizes& n, bool is_hard, std::uint64_t seed)
        : sizes(n), hard(is_hard), model(xu::reader<float>(seed, n, heed::normalize::softmax{}))
    {}

    heed::grid regions() const { return model.encoder.regions(); }

    /// Reads pictures greedily; hard attention attends to the most probable region.
    std::vector<reading> read(const batch& examples) const
    {
        const auto annotations = model.encoder.encode(examples.pictures);
        return hard ? read(model.decoder.with(heed::normalize::hard{.greedy = true}), annotations)
                    : read(model.decoder, annotations);
    }

    void save(const std::filesystem::path& path) const
    {
        heed::io::archive archive;
        archive.metadata = {{"format", format}, {"attention", hard ? "hard" : "soft"}};
        for (const auto& [name, size] : named(sizes)) archive.metadata[name] = std::to_string(*size);
        heed::io::put(archive, model);
        heed::io::save(path, archive);
    }

    static reader load(const std::filesystem::path& path)
    {
        const heed::io::archive archive = heed::io::load(path);
        const auto entry = [&](const std::string& name) -> const std::string& {
            const auto found = archive.metadata.find(name);
            if (found == archive.metadata.end())
                throw heed::error(path.string() + ": has no \"" + name + "\"; expected a file of read_digits");
            return found->second;
        };
        if (entry("format") != format) {
            throw heed::error(path.string() + ": its format is \"" + entry("format") + "\", but this program reads \"" +
                              format + "\"");
        }
        xu::sizes sizes = default_sizes();
        for (const auto& [name, size] : named(sizes)) {
            const std::string& text = entry(name);
            if (text.empty() || text.size() > 4 || text.find_first_not_of("0123456789") != std::string::npos)
                throw heed::error(path.string() + ": \"" + name + "\" must be a number of at most four digits");
            *size = std::stoul(text);
        }
        reader result(sizes, entry("attention") == "hard", 1);
        heed::io::take(archive, result.model);
        return result;
    }

    static xu::sizes default_sizes()
    {
        xu::sizes n;
        n.vocabulary = vocabulary;
        return n;
    }

private:
    static constexpr const char* format = "heed read digits 1";

    template <class Sizes, class Size = std::conditional_t<std::is_const_v<Sizes>, const std::size_t, std::size_t>>
    static std::array<std::pair<const char*, Size*>, 5> named(Sizes& n)
    {
        return {{{"height", &n.picture.height},
                 {"width", &n.picture.width},
                 {"embedding", &n.embedding},
                 {"hidden", &n.hidden},
                 {"alignment", &n.alignment}}};
    }

    template <class Decoder>
    static std::vector<reading> read(const Decoder& decoder, const heed::array<float, 3>& annotations)
    {
        heed::seq2seq::captioning<float, Decoder> steps(decoder, annotations);
        const heed::lengths real = steps.real();
        heed::seq2seq::decoding_by<float, decltype(steps)> at_work(steps, real.batch());
        heed::seq2seq::greedy_options how;
        how.at_most = {0, 12};
        how.with_weights = true;
        std::vector<reading> all;
        for (const auto& found : heed::seq2seq::greedy<float>(at_work, real, how)) {
            reading each;
            for (std::size_t i = 0; i < found.words.size(); ++i) {
                each.digits.push_back(found.words[i] - first_digit);  // above 9 if it is not a digit
                each.weights.push_back(found.weights[i]);
            }
            all.push_back(std::move(each));
        }
        return all;
    }
};

/// Training options. Hard attention learns as in Xu et al. 2015, §4.2: half of the batches use soft attention, and the
/// baseline is a running mean of the cost, here of numbers of equal length.
struct recipe {
    double rate = 1e-3;
    double doubly_stochastic = 0;  // λ, eq. 14
    double reward = 0.2;           // λ_r, the weight of the score function, §4.1
    std::uint64_t seed = 1;
};

/// Σ each.
auto total(const heed::tensor auto& each) { return heed::ops::dot(each, heed::filled<float, 2>(each.shape(), 1.0f)); }

/// Trains a reader, which must outlive it.
class learner {
public:
    learner(reader& model, const recipe& how) : learns_(model), how_(how) {}

    /// One training step on numbers of one length; returns the mean of −log p of a number.
    double learn(const batch& examples, double rate)
    {
        tape_.clear();
        const auto lifted = heed::ad::lift(tape_, learns_.model);
        const auto annotations = lifted.encoder.encode(examples.pictures);
        const auto words = examples.words();
        const std::uint64_t draw = heed::mix(how_.seed ^ heed::mix(++steps_));
        const std::size_t B = examples.numbers.size();
        double cost = 0;
        const auto go_back = [&](const auto& told, const auto& objective) {
            for (std::size_t i = 0; i < told.costs.size(); ++i) cost += static_cast<double>(told.costs.data()[i]);
            tape_.backward(heed::ops::scale(objective, 1.0 / static_cast<double>(B)));
        };
        if (learns_.hard && draw % 2 == 0) {
            const auto told = lifted.decoder.with(heed::normalize::hard{.seed = draw}).follow(annotations, words);
            const auto term = heed::normalize::score_function_term(told.state.normalize, excess(told.costs));
            go_back(told, heed::ops::add(total(told.costs), heed::ops::scale(term, how_.reward)));
        } else {
            const auto told = lifted.decoder.follow(annotations, words);
            auto objective = total(told.costs);
            if (how_.doubly_stochastic > 0) {
                objective = heed::ops::add(
                    objective, xu::doubly_stochastic(told.weights, heed::lengths::full(B, learns_.regions().size()),
                                                     words.target_lengths(), how_.doubly_stochastic));
            }
            go_back(told, objective);
        }
        optimizer_.settings.rate = rate;
        optimizer_.step(learns_.model, lifted, tape_, 1.0);
        return cost / static_cast<double>(B);
    }

private:
    /// The cost of each row minus the running mean of these costs, which is then updated.
    heed::array<float, 1> excess(const heed::tensor auto& each)
    {
        const auto [S, B] = each.shape();
        heed::array<float, 1> result = heed::filled<float, 1>(heed::shape_of_rank<1>{B}, 0.0f);
        double mean = 0;
        for (std::size_t i = 0; i < S * B; ++i) {
            result(i % B) += each.data()[i];
            mean += static_cast<double>(each.data()[i]) / static_cast<double>(B);
        }
        if (baselines_.size() <= S) baselines_.resize(S + 1, -1.0);
        double& baseline = baselines_[S];
        if (baseline < 0) baseline = mean;
        for (float& x : result) x -= static_cast<float>(baseline);
        baseline = 0.9 * baseline + 0.1 * mean;
        return result;
    }

    reader& learns_;
    recipe how_;
    heed::ad::tape<float> tape_;
    heed::train::adam<float> optimizer_;
    std::vector<double> baselines_;  // by length
    std::uint64_t steps_ = 0;
};

}  // namespace read_digits
