// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <heed_kit/text/bpe.hpp>

namespace fuzz::bpe {

/// BPE codes, "====", and a text to split.
void run(std::string_view bytes)
{
    const two_texts given(bytes);
    const auto path = file_of(given.first);
    const auto codes = read(path, given.first.size(), 128, [&] { return heed::text::bpe_codes::read(path); });
    if (!codes) return;
    require(heed::text::bpe_codes::from_text(codes->to_text()) == *codes, "the codes change in a round trip");
    const heed::text::sentence words = heed::text::split(given.second);
    const allowance limited(free_bytes + 1024 * bytes.size());
    accepts([&] {  // rejects invalid UTF-8
        const heed::text::sentence pieces = heed::text::bpe(*codes).apply(words);
        require(heed::text::undo_bpe(pieces) == words, "subwords do not join to their words");
    });
}

std::vector<std::string> seeds()
{
    return {"#version: 0.2\n", "#version: 0.2\nl o\nlo w\ne s\nes t</w>\n====\na low lowest @@ west@@ bid",
            "\xEF\xBB\xBF#version: 0.2\r\na a\r\naa a\r\naa aa\r\n\r\n====\naaaaaaaaa \xC3\xA4"};
}

const registered target({"bpe", run, seeds});

}  // namespace fuzz::bpe
