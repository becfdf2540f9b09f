// SPDX-License-Identifier: BSD-3-Clause
//
// number_lists: parallel text of configurable length.
//
//     seven hundred , twenty four , one          sieben hundert , vier und zwanzig , eins
//
// Each sentence is a list of numbers in words (number_words.hpp), English in one file and German in the other, for
// experiments that no corpus allows: does a system trained on lists of three translate lists of twelve?
//
// test: --numbers 1:3 --count 20 --source source --target target --links links

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/corpus.hpp>

#include "../tools/support/program.hpp"
#include "support/number_words.hpp"

namespace {

struct request {
    std::pair<std::size_t, std::size_t> numbers{1, 3};  // minimum and maximum per list
    std::size_t count = 1000;
    std::uint64_t seed = 1;
    std::uint32_t below = 1000;
    std::string source, target, links;
};

/// Both files, and for each pair the links between its words, in the format of `translate align`.
int write(const request& how)
{
    numbers::detail::generator random{how.seed};
    std::string source, target, links;
    for (std::size_t i = 0; i < how.count; ++i) {
        const auto [least, most] = how.numbers;
        const std::size_t length = least + random.below(static_cast<std::uint32_t>(most - least + 1));
        numbers::pair all;
        for (std::size_t k = 0; k < length; ++k) {
            if (k > 0) numbers::detail::say_both(all, ",", ",");
            numbers::detail::say_words(all, random.below(how.below), true);
        }
        source += heed::text::join(all.english) + '\n';
        target += heed::text::join(all.german) + '\n';
        for (const auto& [from, to] : all.links)
            links += fmt::format("{}{}-{}", links.empty() || links.back() == '\n' ? "" : " ", from, to);
        links += '\n';
    }
    heed::io::write_file(how.source, source);
    heed::io::write_file(how.target, target);
    if (!how.links.empty()) heed::io::write_file(how.links, links);
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Write lists of numbers in English and German words: parallel text of configurable length."};
    request how;
    constexpr std::uint32_t numbers_limit = numbers::limit;
    std::string wanted = "1:3";
    app.add_option("--numbers", wanted, "numbers per list: from MIN to MAX, equally often")
        ->check(CLI::Validator(
            [&](std::string& text) -> std::string {
                std::size_t least = 0, most = 0;
                char colon = 0, rest = 0;
                const int read = std::sscanf(text.c_str(), "%4zu%c%4zu%c", &least, &colon, &most, &rest);
                if (read == 1) most = least;
                if ((read != 1 && (read != 3 || colon != ':')) || least == 0 || most < least)
                    return "--numbers requires MIN:MAX, such as 1:3, not \"" + text + "\"";
                how.numbers = {least, most};
                return "";
            },
            ""))
        ->type_name("MIN:MAX")
        ->capture_default_str();
    app.add_option("--count", how.count, "sentences")
        ->check(CLI::Range(std::size_t{1}, std::size_t{10'000'000}))
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--below", how.below, "numbers are smaller than this")
        ->check(CLI::Range(std::uint32_t{1}, numbers_limit))
        ->type_name("N")
        ->capture_default_str();
    app.add_option("--seed", how.seed, "random seed of the lists")->type_name("N")->capture_default_str();
    app.add_option("--source", how.source, "the English file to write")->type_name("FILE")->required();
    app.add_option("--target", how.target, "the German file to write")->type_name("FILE")->required();
    app.add_option("--links", how.links, "also write word links, as pairs i-j from 0")->type_name("FILE");
    return program::run(app, "number_lists", argc, argv, [&] { return write(how); });
}
