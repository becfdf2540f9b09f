// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/errors.hpp>
#include <heed_kit/metrics/alignment_error.hpp>
#include <heed_kit/view/drawing.hpp>
#include <heed_kit/view/page_card.hpp>
#include <heed_kit/view/page_matrix.hpp>
#include <heed_kit/view/page_script.hpp>
#include <heed_kit/view/page_style.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed::inline HEED_TARGET::view {

/// A system's translation of a sentence, and its attention weights.
struct translation {
    std::vector<std::string> words = {};  ///< S target words; empty if the system has no translation of this sentence
    std::vector<float> weights = {};      ///< [S,T] row-major, or [S,T,dimensions]; empty without attention
    std::size_t dimensions = 0;  ///< 0: one weight per word pair; otherwise one per dimension (or head, or hop)
    std::string note = {};       ///< shown next to the system's name, for example a score
};

/// A source sentence and the translations of each system.
struct sentence {
    std::vector<std::string> source = {};        ///< T words
    std::vector<std::string> reference = {};     ///< may be empty
    metrics::gold_links gold = {};               ///< links between source and reference words; may be empty
    std::vector<translation> translations = {};  ///< one per system of the page, in order
};

/// The contents of a page for html().
struct page {
    std::string title = {};
    std::string note = {};                  ///< a line below the title
    std::vector<std::string> systems = {};  ///< names of the systems
    std::vector<sentence> sentences = {};
    std::size_t most_dimensions = 50;     ///< number of dimensions per translation that are shown individually
    std::string dimension = "dimension";  ///< the name of a dimension, for example "head"
    std::string end = "</s>";  ///< the end mark of a source, if it is the last word; neither listed nor searched
};

namespace detail {

/// A JSON string. `<`, `>` and `&` are written as \u003c and so on, because an HTML parser looks for the end of the
/// script first.
inline std::string json_string(std::string_view raw)
{
    std::string result = "\"";
    for (const char c : text::printable(raw)) {
        if (c == '"' || c == '\\')
            (result += '\\') += c;
        else if (c == '<')
            result += "\\u003c";
        else if (c == '>')
            result += "\\u003e";
        else if (c == '&')
            result += "\\u0026";
        else
            result += c;
    }
    return result + '"';
}

template <class Range, class Write>
std::string json_list(const Range& range, Write write)
{
    std::string result = "[";
    for (const auto& item : range) {
        if (result.size() > 1) result += ',';
        result += write(item);
    }
    return result + ']';
}

inline std::string json_words(std::span<const std::string> words) { return json_list(words, json_string); }

inline std::string json_links(const metrics::links& links)
{
    return json_list(links, [](const auto& link) {
        return '[' + std::to_string(link.first) + ',' + std::to_string(link.second) + ']';
    });
}

/// Weights as text, at most two characters each: values from 0 to `scale` in 4096 steps, as two digits of base 64; a
/// run of at most 64 zeros as '.' and a digit; "!!" for values that are not finite. Negative values count as 0.
class weight_writer {
public:
    explicit weight_writer(float scale) : scale_(scale) {}

    void add(float weight)
    {
        if (!std::isfinite(weight)) {
            end_run();
            text_ += "!!";
            return;
        }
        const auto steps = std::lround(std::clamp(weight / scale_, 0.f, 1.f) * 4095.f);
        if (steps == 0) {
            if (++zeros_ == 64) end_run();
            return;
        }
        end_run();
        text_ += digits[static_cast<std::size_t>(steps / 64)];
        text_ += digits[static_cast<std::size_t>(steps % 64)];
    }

    /// As JSON.
    std::string string()
    {
        end_run();
        return '"' + std::exchange(text_, {}) + '"';
    }

private:
    static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

    void end_run()
    {
        if (zeros_ > 0) (text_ += '.') += digits[std::exchange(zeros_, 0) - 1];
    }

    float scale_;
    std::size_t zeros_ = 0;
    std::string text_;
};

/// {"words":[…],"note":"…","scale":1,"mean":weights [S,T],"dimensions":D,"kept":K,"all":weights [K,S,T]}. Without
/// weights, only the first two members; without dimensions, not the last three. The mean is over all D dimensions.
inline std::string json_translation(const translation& system, std::size_t source_words, std::size_t most_dimensions)
{
    std::string result = "{\"words\":" + json_words(system.words) + ",\"note\":" + json_string(system.note);
    if (system.weights.empty()) return result + '}';
    float scale = 1;
    for (const float weight : system.weights)
        if (std::isfinite(weight)) scale = std::max(scale, weight);
    const std::size_t pairs = system.words.size() * source_words;
    const std::size_t depth = std::max<std::size_t>(1, system.dimensions);
    const std::size_t kept = std::min(system.dimensions, most_dimensions);

    weight_writer mean(scale), all(scale);
    for (std::size_t pair = 0; pair < pairs; ++pair) {
        double sum = 0;
        for (std::size_t d = 0; d < depth; ++d) sum += static_cast<double>(system.weights[pair * depth + d]);
        mean.add(static_cast<float>(sum / static_cast<double>(depth)));
    }
    result += ",\"scale\":" + number(static_cast<double>(scale), 6) + ",\"mean\":" + mean.string();
    if (kept > 0) {
        for (std::size_t d = 0; d < kept; ++d)
            for (std::size_t pair = 0; pair < pairs; ++pair) all.add(system.weights[pair * depth + d]);
        result += ",\"dimensions\":" + std::to_string(system.dimensions) + ",\"kept\":" + std::to_string(kept) +
                  ",\"all\":" + all.string();
    }
    return result + '}';
}

inline std::string page_data(const page& what)
{
    return "{\"dimension\":" + json_string(what.dimension) + ",\"end\":" + json_string(what.end) +
           ",\"systems\":" + json_words(what.systems) + ",\"sentences\":" +
           json_list(what.sentences,
                     [&](const sentence& pair) {
                         return "\n{\"source\":" + json_words(pair.source) +
                                ",\"reference\":" + json_words(pair.reference) +
                                ",\"sure\":" + json_links(pair.gold.sure) +
                                ",\"possible\":" + json_links(pair.gold.possible) + ",\"systems\":" +
                                json_list(pair.translations,
                                          [&](const translation& system) {
                                              return json_translation(system, pair.source.size(), what.most_dimensions);
                                          }) +
                                '}';
                     }) +
           "}";
}

inline void require_fit(const page& what)
{
    for (std::size_t n = 0; n < what.sentences.size(); ++n) {
        const sentence& pair = what.sentences[n];
        const std::string where = "view::html: sentence " + std::to_string(n + 1);
        if (pair.translations.size() != what.systems.size())
            throw shape_error(where + ": " + counted(pair.translations.size(), "translation") + ", but the page has " +
                              counted(what.systems.size(), "system"));
        for (std::size_t k = 0; k < what.systems.size(); ++k) {
            const translation& system = pair.translations[k];
            const std::size_t needed =
                system.words.size() * pair.source.size() * std::max<std::size_t>(1, system.dimensions);
            if (!system.weights.empty() && system.weights.size() != needed)
                throw shape_error(
                    where + ", system " + what.systems[k] + ": " + counted(system.weights.size(), "weight") + ", but " +
                    std::to_string(system.words.size()) + " target and " + counted(pair.source.size(), "source word") +
                    (system.dimensions ? " of " + counted(system.dimensions, "dimension") : "") + " need " +
                    std::to_string(needed));
        }
        for (const metrics::links* links : {&pair.gold.sure, &pair.gold.possible})
            for (const auto& [i, j] : *links)
                if (i < 0 || j < 0 || std::cmp_greater_equal(i, pair.source.size()) ||
                    std::cmp_greater_equal(j, pair.reference.size()))
                    throw shape_error(where + ": the gold link " + std::to_string(i) + "-" + std::to_string(j) +
                                      " is outside " + std::to_string(pair.source.size()) + " source and " +
                                      counted(pair.reference.size(), "reference word"));
    }
}

}  // namespace detail

/// A self-contained HTML page:
///
///     view::page page{.title = "Multi30k", .systems = {"additive", "temporal"}};
///     page.sentences.push_back({source, reference, gold, {{words, weights}, {other_words, other_weights}}});
///     io::write_file("alignments.html", view::html(page));
///
/// Select a sentence; point at a target word, or move to it with the keys, and the source words are shaded by its
/// attention, next to the matrix of all weights; point at a source word for the reverse. Systems and gold links (sure
/// and possible) appear side by side. Gold links refer to the reference; they are also marked in the matrix of a system
/// with the same words as the reference, as in forced decoding. If two systems have the same words, a selection in one
/// is also made in the other.
///
/// Weights [S,T,D] have three views (Choi, Cho & Bengio 2018, section 5.2, figures 2-4):
///     mean over dimensions      A[t',t] = (1/D) Σ_d α[t',t,d]
///     mean over target words    A[t,d] = (1/S) Σ_t' α[t',t,d], for the stored dimensions
///     one dimension             A[t',t] = α[t',t,d], with a slider for d
///
/// Size: 42 kB for the page, and at most two characters per weight, which gives 4096 steps; runs of zeros take fewer.
/// 50 sentences of 20 by 20 words in 100 dimensions are at most 4.1 MB, 2.1 MB with 50 stored dimensions, 0.1 MB with
/// none. Weights should be between 0 and 1. Larger weights keep their value but have the shade of 1; negative weights
/// are shown as 0.
///
/// Right-to-left words are laid out correctly; words cannot inject markup or scripts. Throws shape_error, naming the
/// sentence and the system, if the sizes do not match.
inline std::string html(const page& what)
{
    detail::require_fit(what);
    const std::string title = detail::escaped(what.title.empty() ? "Attention" : what.title);
    std::string result = "<!DOCTYPE html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n"
                         "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                         "<meta name=\"color-scheme\" content=\"light dark\">\n"
                         // The browser ensures that nothing is fetched.
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                         "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n<title>" +
                         title + "</title>\n<style>";
    result += detail::page_style;
    result += "</style>\n</head>\n<body>\n<header><div><h1 dir=\"auto\">" + title + "</h1>";
    if (!what.note.empty()) result += "<p class=\"soft\" dir=\"auto\">" + detail::escaped(what.note) + "</p>";
    result += R"html(</div>
<div class="tools"><label class="button"><input type="checkbox" id="contrast">Full contrast</label>
<button class="button" type="button" id="theme"></button>
<button class="button" type="button" id="keys" aria-expanded="false" aria-controls="help" aria-keyshortcuts="?">Keys <kbd>?</kbd></button></div>
<p class="soft" id="help" hidden><span><kbd>n</kbd> <kbd>p</kbd> next, previous sentence</span>
<span><kbd>↑</kbd> <kbd>↓</kbd> in the list</span> <span><kbd>←</kbd> <kbd>→</kbd> from word to word</span>
<span><kbd>Enter</kbd> or a click pins a word</span> <span><kbd>Esc</kbd> releases it</span>
<span><kbd>?</kbd> shows or hides these keys</span></p></header>
<nav aria-label="Sentences"><input type="search" id="filter" placeholder="Find words" aria-label="Find words in the sentences">
<ul id="list" role="listbox" tabindex="0" aria-label="Sentences"></ul></nav>
<main><div class="bar"><button class="button" type="button" id="previous" aria-label="Previous sentence">←</button>
<button class="button" type="button" id="next" aria-label="Next sentence">→</button><h2 id="where" aria-live="polite"></h2>
<div id="systems" role="group" aria-label="Show or hide"></div></div>
<p id="reference"></p><div id="cards"></div><noscript>This page requires JavaScript.</noscript></main>
<p class="unseen" id="status" role="status" aria-live="polite"></p>
<script type="application/json" id="data">)html";
    result += detail::page_data(what) + "</script>\n<script>";
    result += detail::page_card;
    result += detail::page_matrix;
    result += detail::page_script;
    return result + "</script>\n</body>\n</html>\n";
}

}  // namespace heed::inline HEED_TARGET::view
