// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/packed.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <heed/combine/attentional.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/kernels/top_k_words.hpp>
#include <heed/nn/lstm.hpp>
#include <heed/score/conv_s2s.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/general.hpp>
#include <heed/score/with_coverage.hpp>
#include <heed/score/with_fertility.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbors.hpp>
#include <heed/score/with_positions.hpp>
#include <heed/score/with_recurrence.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/ensemble.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/exhaustive.hpp>
#include <support/searches.hpp>
#include <support/sentences.hpp>

// Searches with packed models, in float and in 8 bits: RNNsearch, whose decoder is packed, and the Transformer, whose
// layers look up their packed matrices.

namespace mine {

using heed::tensor;

template <class Trace>
struct trace_state {
    Trace trace;  // [B,A]

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (heed::spares_rows<decltype(f)>) {
            return *this;
        } else {
            return mine::trace_state{f(trace, others.trace...)};
        }
    }
};
template <class Trace>
trace_state(Trace) -> trace_state<Trace>;

/// A custom score: the words written and contexts read so far are added to the query, a_t = a_{t-1} / 2 + y_{t-1} P +
/// c_t R.
template <class Base, class Matrix>
struct with_trace {
    Base base;
    Matrix P, R;  // [E,A], [D,A]

    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position, .reads_word = true};

    auto prepare(const tensor auto& annotations) const { return base.prepare(annotations); }
    auto project(const auto& query) const { return base.project(query.state); }
    auto start(const auto& memory) const
    {
        const heed::shape_of_rank<2> shape{memory.batch(), heed::shape_of(R)[1]};
        return mine::trace_state{heed::constant_like(memory.keys, shape, 0.0)};
    }
    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return base.match(heed::ops::add(projected, past.trace), keys);
    }
    auto advance(const auto& past, const tensor auto&, const tensor auto& context, const auto& at) const
    {
        const auto emitted = heed::ops::addmm(heed::ops::scale(past.trace, 0.5), at.query().word, P);
        return mine::trace_state{heed::ops::addmm(emitted, context, R)};
    }
    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(project(query), keys, past);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return mine::with_trace{visit("base", self.base), visit("P", self.P), visit("R", self.R)};
    }
};
template <class Base, class Matrix>
with_trace(Base, Matrix, Matrix) -> with_trace<Base, Matrix>;

/// Additive attention with a trace.
struct tracing {
    auto operator()(const auto& init, const heed::seq2seq::sizes& n) const
    {
        using namespace heed;
        return attention{with_trace{seq2seq::attentions::additive_score_factory{}(init, n),
                                    init.glorot(n.embedding, n.alignment), init.glorot(2 * n.hidden, n.alignment)},
                         normalize::softmax{}, combine::weighted_sum{}};
    }
};

/// A score that has an `advance` and declares that it ignores the context.
struct indifferent {
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position, .ignores_context = true};
    heed::no_score_state start(const auto&) const { return {}; }
    auto match(const tensor auto& query, const tensor auto& keys, const auto&) const
    {
        return heed::ops::dot_per_position(query, keys);
    }
    auto advance(const auto& past, const tensor auto&, const auto&) const { return past; }
    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(query, keys, past);
    }
    static auto parameters(auto&, auto&&) { return indifferent{}; }
};

/// A custom combiner: the weighted sum, declared to be linear or not.
template <bool declared>
struct own_sum {
    static constexpr heed::combiner_traits traits{.weights = heed::weight_kind::per_position, .linear = declared};

    auto operator()(const tensor auto& given, const tensor auto& values) const
    {
        return heed::ops::weighted_sum(given, values);
    }
    static auto parameters(auto&, auto&&) { return mine::own_sum<declared>{}; }
};

}  // namespace mine

using namespace heed;
using namespace heed::seq2seq;
using namespace support::searches;
using support::pointers;

namespace {

/// The numbers of a row do not depend on how many hypotheses the other sentences currently have.
template <class Model>
void same_bits_beside_others(const Model& model)
{
    const batch_invariant guard;
    const std::vector<id_sentence> two{sources[0], sources[1]}, one{sources[0]};
    const auto after = [&](const std::vector<id_sentence>& read, const std::vector<std::size_t>& rows, bool wide) {
        const auto at_work = decode<double>(model, make_source(pointers(read)));
        if (wide) at_work->expect(4);
        at_work->step(word_ids(1, read.size(), special_ids{}.end));
        at_work->select(rows);
        at_work->step(word_ids(1, rows.size(), 5));
        const double* const scores = at_work->logits().data;
        return std::vector<double>(scores, scores + at_work->vocabulary());
    };
    for (const bool wide : {false, true}) {
        CAPTURE(wide);
        const auto alone = after(one, {0, 0, 0, 0}, wide);
        CHECK(alone == after(one, {0}, wide));
        CHECK(alone == after(two, {0, 1}, wide));
        CHECK(alone == after(two, {0, 0, 0, 0, 1}, wide));
        CHECK(alone == after(two, {0, 0, 0, 0, 1, 1, 1, 1}, wide));
    }
}

template <class Model>
void packed_is_the_same(const Model& model)
{
    const packed<double, Model> fast(model);
    REQUIRE(fast.decoder().width > 0);
    const auto batch = make_source(pointers(sources));
    beam_options how;
    how.width = 6;
    how.best = 3;
    how.with_weights = true;
    const auto slowly = beam<double>(model, batch, how), quickly = beam<double>(fast, batch, how);
    const auto simple = greedy<double>(model, batch, {.with_weights = true}),
               simply = greedy<double>(fast, batch, {.with_weights = true});
    const auto forced = force<double>(model, batch, pointers(targets)),
               led = force<double>(fast, batch, pointers(targets));
    const auto same_weights = [](const auto& a, const auto& b) {
        REQUIRE(a.size() == b.size());
        for (std::size_t j = 0; j < a.size(); ++j) {
            REQUIRE(a[j].size() == b[j].size());
            for (std::size_t t = 0; t < a[j].size(); ++t) CHECK(a[j][t] == support::approx(b[j][t]));
        }
    };
    for (std::size_t s = 0; s < sources.size(); ++s) {
        REQUIRE(slowly[s].size() == 3);
        REQUIRE(quickly[s].size() == 3);
        for (std::size_t k = 0; k < 3; ++k) {
            CHECK(slowly[s][k].words == quickly[s][k].words);
            CHECK(slowly[s][k].score == support::approx(quickly[s][k].score));
            same_weights(slowly[s][k].weights, quickly[s][k].weights);
        }
        CHECK(simple[s].words == simply[s].words);
        same_weights(simple[s].weights, simply[s].weights);
        CHECK(forced[s].log_probability() == support::approx(led[s].log_probability()));
    }
    same_bits_beside_others(fast);
    auto few = decode<double>(model, batch), fewer = decode<double>(fast, batch);
    for (decoding<double>* each : {few.get(), fewer.get()}) each->restrict_to({3, 5, 6, 9});
    const auto a = beam<double>(*few, batch.real, how), b = beam<double>(*fewer, batch.real, how);
    for (std::size_t s = 0; s < sources.size(); ++s) {
        REQUIRE(a[s].size() == b[s].size());
        for (std::size_t k = 0; k < a[s].size(); ++k) CHECK(a[s][k].words == b[s][k].words);
    }
    std::vector<std::unique_ptr<decoding<double>>> pair;
    pair.push_back(decode<double>(fast, batch));
    pair.push_back(decode<double>(model, batch));
    ensemble<double> twins(std::move(pair));
    const auto of_twins = beam<double>(twins, batch.real, how);
    for (std::size_t s = 0; s < sources.size(); ++s) CHECK(of_twins[s][0].words == slowly[s][0].words);
}

}  // namespace

TEST_CASE("a packed model searches like the model itself, with any attention")
{
    packed_is_the_same(first);   // a history, and a context that is linear in the values
    packed_is_the_same(second);  // weights per dimension, and the previous word in the score
    packed_is_the_same(blind);   // no attention
}

namespace {

using matrix = array<double, 2>;
using vector = array<double, 1>;
using heed_additive = score::additive<matrix, vector>;
using unit = nn::gru<matrix, vector>;
template <class Score, class Combine = combine::weighted_sum>
constexpr bool multiplies_values =
    heed::seq2seq::detail::matrix_may_come_first<attention<Score, normalize::temporal, Combine>>;

// A decoder may multiply the values instead of the context, once per source word, unless another part reads the
// context.
static_assert(multiplies_values<heed_additive> && multiplies_values<score::general<matrix>>);
static_assert(multiplies_values<score::dot> && multiplies_values<score::conv_s2s<matrix, vector>>);
static_assert(multiplies_values<score::with_word<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_positions<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_location<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_neighbors<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_coverage<heed_additive, matrix, unit>>);
static_assert(multiplies_values<score::with_fertility<heed_additive, vector>>);
static_assert(multiplies_values<score::with_word<score::with_coverage<heed_additive, matrix, unit>, matrix>>);
static_assert(multiplies_values<mine::indifferent>);
static_assert(!multiplies_values<score::with_recurrence<heed_additive, matrix, unit>>);
static_assert(!multiplies_values<mine::with_trace<heed_additive, matrix>>);
static_assert(!multiplies_values<score::with_word<mine::with_trace<heed_additive, matrix>, matrix>>);
static_assert(
    !multiplies_values<score::with_coverage<score::with_recurrence<heed_additive, matrix, unit>, matrix, unit>>);

// Also with a custom combiner that declares to be linear, but not with one that transforms the context.
static_assert(multiplies_values<heed_additive, mine::own_sum<true>>);
static_assert(!multiplies_values<heed_additive, mine::own_sum<false>>);
static_assert(!multiplies_values<heed_additive, combine::attentional<matrix>>);
static_assert(!multiplies_values<score::additive_per_dimension<matrix>, combine::elementwise_sum>);

// A decoder's query for these includes the embedding of the previous word.
static_assert(score::over::reads_word<score::conv_s2s<matrix, vector>>());
static_assert(score::over::reads_word<score::with_coverage<heed_additive, matrix, unit>>());
static_assert(score::over::reads_word<score::with_recurrence<heed_additive, matrix, unit>>());
static_assert(score::over::reads_word<score::with_positions<mine::with_trace<heed_additive, matrix>, matrix>>());
static_assert(!score::over::reads_word<heed_additive>());
static_assert(!score::over::reads_word<score::with_word<heed_additive, matrix>>());  // it gets Y y instead

}  // namespace

TEST_CASE("a custom score that reads the context gets the context, packed or not")
{
    packed_is_the_same(lively(8, mine::tracing{}));
}

namespace {

const std::vector<id_sentence> read_in_bytes{{4, 5, 6, 7, 8}, {4, 1}, {6, 5, 4, 4}, {}};
const std::vector<id_sentence> written_in_bytes{{4, 5}, {7, 6, 5, 4}, {5}, {4}};

template <class Model>
std::vector<float> scores(const packed<float, Model>& model, bool restricted = false)
{
    const auto source = make_source(pointers(read_in_bytes));
    const auto at_work = decode(model, source);
    if (restricted) at_work->restrict_to({2, 4, 5, 7});
    at_work->step(word_ids(1, read_in_bytes.size(), 1));
    const auto logits = at_work->logits();
    return {logits.data, logits.data + logits.size()};
}

/// The root mean square of the differences, relative to that of the numbers.
double difference(const std::vector<float>& x, const std::vector<float>& y)
{
    double off = 0, all = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        off += std::pow(double(x[i]) - double(y[i]), 2);
        all += std::pow(double(x[i]), 2);
    }
    return std::sqrt(off / all);
}

/// `matrices`: the number of products in addition to those of a decoder and an output layer that are packed together.
template <class Model>
void check_bytes(Model& model, std::size_t matrices)
{
    const packed<float, Model> full(model), bytes(model, weight_numbers::int8);
    CHECK(full.int8() == nullptr);
    CHECK(bytes.int8() != nullptr);
    for (const bool restricted : {false, true}) {
        const auto x = scores(full, restricted), y = scores(bytes, restricted);
        REQUIRE(x.size() == y.size());
        const double off = difference(x, y);
        CHECK(off > 1e-6);  // 8-bit results differ from those of floats
        CHECK(off < 0.03);
    }
    CHECK(bytes.int8()->laid_out() == matrices);
    CHECK(kernels::int8_weights::of_this_thread() == nullptr);

    const auto source = make_source(pointers(read_in_bytes));
    const auto led = force<float>(full, source, pointers(written_in_bytes));
    const auto led_in_bytes = force<float>(bytes, source, pointers(written_in_bytes));
    for (std::size_t i = 0; i < led.size(); ++i)
        CHECK(led_in_bytes[i].log_probability() == doctest::Approx(led[i].log_probability()).epsilon(0.03));

    // section: packed
    const packed<float, Model> in_bytes(model, weight_numbers::int8);
    const auto found = beam<float>(in_bytes, source);
    // end
    CHECK(found.size() == read_in_bytes.size());
    const auto one = greedy<float>(bytes, source);
    // Forced decoding equals the search: in 8 bits both compute the same integers.
    std::vector<id_sentence> written;
    for (const auto& each : one) written.push_back(each.words);
    const auto again = force<float>(bytes, source, pointers(written));
    for (std::size_t i = 0; i < read_in_bytes.size(); ++i) {
        if (one[i].words.size() < 2 * (read_in_bytes[i].size() + 1) + 8)  // not truncated
            CHECK(again[i].log_probability() == doctest::Approx(one[i].log_probability).epsilon(1e-4));
    }
}

}  // namespace

TEST_CASE("a packed model finds the same translations with its own products: LSTM, maxout and softmax(W z + c)")
{
    const auto examples = make_training_batch<double>(pointers(read_in_bytes), pointers(written_in_bytes));
    constexpr sizes n{9, 8, 4, 3, 5};
    const auto check = [&](auto model, const auto& how) {
        for_each_parameter(model, [](const std::string&, auto& x) {
            for (double& w : x) w *= 3;  // far from uniform, so that hypotheses branch
        });
        const packed<double, decltype(model)> fast(model);
        CHECK(fast.decoder().vocabulary_of_input() == n.target_vocabulary);
        const auto must = beam<double>(model, examples.source, how), is = beam<double>(fast, examples.source, how);
        for (std::size_t b = 0; b < 4; ++b) {
            REQUIRE(is[b].size() == must[b].size());
            for (std::size_t k = 0; k < is[b].size(); ++k) {
                CHECK(is[b][k].words == must[b][k].words);
                CHECK(is[b][k].log_probability == support::approx(must[b][k].log_probability));
            }
        }
    };
    // Six hypotheses per sentence: the context's matrices are applied to the values if the attention allows it.
    const beam_options how{.width = 6, .best = 4};
    const auto linear = parts{}.with_cells(nn::lstm_factory{}).with_readout(output::linear_factory{});
    check(make_translator<double>(3, n, attentions::additive_factory{}, nullptr, nn::lstm_factory{}), how);
    check(make_translator<double>(3, n, attentions::per_dimension_factory{}, linear), how);
    check(make_translator<double>(3, n, attentions::additive_factory{}, linear.with_cells(nn::gru_factory{})), how);
}

TEST_CASE("a model is packed to the same bits inside and outside batch_invariant")
{
    const auto model = make_translator<float>(3, sizes{9, 301, 70, 30, 5}, attentions::additive_factory{});
    const packed<float, decltype(model)> outside(model);
    const batch_invariant guard;
    const packed<float, decltype(model)> inside(model);
    CHECK(inside.decoder().words == outside.decoder().words);
}

TEST_CASE("RNNsearch in 8 bits is close to floats")
{
    auto model = make_translator<float>(3, sizes{9, 10, 16, 24, 20}, attentions::additive_factory{});
    check_bytes(model, 9);  // W, U and U_h of both directions, W and U of the score, W_s
}

TEST_CASE("the Transformer in 8 bits is close to floats")
{
    papers::vaswani2017::translator_sizes n;
    n.source_vocabulary = n.target_vocabulary = 10;
    n.model = 16;
    n.hidden = 32;
    n.heads = 2;
    n.encoder_layers = n.decoder_layers = 2;
    auto model = papers::vaswani2017::translator<float>(3, n);
    check_bytes(model, 2 * 6 + 2 * 10);  // four of each attention, two of each feed-forward network
}

namespace {

/// Equal numbers; NaN equals NaN.
bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE_TEMPLATE("the tiled output layer returns the same as the whole", T, float, double)
{
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(4, drawn++) * 2 - 1); };
    for (const std::size_t V : {1u, 5u, 63u, 64u, 65u, 200u, 1000u}) {
        for (const std::size_t R : {1u, 5u, 6u, 7u, 13u}) {
            const std::size_t K = 9, most = std::min<std::size_t>(V, 12);
            std::vector<T> t(R * K), W(K * V), b(V), logits(R * V, T(0));
            for (auto* x : {&t, &W, &b}) {
                for (T& each : *x) each = draw();
            }
            if (V > 64) {
                for (std::size_t k = 0; k < K; ++k) W[k * V + 64] = 100 * t[k];  // much larger than the values before
                b[30] = -std::numeric_limits<T>::infinity();
            }
            blas::gemm(blas::op::plain, blas::op::plain, R, V, K, t.data(), W.data(), T(0), logits.data());
            output_panels<T> packed_W;
            std::vector<T> bias;
            packed_W.pack(K, V, W.data(), b.data());
            std::vector<std::uint32_t> also(R), words(R * most), as_whole(R * most);
            for (std::size_t r = 0; r < R; ++r) also[r] = static_cast<std::uint32_t>(r == 3 ? V : (31 * r) % V);
            std::vector<T> log_p(R * most), log_p_also(R), whole(R * most), whole_also(R);
            kernels::output_top_k<T>(R, t.data(), packed_W.weights, packed_W.bias.data(),
                                     {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
            kernels::log_softmax_top<T>(R, V, logits.data(), b.data(),
                                        {most, also.data(), as_whole.data(), whole.data(), whole_also.data()});
            CHECK(words == as_whole);
            for (std::size_t i = 0; i < R * most; ++i)
                CHECK(log_p[i] == support::approx(whole[i], support::tolerance<T>));
            for (std::size_t r = 0; r < R; ++r) {
                if (std::isinf(whole_also[r])) {
                    CHECK(log_p_also[r] == whole_also[r]);
                } else {
                    CHECK(log_p_also[r] == support::approx(whole_also[r], support::tolerance<T>));
                }
            }
            std::vector<T> product(R * V, T(1));
            packed_W.weights.multiply(R, t.data(), K, product.data(), V, true);
            for (std::size_t i = 0; i < R * V; ++i)
                CHECK(product[i] == support::approx(logits[i] + 1, support::tolerance<T>));
        }
    }
    // Only NaN, and ties.
    const std::size_t V = 70;
    std::vector<T> t{1}, W(V, T(2)), b(V, T(0)), bias;
    output_panels<T> packed_W;
    packed_W.pack(1, V, W.data(), b.data());
    std::vector<std::uint32_t> words(3);
    std::vector<T> log_p(3), none(1);
    kernels::output_top_k<T>(1, t.data(), packed_W.weights, packed_W.bias.data(),
                             {3, nullptr, words.data(), log_p.data(), none.data()});
    CHECK(words == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(log_p[0] == support::approx(-std::log(70.0), support::tolerance<T>));
    t[0] = std::numeric_limits<T>::quiet_NaN();
    kernels::output_top_k<T>(1, t.data(), packed_W.weights, packed_W.bias.data(),
                             {3, nullptr, words.data(), log_p.data(), none.data()});
    for (const T each : log_p) CHECK(!(each > -std::numeric_limits<T>::infinity()));
}

TEST_CASE_TEMPLATE("the output layer is split among threads: few rows by columns, many by rows", T, float, double)
{
    constexpr T infinity = std::numeric_limits<T>::infinity();
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(5, drawn++) * 2 - 1); };
    const std::size_t K = 300, V = 3000, most = 13;
    std::vector<T> W(K * V), b(V);
    for (T& each : W) each = draw();
    for (T& each : b) each = draw();
    for (const std::size_t v : {7u, 8u, 1500u, 2999u}) {  // ties, in parts of different threads
        for (std::size_t k = 0; k < K; ++k) W[k * V + v] = W[k * V + 7];
        b[v] = 50;
    }
    b[20] = -infinity;
    b[2000] = -infinity;
    output_panels<T> packed_W;
    std::vector<T> bias;
    packed_W.pack(K, V, W.data(), b.data());
    for (const std::size_t R : {1u, 4u, 13u, 40u}) {
        std::vector<T> t(R * K);
        for (T& each : t) each = draw();
        if (R > 4) t[3 * K] = std::numeric_limits<T>::quiet_NaN();
        std::vector<std::uint32_t> also(R), words(R * most), expected_words;
        for (std::size_t r = 0; r < R; ++r) also[r] = static_cast<std::uint32_t>(r == 0 ? 2000 : 997 * r % V);
        std::vector<T> log_p(R * most), log_p_also(R), expected, expected_also;
        for (const std::size_t count : {1u, 2u, 3u}) {
            set_threads(count);
            kernels::output_top_k<T>(R, t.data(), packed_W.weights, packed_W.bias.data(),
                                     {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
            set_threads(1);
            if (count == 1) {
                CHECK(std::vector<std::uint32_t>(words.begin(), words.begin() + 4) ==
                      std::vector<std::uint32_t>{7, 8, 1500, 2999});
                CHECK(log_p_also[0] == -infinity);
                if (R > 4) CHECK(std::isnan(log_p_also[3]));
                expected_words = words;
                expected = log_p;
                expected_also = log_p_also;
            }
            CHECK(words == expected_words);
            for (std::size_t i = 0; i < R * most; ++i) CHECK(same_number(log_p[i], expected[i]));
            for (std::size_t r = 0; r < R; ++r) CHECK(same_number(log_p_also[r], expected_also[r]));
            const std::size_t stride = support::exhaustive() ? 1 : 1 + R / 7;
            for (std::size_t r = 0; r < R; r += stride) {  // alone, with the same number of threads: the same bits
                set_threads(count);
                kernels::output_top_k<T>(1, t.data() + r * K, packed_W.weights, packed_W.bias.data(),
                                         {most, also.data() + r, words.data(), log_p.data(), log_p_also.data()});
                set_threads(1);
                for (std::size_t i = 0; i < most; ++i) CHECK(same_number(log_p[i], expected[r * most + i]));
            }
        }
    }
}
