// SPDX-License-Identifier: BSD-3-Clause
//
// The functions called by the pages, compiled only by emscripten, see scripts/browser.sh. Every function returns JSON,
// in memory that is valid until the next call; errors are {"error": …}.

#include <exception>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "captions.hpp"
#include "learner.hpp"
#include "playground.hpp"

#ifdef __EMSCRIPTEN__
#include <emscripten.h>
#define HEED_EXPORTED extern "C" EMSCRIPTEN_KEEPALIVE
#else
#define HEED_EXPORTED extern "C"
#endif

namespace {

using browser::json;

const char* answer(const auto& make)
{
    static std::string text;
    try {
        text = make();
    } catch (const std::exception& problem) {
        text = "{\"error\":" + json(std::string(problem.what())) + "}";
    }
    return text.c_str();
}

const browser::catalogue& policies()
{
    static const browser::catalogue all;
    return all;
}

std::unique_ptr<browser::learner> pupil;

browser::learner& the_pupil()
{
    if (!pupil) throw heed::error("no training is running: call heed_new first");
    return *pupil;
}

std::string json_of(const browser::looked& seen)
{
    return "{\"source\":" + json(seen.source) + ",\"words\":" + json(seen.words) +
           ",\"weights\":" + json(seen.weights) + "}";
}

std::unique_ptr<browser::captions> translator;

browser::captions& the_translator()
{
    if (!translator) throw heed::error("there is no translator: call heed_captions first");
    return *translator;
}

double given[256];

}  // namespace

// ---- the playground

/// All scores, normalizers and combiners, the first scene, and the product of each page of docs/mechanisms.
HEED_EXPORTED const char* heed_catalogue()
{
    return answer([] { return json(policies()); });
}

/// The reason why a product is not legal; empty if it is.
HEED_EXPORTED const char* heed_fault(unsigned score, unsigned normalizer, unsigned combiner)
{
    return answer([&] { return json(policies().fault(score, normalizer, combiner)); });
}

/// The buffer for the numbers of heed_ask, at most 256: the knobs of the score, the normalizer and the combiner, then x
/// and y of each word, then of each query.
HEED_EXPORTED double* heed_numbers() { return given; }

/// Scores, weights and contexts of a product; policies are given by their indices in the catalogue.
HEED_EXPORTED const char* heed_ask(unsigned score, unsigned normalizer, unsigned combiner, unsigned words,
                                   unsigned queries)
{
    return answer([&] {
        const double* next = given;
        const auto take = [&next](std::size_t n) {
            const browser::settings_of_policy some(next, n);
            if (static_cast<std::size_t>(next - given) + n > std::size(given)) throw heed::error("too many numbers");
            next += n;
            return some;
        };
        const auto points = [&take](std::size_t n) {
            std::vector<browser::point> all;
            for (std::size_t i = 0; i < n; ++i) {
                const auto xy = take(2);
                all.push_back({xy[0], xy[1]});
            }
            return all;
        };
        const auto of_score = take(policies().scores.at(score).about.knobs.size());
        const auto of_normalizer = take(policies().normalizers.at(normalizer).about.knobs.size());
        const auto of_combiner = take(policies().combiners.at(combiner).about.knobs.size());
        browser::scene what;
        what.words = points(words);
        what.queries = points(queries);
        return json(policies().ask(score, normalizer, combiner, of_score, of_normalizer, of_combiner, what));
    });
}

// ---- the translator

/// A new translator with this attention, see browser::attentions.
HEED_EXPORTED const char* heed_new(const char* attention, unsigned seed)
{
    return answer([&] {
        browser::settings how;
        how.seed = seed;
        pupil.reset();
        pupil = browser::make_learner(attention, how);
        return "{\"attentions\":" + json(browser::attentions()) + ",\"parameters\":" + json(pupil->parameter_count()) +
               ",\"pairs\":" + json(pupil->text().sources.size()) + ",\"updates\":" + json(how.updates) + "}";
    });
}

/// Runs this many updates, or the remaining ones if fewer: returns the losses, in nats per word.
HEED_EXPORTED const char* heed_learn(unsigned updates)
{
    return answer([&] {
        std::vector<double> losses;
        for (unsigned i = 0; i < updates && !the_pupil().finished(); ++i) losses.push_back(the_pupil().learn());
        return "{\"losses\":" + json(losses) + ",\"updates\":" + json(the_pupil().updates()) +
               ",\"finished\":" + json(the_pupil().finished()) + "}";
    });
}

/// The attention in forced decoding of the reference translation of a number.
HEED_EXPORTED const char* heed_align(unsigned number)
{
    return answer([&] { return json_of(the_pupil().align(number)); });
}

/// The translation of user input.
HEED_EXPORTED const char* heed_translate(const char* text)
{
    return answer([&] {
        const auto words = browser::typed_words(text);
        std::vector<std::string> unknown;
        for (const std::string& word : words) {
            if (!the_pupil().text().english.contains(word)) unknown.push_back(word);
        }
        auto found = json_of(the_pupil().translate(words));
        return found.insert(1, "\"unknown\":" + json(unknown) + ",");
    });
}

/// The share of exact translations among this many numbers not seen in training.
HEED_EXPORTED const char* heed_exact(unsigned count)
{
    return answer([&] { return "{\"exact\":" + json(the_pupil().exact(count)) + "}"; });
}

// ---- a translator trained elsewhere

/// A translator with the sizes and texts of its model file; its parameters follow.
HEED_EXPORTED const char* heed_captions(const char* attention, unsigned embedding, unsigned hidden, unsigned alignment,
                                        const char* source_words, const char* target_words, const char* source_codes,
                                        const char* target_codes)
{
    return answer([&] {
        translator.reset();
        translator = browser::make_captions({attention, embedding, hidden, alignment,
                                             browser::language_of(source_words, source_codes),
                                             browser::language_of(target_words, target_codes)});
        return "{\"parameters\":" + json(translator->parameter_count()) + "}";
    });
}

/// The buffer for the parameter with this name; null if the translator has no such parameter of this size.
HEED_EXPORTED float* heed_room(const char* name, unsigned size)
{
    try {
        return the_translator().room(name, size);
    } catch (const std::exception&) {
        return nullptr;
    }
}

/// The translation of an English sentence by beam search.
HEED_EXPORTED const char* heed_caption(const char* text, unsigned width)
{
    return answer([&] { return json_of(the_translator().translate(browser::caption_words(text), width)); });
}
