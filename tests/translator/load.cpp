// SPDX-License-Identifier: BSD-3-Clause
#include <heed_translator/load.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <heed/seq2seq/translator.hpp>  // its name is that of a namespace
#include <heed_kit/text/learn_bpe.hpp>
#include <heed_translator/search.hpp>

#include <support/approx.hpp>

using heed::seq2seq::load;
using heed::seq2seq::trained_translator;
using heed::seq2seq::translate_options;
using heed::seq2seq::translated_line;
using heed::text::sentence;
namespace translator = heed::translator;

namespace {

const std::vector<std::string> lines{"a man is sleeping", "two men", "", "a dog and a man and two dogs are sleeping",
                                     "a cat"};
const std::vector<std::string> german{"ein mann schläft", "zwei männer", "ein hund", "hunde schlafen"};

std::vector<sentence> words_of(const std::vector<std::string>& text)
{
    std::vector<sentence> all;
    for (const std::string& line : text) {
        if (!line.empty()) all.push_back(heed::text::split(line));
    }
    return all;
}

/// An untrained model in a file whose vocabulary lacks "cat".
std::string stored(const std::string& name, const std::string& system, bool pieces = false, std::uint64_t seed = 1,
                   const std::string& attention = "")
{
    translator::translator_file file;
    file.how.system = system;
    const translator::system_kind& kind = translator::kind_of(system);
    for (const translator::option_support& each : kind.option_support_list) {
        if (!each.preset.empty()) file.how.set(each.option, each.preset);
    }
    if (!attention.empty()) file.how.attention = attention;
    file.how.embedding = file.how.hidden = file.how.alignment = 8;
    file.how.layers = 1;
    file.how.seed = seed;
    file.how.reverse_source = pieces && system == "luong";
    const auto side = [&](translator::language& to, const std::vector<sentence>& text) {
        std::vector<sentence> tokens = text;
        if (pieces) {
            heed::text::word_counts counts;
            for (const sentence& each : text) {
                for (const std::string& word : each) ++counts[word];
            }
            to.splitting.emplace(heed::text::learn_bpe(counts, 6));
            for (sentence& each : tokens) each = to.tokens(each);
        } else {
            for (sentence& each : tokens) std::erase(each, "cat");
        }
        to.vocabulary = heed::text::vocabulary::build(tokens);
    };
    std::vector<sentence> both = words_of(lines);
    if (file.how.share_embeddings == "all") {
        const auto other = words_of(german);
        both.insert(both.end(), other.begin(), other.end());
        side(file.source, both);
        file.target = file.source;
    } else {
        side(file.source, both);
        side(file.target, words_of(german));
    }
    file.how.bpe = pieces ? 6 : 0;
    file.system = translator::make_system(file.how, file.source.vocabulary.size(), file.target.vocabulary.size());
    translator::save_model(name, file);
    return name;
}

std::string message(const auto& action)
{
    try {
        action();
    } catch (const heed::error& problem) {
        return problem.what();
    }
    return "nothing was thrown";
}

void check_same(const std::vector<translated_line>& left, const std::vector<translated_line>& right)
{
    REQUIRE(left.size() == right.size());
    for (std::size_t i = 0; i < left.size(); ++i) {
        CHECK(left[i].text == right[i].text);
        CHECK(left[i].score == right[i].score);
        CHECK(left[i].alignment == right[i].alignment);
        REQUIRE(left[i].alternatives.size() == right[i].alternatives.size());
        for (std::size_t k = 0; k < left[i].alternatives.size(); ++k)
            CHECK(left[i].alternatives[k].ids == right[i].alternatives[k].ids);
    }
}

}  // namespace

TEST_CASE("a file of any system is loaded and translates like its search")
{
    for (const auto& kind : translator::systems()) {
        CAPTURE(kind.name);
        const std::string path = stored(kind.name + ".safetensors", kind.name);
        const trained_translator model = load(path);
        CHECK(model.system() == kind.name);
        CHECK(model.options().at("hidden") == "8");
        CHECK(model.description().starts_with(kind.name + " (" + kind.description + ")"));
        const translate_options how{.beam = 3, .alternatives = 2, .batch = 2, .max_length = 7};
        const auto out = model.translate(lines, how);
        REQUIRE(out.size() == lines.size());

        const translator::translator_file file = translator::load_model(path);
        CHECK(model.parameters() == file.system->parameter_count());
        CHECK(model.source_vocabulary() == file.source.vocabulary.words());
        translator::search_options search;
        search.beam = 3;
        search.best = 2;
        search.max_length = 7;
        std::vector<sentence> words;
        for (const std::string& line : lines) words.push_back(heed::text::split(line));
        const auto found = translator::search_all(*file.system, file.source.encode(words), 2, search, true);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            CAPTURE(i);
            if (lines[i].empty()) {
                CHECK(out[i].text.empty());
                CHECK(out[i].alternatives.empty());
                CHECK(out[i].alignment.empty());
                continue;
            }
            CHECK(out[i].source_words == words[i]);
            REQUIRE(out[i].alternatives.size() == 2);
            CHECK(out[i].ids == out[i].alternatives[0].ids);
            CHECK(out[i].alternatives[0].score >= out[i].alternatives[1].score);
            for (std::size_t k = 0; k < 2; ++k) {
                const auto& each = out[i].alternatives[k];
                CHECK(each.ids == found[i][k].words);
                CHECK(each.score == found[i][k].score);
                CHECK(each.log_probability == found[i][k].log_probability);
                CHECK(each.text == heed::text::join(file.target.words(found[i][k].words)));
                REQUIRE(each.alignment.size() == each.words.size() + 1);
                for (const auto& row : each.alignment) REQUIRE(row.size() == words[i].size() + 1);
                // Here words are tokens: the alignment is that of the search.
                CHECK(each.alignment == found[i][k].weights);
            }
        }
    }
}

TEST_CASE("a canceled line gets no translation, and the other lines are unaffected")
{
    const trained_translator model = load(stored("wanted.safetensors", "rnnsearch"));
    for (const std::size_t beam : {1u, 3u}) {
        CAPTURE(beam);
        translate_options how{.beam = beam, .batch = 2, .max_length = 7};
        const auto all = model.translate(lines, how);
        std::vector<std::size_t> looks(lines.size());
        how.wanted = [&](std::size_t line) { return line != 1 && ++looks.at(line) > 0; };
        const auto some = model.translate(lines, how);
        REQUIRE(some.size() == lines.size());
        for (std::size_t i = 0; i < lines.size(); ++i) {
            CAPTURE(i);
            CHECK(some[i].text == (i == 1 ? "" : all[i].text));
            CHECK(some[i].alternatives.size() == (i == 1 ? 0 : all[i].alternatives.size()));
            CHECK(some[i].source_words == all[i].source_words);
            if (i != 1) CHECK(looks[i] > 0);
        }
    }
}

TEST_CASE("the code of include/heed_translator/README.md")
{
    stored("en-de.safetensors", "rnnsearch");
    // clang-format off
    const auto model = heed::seq2seq::load("en-de.safetensors");
    const auto out = model.translate(lines, {.beam = 12, .alternatives = 3});   // text, score, alignment, alternatives
    // clang-format on
    CHECK(out.size() == lines.size());
    CHECK(out.front().alternatives.size() == 3);
    CHECK(out.front().text == out.front().alternatives.front().text);
}

TEST_CASE("a given pair is scored like a translation of the search")
{
    const trained_translator model = load(stored("scored.safetensors", "rnnsearch"));
    const auto out = model.translate(lines[0], {.beam = 4, .max_length = 5});
    const auto same = model.score(lines[0], out.text);
    CHECK(same.target_words == out.words);
    CHECK(same.log_probability == doctest::Approx(out.log_probability).epsilon(1e-5));
    REQUIRE(same.log_probabilities.size() == out.words.size() + 1);
    REQUIRE(same.alignment.size() == out.alignment.size());
    for (std::size_t j = 0; j < same.alignment.size(); ++j) {
        for (std::size_t i = 0; i < same.alignment[j].size(); ++i)
            CHECK(same.alignment[j][i] == doctest::Approx(out.alignment[j][i]).epsilon(1e-4));
    }
    // The probabilities of all translations with one word and with none sum to less than 1.
    double sum = std::exp(model.score(lines[0], "").log_probability);
    for (const std::string& word : model.target_vocabulary())
        sum += word[0] == '<' ? 0 : std::exp(model.score(lines[0], word).log_probability);
    CHECK(sum > 0);
    CHECK(sum < 1);
    const auto several = model.score({lines[1], lines[0]}, {german[1], german[0]}, {.alignments = false});
    CHECK(several[1].log_probability ==
          support::approx(model.score(lines[0], german[0]).log_probability, support::tolerance<float>));
    CHECK(several[1].alignment.empty());
}

TEST_CASE("subword weights are summed per source word and averaged per target word, in text order")
{
    std::string system;
    SUBCASE("in both directions") { system = "rnnsearch"; }
    SUBCASE("with a reversed source") { system = "luong"; }
    const trained_translator model = load(stored("pieces.safetensors", system, true));
    const std::string line = lines[3];
    const auto out = model.translate(line, {.beam = 3, .max_length = 9, .piece_alignments = true});
    REQUIRE(out.source_pieces.size() > out.source_words.size());
    REQUIRE(out.piece_alignment.size() == out.pieces.size() + 1);
    REQUIRE(out.alignment.size() == out.words.size() + 1);
    CHECK(heed::text::undo_bpe(out.pieces) == out.words);
    const auto ends_word = [](const std::string& piece) { return !piece.ends_with("@@"); };
    std::vector<std::size_t> word_of;  // of each source subword; the end counts as a word
    std::size_t word = 0;
    for (const std::string& piece : out.source_pieces) {
        word_of.push_back(word);
        if (ends_word(piece)) ++word;
    }
    word_of.push_back(word);
    std::vector<std::vector<std::size_t>> rows(1);
    for (std::size_t j = 0; j < out.pieces.size(); ++j) {
        rows.back().push_back(j);
        if (ends_word(out.pieces[j])) rows.emplace_back();
    }
    if (rows.back().empty()) rows.pop_back();
    rows.push_back({out.pieces.size()});
    REQUIRE(rows.size() == out.alignment.size());
    for (std::size_t j = 0; j < rows.size(); ++j) {
        std::vector<double> sums(out.source_words.size() + 1, 0.0);
        for (const std::size_t row : rows[j]) {
            for (std::size_t i = 0; i < word_of.size(); ++i)
                sums[word_of[i]] +=
                    static_cast<double>(out.piece_alignment[row][i]) / static_cast<double>(rows[j].size());
        }
        for (std::size_t i = 0; i < sums.size(); ++i)
            CHECK(static_cast<double>(out.alignment[j][i]) == doctest::Approx(sums[i]).epsilon(1e-5));
    }
    // Translation and score have the same weights.
    const auto scored = model.score(line, out.text, {.piece_alignments = true});
    CHECK(scored.piece_alignment.front().front() == doctest::Approx(out.piece_alignment.front().front()).epsilon(1e-4));
}

namespace {

/// An untrained luong model with reversed sources, which always attends to `position`: its states are positive, so that
/// a single number determines where location and local-p attention attend.
translator::translator_file backwards(const std::string& attention, std::size_t layers, bool feeding,
                                      std::size_t position)
{
    translator::translator_file file = translator::load_model(stored("any.safetensors", "luong"));
    file.how.attention = attention;
    file.how.layers = layers;
    file.how.input_feeding = feeding;
    file.how.reverse_source = true;
    file.how.window = 1;
    file.how.longest = 12;
    file.system = translator::make_system(file.how, file.source.vocabulary.size(), file.target.vocabulary.size());
    const std::size_t H = file.how.hidden;
    for (const auto& each : file.system->parameters()) {
        const auto fill = [&](float value) { std::fill_n(each.numbers.data, each.numbers.size(), value); };
        if (each.name.starts_with("decoder.cell.") && each.name.ends_with(".b")) fill(9);
        if (each.name.ends_with("score.W") && attention == "location") {  // [H,S_max]
            for (std::size_t i = 0; i < each.numbers.size(); ++i)
                each.numbers.data[i] = i % file.how.longest == position ? 30.0f / static_cast<float>(H) : 0.0f;
        }
        if (each.name.ends_with("W_p")) fill(9);
        if (each.name.ends_with("v_p")) fill(-9);  // p_t = S · σ(-9 · 8) = 0
    }
    return file;
}

}  // namespace

TEST_CASE("with reversed sources, attentions that depend on positions attend to the right words")
{
    const std::string line = lines[3], target = "ein hund schläft schlafen";
    for (const std::size_t layers : {1u, 2u}) {
        for (const bool feeding : {false, true}) {
            for (const std::string attention :
                 {"location", "local-m-dot", "local-m-general", "local-p-dot", "local-p-general"}) {
                CAPTURE(layers);
                CAPTURE(feeding);
                CAPTURE(attention);
                translator::save_model("backwards.safetensors", backwards(attention, layers, feeding, 2));
                const trained_translator model = load("backwards.safetensors");
                CHECK(model.options().at("reverse-source") == "1");
                const auto check = [&](const std::vector<std::vector<float>>& rows) {
                    for (std::size_t s = 0; s < rows.size(); ++s) {
                        CAPTURE(s);
                        REQUIRE(rows[s].size() == 11);
                        const std::size_t first = attention == "location"            ? 2
                                                  : attention.starts_with("local-m") ? std::max<std::size_t>(s, 1) - 1
                                                                                     : 0;
                        const std::size_t last = attention == "location"            ? 2
                                                 : attention.starts_with("local-m") ? s + 1
                                                                                    : 1;
                        float inside = 0, outside = 0;
                        for (std::size_t t = 0; t < rows[s].size(); ++t)
                            (t >= first && t <= last ? inside : outside) += rows[s][t];
                        CHECK(inside > 0.5f);  // local-p's Gaussian reduces it below 1
                        CHECK(outside < 1e-6f);
                    }
                };
                check(model.score(line, target, {.piece_alignments = true}).piece_alignment);
                const auto scored = model.score(line, target);
                REQUIRE(scored.alignment.size() == 5);
                check(scored.alignment);
                const auto found = model.translate(line, {.beam = 2, .min_length = 4, .max_length = 5});
                check(found.alignment);
            }
        }
    }
}

TEST_CASE("reversed sources: layers, last states and weights equal those of reversed text")
{
    for (const std::size_t layers : {1u, 3u}) {
        for (const std::string attention : {"general", "none"}) {
            CAPTURE(layers);
            CAPTURE(attention);
            translator::translator_file file = backwards(attention, layers, false, 0);
            const auto ids = file.source.encode(heed::text::split(lines[3]));
            CHECK(file.source.vocabulary.word(ids.front()) == "a");
            const auto to = file.target.encode(heed::text::split("ein hund"));
            const heed::seq2seq::source_batch words =
                heed::seq2seq::make_source(std::vector<const heed::seq2seq::id_sentence*>{&ids});
            const auto follow = [&](const heed::seq2seq::source_batch& source) {
                return translator::models(*file.system).force(source, {&to}, attention != "none").front();
            };
            const auto backward = follow(words);
            const std::vector<float> numbers = file.system->copy();
            file.how.reverse_source = false;
            file.system =
                translator::make_system(file.how, file.source.vocabulary.size(), file.target.vocabulary.size());
            file.system->set(numbers);
            heed::seq2seq::source_batch turned = words;  // </s> x_n ... x_1
            const std::size_t T = words.words.steps;
            for (std::size_t t = 0; t < T; ++t) turned.words(t, 0) = words.words(T - 1 - t, 0);
            const auto forward = follow(turned);
            CHECK(backward.log_probability() == forward.log_probability());
            CHECK(backward.log_probability() != follow(words).log_probability());
            REQUIRE(backward.weights.size() == forward.weights.size());
            for (std::size_t s = 0; s < backward.weights.size(); ++s) {
                for (std::size_t t = 0; t < T; ++t)
                    CHECK(std::abs(backward.weights[s][t] - forward.weights[s][T - 1 - t]) < 1e-6f);
            }
        }
    }
}

TEST_CASE("--reverse-source: files of earlier versions, invalid values and unsupported systems are rejected")
{
    translator::translator_file file = backwards("general", 1, false, 0);
    heed::io::archive archive = translator::to_archive(file);
    CHECK(archive.metadata.at("options.reverse-source") == "2");
    CHECK(translator::from_archive(archive).how.reverse_source);
    archive.metadata["options.reverse-source"] = "1";
    heed::io::save("reversed.safetensors", archive);
    const std::string why = message([&] { load("reversed.safetensors"); });
    CHECK(why.starts_with("reversed.safetensors: trained with --reverse-source by an earlier heed"));
    CHECK(why.ends_with("train again"));
    archive.metadata["options.reverse-source"] = "3";
    CHECK(message([&] { translator::from_archive(archive); }) ==
          "options.reverse-source is \"3\" in its metadata, but must be 0 or 2");
    archive = translator::to_archive(translator::load_model(stored("both.safetensors", "rnnsearch")));
    CHECK(archive.metadata.at("options.reverse-source") == "0");
    archive.metadata["options.reverse-source"] = "2";
    CHECK(message([&] { translator::from_archive(archive); }) ==
          "--reverse-source: --system rnnsearch does not support it; omit it, or use --system luong");
}

TEST_CASE("several threads get the results of one, bit for bit")
{
    for (const bool pieces : {false, true}) {
        const std::string path = stored("threads.safetensors", "rnnsearch", pieces);
        const translate_options how{.beam = 3, .alternatives = 2, .max_length = 12};
        const auto alone = load(path).translate(lines, how);
        const trained_translator shared = load(path);  // not packed yet
        std::vector<std::vector<translated_line>> results(4);
        std::vector<std::thread> all;
        for (auto& each : results) all.emplace_back([&] { each = shared.translate(lines, how); });
        for (std::thread& each : all) each.join();
        for (const auto& each : results) check_same(each, alone);
    }
}

TEST_CASE("an ensemble of a model with itself translates like the model")
{
    const std::string one = stored("one.safetensors", "rnnsearch"),
                      other = stored("other.safetensors", "luong", false, 2);
    const translate_options how{.beam = 3, .max_length = 6};
    const auto alone = load(one).translate(lines[0], how), twice = load({one, one}).translate(lines[0], how);
    CHECK(twice.text == alone.text);
    CHECK(twice.score == doctest::Approx(alone.score).epsilon(1e-5));
    const trained_translator both = load({one, other});
    CHECK(both.parameters() == load(one).parameters() + load(other).parameters());
    CHECK(both.description().find(" + luong") != std::string::npos);
    const double mixed = std::exp(both.score(lines[1], "").log_probability);
    CHECK(mixed == doctest::Approx((std::exp(load(one).score(lines[1], "").log_probability) +
                                    std::exp(load(other).score(lines[1], "").log_probability)) /
                                   2)
                       .epsilon(1e-4));
    CHECK(message([&] {
              load({one, stored("pieces.safetensors", "rnnsearch", true)});
          }).starts_with("pieces.safetensors: does not read the same words as one.safetensors"));
}

TEST_CASE("a model without attention has no alignments")
{
    const trained_translator model = load(stored("none.safetensors", "rnnsearch", false, 1, "none"));
    CHECK(!model.has_attention());
    const auto out = model.translate(lines[0], {.beam = 2, .min_length = 2, .max_length = 4});
    CHECK(out.pieces.size() >= 2);
    CHECK(out.alignment.empty());
    CHECK(message([&] { model.translate("two men", {.replace_unknown = true}); }).find("has no attention") !=
          std::string::npos);
    CHECK(message([&] { model.translate("two men", {.coverage_penalty = 1}); }).find("the model has none") !=
          std::string::npos);
}

TEST_CASE("invalid text, conflicting options and files that are not models are rejected")
{
    const trained_translator model = load(stored("hostile.safetensors", "rnnsearch"));
    CHECK(message([&] {
              model.translate({"a man", "a m\xffn"});
          }) == "translate: line 2: byte 4, 0xff, is not valid UTF-8");
    CHECK(message([&] { model.translate(std::string_view("a\0b", 3)); }) ==
          "translate: line 1: byte 2, 0x00, is not allowed in text");
    CHECK(message([&] { model.translate("a", {.beam = 2, .alternatives = 3}); }) ==
          "search: the 3 best of a beam of 2; the beam must be 3 or more");
    CHECK(message([&] { model.translate("a", {.beam = 0}); }) == "search: beam and best must be at least 1");
    CHECK(message([&] { model.translate("a", {.batch = 0}); }) ==
          "translate: a batch of 0 lines; it must have at least 1");
    CHECK(message([&] { model.translate("a", {.min_length = 3, .max_length = 2}); }) ==
          "search: the minimum length 3 is greater than the maximum, 2");
    CHECK(message([&] { model.score(std::vector<std::string>{"a"}, std::vector<std::string>{}); }) ==
          "score: 1 source and 0 targets; line n of one must translate line n of the other");
    CHECK(message([&] { load(std::vector<std::filesystem::path>{}); }).starts_with("load: no file"));
    CHECK(message([&] { load("absent.safetensors"); }).starts_with("absent.safetensors: "));
    std::ofstream("text.safetensors") << "not a model";
    CHECK(message([&] { load("text.safetensors"); }).starts_with("text.safetensors: "));
    CHECK(model.translate(std::vector<std::string>{}).empty());
    CHECK(model.translate(" \t\r\n").text.empty());  // white space is not a word
    const auto unknown = model.translate("a xyzzy", {.beam = 2, .max_length = 3});
    CHECK(unknown.source_words == sentence{"a", "xyzzy"});
}

TEST_CASE("a watch callback sees the progress of a translation and can stop it")
{
    const trained_translator model = load(stored("watched.safetensors", "rnnsearch"));
    std::vector<std::size_t> seen;
    const translate_options how{.beam = 2, .batch = 2, .max_length = 3, .watch = [&](std::size_t count) {
                                    seen.push_back(count);
                                    return seen.size() < 2;
                                }};
    const auto out = model.translate(lines, how);
    CHECK(seen == std::vector<std::size_t>{0, 2});
    std::size_t done = 0;
    for (const auto& each : out) done += each.alternatives.empty() ? 0 : 1;
    CHECK(done <= 2);
}

TEST_CASE("numbers in a file's metadata are the shortest that read back equal")
{
    CHECK(translator::text_of(0.2) == "0.2");
    CHECK(translator::text_of(0.0) == "0");
    CHECK(translator::text_of(1e-4) == "0.0001");
    CHECK(translator::text_of(1e-5) == "1e-05");
    CHECK(translator::text_of(100000.0) == "100000");
    CHECK(translator::text_of(1e15) == "1000000000000000");
    CHECK(translator::text_of(1e16) == "1e+16");
    CHECK(translator::text_of(0.1 + 0.2) == "0.30000000000000004");
}

TEST_CASE("quantized files are loaded, and threads share one model")
{
    for (const std::string system : {"rnnsearch", "transformer"}) {
        CAPTURE(system);
        const std::string whole = stored("whole.safetensors", system);
        const translator::translator_file file = translator::load_model(whole);
        const auto must = load(whole).translate(lines);
        for (const std::string numbers : {"int8", "bf16"}) {
            CAPTURE(numbers);
            heed::io::save("small.safetensors", translator::to_smaller(file, numbers));
            const translator::translator_file small = translator::load_model("small.safetensors");
            CHECK(small.weights == (numbers == "int8" ? "I8" : "BF16"));
            CHECK(small.system->prefers_int8() == (numbers == "int8"));
            CHECK(small.source == file.source);
            CHECK(small.target == file.target);
            const auto floats = file.system->parameters(), rounded = small.system->parameters();
            for (std::size_t i = 0; i < floats.size(); ++i) {
                for (std::size_t j = 0; j < floats[i].numbers.size(); ++j)
                    CHECK(std::abs(floats[i].numbers.data[j] - rounded[i].numbers.data[j]) < 0.02);
            }
            const trained_translator one = load("small.safetensors");
            std::vector<std::vector<translated_line>> found(3);
            std::vector<std::thread> at_work;
            for (auto& each : found) at_work.emplace_back([&each, &one] { each = one.translate(lines); });
            for (std::thread& each : at_work) each.join();
            check_same(found[1], found[0]);
            check_same(found[2], found[0]);
            REQUIRE(found[0].size() == must.size());
            CHECK(found[0][2].text.empty());
        }
    }
}
