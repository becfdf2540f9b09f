// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <heed_kit/text/vocabulary.hpp>

namespace fuzz::vocabulary {

void run(std::string_view bytes)
{
    // A word needs a string, a node of the table and its slot.
    const auto found = read("vocabulary", bytes.size(), 128, [&] { return heed::text::vocabulary::from_text(bytes); });
    if (!found) return;
    require(found->to_text() == bytes, "the text changes in a round trip");
    for (heed::text::word_id id = 4; id < found->size(); ++id)
        require(found->id(found->word(id)) == id, "a word has another word's id");
}

std::vector<std::string> seeds() { return {"<pad>\n<unk>\n<s>\n</s>", "<pad>\n<unk>\n<s>\n</s>\nein\nMann\nschläft"}; }

const registered target({"vocabulary", run, seeds});

}  // namespace fuzz::vocabulary
