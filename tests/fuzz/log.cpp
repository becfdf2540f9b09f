// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <tools/support/nbest.hpp>
#include <tools/translate/training_log.hpp>

namespace fuzz::log {

/// A training log that is continued.
void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    const auto go_on = [&] {
        translation::training_log log(path);
        log.begin(true, 2);
        return heed::text::read_corpus(path);
    };
    const auto kept = read(path, bytes.size(), 128, go_on);
    if (kept) require(go_on() == *kept, "continuing the log twice changes it");

    // A line of an n-best list.
    const heed::text::sentence tokens = heed::text::split(bytes);
    const auto line = read("list:1", bytes.size(), 256, [&] { return program::parse_nbest(tokens, "list:1"); });
    if (line) require(line->words.size() + line->scores.size() + 3 == tokens.size(), "words or scores were lost");
}

std::vector<std::string> seeds()
{
    const std::string header(translation::training_log::header);
    return {header + "\n1,10,0.100,5.1,0.001,4.9,1.2,100.0\n2,20,0.2,4,0.001,nan,1.3,\n3,30,0.3,3,0.001,inf,1.4,\n",
            header, "0 ||| a man . ||| -0.5 -1"};
}

const registered target({"log", run, seeds});

}  // namespace fuzz::log
