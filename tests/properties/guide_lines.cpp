// SPDX-License-Identifier: BSD-3-Clause
#include <heed/heed.hpp>
#include <heed/nn/feed_forward.hpp>
#include <heed/train/adam.hpp>
#include <heed_kit/view/blocks.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>
#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

using namespace heed;
using support::random;
using support::same_bits;

// Code of the pages in docs/how_to, as a user writes it. tests/quotes.cmake compares the sections.

TEST_CASE("views of numbers stored elsewhere")
{
    const std::size_t B = 2, T = 5, D = 6, Q = 3, A = 4;
    const auto W = random<float>({Q, A}, 1), U = random<float>({D, A}, 2);
    const auto v = random<float>({A}, 3);
    const auto annotations = random<float>({B, T, D}, 4);
    const auto query = random<float>({B, Q}, 5);
    std::vector<float> weights(W.begin(), W.end());
    const std::vector<float> file(U.begin(), U.end());
    const float* const frames = annotations.data();

    // section: views
    auto mine = view_of(weights, Q, A);   // a std::vector, [Q,A]
    auto constant = view_of(file, D, A);  // a const vector: read, not trained
    attention attend{score::additive{mine, constant, v}, normalize::softmax{}, combine::weighted_sum{}};
    auto memory = attend.on(view_of(frames, B, T, D));  // a pointer, [B,T,D]: no copy
    auto seen = attend.step(memory, query, attend.start(memory));
    // end

    const attention other{score::additive{W, U, v}, normalize::softmax{}, combine::weighted_sum{}};
    const auto owned = other.on(annotations);
    CHECK(same_bits(seen.context, other.step(owned, query, other.start(owned)).context));
    CHECK(memory.values.data() == frames);
}

namespace mine {

// section: layers
template <class Layer, class Vector>
struct deep {
    std::vector<Layer> layers;    // parameters "layers.0.W_1" and so on
    std::optional<Vector> scale;  // "scale", if present

    static auto parameters(auto& self, auto&& visit)
    {
        return mine::deep{visit("layers", self.layers), visit("scale", self.scale)};
    }
};
template <class Layer, class Vector>
deep(std::vector<Layer>, std::optional<Vector>) -> deep<Layer, Vector>;
// end

}  // namespace mine

TEST_CASE("layers in a vector")
{
    random_source draw{1, 0};
    auto layer = nn::make_feed_forward<float>(draw, 3, 4, ops::relu);
    mine::deep model{std::vector{layer, layer}, std::optional{random<float>({3}, 1)}};
    CHECK(parameter_count(model) == 2 * (2 * 12 + 7) + 3);
    model.scale.reset();
    CHECK(parameter_count(model) == 2 * (2 * 12 + 7));
    ad::tape<float> tape;
    CHECK(ad::lift(tape, model).layers.size() == 2);
}

TEST_CASE("shapes")
{
    const std::size_t B = 2, T = 3, N = 4;
    const auto x = random<float>({B, N}, 1);
    const auto many = random<float>({B, T, N}, 4);
    const auto row = random<float>({N}, 2), factors = random<float>({B}, 3);

    // section: shapes
    auto shifted = ops::add(x, row);                        // x [B,N], row [N]: added to every row
    auto column = ops::reshaped(factors, -1, 1);            // [B] -> [B,1]; -1: inferred from the other sizes
    auto weighed = ops::multiply(x, column);                // one factor per row of x; also subtract, divide
    auto wide = ops::add(many, ops::reshaped(x, B, 1, N));  // many [B,T,N]: any axis of the second may be 1
    auto turned = ops::permuted(many, 1, 0, 2);             // [T,B,N]
    auto part = ops::slice(many, 1, 0, 2);                  // the first two of axis 1: [B,2,N]
    // end

    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t n = 0; n < N; ++n) {
            CHECK(shifted(b, n) == x(b, n) + row(n));
            CHECK(weighed(b, n) == x(b, n) * factors(b));
            for (std::size_t t = 0; t < T; ++t) {
                CHECK(wide(b, t, n) == many(b, t, n) + x(b, n));
                CHECK(turned(t, b, n) == many(b, t, n));
                if (t < 2) CHECK(part(b, t, n) == many(b, t, n));
            }
        }
    }
}

TEST_CASE("functions of the score and its indices")
{
    const std::size_t heads = random<float>({1}, 1).size(), reach = heads + 1;  // known to a function only at run time
    const auto x = random<float>({1, 6, 4}, 1);

    // section: alibi
    attention alibi{
        score::modified{score::scaled_dot{},
                        [](auto e, score_index p) { return e - 0.1 * (p.head + 1) * abs(p.query - p.key); }},
        normalize::softmax{}, combine::weighted_sum{}};
    // end

    // section: learned
    auto bias = zeros<float>(heads, 2 * reach + 1);  // T5: one bias per head and distance
    attention t5{
        score::modified{score::scaled_dot{}, bias,
                        [=](auto e, score_index p, const auto& b) { return e + b(p.head, p.key - p.query + reach); }},
        normalize::softmax{}, combine::weighted_sum{}};
    // end

    // Without a bias, the function changes nothing. Then a large bias at distance 1 alone gives that position all the
    // weight.
    const attention plain{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    CHECK(support::distance(t5(t5.on(x), x), plain(plain.on(x), x)) < 1e-6);
    t5.score.table(0, 3) = 1000;
    const auto next = t5.weights_of(t5.on(x), x);
    CHECK(next(0, 4, 5) == 1);
    CHECK(next(0, 3, 3) == 0);
    const auto near = alibi.weights_of(alibi.on(zeros<float>(1, 3, 4)), zeros<float>(1, 3, 4));
    CHECK(std::abs(near(0, 0, 1) / near(0, 0, 0) - std::exp(-0.1f)) < 1e-6f);
}

TEST_CASE("predicate masks")
{
    const auto queries = random<float>({1, 6, 4}, 1);
    const std::vector<std::int32_t> ids{7, 7, 7, 9, 9, 9};
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(queries);
    // section: documents
    const auto document = looked_up(ids);  // which document each position belongs to
    const auto same = [=](score_index p) { return document(p.query) == document(p.key); };
    auto contexts = attend(memory, queries, causal{} & same);
    std::cout << view::blocks(causal{} & sliding_window{16}, 96, 96, 8);  // prints the visible blocks
    // end
    for (std::size_t i = 0; i < 4; ++i) CHECK(contexts(0, 3, i) == queries(0, 3, i));
}

TEST_CASE("a growing memory")
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto prompt = random<float>({3, 5, 4}, 2), word = random<float>({3, 1, 4}, 3);
    const auto query = random<float>({3, 4}, 4);
    const std::vector<std::size_t> chosen{2, 2, 0};
    // section: growing
    auto memory = with_cache(attend.on(prompt));  // [B,T,D]
    memory = attend.extend(memory, word);         // [B,1,D]
    auto seen = attend.step(memory, query, attend.start(memory));
    memory = memory.rows(chosen);  // in a beam: the surviving hypotheses, without copies
    // end
    CHECK(seen.context.shape() == shape_of_rank<2>{3, 4});
    CHECK(memory.positions() == 6);
}

TEST_CASE("cross-entropy with class weights")
{
    const auto logits = random<float>({2, 2, 4}, 1);
    word_ids words(2, 2);
    words.ids = {1, 3, 2, 0};

    // section: classes
    auto counted = ops::expect<float>(words, {.ignored = 0, .of_classes = {1, 1, 2, 2}, .mean = true});
    auto mean = ops::cross_entropy(logits, counted);
    // end
    const auto logs = ops::log_softmax(logits);
    CHECK(mean() == support::approx(-(logs(0, 0, 1) + 2 * logs(0, 1, 3) + 2 * logs(1, 0, 2)) / 5));
}

TEST_CASE("a key-value cache")
{
    const attention attend{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
    const auto keys = random<float>({2, 5, 4}, 2), values = random<float>({2, 5, 3}, 3);
    const auto more_keys = random<float>({2, 2, 4}, 4), more_values = random<float>({2, 2, 3}, 5);
    const auto query = random<float>({2, 4}, 6);
    // section: caching
    auto memory = with_cache(attend.on(keys, values, lengths{5, 3}));       // both [B,T,.]
    memory = attend.extend(memory, more_keys, more_values);                 // both [B,t,.], several positions at once
    memory = attend.extend(memory, more_keys, more_values, lengths{2, 0});  // 2 positions of row 0, none of row 1
    memory = memory.without_oldest(4);                                      // of each row; or lengths
    auto state = from_query(attend.start(memory), memory.next_position() - 1);
    // end
    CHECK(memory.positions() == 5);
    CHECK(memory.real[1] == 1);
    CHECK(state.step == 8);
    CHECK(attend.step(memory, query, state).context.shape() == shape_of_rank<2>{2, 3});
}

TEST_CASE("regression and binary losses, and AdamW")
{
    const std::size_t B = 2, T = 3;
    const auto x = random<float>({B, T}, 1), expected = random<float>({B, T}, 2);
    const auto labels = ops::sigmoid(random<float>({B, T}, 3));
    const lengths real{3, 1};

    // section: losses
    auto squares = ops::mean_squared_error(x, expected, real);  // over real positions; or pass a mask, or weights
    auto classes = ops::binary_cross_entropy(x, labels, real);  // x are logits, labels from 0 to 1; a sum, in nats
    // end
    CHECK(squares() > 0);
    CHECK(classes() > 0);

    // section: adamw
    train::adamw<float> optimizer({.rate = 3e-4, .weight_decay = 0.1, .decays = train::matrices_only});
    // end
    CHECK(optimizer.settings.beta2 == 0.999);
}
