// SPDX-License-Identifier: BSD-3-Clause
//
// Writes a page that uses every feature to standard output, for page.sh to open in a browser.

#include <heed_kit/view/page.hpp>

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace {

using heed::view::sentence;
using heed::view::translation;

std::vector<std::string> split(const std::string& text)
{
    std::istringstream stream(text);
    std::vector<std::string> result;
    for (std::string word; stream >> word;) result.push_back(word);
    return result;
}

/// Weights [S,T] or [S,T,dimensions] that peak at the linked words, spread by `blur`; dimensions differ.
translation attending(std::vector<std::string> words, std::size_t source, const heed::metrics::links& links,
                      double blur, std::size_t dimensions = 0)
{
    const std::size_t depth = dimensions == 0 ? 1 : dimensions;
    std::vector<float> weights(words.size() * source * depth);
    for (std::size_t j = 0; j < words.size(); ++j)
        for (std::size_t d = 0; d < depth; ++d) {
            std::vector<double> scores(source);
            double sum = 0;
            for (std::size_t i = 0; i < source; ++i) {
                double distance = 1.5 + std::abs(static_cast<double>(i) - static_cast<double>(j)) / 4;
                for (const auto& [from, to] : links)
                    if (std::cmp_equal(to, j)) distance = std::min(distance, std::abs(static_cast<double>(i) - from));
                const double mind =
                    dimensions == 0 ? 0.0 : 1.6 * std::sin(1.7 * static_cast<double>(d) + static_cast<double>(i));
                scores[i] = std::exp((mind - 3 * distance) / blur + 0.3 * std::sin(static_cast<double>(7 * i + 3 * j)));
                sum += scores[i];
            }
            for (std::size_t i = 0; i < source; ++i)
                weights[(j * source + i) * depth + d] = static_cast<float>(scores[i] / sum);
        }
    return {std::move(words), std::move(weights), dimensions, ""};
}

sentence pair(const std::string& source, const std::string& target, heed::metrics::gold_links gold, double worse = 2)
{
    sentence result{split(source), split(target), gold, {}};
    heed::metrics::links all = gold.sure;
    all.insert(all.end(), gold.possible.begin(), gold.possible.end());
    result.translations.push_back(attending(result.reference, result.source.size(), all, 1));
    result.translations.push_back(attending(result.reference, result.source.size(), all, worse, 60));
    return result;
}

}  // namespace

int main()
{
    heed::view::page page{.title = "Attention, English to German",
                          .note = "Two systems on made-up weights: one a word pair, and one a dimension.",
                          .systems = {"additive", "fine-grained"}};
    page.sentences.push_back(
        pair("A small dog runs across the green grass .", "Ein kleiner Hund läuft über das grüne Gras .",
             {{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {6, 6}, {7, 7}, {8, 8}}, {{4, 4}, {5, 5}, {3, 4}}}));
    page.sentences[0].translations[0].note = "BLEU 100.0";

    sentence free{split("Two men are standing at the stove preparing food ."),
                  split("Zwei Männer stehen am Herd und bereiten Essen zu ."),
                  {},
                  {}};
    const heed::metrics::links links{{0, 0}, {1, 1}, {3, 2}, {4, 3}, {5, 3}, {6, 4}, {7, 5}, {8, 6}, {9, 7}};
    free.translations.push_back(attending(split("Zwei Männer stehen am Herd bereiten Essen ."), 10, links, 1));
    free.translations.push_back(attending(split("Zwei Männer stehen an einem Feuerherd ."), 10, links, 3, 60));
    page.sentences.push_back(free);

    page.sentences.push_back(pair("שלום לך , ילד </script><script>window.hacked=1</script>",
                                  "<img/src=x/onerror=window.hacked=1> مرحبا \"quoted\" &amp; 'x'",
                                  {{{0, 1}, {3, 0}}, {{1, 2}}}));

    sentence without{split("Nothing to see here ."), {}, {}, {}};
    without.translations = {{split("Hier gibt es nichts ."), {}, 0, "a system that does not attend"}, {}};
    page.sentences.push_back(without);

    page.sentences.push_back(
        pair("Several people in dark coats are waiting in front of a large old railway station while "
             "a woman with an extraordinarily colorful umbrella takes photographs .",
             "Mehrere Personen in dunklen Mänteln warten vor einem großen alten Bahnhof , während eine Frau "
             "mit einem außergewöhnlich farbenfrohen Donaudampfschifffahrtsgesellschaftsschirm Fotos macht .",
             {{{0, 0},   {1, 1},   {2, 2},   {3, 3},   {4, 4},   {6, 5},   {11, 8},  {12, 9},  {13, 10}, {14, 10},
               {15, 12}, {16, 13}, {17, 14}, {18, 15}, {19, 16}, {20, 17}, {21, 18}, {22, 19}, {24, 20}, {25, 22}},
              {{5, 5}, {7, 6}, {8, 6}, {9, 6}, {10, 7}, {23, 21}}}));
    // Small enough to compute the result of each view manually.
    sentence small{split("a b"), split("x y"), {}, {}};
    small.translations = {{split("x y"), {0.25f, 0.75f, 0.5f, 2.5f}, 0, ""},
                          {split("x y"), {0.9f, 0.2f, 0.1f, 0.8f, 0.3f, 0.6f, 0.7f, 0.4f}, 2, ""}};
    page.sentences.push_back(small);

    std::vector<std::string> topics{"boy", "girl", "street", "mountain", "bicycle", "dog in the snow"};
    for (const std::string& topic : topics)
        page.sentences.push_back(pair("A picture of a " + topic + " .", "Ein Bild .", {{{0, 0}, {1, 1}}, {}}));

    // Long sentences as shown by a translator, with the end mark.
    for (const std::size_t length : {18u, 20u, 30u, 60u}) {
        std::string source, target;
        heed::metrics::gold_links gold;
        for (std::size_t i = 0; i + 1 < length; ++i) {
            source += i % 5 == 4 ? "internationally " : i % 3 == 0 ? "quay " : "lightly ";
            target += i % 7 == 3 ? "Geschwindigkeitsbegrenzung " : "eilig ";
            gold.sure.emplace_back(static_cast<int>(i), static_cast<int>(i));
        }
        sentence longer = pair(source + "</s>", target, gold);
        longer.translations[1] = attending(split("kurz und gut"), length, gold.sure, 1, 3);
        page.sentences.push_back(std::move(longer));
    }
    page.sentences.push_back(pair("שלום לך , ילד . </s>", "Hallo , Kind .", {{{0, 0}, {3, 2}}, {}}));

    const std::string html = heed::view::html(page);
    return std::fwrite(html.data(), 1, html.size(), stdout) == html.size() && std::fflush(stdout) == 0 ? 0 : 1;
}
