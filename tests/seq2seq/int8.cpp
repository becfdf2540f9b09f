// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/packed.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/sentences.hpp>

// Searches with weights of 8 bits: RNNsearch, whose decoder is laid out, and the Transformer, whose layers find their
// matrices.

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6, 7, 8}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

template <class Model>
std::vector<float> scores(const packed<float, Model>& model, bool restricted = false)
{
    const auto source = make_source(pointers(sources));
    const auto at_work = decode(model, source);
    if (restricted) at_work->restrict_to({2, 4, 5, 7});
    at_work->step(word_ids(1, sources.size(), 1));
    const auto logits = at_work->logits();
    return {logits.data, logits.data + logits.size()};
}

/// The root of the mean square of the differences, as a part of that of the numbers.
double difference(const std::vector<float>& x, const std::vector<float>& y)
{
    double off = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        off += std::pow(double(x[i]) - double(y[i]), 2);
        all += std::pow(double(x[i]), 2);
    }
    return std::sqrt(off / all);
}

/// `matrices`: how many products there are besides those of a decoder and an output layer that are laid out at once.
template <class Model>
void check(Model& model, std::size_t matrices)
{
    const packed<float, Model> full(model), bytes(model, weight_numbers::int8);
    CHECK(full.int8() == nullptr);
    CHECK(bytes.int8() != nullptr);
    for (const bool restricted : {false, true}) {
        const auto x = scores(full, restricted), y = scores(bytes, restricted);
        REQUIRE(x.size() == y.size());
        const double off = difference(x, y);
        CHECK(off > 1e-6);  // they are no floats
        CHECK(off < 0.03);
    }
    CHECK(bytes.int8()->laid_out() == matrices);
    CHECK(kernels::int8_weights::of_this_thread() == nullptr);

    const auto source = make_source(pointers(sources));
    const auto led = force<float>(full, source, pointers(targets));
    const auto led_in_bytes = force<float>(bytes, source, pointers(targets));
    for (std::size_t i = 0; i < led.size(); ++i)
        CHECK(led_in_bytes[i].log_probability() == doctest::Approx(led[i].log_probability()).epsilon(0.03));

    // section: packed
    const packed<float, Model> in_bytes(model, weight_numbers::int8);
    const auto found = beam<float>(in_bytes, source);
    // end
    CHECK(found.size() == sources.size());
    const auto one = greedy<float>(bytes, source);
    // What a search says of its translation, the led decoding says, too: in 8 bits both compute the same integers.
    std::vector<id_sentence> written;
    for (const auto& each : one) written.push_back(each.words);
    const auto again = force<float>(bytes, source, pointers(written));
    for (std::size_t i = 0; i < sources.size(); ++i) {
        if (one[i].words.size() < 2 * (sources[i].size() + 1) + 8)  // not cut off
            CHECK(again[i].log_probability() == doctest::Approx(one[i].log_probability).epsilon(1e-4));
    }
}

}  // namespace

TEST_CASE("RNNsearch in 8 bits")
{
    auto model = make_translator<float>(3, sizes{9, 10, 16, 24, 20}, attentions::additive<float>{});
    check(model, 9);  // W, U and U_h of both directions, W and U of the score, W_s
}

TEST_CASE("the Transformer in 8 bits")
{
    papers::vaswani2017::translator_sizes n;
    n.source_vocabulary = n.target_vocabulary = 10;
    n.model = 16;
    n.hidden = 32;
    n.heads = 2;
    n.encoder_layers = n.decoder_layers = 2;
    auto model = papers::vaswani2017::translator<float>(3, n);
    check(model, 2 * 6 + 2 * 10);  // four of each attention, two of each feed-forward network
}
