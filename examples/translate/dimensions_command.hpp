// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/metrics/word_classes.hpp>
#include <heed/text/corpus.hpp>
#include <heed/text/utf8.hpp>

#include "command_line.hpp"
#include "interrupt.hpp"
#include "model_file.hpp"
#include "progress.hpp"
#include "word_weights.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate dimensions`
struct dimensions_command {
    fs::path model, source, target, tags, output;
    std::string side = "source";
    std::size_t sentences = 1000, dimensions = 20;
    heed::metrics::class_options how;

    void declare(CLI::App& app)
    {
        app.description(
            "Which dimensions of a per-dimension attention follow a word class? (Choi et al. 2018, figure 4)");
        app.footer("The model is led through the given translations. For each dimension, the classes that it\n"
                   "separates best from all other words. AUC: the probability that the dimension attends more to a\n"
                   "word of the class than to another word; 0.5 if it ignores the class, 1 if it never fails. z:\n"
                   "its distance from 0.5, in standard deviations under chance; of many dimensions and classes,\n"
                   "some reach 3 or 4 by chance. The end of the sentence is a word, </s>.\n"
                   "With --side target: how sharply a dimension attends, wherever that is, when a word of the class\n"
                   "is written.\n\n"
                   "Example:\n"
                   "  translate dimensions --model en-de.safetensors --source test.en --target test.de");
        app.add_option("--model", model, "a model of `translate train --attention per-dimension`")
            ->required()
            ->type_name("FILE");
        app.add_option("--source", source, "sentences")->required()->type_name("FILE");
        app.add_option("--target", target, "their translations, line by line")->required()->type_name("FILE");
        app.add_option("--side", side, "source or target: whose words have classes")
            ->check(CLI::IsMember({"source", "target"}).description(""))
            ->type_name("NAME")
            ->capture_default_str();
        app.add_option("--tags", tags,
                       "the classes, one for each word of that side, line by line; without\n"
                       "it each word is a class of its own")
            ->type_name("FILE");
        app.add_option("--out", output, "output file; standard output if not given")->type_name("FILE");
        add_count(app, "--sentences", sentences, "use so many, the first");
        add_count(app, "--dimensions", dimensions, "show so many, the best");
        add_count(app, "--classes", how.most, "show so many of each, the best");
        add_count(app, "--least", how.least, "leave out classes with fewer words, which chance separates well");
    }

    int run()
    {
        if (!output.empty()) check_output(output, {model, source, target, tags});
        const translator_file file = load_model(model);
        auto pairs = read_lines(source, target);
        const std::vector<sentence> classes = read_classes(pairs);
        const std::size_t count = std::min(sentences, pairs.size());
        std::vector<heed::metrics::class_search> search;  // empty until the number of dimensions is known
        stop_politely();
        progress line(count);
        for (std::size_t n = 0; n < count; ++n) {
            if (interrupted != 0) return 128 + interrupted;
            line.add(1);
            if (pairs.source[n].empty() || pairs.target[n].empty()) continue;
            const weight_rows rows = file.system->look_by_dimension(file.source.encode(pairs.source[n]),
                                                                    file.target.encode(pairs.target[n]));
            if (rows.empty())
                throw heed::error(
                    fmt::format("{}: trained with --attention {}, which has no weight per dimension; give "
                                "a model of --attention per-dimension",
                                model.string(), file.how.attention));
            const std::size_t tokens = file.source.tokens_of_words(pairs.source[n]).back().front() + 1;
            const std::size_t depth = rows.front().size() / tokens, positions = pairs.source[n].size() + 1;
            if (search.empty()) search.emplace_back(depth);
            word_tokens words = file.target.tokens_of_words(pairs.target[n]);
            words.pop_back();  // the end of the sentence, whose row is only one of the target's
            const weight_rows weights =
                between_words(file.source, pairs.source[n], rows, std::move(words), side == "target", depth);
            const auto values = side == "source" ? heed::metrics::attention_by_dimension(weights, positions, depth)
                                                 : heed::metrics::sharpness_by_dimension(weights, positions, depth);
            for (std::size_t i = 0; i < values.size(); ++i)
                search.front().add(i < classes[n].size() ? classes[n][i] : end_of_sentence, values[i]);
        }
        line.clear();
        if (search.empty()) throw heed::error(source.string() + ": has no pair without an empty line");
        show(search.front());
        return 0;
    }

private:
    std::vector<sentence> read_classes(const heed::text::parallel_corpus& pairs) const
    {
        const std::vector<sentence>& words = side == "source" ? pairs.source : pairs.target;
        if (tags.empty()) return words;
        const fs::path& of = side == "source" ? source : target;
        std::vector<sentence> result = read_lines(tags);
        if (result.size() != words.size())
            throw heed::error(fmt::format("{} has {} lines, {} has {}; give the tags of each line", tags.string(),
                                          result.size(), of.string(), words.size()));
        for (std::size_t n = 0; n < result.size(); ++n) {
            if (result[n].size() != words[n].size())
                throw heed::error(fmt::format("{}:{}: has {}, but the line of {} has {}; give one for each word",
                                              tags.string(), n + 1, heed::counted(result[n].size(), "tag"), of.string(),
                                              heed::counted(words[n].size(), "word")));
        }
        return result;
    }

    void show(const heed::metrics::class_search& search) const
    {
        const std::vector<heed::metrics::followed_class> found = search.best(how);
        if (found.empty())
            throw heed::error(
                fmt::format("no class has {} words, or there is only one class; give more sentences, or a "
                            "smaller --least",
                            how.least));
        std::string text = fmt::format("{:>9} {:>7} {:>8} {:>7}  class\n", "dimension", "AUC", "z", "words");
        std::size_t shown = 0;
        for (std::size_t i = 0; i < found.size(); ++i) {
            const auto& each = found[i];
            if (i == 0 || each.dimension != found[i - 1].dimension) ++shown;
            if (shown > dimensions) break;
            text += fmt::format("{:>9} {:>7.4f} {:>8.1f} {:>7}  {}\n", each.dimension, each.auc, each.z, each.count,
                                heed::text::printable(each.word_class));
        }
        if (!output.empty()) {
            heed::io::write_file(output, text);
        } else {
            std::cout << text;
            flush_output();
        }
    }
};

}  // namespace translation
