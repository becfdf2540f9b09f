// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>

namespace heed::translator {

/// A file's metadata: names and values.
using metadata = std::map<std::string, std::string>;

/// The value of this name. Throws heed::error if there is none.
inline const std::string& entry(const metadata& from, const std::string& name)
{
    const auto found = from.find(name);
    if (found == from.end()) throw heed::error("not what `translate train` writes: its metadata have no " + name);
    return found->second;
}

/// The format of a model file's metadata.
inline constexpr const char* format_name = "heed.translate/2";
/// The first format, with fewer options.
inline constexpr const char* first_format_name = "heed.translate/1";

inline std::string text_of(const std::string& value) { return value; }
inline std::string text_of(bool value) { return value ? "1" : "0"; }
inline std::string text_of(std::uint64_t value) { return std::to_string(value); }
/// The shortest that reads back equal: 0.0001 and 100000, but 1e-05 and 1e+16.
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

/// The inverse of text_of; numbers must be finite and not negative. Throws heed::error for anything else.
inline void read_entry(const metadata& from, const std::string& name, std::string& to) { to = entry(from, name); }
template <class Number>
void read_entry(const metadata& from, const std::string& name, Number& to)
{
    const std::string& text = entry(from, name);
    const char* const end = text.data() + text.size();
    const auto [stop, failure] = std::from_chars(text.data(), end, to);
    bool good = failure == std::errc{} && stop == end;
    if constexpr (std::is_floating_point_v<Number>) good = good && std::isfinite(to) && to >= 0;
    if (!good) throw heed::error(name + " is \"" + text + "\" in its metadata, which is not such a number");
}
inline void read_entry(const metadata& from, const std::string& name, bool& to)
{
    std::size_t number = 0;
    read_entry(from, name, number);
    if (number > 1) throw heed::error(name + " is " + std::to_string(number) + " in its metadata, but must be 0 or 1");
    to = number == 1;
}

/// --adam-betas B1:B2. Nothing for anything but two shares.
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

/// How a file states --reverse-source. "1" is what files had whose models read the sentence with its words reversed:
/// their positions count from its end. A program that wrote these refuses "2".
struct stored_direction {
    static constexpr const char* name = "options.reverse-source";
    static constexpr const char *forward = "0", *reversed_text = "1", *backward = "2";

    /// Whether the encoder reads from the last word to the first. Throws heed::error for a model of reversed text,
    /// which no encoder here reproduces, and for anything else.
    static bool read(const metadata& from)
    {
        const std::string& text = entry(from, name);
        if (text == reversed_text)
            throw heed::error(
                "trained with --reverse-source by an earlier heed, which reversed the words themselves, so that "
                "attention, which counts positions, counted them from the sentence's end; train it anew");
        if (text != forward && text != backward)
            throw heed::error(std::string(name) + " is \"" + text + "\" in its metadata, but must be " + forward +
                              " or " + backward);
        return text == backward;
    }
};

/// What --help says of an option, and the values that it takes.
struct option_help {
    const char* group;
    const char* help;
    std::size_t least = 0;                  // of a number
    std::vector<const char*> choices = {};  // of a text
};

/// All options that determine what a run learns. A model file stores them.
struct options {
    std::string system = "rnnsearch", attention = "additive", cell = "gru";
    std::size_t embedding = 256, hidden = 256, alignment = 256;
    bool context = false, input_feeding = false;
    std::size_t coverage = 100, window = 10, last = 5;
    std::size_t layers = 1, width = 3, heads = 1, longest = 1024;
    std::string norm = "pre", positions = "sinusoidal", activation = "relu", share_embeddings = "none";
    std::size_t batch = 64, epochs = 20, min_count = 1, patience = 5;
    std::uint64_t seed = 1;
    double dropout = 0.2, learning_rate = 1e-3, clip = 1, label_smoothing = 0;
    std::size_t bpe = 0;           // merges; 0: none are learned (but some may be given)
    std::size_t max_length = 0;    // of a training sentence; 0: any
    std::size_t batch_tokens = 0;  // instead of `batch` sentences; 0: unused
    bool bpe_separate = false, reverse_source = false;
    std::string candidates = "all";  // or "K:N": the words in the softmax of training
    bool phrases = false;            // their words are among the candidates
    std::string optimizer = "adam", adam_betas = "0.9:0.999";
    std::size_t warm_up = 0, halve_from = 0;  // 0: not so
    std::size_t max_updates = 0;              // 0: any number
    std::size_t accumulate = 1, average = 0;  // 0: no mean
    bool raw = false;                         // text is raw: what is below is for that
    std::size_t subword_vocab = 4000;         // of words, for each language
    std::string subword_model = "bpe", casing = "truecase";

    /// member(name, value) for each, in a fixed order; an option that a command line declares from its
    /// description has that as a third argument.
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
    /// Options that the first format lacks.
    static void each_later(auto& self, auto&& member)
    {
        member("bpe", self.bpe);
        member("bpe-separate", self.bpe_separate);
        member("max-length", self.max_length);
        member("reverse-source", self.reverse_source);
        member("batch-tokens", self.batch_tokens);
    }
    /// Options that a file states only if they differ from the defaults above, since older files lack them; these
    /// defaults must never change. A new option goes here; one that only some systems use also goes to their rows in
    /// src/translator/systems.cpp.
    static void each_if_changed(auto& self, auto&& member)
    {
        member("system", self.system);
        member("cell", self.cell, option_help{"Model", "gru or lstm", 0, {"gru", "lstm"}});
        member("context", self.context,
               option_help{"Model", "embeddings depend on their sentence (+C, Choi et al. 2018)"});
        member("input-feeding", self.input_feeding,
               option_help{"Model", "what was read out is fed to the next step (Luong et al. 2015)"});
        member("coverage", self.coverage, option_help{"Model", "size of coverage embeddings", 1});
        member("window", self.window, option_help{"Model", "reach of local attention, to each side", 1});
        member("last", self.last, option_help{"Model", "steps that recent-temporal attention remembers", 1});
        member("layers", self.layers, option_help{"Model", "layers of the encoder, and of the decoder", 1});
        member("width", self.width, option_help{"Model", "tokens that a convolution reads", 1});
        member("heads", self.heads, option_help{"Model", "heads of each attention; must divide --embedding", 1});
        member("norm", self.norm,
               option_help{"Model",
                           "pre: layer normalization before each sublayer, which trains\n"
                           "without --warm-up; post: after the sum, as Vaswani et al. 2017",
                           0,
                           {"pre", "post"}});
        member("positions", self.positions,
               option_help{"Model", "sinusoidal, or learned for up to --longest tokens", 0, {"sinusoidal", "learned"}});
        member("longest", self.longest,
               option_help{"Model",
                           "tokens of the longest sentence, for learned positions and\n"
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
               option_help{"Optimizer", "let the rate rise for N updates, from 1e-7 to --learning-rate,\n"
                                        "then fall with the square root of the update (Vaswani et al. 2017)"});
        member("halve-from", self.halve_from,
               option_help{"Optimizer", "halve it after each epoch from the Nth on (Luong et al. 2015);\n"
                                        "0: not so"});
        member("max-updates", self.max_updates,
               option_help{"Training", "end after N updates, even within an epoch; 0: no limit"});
        member("phrases", self.phrases,
               option_help{"Training", "candidates are also the N best words of each phrase of up to four\n"
                                       "source tokens, learned from the text; for --candidates"});
        member("accumulate", self.accumulate,
               option_help{"Optimizer", "batches whose gradients are summed for one update", 1});
        member("average", self.average,
               option_help{"Optimizer", "validate the mean of the parameters at the last N ends of epochs,\n"
                                        "and keep the best such mean as MODEL; training goes on from the\n"
                                        "parameters themselves. 0: no mean"});
        member("raw", self.raw,
               option_help{"Raw text", "text is as people write it: it is cut into words, symbols and\n"
                                       "pieces of words, and translations are written as text again"});
        member("subword-vocab", self.subword_vocab,
               option_help{"Raw text", "pieces of words to learn for each language, at most", 1});
        member("subword-model", self.subword_model,
               option_help{"Raw text", "how SentencePiece learns them: bpe or unigram", 0, {"bpe", "unigram"}});
        member("casing", self.casing,
               option_help{"Raw text",
                           "truecase: give a sentence's first word its usual case, and read\n"
                           "sentences in capitals in their usual case; as-is: neither",
                           0,
                           {"truecase", "as-is"}});
    }

    /// member(name, text of the value) for each.
    void each_text(auto&& member) const
    {
        each(*this,
             [&](const char* name, const auto& value, const auto&...) { member(std::string(name), text_of(value)); });
    }

    /// Sets an option from its text. Throws heed::error if it is not such a value.
    void set(const std::string& option, const std::string& text)
    {
        each(*this, [&](const char* name, auto& value, const auto&...) {
            if (option == name) read_entry({{option, text}}, option, value);
        });
    }

    /// Adds "options.<name>" for each, in the newest format.
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

    /// Options of a file that heed before 0.3 wrote, under their names of today.
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

    /// The inverse, of any format. Throws heed::error for a value that is none.
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
        add("candidates", result.candidates);  // the second format at first had none
        each_if_changed(result, add);
        if (all.contains(stored_direction::name)) all[stored_direction::name] = text_of(stored_direction::read(all));
        each(result, [&](const char* name, auto& value, const auto&...) {
            read_entry(all, "options." + std::string(name), value);
        });
        return result;
    }
};

}  // namespace heed::translator
