// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <string>
#include <type_traits>

#include <heed/heed.hpp>
#include <support/about.hpp>
#include <support/tensors.hpp>

// The error of a tensor that does not fit names the policy and the tensor, in any operation that detects it.

namespace {

using namespace heed;
using support::random;

constexpr std::size_t B = 2, T = 4, D = 6, A = 3, E = 5;

/// Checks that the error of f() begins with `begin`.
void check_begins(const std::string& begin, const auto& f)
{
    const std::string message = support::message_of<shape_error>(f);
    CHECK_MESSAGE(message.starts_with(begin), "not \"" << begin << "…\" but \"" << message << '"');
}

void check_query(const auto& attend, const auto& query, const auto& queries, const std::string& begin)
{
    const auto memory = attend.on(random({B, T, D}, 1));
    check_begins(begin, [&] { (void)attend.step(memory, query, attend.start(memory)); });
    check_begins(begin, [&] { (void)attend(memory, queries); });
}

/// Also in the other forms of an attention.
void check_each_form(const auto& attend, const auto& query, const auto& queries, const std::string& begin)
{
    check_query(attend, query, queries, begin);
    const auto h = random({B, T, D}, 1);
    const auto memory = attend.on(h);
    const auto state = attend.start(memory);
    check_begins(begin, [&] { (void)attend.read(memory, query, state); });
    check_begins(begin, [&] { (void)attend.compose(memory, query, state); });
    ad::tape<double> tape;
    const auto lifted = ad::lift(tape, attend);
    const auto taped = lifted.on(tape.constant(h));
    check_begins(begin, [&] { (void)lifted.step(taped, query, lifted.start(taped)); });
    check_begins(begin, [&] { (void)lifted(taped, queries); });
}
void check_query(const auto& attend, const std::string& begin)
{
    check_query(attend, random({B, D + 1}, 2), random({B, 3, D + 1}, 2), begin);
}

void check_annotations(const auto& attend, const std::string& begin)
{
    check_begins(begin, [&] { (void)attend.on(random({B, T, D + 2}, 1)); });
}

auto with(const auto& score) { return attention{score, normalize::softmax{}, combine::weighted_sum{}}; }
auto additive() { return score::additive{random({D, A}, 11), random({D, A}, 12), random({A}, 13)}; }

}  // namespace

TEST_CASE("complete messages")
{
    const auto attend = with(additive());
    const auto memory = attend.on(random({B, T, D}, 1));
    CHECK(support::message_of<shape_error>([&] {
              (void)attend.step(memory, random({B, 5}, 2), attend.start(memory));
          }) ==
          "score::additive: the query [2,5] does not fit W [6,3], U [6,3], v [3] (linear: x is [2,5] and the matrix is "
          "[6,3], but the matrix must have 5 rows, one for each column of x)");
    CHECK(support::message_of<shape_error>([&] {
              (void)attend.on(random({B, T, 7}, 1));
          }) ==
          "score::additive: the annotations [2,4,7] do not fit W [6,3], U [6,3], v [3] (linear: x is [2,4,7] and the "
          "matrix is [6,3], but the matrix must have 7 rows, one for each column of x)");
    CHECK(support::message_of<shape_error>([&] {
              (void)attend.step(memory, random({3, D}, 2), attend.start(memory));
          }) ==
          "score::additive: the projected query [3,3] does not fit the keys [2,4,3], the values [2,4,6], W [6,3], U "
          "[6,3], "
          "v [3] (additive attention: the projected query is [3,3] but must be [2,3] (one row for each row of the keys "
          "[2,4,3]))");
    const auto dots = with(score::dot{});
    CHECK(support::message_of<shape_error>([&] {
              (void)dots(dots.on(random({B, T, D}, 1)), random({B, 3, 5}, 2));
          }).starts_with("score::dot: the projected quer"));
}

TEST_CASE("the query in each form of an attention: scores with and without parameters, with a word; normalizers")
{
    const auto query = random({B, D + 1}, 2);
    const auto queries = random({B, 3, D + 1}, 2);
    check_each_form(with(additive()), query, queries, "score::additive: the query [2,");
    check_each_form(with(score::scaled_dot{}), query, queries, "score::scaled_dot: the projected quer");
    check_each_form(with(score::with_word{additive(), random({D, A}, 14)}), state_and_word{query, random({B, D}, 3)},
                    state_and_word{queries, random({B, 3, D}, 3)}, "score::additive: the query");
    check_each_form(
        attention{score::dot{}, normalize::local_p{random({D + 1, 3}, 1), random({3}, 2), 2}, combine::weighted_sum{}},
        random({B, D}, 2), random({B, 3, D}, 2),
        "normalize::local_p: the query [2,6] does not fit W_p [7,3], v_p [3] (");
}

TEST_CASE("the query of each score")
{
    check_query(attention{score::additive_per_dimension{random({D, A}, 1), random({D, A}, 2), random({A, D}, 3)},
                          normalize::softmax{}, combine::elementwise_sum{}},
                "score::additive_per_dimension: the query [2,");
    check_query(attention{score::additive_grouped{random({D, A}, 1), random({D, A}, 2), random({A, std::size_t{2}}, 3)},
                          normalize::softmax{}, combine::grouped_sum{}},
                "score::additive_grouped: the query [2,");
    check_query(with(score::general{random({D, D}, 1)}), "score::general: the query [2,");
    check_query(with(score::concat{random({2 * D, A}, 22), random({A}, 23)}), "score::concat: the ");
    check_query(with(score::location{random({D, T + 1}, 24)}), "score::location: the ");
    check_query(with(score::dot{}), "score::dot: the projected quer");
    check_query(with(score::cosine{3.0}), "score::cosine: the projected quer");
    check_query(with(score::match{}), "score::match: the projected quer");
    check_query(with(score::kernel{score::elu_plus_one{}}), "score::kernel: the projected quer");
    check_query(with(score::rotary{score::dot{}}), "score::");
    check_query(with(score::relative{score::dot{}, random({D, std::size_t{5}}, 36)}), "score::");
    check_query(with(score::forgetting{score::dot{}, random({D, std::size_t{1}}, 33), random({1}, 34)}), "score::");
    check_query(with(score::gaussian_mixture{random({D, 4}, 91), random({4}, 92), random({D, 2}, 93), random({2}, 94)}),
                "score::gaussian_mixture: the query [2,");
    check_query(with(score::with_positions{additive(), random({std::size_t{3}, A}, 15)}),
                "score::additive: the query [2,");
    check_query(with(score::with_fertility{additive(), random({A}, 16), random({D}, 17)}),
                "score::additive: the query [2,");
    check_query(with(score::with_location{additive(), random({2, 3}, 71), random({std::size_t{2}, A}, 72)}),
                "score::additive: the query [2,");
    check_query(with(score::with_neighbors{additive(), random({std::size_t{3}, A}, 73)}),
                "score::additive: the query [2,");
}

TEST_CASE("the state of a query with a word, and scores with networks")
{
    constexpr std::size_t N = 2, R = 3;
    const auto check = [](const auto& score, const std::string& begin) {
        check_query(with(score), state_and_word{random({B, D + 1}, 2), random({B, D}, 3)},
                    state_and_word{random({B, 3, D + 1}, 2), random({B, 3, D}, 3)}, begin);
    };
    check(score::conv_s2s{random({D, D}, 25), random({D}, 26)}, "score::conv_s2s: the query");
    check(score::with_coverage{additive(), random({N, A}, 74),
                               nn::coverage_gru{random({D, 3 * N}, 75), random({3 * N}, 76), random({N, 3 * N}, 77)}},
          "score::additive: the query");
    check(score::with_recurrence{additive(), random({R, A}, 78),
                                 nn::gru{random({2 * D, 3 * R}, 79), random({3 * R}, 80), random({R, 2 * R}, 81),
                                         random({R, R}, 82)}},
          "score::additive: the query");
    check_query(with(score::with_gated_coverage{additive(), random({N, A}, 83),
                                                nn::gated_coverage{random({D, 3 * N}, 84), random({D, 3 * N}, 85),
                                                                   random({3 * N}, 86), random({N, 2 * N}, 87),
                                                                   random({N, N}, 88)}}),
                "score::additive: the query");
}

TEST_CASE("the word of a query")
{
    const auto state = random({B, D}, 2), word = random({B, E + 1}, 3);
    const auto states = random({B, 3, D}, 2), words = random({B, 3, E + 1}, 3);
    check_query(with(score::with_word{additive(), random({E, A}, 14)}), state_and_word{state, word},
                state_and_word{states, words}, "score::with_word: the query");
}

TEST_CASE("annotations")
{
    check_annotations(with(additive()),
                      "score::additive: the annotations [2,4,8] do not fit W [6,3], U [6,3], v [3] (");
    check_annotations(attention{score::additive_grouped{random({D, A}, 1), random({D, A}, 2), random({A, D}, 3)},
                                normalize::softmax{}, combine::grouped_sum{}},
                      "score::additive_grouped: the annotations [2,4,8] do not fit ");
    check_annotations(with(score::with_word{additive(), random({E, A}, 14)}),
                      "score::additive: the annotations [2,4,8] ");
}

TEST_CASE("normalizers and combiners with parameters that do not fit")
{
    const auto right = random({B, D}, 2);
    const auto rights = random({B, 3, D}, 2);
    const auto normalized = [](const auto& normalize) {
        return attention{score::dot{}, normalize, combine::weighted_sum{}};
    };
    check_query(normalized(normalize::entmax{random({2}, 1)}), right, rights, "normalize::entmax: the scores [");
    check_query(normalized(normalize::softmax_with_sink{random({2}, 1)}), right, rights,
                "normalize::softmax_with_sink: the scores [");
    check_query(normalized(normalize::monotonic{random({2}, 1)}), right, rights, "normalize::monotonic: the ");
    check_query(normalized(normalize::learned_temporal{random({2}, 1)}), right, rights,
                "normalize::learned_temporal: the ");
    check_query(normalized(normalize::temperature{0.5, normalize::entmax{random({2}, 1)}}), right, rights,
                "normalize::entmax: the scores [");
    const auto combined = [](const auto& combine) { return attention{score::dot{}, normalize::softmax{}, combine}; };
    check_query(combined(combine::attentional{random({D, D}, 1), combine::weighted_sum{}}), right, rights,
                "combine::attentional: W_c");
    check_query(combined(combine::gated{random({D, D + 1}, 1), random({D}, 2), combine::weighted_sum{}}), right, rights,
                "combine::gated: the context");
}

namespace mine {

/// A user's score: heed does not know its name.
template <class Matrix>
struct bilinear {
    Matrix W;

    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::dot_per_position(ops::linear(query, W), keys);
    }
    static auto parameters(auto& self, auto&& visit) { return mine::bilinear{visit("W", self.W)}; }
};
template <class Matrix>
bilinear(Matrix) -> bilinear<Matrix>;

}  // namespace mine

TEST_CASE("a custom policy")
{
    check_query(with(mine::bilinear{random({D, D}, 1)}),
                "mine::bilinear: the projected query [2,7] does not fit the keys ");
}

TEST_CASE("heads")
{
    const auto n = [](const auto& attend, const auto& x) {
        return support::message_of<shape_error>([&] { (void)attend(attend.on(random({B, T, D}, 1)), x); });
    };
    const multi_head heads{std::vector(2, with(score::scaled_dot{})), random({D, 4}, 1), random({D, 4}, 2),
                           random({D, 4}, 3), random({4, D}, 4)};
    CHECK(n(heads, random({B, 3, D + 1}, 2))
              .starts_with("multi_head: the query [2,3,7] does not fit W_Q [6,4], W_K [6,4], W_V [6,4], W_O [4,6] ("));
    check_annotations(heads, "multi_head: the annotations [2,4,8] do not fit W_Q [6,4], ");
    multi_head odd = heads;
    odd.W_O = random({5, D}, 4);
    CHECK(n(odd, random({B, 3, D}, 2)).starts_with("multi_head: the contexts of all heads [2,3,4] do not fit W_Q "));
}
