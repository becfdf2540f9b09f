// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed_translator/options.hpp>

namespace {

using heed::translator::metadata;
using heed::translator::options;

TEST_CASE("options in files of heed 0.2 are read under their current names")
{
    metadata file{{"format", heed::translator::format_name}};
    options{}.write(file);
    file.insert({{"options.pieces", "150"}, {"options.pieces-by", "unigram"}, {"options.casing", "as-is"}});
    file["options.positions"] = "waves";
    file["options.norm"] = "after";
    file["options.attention"] = "fading-temporal";
    const options read = options::read(file);
    CHECK(read.subword_vocab == 150);
    CHECK(read.subword_model == "unigram");
    CHECK(read.casing == "as-is");
    CHECK(read.positions == "sinusoidal");
    CHECK(read.norm == "post");
    CHECK(read.attention == "decayed-temporal");

    file["options.casing"] = "usual";
    file["options.norm"] = "before";
    CHECK(options::read(file).casing == "truecase");
    CHECK(options::read(file).norm == "pre");
}

TEST_CASE("options survive a round trip")
{
    options written;
    written.subword_vocab = 99;
    written.positions = "learned";
    written.norm = "post";
    metadata file{{"format", heed::translator::format_name}};
    written.write(file);
    const options read = options::read(file);
    CHECK(read.subword_vocab == 99);
    CHECK(read.positions == "learned");
    CHECK(read.norm == "post");
    CHECK(read.casing == "truecase");
}

}  // namespace
