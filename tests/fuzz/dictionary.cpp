// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <tools/translate/dictionary.hpp>
#include <tools/translate/phrases.hpp>

namespace fuzz::dictionary {

/// A dictionary, "====", and a phrase table.
void run(std::string_view bytes)
{
    const two_texts given(bytes);
    heed::translator::language source, target;
    source.vocabulary = target.vocabulary =
        heed::text::vocabulary::from_words({"<pad>", "<unk>", "<s>", "</s>", "a", "b", "man"});
    const auto path = file_of(given.first);
    const auto words = read(path, given.first.size(), 128, [&] { return translation::dictionary(path); });
    if (words) {
        require(!words->best().empty(), "a dictionary without words");
        const auto meanings = words->meanings(source, target);
        require(meanings.size() == source.vocabulary.size(), "not a list for each word");
        for (const auto& each : meanings)
            for (const auto id : each) require(id < target.vocabulary.size(), "a word outside the vocabulary");
    }
    const auto table = file_of(given.second, "phrases");
    const auto phrases =
        read(table, given.second.size(), 128, [&] { return translation::read_phrases(table, source, target); });
    if (phrases)
        for (const auto& phrase : phrases->phrases())
            require(!phrase.empty() && phrase.size() <= 4, "wrong phrase length");
}

std::vector<std::string> seeds()
{
    return {"a b\nman mann 0.5\nman b 1e-3\n", "a a nan\n", "a b\n====\na b ||| man a\nman ||| b\n"};
}

const registered target({"dictionary", run, seeds});

}  // namespace fuzz::dictionary
