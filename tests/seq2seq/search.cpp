// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <heed/combine/attentional.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/top_words.hpp>
#include <heed/score/conv_s2s.hpp>
#include <heed/score/dot.hpp>
#include <heed/score/general.hpp>
#include <heed/score/with_coverage.hpp>
#include <heed/score/with_fertility.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbours.hpp>
#include <heed/score/with_positions.hpp>
#include <heed/score/with_recurrence.hpp>
#include <heed/seq2seq/beam.hpp>
#include <heed/seq2seq/ensemble.hpp>
#include <heed/seq2seq/forced.hpp>
#include <heed/seq2seq/greedy.hpp>
#include <heed/seq2seq/packed.hpp>
#include <heed/seq2seq/translator.hpp>
#include <support/approx.hpp>
#include <support/sentences.hpp>

namespace mine {

using heed::tensor;

template <class Trace>
struct trace_past {
    Trace trace;  // [B,A]

    auto map(auto&& f, const auto&... others) const
    {
        if constexpr (heed::spares_rows<decltype(f)>) {
            return *this;
        } else {
            return mine::trace_past{f(trace, others.trace...)};
        }
    }
};
template <class Trace>
trace_past(Trace) -> trace_past<Trace>;

/// A score of a user's own: what was emitted and read so far joins the query, a_t = a_{t-1} / 2 + y_{t-1} P + c_t R.
template <class Base, class Matrix>
struct with_trace {
    Base base;
    Matrix P, R;  // [E,A], [D,A]

    static constexpr bool reads_word = true;

    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    auto prepare(const tensor auto& annotations) const { return base.prepare(annotations); }
    auto project(const auto& query) const { return base.project(query.state); }
    auto start(const auto& memory) const
    {
        const heed::shape_of_rank<2> shape{memory.batch(), heed::shape_of(R)[1]};
        return mine::trace_past{heed::constant_like(memory.keys, shape, 0.0)};
    }
    auto match(const tensor auto& projected, const tensor auto& keys, const auto& past) const
    {
        return base.match(heed::ops::add(projected, past.trace), keys);
    }
    auto advance(const auto& past, const tensor auto&, const tensor auto& context, const auto& at) const
    {
        const auto emitted = heed::ops::linear_onto(heed::ops::scale(past.trace, 0.5), at.query().word, P);
        return mine::trace_past{heed::ops::linear_onto(emitted, context, R)};
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
    auto operator()(heed::random_source& random, const heed::seq2seq::sizes& n) const
    {
        using namespace heed;
        return attention{with_trace{seq2seq::attentions::additive<double>::score(random, n),
                                    nn::glorot<double>(random, n.embedding, n.alignment),
                                    nn::glorot<double>(random, 2 * n.hidden, n.alignment)},
                         normalize::softmax{}, combine::weighted_sum{}};
    }
};

/// A score that has an `advance` and declares that it does not read the context.
struct indifferent {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    static constexpr bool reads_context = false;
    heed::no_past start(const auto&) const { return {}; }
    auto match(const tensor auto& query, const tensor auto& keys, const auto&) const
    {
        return heed::ops::dot_each(query, keys);
    }
    auto advance(const auto& past, const tensor auto&, const auto&) const { return past; }
    auto operator()(const auto& query, const tensor auto& keys, const auto& past) const
    {
        return match(query, keys, past);
    }
    static auto parameters(auto&, auto&&) { return indifferent{}; }
};

/// A combiner of a user's own: the weighted sum, declared to commute with matrices or not.
template <bool declared>
struct own_sum {
    static constexpr heed::weight_kind weights = heed::weight_kind::per_position;
    static constexpr bool commutes_with_matrices = declared;

    auto operator()(const tensor auto& given, const tensor auto& values) const
    {
        return heed::ops::weighted_sum(given, values);
    }
    static auto parameters(auto&, auto&&) { return mine::own_sum<declared>{}; }
};

}  // namespace mine

using namespace heed;
using namespace heed::seq2seq;
using support::pointers;

namespace {

const std::vector<id_sentence> sources{{4, 5, 6}, {4, 1}, {6, 5, 4, 4, 7, 8}, {9}};
const std::vector<id_sentence> targets{{4, 5}, {7, 6, 5, 4, 4}, {}, {8, 7}};
const sizes small{12, 11, 6, 5, 4};

template <class Make>
auto lively(std::uint64_t seed, const Make& make)
{
    auto model = make_translator<double>(seed, small, make);
    for_each_parameter(model, [](const std::string&, auto& x) {
        for (double& w : x) w *= 3;
    });
    return model;
}

const auto first = lively(5, attentions::temporal<double>{});
const auto second = lively(6, attentions::per_dimension<double>{});
const auto blind = lively(7, attentions::none<double>{});

template <class... Model>
ensemble<double> together(const source_batch& source, averaging how, const Model&... models)
{
    std::vector<std::unique_ptr<decoding<double>>> members;
    (members.push_back(decode<double>(models, source)), ...);
    return ensemble<double>(std::move(members), how);
}

/// The same number; NaN is NaN.
bool same_number(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// softmax by its definition.
std::vector<double> probabilities(const double* logits, std::size_t count)
{
    std::vector<double> p(count);
    double top = logits[0], sum = 0;
    for (std::size_t i = 0; i < count; ++i) top = std::max(top, logits[i]);
    for (std::size_t i = 0; i < count; ++i) sum += p[i] = std::exp(logits[i] - top);
    for (double& x : p) x /= sum;
    return p;
}

}  // namespace

TEST_CASE_TEMPLATE("the fused log-softmax finds what sorting finds, at every size", T, float, double)
{
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(3, drawn++) * 8 - 4); };
    for (const std::size_t V : {1u, 2u, 7u, 15u, 16u, 17u, 31u, 64u, 100u, 257u, 1000u}) {
        for (const std::size_t most : {0u, 1u, 2u, 5u, 12u, 40u, 300u}) {
            if (most > V) continue;
            const std::size_t R = 3;
            std::vector<T> logits(R * V), bias(V);
            for (T& x : logits) x = draw();
            for (T& x : bias) x = draw();
            if (V > 20) logits[V + 20] = logits[V + 3] = logits[V + 11] = T(9);  // equal ones: in order of their ids
            if (V > 4) logits[2] = -std::numeric_limits<T>::infinity();
            for (const bool biased : {false, true}) {
                std::vector<std::uint32_t> words(R * most), also{0, static_cast<std::uint32_t>(V - 1), 1000};
                std::vector<T> log_p(R * most), log_p_also(R);
                kernels::log_softmax_top<T>(R, V, logits.data(), biased ? bias.data() : nullptr,
                                            {most, also.data(), words.data(), log_p.data(), log_p_also.data()});
                for (std::size_t r = 0; r < R; ++r) {
                    std::vector<T> x(V);
                    double sum = 0;
                    for (std::size_t i = 0; i < V; ++i) {
                        x[i] = logits[r * V + i] + (biased ? bias[i] : T(0));
                        sum += std::exp(static_cast<double>(x[i]));
                    }
                    std::vector<std::uint32_t> order(V);
                    for (std::size_t i = 0; i < V; ++i) order[i] = static_cast<std::uint32_t>(i);
                    std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return x[a] > x[b]; });
                    for (std::size_t k = 0; k < most; ++k) {
                        CHECK(words[r * most + k] == order[k]);
                        const double expected = static_cast<double>(x[order[k]]) - std::log(sum);
                        if (std::isinf(expected)) {
                            CHECK(std::isinf(log_p[r * most + k]));
                        } else {
                            CHECK(log_p[r * most + k] == support::approx(expected, support::tolerance<T>));
                        }
                    }
                    if (also[r] < V) {
                        CHECK(log_p_also[r] ==
                              support::approx(static_cast<double>(x[also[r]]) - std::log(sum), support::tolerance<T>));
                    } else {
                        CHECK(log_p_also[r] == -std::numeric_limits<T>::infinity());
                    }
                }
            }
        }
    }
}

TEST_CASE_TEMPLATE("the output layer tile by tile returns the same as the whole", T, float, double)
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
                for (std::size_t k = 0; k < K; ++k) W[k * V + 64] = 100 * t[k];  // far above the values before
                b[30] = -std::numeric_limits<T>::infinity();
            }
            blas::gemm(blas::op::plain, blas::op::plain, R, V, K, t.data(), W.data(), T(0), logits.data());
            output_panels<T> packed_W;
            std::vector<T> bias;
            packed_W.pack(K, V, W.data(), b.data());
            std::vector<std::uint32_t> also(R), words(R * most), as_whole(R * most);
            for (std::size_t r = 0; r < R; ++r) also[r] = static_cast<std::uint32_t>(r == 3 ? V : (31 * r) % V);
            std::vector<T> log_p(R * most), log_p_also(R), whole(R * most), whole_also(R);
            kernels::output_words<T>(R, t.data(), packed_W.weights, packed_W.bias.data(),
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
    kernels::output_words<T>(1, t.data(), packed_W.weights, packed_W.bias.data(),
                             {3, nullptr, words.data(), log_p.data(), none.data()});
    CHECK(words == std::vector<std::uint32_t>{0, 1, 2});
    CHECK(log_p[0] == support::approx(-std::log(70.0), support::tolerance<T>));
    t[0] = std::numeric_limits<T>::quiet_NaN();
    kernels::output_words<T>(1, t.data(), packed_W.weights, packed_W.bias.data(),
                             {3, nullptr, words.data(), log_p.data(), none.data()});
    for (const T each : log_p) CHECK(!(each > -std::numeric_limits<T>::infinity()));
}

TEST_CASE_TEMPLATE("the output layer split among threads: few rows by columns, many by rows", T, float, double)
{
    constexpr T infinity = std::numeric_limits<T>::infinity();
    auto draw = [drawn = std::uint64_t{0}]() mutable { return static_cast<T>(uniform(5, drawn++) * 2 - 1); };
    const std::size_t K = 300, V = 3000, most = 13;
    std::vector<T> W(K * V), b(V);
    for (T& each : W) each = draw();
    for (T& each : b) each = draw();
    for (const std::size_t v : {7u, 8u, 1500u, 2999u}) {  // equal ones, in parts of different threads
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
            kernels::output_words<T>(R, t.data(), packed_W.weights, packed_W.bias.data(),
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
            for (std::size_t r = 0; r < R; ++r) {  // alone, with as many threads: the same bits
                set_threads(count);
                kernels::output_words<T>(1, t.data() + r * K, packed_W.weights, packed_W.bias.data(),
                                         {most, also.data() + r, words.data(), log_p.data(), log_p_also.data()});
                set_threads(1);
                for (std::size_t i = 0; i < most; ++i) CHECK(same_number(log_p[i], expected[r * most + i]));
            }
        }
    }
}

namespace {

/// A row's numbers do not depend on how many hypotheses the other sentences have at the moment.
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

TEST_CASE("a packed model searches as the model itself, whatever its attention")
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

// A decoder may multiply the values instead of the context, once per source word, unless something else reads the
// context.
static_assert(multiplies_values<heed_additive> && multiplies_values<score::general<matrix>>);
static_assert(multiplies_values<score::dot> && multiplies_values<score::conv_s2s<matrix, vector>>);
static_assert(multiplies_values<score::with_word<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_positions<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_location<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_neighbours<heed_additive, matrix>>);
static_assert(multiplies_values<score::with_coverage<heed_additive, matrix, unit>>);
static_assert(multiplies_values<score::with_fertility<heed_additive, vector>>);
static_assert(multiplies_values<score::with_word<score::with_coverage<heed_additive, matrix, unit>, matrix>>);
static_assert(multiplies_values<mine::indifferent>);
static_assert(!multiplies_values<score::with_recurrence<heed_additive, matrix, unit>>);
static_assert(!multiplies_values<mine::with_trace<heed_additive, matrix>>);
static_assert(!multiplies_values<score::with_word<mine::with_trace<heed_additive, matrix>, matrix>>);
static_assert(
    !multiplies_values<score::with_coverage<score::with_recurrence<heed_additive, matrix, unit>, matrix, unit>>);

// It may do so under a user's combiner that declares it, too, and not under one that makes something of the context.
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

TEST_CASE("a user's score that reads the context gets the context, packed or not")
{
    packed_is_the_same(lively(8, mine::tracing{}));
}

TEST_CASE("forced decoding: the loss of training, word by word, and its weights")
{
    const auto batch = make_training_batch<double>(pointers(sources), pointers(targets));
    const auto forced = force<double>(first, batch.source, pointers(targets));
    double sum = 0;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        REQUIRE(forced[b].log_probabilities.size() == targets[b].size() + 1);
        REQUIRE(forced[b].weights.size() == targets[b].size() + 1);
        for (const auto& row : forced[b].weights) {
            REQUIRE(row.size() == sources[b].size() + 1);
            double whole = 0;
            for (const double each : row) whole += each;
            CHECK(whole == support::approx(1));
        }
        sum += forced[b].log_probability();
        const auto alone = force<double>(first, make_source(std::vector{&sources[b]}), std::vector{&targets[b]})[0];
        for (std::size_t i = 0; i <= targets[b].size(); ++i) {
            CHECK(alone.log_probabilities[i] == support::approx(forced[b].log_probabilities[i]));
            for (std::size_t t = 0; t <= sources[b].size(); ++t)
                CHECK(alone.weights[i][t] == support::approx(forced[b].weights[i][t]));
        }
    }
    CHECK(-sum == support::approx(first.loss(batch).data()[0]));
    CHECK(force<double>(blind, batch.source, pointers(targets))[0].weights.empty());
    CHECK_THROWS_WITH_AS(force<double>(first, batch.source, pointers({{4}})),
                         "force: 1 translation of 4 sentences; give one of each", error);
}

TEST_CASE("links: the source word with the greatest weight, and the role of the end words")
{
    // Two source words and the end word; three target words and the end word.
    const std::vector<std::vector<double>> weights{{0.6, 0.3, 0.1}, {0.1, 0.4, 0.5}, {0.4, 0.4, 0.2}, {0.9, 0.1, 0.0}};
    CHECK(links_of(weights) == std::vector<std::pair<int, int>>{{0, 0}, {0, 2}});
    CHECK(links_of(weights, {.end_word_means_unaligned = false}) ==
          std::vector<std::pair<int, int>>{{0, 0}, {1, 1}, {0, 2}});
    CHECK(pharaoh(links_of(weights, {.end_word_means_unaligned = false})) == "0-0 1-1 0-2");
    CHECK(pharaoh({}).empty());
    CHECK(links_of(std::vector<std::vector<double>>{{1.0}, {1.0}}).empty());  // an empty source
    CHECK(links_of(std::vector<std::vector<double>>{}).empty());
}

TEST_CASE("an ensemble's probabilities are the mean of its models', arithmetic or geometric")
{
    const auto batch = make_source(pointers(sources));
    const word_ids begin(1, sources.size(), special_ids{}.begin);
    const std::size_t V = small.target_vocabulary;
    const std::vector<std::uint32_t> also(sources.size(), 7);
    for (const auto how : {averaging::arithmetic, averaging::geometric}) {
        auto one = decode<double>(first, batch), two = decode<double>(second, batch),
             three = decode<double>(blind, batch);
        auto all = together(batch, how, first, second, blind);
        for (decoding<double>* each : {one.get(), two.get(), three.get(), static_cast<decoding<double>*>(&all)})
            each->step(begin);
        proposals<double> next;
        all.propose(V, also, next);
        for (std::size_t r = 0; r < sources.size(); ++r) {
            std::vector<double> expected(V, how == averaging::arithmetic ? 0.0 : 1.0);
            for (decoding<double>* each : {one.get(), two.get(), three.get()}) {
                const auto p = probabilities(each->logits()[r].data, V);
                for (std::size_t w = 0; w < V; ++w) {
                    if (how == averaging::arithmetic) {
                        expected[w] += p[w] / 3;
                    } else {
                        expected[w] *= std::cbrt(p[w]);
                    }
                }
            }
            double sum = 0, whole = 0;
            for (const double p : expected) sum += p;
            for (std::size_t k = 0; k < V; ++k) {
                CHECK(std::exp(next.log_p[r * V + k]) == support::approx(expected[next.words[r * V + k]] / sum));
                if (k > 0) CHECK(next.log_p[r * V + k] <= next.log_p[r * V + k - 1]);
                whole += std::exp(next.log_p[r * V + k]);
            }
            CHECK(whole == support::approx(1));
            CHECK(std::exp(next.log_p_also[r]) == support::approx(expected[7] / sum));
            const auto joint = probabilities(all.logits()[r].data, V);
            for (std::size_t w = 0; w < V; ++w) CHECK(joint[w] == support::approx(expected[w] / sum));
            std::vector<double> a, b, both;
            one->weights(r, a);
            two->weights(r, b);
            all.weights(r, both);
            REQUIRE(both.size() == sources[r].size() + 1);
            for (std::size_t t = 0; t < both.size(); ++t) CHECK(both[t] == support::approx((a[t] + b[t]) / 2));
        }
    }
}

TEST_CASE("an ensemble searches like one model")
{
    const auto batch = make_source(pointers(sources));
    beam_options how;
    how.width = 4;
    how.best = 2;
    how.with_weights = true;
    // Twins agree with each other.
    auto twins = together(batch, averaging::arithmetic, first, first);
    const auto of_twins = beam<double>(twins, batch.real, how), of_one = beam<double>(first, batch, how);
    // Different models: forced decoding by the same ensemble agrees with the search.
    auto all = together(batch, averaging::arithmetic, first, second, blind);
    const auto found = beam<double>(all, batch.real, how);
    std::vector<const id_sentence*> best;
    for (const auto& of_sentence : found) best.push_back(&of_sentence[0].words);
    auto again = together(batch, averaging::arithmetic, first, second, blind);
    const auto forced = force<double>(again, batch.real, best);
    bool differs = false;
    for (std::size_t b = 0; b < sources.size(); ++b) {
        for (std::size_t k = 0; k < 2; ++k) {
            CHECK(of_twins[b][k].words == of_one[b][k].words);
            CHECK(of_twins[b][k].score == support::approx(of_one[b][k].score));
        }
        CHECK(found[b][0].log_probability == support::approx(forced[b].log_probability()));
        REQUIRE(found[b][0].weights.size() == forced[b].weights.size());
        for (std::size_t j = 0; j < forced[b].weights.size(); ++j) {
            for (std::size_t t = 0; t <= sources[b].size(); ++t)
                CHECK(found[b][0].weights[j][t] == support::approx(forced[b].weights[j][t]));
        }
        differs = differs || found[b][0].words != of_one[b][0].words;
    }
    CHECK(differs);
    auto greedily = together(batch, averaging::geometric, first, second);
    const auto simple = greedy<double>(greedily, batch.real);
    how.width = how.best = 1;
    auto narrow = together(batch, averaging::geometric, first, second);
    const auto of_beam = beam<double>(narrow, batch.real, how);
    for (std::size_t b = 0; b < sources.size(); ++b) CHECK(of_beam[b][0].words == simple[b].words);
}

TEST_CASE("models that cannot work together are refused")
{
    const auto batch = make_source(pointers(sources));
    const auto other = make_translator<double>(1, sizes{12, 13, 6, 5, 4}, attentions::additive<double>{});
    CHECK_THROWS_WITH_AS(together(batch, averaging::arithmetic, first, other),
                         "ensemble: models of 11 and 13 target words; they must share the target vocabulary", error);
    std::vector<std::unique_ptr<decoding<double>>> members;
    CHECK_THROWS_WITH_AS(ensemble<double>(std::move(members)), "ensemble: there is no model; give at least one", error);
}

TEST_CASE("an output layer restricted to some words: probabilities among these, with their own ids")
{
    const auto batch = make_source(pointers(sources));
    const std::vector<std::uint32_t> some{3, 5, 6, 9};
    const word_ids begin(1, sources.size(), special_ids{}.begin);
    auto all = decode<double>(first, batch), few = decode<double>(first, batch);
    few->restrict_to(some);
    CHECK(few->vocabulary() == 4);
    all->step(begin);
    few->step(begin);
    proposals<double> next;
    few->propose(12, std::vector<std::uint32_t>{5, 3, 4, 9}, next);
    CHECK(next.most == 4);
    for (std::size_t r = 0; r < sources.size(); ++r) {
        const double* logits = all->logits()[r].data;
        std::vector<double> there;
        for (const std::uint32_t w : some) there.push_back(logits[w]);
        const auto p = probabilities(there.data(), 4);
        for (std::size_t k = 0; k < 4; ++k) {
            const auto place = std::find(some.begin(), some.end(), next.words[4 * r + k]) - some.begin();
            REQUIRE(place < 4);
            CHECK(std::exp(next.log_p[4 * r + k]) == support::approx(p[static_cast<std::size_t>(place)]));
        }
    }
    CHECK(std::isinf(next.log_p_also[2]));
    CHECK(!std::isinf(next.log_p_also[3]));
    auto both = together(batch, averaging::arithmetic, first, second);
    both.restrict_to(some);
    for (const auto& of_sentence : beam<double>(both, batch.real)) {
        for (const std::uint32_t word : of_sentence.at(0).words)
            CHECK(std::find(some.begin(), some.end(), word) != some.end());
    }
    CHECK_THROWS_AS(few->restrict_to({5, 5}), error);
    CHECK_THROWS_AS(few->restrict_to({5, 11}), error);
}
