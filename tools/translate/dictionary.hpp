// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/seq2seq/candidates.hpp>
#include <heed_kit/text/bpe.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_translator/language.hpp>

#include "library.hpp"

namespace translation {

/// A line of a dictionary, without the line break.
inline std::string dictionary_text(const std::string& source, const std::string& target, double probability)
{
    return fmt::format("{} {} {:.6g}", source, target, probability);
}

/// A dictionary file: "source target probability" on each line; without probabilities, the translations of a word are
/// listed best first.
class dictionary {
public:
    explicit dictionary(const std::filesystem::path& path)
    {
        std::ifstream file = heed::text::open_text(path);
        heed::text::sentence_reader lines(file, path.string());
        for (sentence fields; lines.next(fields);) {
            double probability = 1;
            bool good = fields.size() == 2 || fields.size() == 3;
            if (fields.size() == 3) {
                const std::string& text = fields[2];
                const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), probability);
                good = problem == std::errc{} && end == text.data() + text.size() && probability >= 0 &&
                       std::isfinite(probability);
            }
            if (!good)
                throw heed::error(lines.where() + ": expected a source word, a target word and "
                                                  "optionally a probability");
            of_[fields[0]].emplace_back(probability, fields[1]);
        }
        if (of_.empty()) throw heed::error(path.string() + ": is empty; a dictionary has at least one line");
        for (auto& [word, known] : of_) {
            std::stable_sort(known.begin(), known.end(),
                             [](const auto& a, const auto& b) { return a.first > b.first; });
        }
    }

    /// The best translation of each word.
    std::unordered_map<std::string, std::string> best() const
    {
        std::unordered_map<std::string, std::string> result;
        for (const auto& [word, known] : of_) result.emplace(word, known.front().second);
        return result;
    }

    /// The translations of each source word of a model, among its target words; best first.
    std::vector<id_sentence> meanings(const language& source, const language& target) const
    {
        std::vector<id_sentence> result(source.vocabulary.size());
        for (const auto& [word, known] : of_) {
            if (!source.vocabulary.contains(word)) continue;
            auto& to = result[source.vocabulary.id(word)];
            for (const auto& [probability, meaning] : known) {
                if (target.vocabulary.contains(meaning)) to.push_back(target.vocabulary.id(meaning));
            }
        }
        return result;
    }

    /// Throws heed::error for a dictionary of whole words if the model uses subwords: it would apply only to words that
    /// the model does not split. `instead`: advice at the end of the message.
    void require_tokens(const language& source, const language& target, const std::filesystem::path& path,
                        const std::string& instead) const
    {
        std::string word, pieces;  // an example of a split word
        const auto is_piece = [&](const language& side, const std::string& token) {
            if (token.ends_with(heed::text::bpe_separator)) return true;
            if (side.raw && side.vocabulary.contains(token)) return true;
            if (const sentence parts = word.empty() ? side.tokens({token}) : sentence(); parts.size() > 1) {
                word = token;
                pieces = heed::text::join(parts);
            }
            return false;
        };
        for (const auto& [from, known] : of_) {
            if (is_piece(source, from)) return;
            for (const auto& [probability, to] : known) {
                if (is_piece(target, to)) return;
            }
        }
        if (!word.empty()) {
            throw heed::error(fmt::format("{}: is a dictionary of words, but the tokens of this model are "
                                          "subwords: \"{}\" is \"{}\"; {}",
                                          path.string(), word, pieces, instead));
        }
    }

    /// The words that a model may write: the `frequent` most frequent words, and `per_word` translations of each source
    /// word.
    heed::seq2seq::candidate_lists candidates(std::size_t frequent, std::size_t per_word, const language& source,
                                              const language& target) const
    {
        auto known = meanings(source, target);
        if (std::all_of(known.begin(), known.end(), [](const auto& each) { return each.empty(); }))
            throw heed::error(
                std::string("--candidates: no word of the dictionary is in the model's vocabulary") +
                (source.in_pieces() ? "; build one of subwords with `translate dictionary --model`" : ""));
        return {frequent, per_word, std::move(known)};
    }

private:
    std::unordered_map<std::string, std::vector<std::pair<double, std::string>>> of_;
};

}  // namespace translation
