// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>

namespace heed::translator {

/// The metadata of a file: names and values.
using metadata = std::map<std::string, std::string>;

/// The value of this name. Throws heed::error if it is missing.
inline const std::string& entry(const metadata& from, const std::string& name)
{
    const auto found = from.find(name);
    if (found == from.end()) throw heed::error("not a model of `translate train`: its metadata has no " + name);
    return found->second;
}

/// The format of a model file's metadata.
inline constexpr const char* format_name = "heed.translate/2";
/// The first format, with fewer options.
inline constexpr const char* first_format_name = "heed.translate/1";

inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(bool value) { return value ? "1" : "0"; }
inline std::string text_of(std::uint64_t value) { return std::to_string(value); }
/// The shortest text that parses to an equal value: 0.0001 and 100000, but 1e-05 and 1e+16.
inline std::string text_of(double value)
{
    char text[32];
    const auto scientific = std::to_chars(text, text + sizeof text, value, std::chars_format::scientific);
    const std::string with_exponent(text, scientific.ptr);
    const std::size_t e = with_exponent.find('e');
    if (e == std::string::npos) return with_exponent;  // infinite, or NaN
    const int exponent = std::stoi(with_exponent.substr(e + 1));
    if (exponent < -4 || exponent >= 16) return with_exponent;
    return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr};
}

/// The inverse of text_of; numbers must be finite and not negative. Throws heed::error for other texts.
inline void read_entry(const metadata& from, const std::string& name, std::string& to) { to = entry(from, name); }
template <class Number>
void read_entry(const metadata& from, const std::string& name, Number& to)
{
    const std::string& text = entry(from, name);
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, to);
    bool good = failure == std::errc{} && stop == end;
    if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(to) && to >= 0;
    if (!good) throw heed::error(name + " is \"" + text + "\" in its metadata, which is not a valid number");
}
inline void read_entry(const metadata& from, const std::string& name, bool& to)
{
    std::size_t number = 0;
    read_entry(from, name, number);
    if (number > 1) throw heed::error(name + " is " + std::to_string(number) + " in its metadata, but must be 0 or 1");
    to = number == 1;
}

/// Parses --adam-betas B1:B2. Empty unless both are in [0, 1).
inline std::optional<std::pair<double, double>> parse_betas(const std::string& text)
{
    std::pair<double, double> betas;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, betas.first);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return std::nullopt;
    const auto second = std::from_chars(first.ptr + 1, end, betas.second);
    const auto is_share = [](double beta) { return beta >= 0 && beta < 1; };
    if (second.ec != std::errc{} || second.ptr != end || !is_share(betas.first) || !is_share(betas.second))
        return std::nullopt;
    return betas;
}

/// A penalty of --penalty.
struct weighted_penalty {
    std::string name;
    double weight = 0;
};

/// The names of heed::seq2seq::objective that --penalty accepts.
inline constexpr const char* penalty_names[] = {"doubly-stochastic", "coverage", "monotone"};

/// Parses --penalty NAME:WEIGHT,…; no penalties if the text is empty. Throws heed::error for other texts.
inline std::vector<weighted_penalty> parse_penalties(const std::string& text)
{
    std::vector<weighted_penalty> all;
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t comma = std::min(text.find(',', begin), text.size());
        const std::string one = text.substr(begin, comma - begin);
        const std::size_t colon = one.find(':');
        weighted_penalty penalty{one.substr(0, colon)};
        const auto is_named = [&](const auto& each) { return each == penalty.name; };
        if (std::none_of(std::begin(penalty_names), std::end(penalty_names), is_named))
            throw heed::error("there is no penalty \"" + penalty.name +
                              "\"; choose doubly-stochastic, coverage or monotone");
        if (std::any_of(all.begin(), all.end(), [&](const auto& each) { return each.name == penalty.name; }))
            throw heed::error("the penalty " + penalty.name + " is given twice");
        const char* const end = one.data() + one.size();
        const auto [stop, failure] =
            std::from_chars(colon == one.npos ? end : one.data() + colon + 1, end, penalty.weight);
        if (failure != std::errc{} || stop != end || !std::isfinite(penalty.weight) || !(penalty.weight > 0))
            throw heed::error("the penalty \"" + one + "\" has no weight above 0; expected one such as " +
                              penalty.name + ":0.1");
        all.push_back(std::move(penalty));
        begin = comma + 1;
        if (begin == text.size()) throw heed::error("\"" + text + "\" ends with a comma");
    }
    return all;
}

/// The encoding of --reverse-source in a file. "1" marks models that read the sentence with its words reversed, so that
/// positions count from its end. A program that wrote these rejects "2".
struct stored_direction {
    static constexpr const char* name = "options.reverse-source";
    static constexpr const char *forward = "0", *reversed_text = "1", *backward = "2";

    /// Whether the encoder reads from the last word to the first. Throws heed::error for a model of reversed text,
    /// which no encoder reproduces, and for unknown values.
    static bool read(const metadata& from)
    {
        const std::string& text = entry(from, name);
        if (text == reversed_text)
            throw heed::error("trained with --reverse-source by an earlier heed, which reversed the words, so that "
                              "attention counted positions from the end of the sentence; train again");
        if (text != forward && text != backward)
            throw heed::error(std::string(name) + " is \"" + text + "\" in its metadata, but must be " + forward +
                              " or " + backward);
        return text == backward;
    }
};

/// The help text of an option, and its values.
struct option_help {
    const char* group;
    const char* help;
    std::size_t least = 0;                  // minimum of a number
    std::vector<const char*> choices = {};  // values of a text
};

/// All options that affect the trained model. A model file stores them.
struct options {
    std::string system = "rnnsearch", attention = "additive", cell = "gru";
    std::size_t embedding = 256, hidden = 256, alignment = 256;
    bool context = false, input_feeding = false;
    std::size_t coverage = 100, window = 10, last = 5;
    std::size_t layers = 1, width = 3, heads = 1;
    std::size_t longest = 1024;  // learned positions
    std::string norm = "pre", positions = "sinusoidal", activation = "relu", share_embeddings = "none";
    std::size_t batch = 64, epochs = 20;
    std::size_t min_count = 1, patience = 5;  // occurrences of a word; epochs without progress
    std::uint64_t seed = 1;
    double dropout = 0.2, learning_rate = 1e-3, clip = 1, label_smoothing = 0;
    std::size_t bpe = 0;           // merges; 0: none are learned (but codes may be given)
    std::size_t max_length = 0;    // tokens of a training sentence; 0: any
    std::size_t batch_tokens = 0;  // instead of `batch` sentences; 0: unused
    bool bpe_separate = false, reverse_source = false;
    std::string candidates = "all";  // or "K:N": the words in the softmax of training
    bool phrases = false;            // words of phrases are among the candidates
    std::string optimizer = "adam", adam_betas = "0.9:0.999";
    std::size_t warm_up = 0, halve_from = 0;  // 0: never
    std::size_t max_updates = 0;              // 0: no limit
    std::size_t accumulate = 1, average = 0;  // 0: no averaging
    bool bfloat16 = false;
    std::string penalty;         // "NAME:WEIGHT,…" of attention weights; empty: none
    double guided_weight = 0.5;  // of given links, per target token
    std::size_t guided_shift = 0;
    double r_drop = 0;                 // weight of the agreement of two passes; 0: one pass
    bool raw = false;                  // raw text; the following options apply to it
    std::size_t subword_vocab = 4000;  // number per language
    std::string subword_model = "bpe", casing = "truecase";

    /// member(name, value) for each option, in a fixed order; an option declared on the command line passes its
    /// description as a third argument.
    static void each(auto& self, auto&& member)
    {
        member("attention", self.attention);
        member("embedding", self.embedding);
        member("hidden", self.hidden);
        member("alignment", self.alignment);
        member("batch", self.batch);
        member("epochs", self.epochs);
        member("min-count", self.min_count);
        member("patience", self.patience);
        member("seed", self.seed);
        member("dropout", self.dropout);
        member("learning-rate", self.learning_rate);
        member("clip", self.clip);
        member("label-smoothing", self.label_smoothing);
        each_later(self, member);
        member("candidates", self.candidates);
        each_if_changed(self, member);
    }
    /// Options missing in the first format.
    static void each_later(auto& self, auto&& member)
    {
        member("bpe", self.bpe);
        member("bpe-separate", self.bpe_separate);
        member("max-length", self.max_length);
        member("reverse-source", self.reverse_source);
        member("batch-tokens", self.batch_tokens);
    }
    /// Options that a file stores only if they differ from the defaults above, since older files do not have them;
    /// these defaults must never change. Add new options here; if only some systems support an option, also add it to
    /// their rows in src/translator/systems.cpp.
    static void each_if_changed(auto& self, auto&& member)
    {
        member("system", self.system);
        member("cell", self.cell, option_help{"Model", "gru or lstm", 0, {"gru", "lstm"}});
        member("context", self.context,
               option_help{"Model", "contextualize embeddings by their sentence (+C, Choi et al. 2018)"});
        member("input-feeding", self.input_feeding,
               option_help{"Model", "feed the attentional vector to the next step (Luong et al. 2015)"});
        member("coverage", self.coverage, option_help{"Model", "size of coverage embeddings", 1});
        member("window", self.window, option_help{"Model", "half-width of local attention", 1});
        member("last", self.last, option_help{"Model", "number of past steps used by recent-temporal attention", 1});
        member("layers", self.layers, option_help{"Model", "layers of the encoder and of the decoder", 1});
        member("width", self.width, option_help{"Model", "kernel width of convolutions, in tokens", 1});
        member("heads", self.heads, option_help{"Model", "heads per attention; must divide --embedding", 1});
        member("norm", self.norm,
               option_help{"Model",
                           "pre: layer normalization before each sublayer, which trains\n"
                           "without --warm-up; post: after the sum, as in Vaswani et al. 2017",
                           0,
                           {"pre", "post"}});
        member("positions", self.positions,
               option_help{"Model", "sinusoidal, or learned for up to --longest tokens", 0, {"sinusoidal", "learned"}});
        member("longest", self.longest,
               option_help{"Model",
                           "maximum sentence length, for learned positions and\n"
                           "location attention",
                           1});
        member("activation", self.activation, option_help{"Model", "relu or gelu", 0, {"relu", "gelu"}});
        member("share-embeddings", self.share_embeddings,
               option_help{"Model",
                           "all: one matrix and vocabulary for both sides and the output\n"
                           "layer; output: for target and output layer; or none",
                           0,
                           {"all", "output", "none"}});
        member("optimizer", self.optimizer,
               option_help{"Optimizer", "adam, sgd or adadelta (Zeiler 2012)", 0, {"adam", "sgd", "adadelta"}});
        member("adam-betas", self.adam_betas);
        member("warm-up", self.warm_up,
               option_help{"Optimizer", "increase the rate for N updates, from 1e-7 to --learning-rate,\n"
                                        "then decrease it as 1 / sqrt(update) (Vaswani et al. 2017)"});
        member("halve-from", self.halve_from,
               option_help{"Optimizer", "halve the rate after each epoch from the Nth on (Luong et al.\n"
                                        "2015); 0: never"});
        member("max-updates", self.max_updates,
               option_help{"Training", "stop after N updates, even within an epoch; 0: no limit"});
        member("phrases", self.phrases,
               option_help{"Training", "also use the N best words of each phrase of up to four\n"
                                       "source tokens as candidates, learned from the text"});
        member("accumulate", self.accumulate,
               option_help{"Optimizer", "number of batches whose gradients are summed for an update", 1});
        member("average", self.average,
               option_help{"Optimizer", "validate the mean of the parameters after the last N epochs,\n"
                                        "and store the best mean as MODEL; training continues from the\n"
                                        "unaveraged parameters; 0: no averaging"});
        member("bfloat16", self.bfloat16,
               option_help{"Training", "round the operands of matrix products in training to bfloat16;\n"
                                       "weights, gradients and sums remain in float. A step takes half\n"
                                       "the time on processors with AMX, and more on most others"});
        member("penalty", self.penalty);
        member("guided-weight", self.guided_weight);
        member("guided-shift", self.guided_shift);
        member("r-drop", self.r_drop);
        member("raw", self.raw,
               option_help{"Raw text", "read ordinary text: split it into words, symbols and\n"
                                       "subwords, and write detokenized translations"});
        member("subword-vocab", self.subword_vocab,
               option_help{"Raw text", "maximum number of subwords per language", 1});
        member("subword-model", self.subword_model,
               option_help{"Raw text", "SentencePiece model: bpe or unigram", 0, {"bpe", "unigram"}});
        member("casing", self.casing,
               option_help{"Raw text",
                           "truecase: restore the usual case of first words and of\n"
                           "sentences in capitals; as-is: keep all casing",
                           0,
                           {"truecase", "as-is"}});
    }

    /// member(name, text of the value) for each option.
    void each_text(auto&& member) const
    {
        each(*this,
             [&](const char* name, const auto& value, const auto&...) { member(std::string(name), text_of(value)); });
    }

    /// Sets an option from its text. Throws heed::error for invalid values.
    void set(const std::string& option, const std::string& text)
    {
        each(*this, [&](const char* name, auto& value, const auto&...) {
            if (option == name) read_entry({{option, text}}, option, value);
        });
    }

    /// Adds "options.<name>" for each option, in the newest format.
    void write(metadata& to) const
    {
        const auto put = [&](const char* name, const auto& value, const auto&...) {
            to["options." + std::string(name)] = text_of(value);
        };
        each(*this, put);
        metadata unchanged;
        const options defaults;
        each_if_changed(defaults, [&](const char* name, const auto& value, const auto&...) {
            unchanged["options." + std::string(name)] = text_of(value);
        });
        for (const auto& [name, text] : unchanged) {
            if (to[name] == text) to.erase(name);
        }
        to[stored_direction::name] = reverse_source ? stored_direction::backward : stored_direction::forward;
    }

    /// Options of a file written by heed before 0.3, under their current names.
    static metadata renamed(metadata from)
    {
        const auto name = [&](const char* before, const char* now) {
            if (auto entry = from.extract(before)) {
                entry.key() = now;
                from.insert(std::move(entry));
            }
        };
        const auto value = [&](const char* option, const char* before, const char* now) {
            if (const auto entry = from.find(option); entry != from.end() && entry->second == before)
                entry->second = now;
        };
        name("options.pieces", "options.subword-vocab");
        name("options.pieces-by", "options.subword-model");
        value("options.attention", "fading-temporal", "decayed-temporal");
        value("options.casing", "usual", "truecase");
        value("options.positions", "waves", "sinusoidal");
        value("options.norm", "before", "pre");
        value("options.norm", "after", "post");
        return from;
    }

    /// The inverse, for any format. Throws heed::error for invalid values.
    static options read(const metadata& from)
    {
        options result;
        metadata all = renamed(from);
        const auto add = [&](const char* name, const auto& value, const auto&...) {
            all.emplace("options." + std::string(name), text_of(value));
        };
        if (entry(from, "format") == first_format_name) {
            each_later(result, [&](const char* name, const auto& value) {
                all["options." + std::string(name)] = text_of(value);
            });
        }
        add("candidates", result.candidates);  // missing in early files of the second format
        each_if_changed(result, add);
        if (all.contains(stored_direction::name)) all[stored_direction::name] = text_of(stored_direction::read(all));
        each(result, [&](const char* name, auto& value, const auto&...) {
            read_entry(all, "options." + std::string(name), value);
        });
        return result;
    }
};

}  // namespace heed::translator
