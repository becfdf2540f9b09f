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

TEST_CASE("penalties are parsed, and invalid ones are reported")
{
    using heed::translator::parse_penalties;
    CHECK(parse_penalties("").empty());
    const auto two = parse_penalties("coverage:0.1,doubly-stochastic:2");
    REQUIRE(two.size() == 2);
    CHECK(two[0].name == "coverage");
    CHECK(two[0].weight == 0.1);
    CHECK(two[1].name == "doubly-stochastic");
    CHECK(two[1].weight == 2);
    for (const char* text : {"coverage", "coverage:", "coverage:0", "coverage:-1", "coverage:nan", "coverage:inf",
                             "coverage:1x", "coverage:1,", ",coverage:1", "coverage:1,,monotone:1",
                             "coverage:1,coverage:2", "covered:1", ":1", " ", "coverage:1e999"}) {
        CAPTURE(text);
        CHECK_THROWS_AS(parse_penalties(text), heed::error);
    }

    options written;
    written.penalty = "monotone:0.5";
    written.guided_weight = 0.25;
    written.guided_shift = 1;
    written.r_drop = 5;
    metadata file{{"format", heed::translator::format_name}};
    written.write(file);
    CHECK(options::read(file).penalty == "monotone:0.5");
    CHECK(options::read(file).guided_weight == 0.25);
    CHECK(options::read(file).guided_shift == 1);
    CHECK(options::read(file).r_drop == 5);
    metadata unchanged{{"format", heed::translator::format_name}};
    options{}.write(unchanged);
    CHECK(!unchanged.contains("options.penalty"));
    CHECK(!unchanged.contains("options.guided-weight"));
}

}  // namespace
