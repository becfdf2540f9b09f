// SPDX-License-Identifier: BSD-3-Clause
// A user's program that translates two lines with the installed library.
#include <cstdio>

#include <heed_translator/load.hpp>

int main(int, char** arguments)
{
    const auto model = heed::seq2seq::load(arguments[1]);
    for (const auto& line : model.translate({"one two", "three"}, {.beam = 3, .alternatives = 2}))
        std::printf("%s: %zu x %zu\n", line.text.c_str(), line.alignment.size(), line.alignment.front().size());
    return 0;
}
