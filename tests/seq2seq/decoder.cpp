// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/decoder.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/seq2seq/systems/sankaran2016.hpp>
#include <support/scalar_translation.hpp>
#include <support/tensors.hpp>
#include <support/translators.hpp>

// The initial state, fixed_context and its probabilities, and the first coverage embeddings, against scalar loops over
// one sentence, written from Bahdanau et al. 2015, appendix A.

using namespace heed;
using support::random;
namespace scalar = support::scalar;

namespace {

constexpr std::size_t V = 9, E = 3, H = 4, L = 2;

/// Four sentences in a batch, the longest neither first nor last; the padding contains words.
seq2seq::source_batch sentences()
{
    seq2seq::source_batch batch{word_ids(5, 4), lengths{2, 5, 1, 3}};
    batch.words.ids = {7, 1, 4, 2, 3, 8, 6, 5, 5, 0, 1, 7, 2, 6, 8, 4, 1, 3, 2, 6};
    return batch;
}

/// All parameters differ, including initial states and biases.
auto unit(std::size_t input, std::uint64_t stream)
{
    return nn::gru{random({input, 3 * H}, stream), random({3 * H}, stream + 1), random({H, 2 * H}, stream + 2),
                   random({H, H}, stream + 3)};
}
auto bidirectional()
{
    return seq2seq::bidirectional_encoder{random({V, E}, 1), unit(E, 10), unit(E, 20),
                                          nn::trained_start{random({H}, 30)}, nn::trained_start{random({H}, 31)}};
}
auto forward_only()
{
    return seq2seq::forward_encoder{random({V, E}, 1), unit(E, 10), nn::trained_start{random({H}, 30)}};
}

/// The gates of an nn::gru separately; `below` contains further rows of its input matrix.
scalar::gated_unit apart(const auto& cell, const scalar::matrix& below = {})
{
    scalar::matrix W = scalar::matrix_of(cell.W);
    W.insert(W.end(), below.begin(), below.end());
    const scalar::matrix U = scalar::matrix_of(cell.U), b{scalar::vector_of(cell.b)};
    return {scalar::columns(W, 0, H),         scalar::columns(W, H, H),         scalar::columns(W, 2 * H, H),
            scalar::columns(U, 0, H),         scalar::columns(U, H, H),         scalar::matrix_of(cell.U_h),
            scalar::columns(b, 0, H).front(), scalar::columns(b, H, H).front(), scalar::columns(b, 2 * H, H).front()};
}

scalar::numbers row_of(const array<double, 2>& x, std::size_t b)
{
    return {x.data() + b * x.shape()[1], x.data() + (b + 1) * x.shape()[1]};
}
scalar::numbers full_range_of(const auto& source, std::size_t b) { return row_of(source.whole, b); }

void check_row(const char* what, const double* row, const scalar::numbers& must)
{
    for (std::size_t i = 0; i < must.size(); ++i) {
        CHECK_MESSAGE(row[i] == doctest::Approx(must[i]).epsilon(1e-13), what << ", number " << i);
    }
}

/// A decoder whose parameters all differ, and its layers in the form that the loops use.
auto decoder_for(std::size_t context)
{
    return seq2seq::decoder{seq2seq::fixed_context{},
                            random({V, E}, 40),
                            unit(E, 41),
                            seq2seq::query_from::previous_state{random({context, 3 * H}, 45)},
                            seq2seq::initial_state::tanh_layer{random({H, H}, 46), random({H}, 47)},
                            seq2seq::output::maxout{random({H, 2 * L}, 48), random({E, 2 * L}, 49),
                                                    random({context, 2 * L}, 50), random({2 * L}, 51),
                                                    random({L, V}, 52), random({V}, 53)}};
}
scalar::decoder_layers layers_of(const auto& d)
{
    return {scalar::matrix_of(d.embedding),   apart(d.cell, scalar::matrix_of(d.asks.C)),
            scalar::matrix_of(d.readout.U_o), scalar::matrix_of(d.readout.V_o),
            scalar::matrix_of(d.readout.C_o), scalar::vector_of(d.readout.b_o),
            scalar::matrix_of(d.readout.W_o), scalar::vector_of(d.readout.b)};
}

}  // namespace

TEST_CASE("s_0 is computed from the backward encoder's state at the first word")
{
    const auto batch = sentences();
    const auto source = bidirectional().encode(batch);
    const auto decoder = decoder_for(2 * H);
    const auto open = decoder.open(source, batch.real);
    for (std::size_t b = 0; b < 4; ++b) {
        // ←h_1 is the second half of the first annotation.
        const double* const first = source.annotations.data() + b * 5 * 2 * H + H;
        check_row("s_0", open.state.cell.data() + b * H,
                  scalar::tanh_layer({first, first + H}, scalar::matrix_of(decoder.start.W_s),
                                     scalar::vector_of(decoder.start.b_s)));
    }
}

TEST_CASE("fixed_context passes the whole sentence to every step, and changes the probabilities accordingly")
{
    const auto check = [](const auto& encoder) {
        const auto batch = sentences();
        const auto source = encoder.encode(batch);
        const std::size_t D = shape_of(source.whole)[1];
        const seq2seq::fixed_context none;
        const auto memory = none.on(source, batch.real);
        auto state = none.start(memory);
        for (std::size_t i = 0; i < 2; ++i) {
            const auto seen = none.read(memory, random({4, H}, 90 + i), state);
            for (std::size_t b = 0; b < 4; ++b) {
                check_row("context", seen.context.data() + b * D, full_range_of(source, b));
            }
            state = seen.state;
        }

        const auto decoder = decoder_for(D);
        seq2seq::training_batch<double> pairs{batch, word_ids(3, 4), {word_ids(3, 4), std::vector<double>(12)}, 0};
        pairs.previous.ids = {2, 2, 2, 2, 8, 0, 5, 1, 6, 7, 4, 3};
        pairs.targets.words.ids = {8, 0, 5, 1, 6, 7, 4, 3, 1, 2, 3, 4};
        for (std::size_t b = 0; b < 4; ++b) {
            std::vector<std::size_t> previous, words;
            for (std::size_t i = 0; i < 3; ++i) {
                previous.push_back(pairs.previous(i, b));
                words.push_back(pairs.targets.words(i, b));
            }
            const auto log_p = scalar::log_probabilities(layers_of(decoder),
                                                         scalar::tanh_layer(row_of(source.start, b),
                                                                            scalar::matrix_of(decoder.start.W_s),
                                                                            scalar::vector_of(decoder.start.b_s)),
                                                         full_range_of(source, b), previous, words);
            for (std::size_t i = 0; i < 3; ++i) {
                std::fill(pairs.targets.weights.begin(), pairs.targets.weights.end(), 0.0);
                pairs.targets.weights[i * 4 + b] = 1;
                CHECK(decoder.loss(source, pairs)() == doctest::Approx(-log_p[i]).epsilon(1e-12));
            }
        }
    };
    check(bidirectional());
    check(forward_only());
}

TEST_CASE("coverage embeddings start from the table's row of each source word")
{
    namespace sankaran = papers::sankaran2016;
    using support::examples;
    constexpr seq2seq::sizes small{7, 8, 4, 3, 5};
    auto model = sankaran::translator<double>(3, small, sankaran::coverage_factory{3});
    const double before = model.loss(examples)();
    const std::size_t words[]{4, 5, 6, 1, 3};  // the source words and the end word
    for (std::size_t v = 0; v < small.source_vocabulary; ++v) {
        auto changed = model;
        for (std::size_t k = 0; k < 3; ++k) changed.decoder.attention.table(v, k) += 1;
        CHECK((changed.loss(examples)() != before) ==
              (std::find(std::begin(words), std::end(words), v) != std::end(words)));
    }
    // The first weights are those of an attention that has these rows as c_0.
    const auto& d = model.decoder;
    const auto source = model.encoder.encode(examples.source);
    const auto memory = d.attention.on(source.annotations, examples.source.real);
    array<double, 3> rows({4, examples.source.words.steps, 3});
    for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t t = 0; t < rows.shape()[1]; ++t) {
            for (std::size_t k = 0; k < 3; ++k) rows(b, t, k) = d.attention.table(examples.source.words(t, b), k);
        }
    }
    const auto opened = model.open(examples.source);
    const auto must = d.attention.start(memory, d.attention.score.start_from(memory, rows));
    CHECK(support::same_bits(opened.state.attention.score.coverage, must.score.coverage));
}
