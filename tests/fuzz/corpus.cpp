// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <heed/core/utf8.hpp>
#include <heed_kit/metrics/tokenize_13a.hpp>
#include <heed_kit/text/corpus.hpp>

namespace fuzz::corpus {

using heed::text::empty_lines;
using heed::text::sentence;

void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    // A token needs a string, a line needs a list.
    const auto found = read(path, bytes.size(), 128, [&] { return heed::text::read_corpus(path, empty_lines::keep); });
    const auto strict = read(path, bytes.size(), 128, [&] { return heed::text::read_corpus(path); });
    if (strict) require(found && *strict == *found, "the mode without empty lines reads differently");
    if (!found) return;
    std::string text;
    for (const sentence& line : *found) {
        const std::string joined = heed::text::join(line);
        text += joined + '\n';
        require(heed::text::split(joined) == line, "a joined line is split differently");
        const std::string shown = heed::text::printable(joined);
        require(!heed::text::find_invalid_utf8(shown), "printable text is not UTF-8");
        require(heed::text::printable(shown) == shown, "printable() is not idempotent");
        heed::metrics::tokenize_13a(joined);
    }
    // The byte order mark is not part of the text; a second one at the start would be mistaken for it.
    if (text.starts_with(heed::text::byte_order_mark)) return;
    const auto copy = file_of(text, "written");
    require(heed::text::read_corpus(copy, empty_lines::keep) == *found, "the corpus changes in a round trip");
}

std::vector<std::string> seeds()
{
    return {"a man is sleeping .\nzwei  H\xC3\xA4user\t!\n", "\xEF\xBB\xBFone\r\n\r\ntwo", "\n",
            "\xE2\x80\xAE\xF0\x9F\x98\x80 .\n"};
}

const registered target({"corpus", run, seeds});

}  // namespace fuzz::corpus
