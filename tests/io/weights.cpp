// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <heed/heed.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/temporary_directory.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::contains;
using support::message_of;

namespace {

auto additive_attention(std::uint64_t stream)
{
    return attention{score::additive{support::random<float>({3, 4}, stream), support::random<float>({5, 4}, stream + 1),
                                     support::random<float>({4}, stream + 2)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

template <class Model>
bool same(const Model& a, const Model& b)
{
    io::archive first, second;
    io::put(first, a);
    io::put(second, b);
    return first.tensors == second.tensors;
}

io::tensor_entry& entry(io::archive& in, const std::string& name)
{
    for (io::tensor_entry& each : in.tensors) {
        if (each.name == name) return each;
    }
    throw error("no tensor " + name);
}

}  // namespace

TEST_CASE("a policy's parameters are saved by name with their shapes and loaded again")
{
    const auto model = additive_attention(1);
    io::archive archive;
    io::put(archive, model);
    REQUIRE(archive.tensors.size() == 3);
    CHECK(archive.tensors[0].name == "score.W");
    CHECK(archive.tensors[0].dtype == "F32");
    CHECK(archive.tensors[0].shape == std::vector<std::size_t>{3, 4});
    CHECK(archive.tensors[1].name == "score.U");
    CHECK(archive.tensors[2].name == "score.v");
    CHECK(archive.tensors[2].values<float>() == std::vector<float>(model.score.v.begin(), model.score.v.end()));

    auto other = additive_attention(9);
    REQUIRE(!same(other, model));
    io::take(archive, other);
    CHECK(same(other, model));
}

TEST_CASE("a prefix separates two modules in one file; other tensors are ignored")
{
    const auto first = additive_attention(1), second = additive_attention(5);
    io::archive archive;
    archive.tensors.push_back(io::tensor_entry::of("else", {2}, std::vector<double>{1, 2}));
    io::put(archive, first, "first.");
    io::put(archive, second, "second.");
    const temporary_directory here;
    io::save(here.path() / "two", archive);
    const io::archive stored = io::load(here.path() / "two");
    auto a = additive_attention(9), b = additive_attention(9);
    io::take(stored, a, "first.");
    io::take(stored, b, "second.");
    CHECK(same(a, first));
    CHECK(same(b, second));
    CHECK(contains(message_of<error>([&] { io::take(stored, a); }), "\"score.W\""));
}

TEST_CASE("a policy without parameters can be saved and loaded")
{
    attention plain{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    io::archive archive;
    io::put(archive, plain);
    CHECK(archive.tensors.empty());
    io::take(archive, plain);
}

TEST_CASE("doubles, including NaN and infinities, keep every bit")
{
    score::general model{support::random({2, 3}, 4)};
    model.W(0, 0) = std::numeric_limits<double>::quiet_NaN();
    model.W(0, 1) = -0.0;
    model.W(1, 2) = std::numeric_limits<double>::infinity();
    io::archive archive;
    io::put(archive, model);
    CHECK(archive.tensors[0].dtype == "F64");
    score::general other{support::random({2, 3}, 5)};
    io::take(archive, other);
    CHECK(support::same_bits(other.W, model.W));
}

TEST_CASE("a translator that is saved and loaded translates as before")
{
    const seq2seq::sizes n{12, 11, 6, 5, 4};
    const auto check = [&](auto attention) {
        const auto model = seq2seq::make_translator<float>(1, n, attention);
        auto other = seq2seq::make_translator<float>(2, n, attention);
        REQUIRE(!same(model, other));
        io::archive archive;
        io::put(archive, model);
        const temporary_directory here;
        io::save(here.path() / "model", archive);
        io::take(io::load(here.path() / "model"), other);
        CHECK(same(model, other));
        const std::vector<seq2seq::id_sentence> sentences{{4, 5, 6}, {11, 1}};
        const std::vector<const seq2seq::id_sentence*> batch{&sentences[0], &sentences[1]};
        const auto expected = seq2seq::greedy<float>(model, seq2seq::make_source(batch), {.with_weights = true});
        const auto translated = seq2seq::greedy<float>(other, seq2seq::make_source(batch), {.with_weights = true});
        for (std::size_t i = 0; i < batch.size(); ++i) {
            CHECK(!expected[i].weights.empty());
            CHECK(translated[i].words == expected[i].words);
            CHECK(translated[i].weights == expected[i].weights);
        }
    };
    check(seq2seq::attentions::temporal_factory{});
    check(seq2seq::attentions::per_dimension_factory{});
}

TEST_CASE("16-bit weights are rounded once and read as floats")
{
    const auto model = additive_attention(1);
    io::archive half, bfloat;
    io::put<io::float16>(half, model);
    io::put<io::bfloat16>(bfloat, model, "model.");
    CHECK(half.at("score.W").dtype == "F16");
    CHECK(bfloat.at("model.score.v").dtype == "BF16");
    auto a = additive_attention(9), b = additive_attention(9);
    io::take(half, a);
    io::take(bfloat, b, "model.");
    CHECK(support::distance(a.score.W, model.score.W) < 0x1p-11);
    CHECK(support::distance(b.score.W, model.score.W) < 0x1p-8);
    CHECK(a.score.W(1, 2) == static_cast<float>(io::float16(model.score.W(1, 2))));
    CHECK(b.score.W(1, 2) == static_cast<float>(io::bfloat16(model.score.W(1, 2))));

    // A model of doubles reads the floats exactly.
    score::general in_double{support::random({2, 3}, 4)};
    const score::general in_float{support::random<float>({2, 3}, 5)};
    io::archive floats;
    io::put(floats, in_float);
    io::take(floats, in_double);
    CHECK(support::distance(in_double.W, in_float.W) == 0);
}

TEST_CASE("a tensor that does not fit is reported and changes nothing")
{
    io::archive archive;
    io::put(archive, additive_attention(1));
    const auto before = additive_attention(9);
    // The last tensor is wrong: the earlier ones must not be changed.
    const auto message_for = [&](auto&& spoil) {
        io::archive spoilt = archive;
        spoil(spoilt);
        auto model = before;
        const std::string message = message_of<error>([&] { io::take(spoilt, model); });
        CHECK(same(model, before));
        return message;
    };
    const auto missing = message_for([](io::archive& in) { in.tensors.pop_back(); });
    CHECK(contains(missing, "no tensor \"score.v\""));

    const auto shape = message_for(
        [](io::archive& in) { entry(in, "score.v") = io::tensor_entry::of("score.v", {5}, std::vector<float>(5)); });
    CHECK(contains(shape, "\"score.v\" is F32 [5] in the file"));
    CHECK(contains(shape, "needs F32 [4]"));

    const auto rank = message_for([](io::archive& in) {
        entry(in, "score.v") = io::tensor_entry::of("score.v", {4, 1}, std::vector<float>(4));
    });
    CHECK(contains(rank, "F32 [4,1] in the file"));

    const auto fewer = message_for([](io::archive& in) { in.tensors.clear(); });
    CHECK(contains(fewer, "it has no tensors"));

    const auto number = message_for(
        [](io::archive& in) { entry(in, "score.v") = io::tensor_entry::of("score.v", {4}, std::vector<double>(4)); });
    CHECK(contains(number, "is F64 [4] in the file, but the model needs F32 [4]"));

    // Not from a file, which load() checks, but built in memory.
    const auto values = message_for([](io::archive& in) {
        auto& bytes = entry(in, "score.v").bytes;
        bytes = bytes.part(0, 12);
    });
    CHECK(contains(values, "\"score.v\" is [4] but holds 3 values"));
}
