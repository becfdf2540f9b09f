// SPDX-License-Identifier: BSD-3-Clause
//
// use_model: translates with a model of `translate train` in a C++ program. docs/how_to/trained_models.md quotes it.
//
//     use_model MODEL... < sentences
//
// test: --help

#include <algorithm>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <heed_kit/text/corpus.hpp>
#include <heed_translator/load.hpp>

namespace {

void use(const std::vector<std::filesystem::path>& files, const std::vector<std::string>& lines)
{
    // section: translate
    const auto model = heed::seq2seq::load(files);  // one file, or several: an ensemble
    std::cout << model.description() << '\n';
    for (const auto& line : model.translate(lines, {.beam = 12, .alternatives = 3})) {
        std::cout << line.text << '\n';
        for (const auto& each : line.alternatives) std::cout << "    " << each.score << "  " << each.text << '\n';
    }
    // end

    // section: alignment
    const auto line = model.translate(lines.front());
    for (std::size_t j = 0; j < line.alignment.size() && j < line.words.size(); ++j) {
        const auto& row = line.alignment[j];  // a weight for each source word, and one for the end of the sentence
        const auto most = static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin());
        std::cout << line.words[j] << " <- " << (most < line.source_words.size() ? line.source_words[most] : "end")
                  << '\n';
    }
    // end

    // section: score
    const auto pair = model.score(lines.front(), line.text);
    std::cout << "log p = " << pair.log_probability << " nats, of " << pair.target_pieces.size() << " subwords\n";
    // end

    // section: threads
    std::vector<std::string> answers(lines.size());
    std::vector<std::thread> clients;
    for (std::size_t i = 0; i < lines.size(); ++i)
        clients.emplace_back([&, i] { answers[i] = model.translate(lines[i], {.beam = 4}).text; });
    for (std::thread& client : clients) client.join();
    // end
    for (const std::string& answer : answers) std::cout << answer << '\n';
}

}  // namespace

int main(int count, char** arguments)
{
    const std::vector<std::filesystem::path> files(arguments + 1, arguments + count);
    if (files.empty() || files.front() == "--help") {
        std::cout << "usage: use_model MODEL... < sentences\nTranslates them with a model of `translate train`.\n";
        return files.empty() ? 1 : 0;
    }
    try {
        std::vector<std::string> lines;
        const auto here = [&] { return "standard input:" + std::to_string(lines.size() + 1); };
        for (std::string line; heed::text::read_line(std::cin, line, here);) lines.push_back(line);
        if (!lines.empty()) use(files, lines);
        if (!std::cout.flush()) throw std::runtime_error("cannot write to standard output");
    } catch (const std::exception& problem) {
        std::cerr << "use_model: " << problem.what() << '\n';
        return 1;
    }
    return 0;
}
