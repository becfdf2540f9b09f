// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/core/utf8.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed_kit/metrics/word_classes.hpp>
#include <heed_kit/text/corpus.hpp>
#include <heed_kit/view/svg.hpp>
#include <heed_translator/model_file.hpp>

#include "command_line.hpp"
#include "for_page.hpp"
#include "interrupt.hpp"
#include "library.hpp"
#include "progress.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate dimensions`
struct dimensions_command {
    fs::path model, source, target, tags, output, picture;
    std::string side = "source";
    bool by_class = false;
    std::size_t sentences = 1000, dimensions = 20, number = 0;
    heed::metrics::class_options how;

    void declare(CLI::App& app)
    {
        app.description(
            "Find dimensions of a per-dimension attention that follow word classes (Choi et al. 2018, figure 4).");
        app.footer("Uses forced decoding of the given translations. Lists, for each dimension, the classes that it\n"
                   "separates best from all other words. AUC: the probability that the dimension attends more to a\n"
                   "word of the class than to another word; 0.5 if it ignores the class, 1 if it never fails. z:\n"
                   "the distance from 0.5, in standard deviations under chance; with many dimensions and classes,\n"
                   "some reach 3 or 4 by chance. The end of the sentence is the word </s>.\n"
                   "With --side target, AUC measures how sharply a dimension attends, to any word, when a word of the\n"
                   "class is written.\n\n"
                   "Example:\n"
                   "  translate dimensions --model en-de.safetensors --source test.en --target test.de");
        app.add_option("--model", model, "a model trained with --attention per-dimension")
            ->required()
            ->type_name("FILE");
        app.add_option("--source", source, "sentences")->required()->type_name("FILE");
        app.add_option("--target", target, "translations, line by line")->required()->type_name("FILE");
        app.add_option("--side", side, "the side with word classes: source or target")
            ->check(CLI::IsMember({"source", "target"}).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_option("--tags", tags,
                       "the classes, one per word of that side, line by line; without it,\n"
                       "each word is a separate class")
            ->type_name("FILE");
        app.add_option("--output", output, "output file; standard output if not given")->type_name("FILE");
        app.add_option("--picture", picture,
                       "draw each dimension shown, with its best class, in a short\n"
                       "sentence that has words of that class, as SVG; with --by-class,\n"
                       "each class with its best dimension")
            ->type_name("FILE");
        app.add_option("--of-sentence", number,
                       "draw only this: the mean weights of the first --dimensions\n"
                       "dimensions in line N of the text (figure 3 of the paper)")
            ->needs(app.get_option("--picture"))
            ->check(positive)
            ->type_name("N");
        add_count(app, "--sentences", sentences, "number of sentences to use, from the beginning");
        add_count(app, "--dimensions", dimensions, "number of best dimensions to show");
        add_count(app, "--classes", how.most, "number of best classes to show for each");
        app.add_flag("--by-class", by_class,
                     "for each class, show the --dimensions that\n"
                     "follow it best");
        add_count(app, "--least", how.least, "ignore classes with fewer words, often separated by chance");
    }

    int run()
    {
        if (!output.empty()) check_output(output, {model, source, target, tags, picture});
        if (!picture.empty()) check_output(picture, {model, source, target, tags, output});
        const translator_file file = load_model(model);
        if (file.source.raw)
            throw heed::error(model.string() + ": reads raw text, but classes are for words separated "
                                               "by spaces; use a model trained without --raw");
        auto pairs = read_lines(source, target);
        if (number > 0) {
            draw_sentence(file, pairs);
            return 0;
        }
        const std::vector<sentence> classes = read_classes(pairs);
        const std::size_t count = std::min(sentences, pairs.size());
        std::vector<heed::metrics::class_search> search;  // empty until the number of dimensions is known
        stop_politely();
        progress line(count);
        for (std::size_t n = 0; n < count; ++n) {
            if (interrupted() != 0) return 128 + interrupted();
            line.add(1);
            if (pairs.source[n].empty() || pairs.target[n].empty()) continue;
            const looked seen = look(file, pairs.source[n], pairs.target[n], side == "target");
            if (search.empty()) search.emplace_back(seen.dimensions);
            const std::size_t positions = pairs.source[n].size() + 1;
            const auto values = side == "source"
                                    ? heed::metrics::attention_by_dimension(seen.weights, positions, seen.dimensions)
                                    : heed::metrics::sharpness_by_dimension(seen.weights, positions, seen.dimensions);
            for (std::size_t i = 0; i < values.size(); ++i)
                search.front().add(i < classes[n].size() ? classes[n][i] : end_of_sentence, values[i]);
        }
        line.clear();
        if (search.empty()) throw heed::error(source.string() + ": every pair has an empty line");
        const std::vector<heed::metrics::followed_class> found = chosen(search.front());
        program::call_each([&] { show(found); },
                           [&] {
                               if (!picture.empty()) draw(file, pairs, classes, found);
                           });
        return 0;
    }

private:
    /// The weights of a sentence pair between words, including the end of the source.
    struct looked {
        weight_rows weights;  // [target words][source words and end · dimensions]
        std::size_t dimensions;
    };

    looked look(const translator_file& file, const sentence& from, const sentence& to, bool with_end) const
    {
        const weight_rows rows = file.system->weights_by_dimension(file.source.encode(from), file.target.encode(to));
        if (rows.empty())
            throw heed::error(fmt::format("{}: trained with --attention {}, which has no weight per dimension; use "
                                          "a model trained with --attention per-dimension",
                                          model.string(), file.how.attention));
        const std::size_t tokens = file.source.tokens_of_words(from).back().front() + 1;
        const std::size_t depth = rows.front().size() / tokens;
        word_tokens words = file.target.tokens_of_words(to);
        words.pop_back();  // the end of the sentence, which has a row only if it is on the target side
        return {between_words(file.source, from, rows, std::move(words), with_end, depth), depth};
    }

    /// The rows to show: for each of the best dimensions the best classes, or vice versa.
    std::vector<heed::metrics::followed_class> chosen(const heed::metrics::class_search& search) const
    {
        heed::metrics::class_options of = how;
        if (by_class) of.most = search.words();
        std::vector<heed::metrics::followed_class> found = search.best(of);
        if (found.empty())
            throw heed::error(fmt::format("no class has {} words, or there is only one class; use more sentences or a "
                                          "smaller --least",
                                          how.least));
        if (by_class) {
            std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.auc > b.auc; });
            std::map<std::string, double> best;  // of each class
            for (const auto& each : found) best.try_emplace(each.word_class, each.auc);
            std::stable_sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
                return std::pair(-best[a.word_class], a.word_class) < std::pair(-best[b.word_class], b.word_class);
            });
        }
        std::vector<heed::metrics::followed_class> result;
        std::size_t in_group = 0, groups = 0;
        for (const auto& each : found) {
            const bool same = !result.empty() && (by_class ? each.word_class == result.back().word_class
                                                           : each.dimension == result.back().dimension);
            in_group = same ? in_group + 1 : 0;
            groups += same ? 0 : 1;
            if (by_class ? in_group < dimensions : groups <= dimensions) result.push_back(each);
        }
        return result;
    }

    /// The weights of each dimension, or class, once: in the first sentence of 5 to 12 words that has the class, or in
    /// the first sentence of any length.
    void draw(const translator_file& file, const heed::text::parallel_corpus& pairs,
              const std::vector<sentence>& classes, const std::vector<heed::metrics::followed_class>& found) const
    {
        std::deque<std::vector<float>> weights;  // referenced by the pictures
        std::deque<std::string> titles;
        std::deque<sentence> columns;
        std::vector<heed::view::alignment> pictures;
        std::string last;
        for (const auto& each : found) {
            const std::string group = by_class ? each.word_class : std::to_string(each.dimension);
            if (group == last) continue;
            last = group;
            const auto has_class = [&](std::size_t n) {
                return !pairs.source[n].empty() && !pairs.target[n].empty() &&
                       (each.word_class == end_of_sentence ||
                        std::find(classes[n].begin(), classes[n].end(), each.word_class) != classes[n].end());
            };
            std::size_t chosen = pairs.source.size();
            for (std::size_t n = 0; n < pairs.source.size(); ++n) {
                if (!has_class(n)) continue;
                if (chosen == pairs.source.size()) chosen = n;
                if (pairs.source[n].size() < 5 || pairs.source[n].size() > 12) continue;
                chosen = n;
                break;
            }
            if (chosen == pairs.source.size()) continue;
            const sentence &from = pairs.source[chosen], &to = pairs.target[chosen];
            const looked seen = look(file, from, to, false);
            auto& of_dimension = weights.emplace_back();
            for (const auto& row : seen.weights) {
                for (std::size_t i = each.dimension; i < row.size(); i += seen.dimensions)
                    of_dimension.push_back(row[i]);
            }
            titles.push_back(fmt::format("dimension {}: {}", each.dimension, each.word_class));
            columns.push_back(from);
            columns.back().emplace_back(end_of_sentence);
            pictures.push_back({of_dimension, columns.back(), to, {}, titles.back()});
        }
        heed::io::write_file(picture, heed::view::svg(pictures));
    }

    /// A_id of each source word (columns) and of the first dimensions (rows).
    void draw_sentence(const translator_file& file, const heed::text::parallel_corpus& pairs) const
    {
        if (number > pairs.size())
            throw heed::error(fmt::format("--of-sentence {}: {} has {}", number, source.string(),
                                          heed::counted(pairs.size(), "line")));
        sentence columns = pairs.source[number - 1];
        if (columns.empty() || pairs.target[number - 1].empty())
            throw heed::error(fmt::format("--of-sentence {}: the pair has an empty line", number));
        const looked seen = look(file, columns, pairs.target[number - 1], false);
        columns.emplace_back(end_of_sentence);
        const auto values = heed::metrics::attention_by_dimension(seen.weights, columns.size(), seen.dimensions);
        std::vector<float> weights;
        sentence rows;
        for (std::size_t d = 0; d < std::min(dimensions, seen.dimensions); ++d) {
            rows.push_back(std::to_string(d));
            for (const std::vector<float>& each : values)
                weights.push_back(each[d] / static_cast<float>(columns.size()));
        }
        const std::vector<heed::view::alignment> pictures{{weights, columns, rows}};
        heed::io::write_file(picture, heed::view::svg(pictures));
    }

    std::vector<sentence> read_classes(const heed::text::parallel_corpus& pairs) const
    {
        const std::vector<sentence>& words = side == "source" ? pairs.source : pairs.target;
        if (tags.empty()) return words;
        const fs::path& of = side == "source" ? source : target;
        std::vector<sentence> result = read_lines(tags);
        if (result.size() != words.size())
            throw heed::error(fmt::format("{} has {}, {} has {}; expected the tags of each line", tags.string(),
                                          heed::counted(result.size(), "line"), of.string(), words.size()));
        for (std::size_t n = 0; n < result.size(); ++n) {
            if (result[n].size() != words[n].size())
                throw heed::error(fmt::format("{}:{}: has {}, but the line of {} has {}; expected one per word",
                                              tags.string(), n + 1, heed::counted(result[n].size(), "tag"), of.string(),
                                              heed::counted(words[n].size(), "word")));
        }
        return result;
    }

    void show(const std::vector<heed::metrics::followed_class>& found) const
    {
        std::string text = fmt::format("{:>9} {:>7} {:>8} {:>7}  class\n", "dimension", "AUC", "z", "words");
        for (const auto& each : found) {
            text += fmt::format("{:>9} {:>7.4f} {:>8.1f} {:>7}  {}\n", each.dimension, each.auc, each.z, each.count,
                                heed::text::printable(each.word_class));
        }
        program::write(output, text);
    }
};

}  // namespace translation
