// SPDX-License-Identifier: BSD-3-Clause
//
// q_k_v: attention over projected queries, keys and values, as in PyTorch and ONNX. The contexts are compared with
// loops over all pairs. docs/learn/q_k_v.md quotes this file.
//
// test:

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include <heed/heed.hpp>

using namespace heed;

namespace {

int failures = 0;

template <std::size_t N>
array<float, N> numbers(const shape_of_rank<N>& shape, unsigned seed)
{
    array<float, N> x(shape);
    for (float& number : x) {
        seed = seed * 1664525u + 1013904223u;
        number = static_cast<float>(seed >> 8) / static_cast<float>(1 << 23) - 1;
    }
    return x;
}

using pair_to_score = std::function<double(double e, std::size_t b, std::size_t h, std::size_t s, std::size_t t)>;
constexpr double hidden = -std::numeric_limits<double>::infinity();

/// softmax(f(q kᵀ / √d)) v by scalar loops; head h of the queries reads head h · G / H of keys and values.
array<float, 4> by_loops(
    const array<float, 4>& q, const array<float, 4>& k, const array<float, 4>& v,
    const pair_to_score& f = [](double e, auto...) { return e; })
{
    const auto [B, H, S, d] = q.shape();
    const std::size_t G = k.shape()[1], T = k.shape()[2], D = v.shape()[3];
    auto contexts = zeros<float>(B, H, S, D);
    for (std::size_t b = 0; b < B; ++b) {
        for (std::size_t h = 0; h < H; ++h) {
            for (std::size_t s = 0; s < S; ++s) {
                std::vector<double> e(T), sums(D);
                double all = 0;
                for (std::size_t t = 0; t < T; ++t) {
                    for (std::size_t i = 0; i < d; ++i) e[t] += double{q(b, h, s, i)} * double{k(b, h * G / H, t, i)};
                    e[t] = std::exp(f(e[t] / std::sqrt(static_cast<double>(d)), b, h, s, t));
                    all += e[t];
                    for (std::size_t i = 0; i < D; ++i) sums[i] += e[t] * double{v(b, h * G / H, t, i)};
                }
                for (std::size_t i = 0; all > 0 && i < D; ++i) contexts(b, h, s, i) = static_cast<float>(sums[i] / all);
            }
        }
    }
    return contexts;
}

void compare(const char* name, const array<float, 4>& is, const array<float, 4>& must)
{
    float worst = is.shape() == must.shape() ? 0 : std::numeric_limits<float>::infinity();
    for (std::size_t i = 0; i < is.size() && worst < 1; ++i)
        worst = std::max(worst, std::abs(is.data()[i] - must.data()[i]));
    std::printf("%-34s off by at most %.1e\n", name, double{worst});
    if (!(worst < 2e-6F)) ++failures;
}

constexpr std::size_t B = 2, H = 4, G = 2, S = 20, T = 20, d = 8, D = 6;

void pytorch()
{
    const auto q = numbers<4>({B, H, S, d}, 1), k = numbers<4>({B, H, T, d}, 2), v = numbers<4>({B, H, T, D}, 3);
    // section: sdpa
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(k, v);               // [B,H,T,d], [B,H,T,D]
    const auto all = attend(memory, q);                // [B,H,S,D]
    const auto earlier = attend(memory, q, causal{});  // the last of S queries sees all keys
    // end
    compare("sdpa", all, by_loops(q, k, v));
    const auto up_to_query = [](double e, auto, auto, std::size_t s, std::size_t t) { return t <= s ? e : hidden; };
    compare("is_causal", earlier, by_loops(q, k, v, up_to_query));
    compare("causal_upper_left", attend(memory, q, causal_upper_left{}), by_loops(q, k, v, up_to_query));

    auto seen = filled<bool, 4>({B, 1, S, T}, true);
    for (std::size_t i = 0; i < seen.size(); ++i) seen.data()[i] = i % 5 != 2;
    const auto bias = numbers<4>({1, H, S, T}, 4);
    // section: masks
    const auto some = attend(memory, q, boolean_mask{seen});     // [S,T], [B,S,T] or [B,H,S,T], true = attend
    const auto biased = attend(memory, q, additive_mask{bias});  // numbers that are added to the scores
    const auto both = attend(memory, q, causal{} & boolean_mask{seen} & additive_mask{bias});
    const auto padded = attend(memory, q, lengths{20, 13});  // the first keys of each sentence
    // end
    const auto there = [&](std::size_t b, std::size_t s, std::size_t t) { return seen(b, 0, s, t); };
    compare("attn_mask, bool", some,
            by_loops(q, k, v, [&](double e, std::size_t b, auto, std::size_t s, std::size_t t) {
                return there(b, s, t) ? e : hidden;
            }));
    compare("attn_mask, float", biased,
            by_loops(q, k, v, [&](double e, auto, std::size_t h, std::size_t s, std::size_t t) {
                return e + double{bias(0, h, s, t)};
            }));
    compare("causal, bool and float", both,
            by_loops(q, k, v, [&](double e, std::size_t b, std::size_t h, std::size_t s, std::size_t t) {
                return t <= s && there(b, s, t) ? e + double{bias(0, h, s, t)} : hidden;
            }));
    compare("lengths", padded, by_loops(q, k, v, [](double e, std::size_t b, auto, auto, std::size_t t) {
                return t < (b == 0 ? 20u : 13u) ? e : hidden;
            }));

    const auto k_shared = numbers<4>({B, G, T, d}, 5), v_shared = numbers<4>({B, G, T, D}, 6);
    // section: groups
    const auto grouped =
        attend(attend.on(k_shared, v_shared), q);  // [B,G,T,d]: H / G consecutive heads share keys and values
    // end
    compare("enable_gqa", grouped, by_loops(q, k_shared, v_shared));

    // section: flex
    const attention capped{score::modified{score::scaled_dot{}, [](auto e, score_index) { return 20 * tanh(e / 20); }},
                           normalize::softmax{}, combine::weighted_sum{}};
    const auto near = [](score_index p) { return p.query - p.key < 8; };
    const auto local = capped(capped.on(k, v), q, causal{} & near);
    // end
    compare("flex_attention", local, by_loops(q, k, v, [](double e, auto, auto, std::size_t s, std::size_t t) {
                return t <= s && s - t < 8 ? 20 * std::tanh(e / 20) : hidden;
            }));

    // section: train
    ad::tape<float> tape;
    const auto Q = tape.parameter(q), K = tape.parameter(k), V = tape.parameter(v);
    const auto loss = ops::dot(attend(attend.on(K, V), Q, causal{}), all);
    tape.backward(loss);
    const auto d_q = copy_of(tape.gradient(Q));  // [B,H,S,d]
    // end
    auto up = q, down = q;
    up(1, 2, 3, 4) += 0.01F;
    down(1, 2, 3, 4) -= 0.01F;
    double slope = 0;
    const auto more = attend(memory, up, causal{}), less = attend(memory, down, causal{});
    for (std::size_t i = 0; i < all.size(); ++i)
        slope += double{all.data()[i]} * (double{more.data()[i]} - double{less.data()[i]}) / 0.02;
    if (!(std::abs(slope - double{d_q(1, 2, 3, 4)}) < 1e-3)) ++failures;
}

void first_lines()
{
    const auto q = numbers<4>({B, H, S, d}, 1), k = numbers<4>({B, G, T, d}, 5), v = numbers<4>({B, G, T, D}, 6);
    auto seen = filled<bool, 2>({S, T}, true);
    for (std::size_t i = 0; i < seen.size(); ++i) seen.data()[i] = i % 3 != 1;
    // clang-format off
    attention sdpa{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    auto memory = sdpa.on(k, v);                                      // [B,G,T,d], [B,G,T,D]: heads may share
    auto contexts = sdpa(memory, q, causal{} & boolean_mask{seen});   // [B,H,S,d] -> [B,H,S,D]
    // clang-format on
    compare("README", contexts, by_loops(q, k, v, [&](double e, auto, auto, std::size_t s, std::size_t t) {
                return t <= s && seen(s, t) ? e : hidden;
            }));
}

void generate()
{
    const auto q = numbers<4>({B, H, T, d}, 1), k = numbers<4>({B, G, T, d}, 2), v = numbers<4>({B, G, T, D}, 3);
    const auto part = [](const auto& x, std::size_t from, std::size_t to) { return ops::slice(x, 2, from, to); };
    const auto k_prompt = part(k, 0, 8), v_prompt = part(v, 0, 8), q_prompt = part(q, 0, 8);
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    auto last = zeros<float>(B, H, std::size_t{1}, D);
    // section: cache
    auto memory = with_cache(attend.on(k_prompt, v_prompt));  // past_key_values
    auto [contexts, state] = attend.read_all(memory, q_prompt, attend.start(memory), causal{});
    for (std::size_t t = 8; t < T; ++t) {
        memory = attend.extend(memory, part(k, t, t + 1), part(v, t, t + 1));  // copies one position
        auto now = attend.read_all(memory, part(q, t, t + 1), state, causal{});
        last = now.contexts;  // [B,H,1,D]
        state = now.state;
    }
    // end
    const auto must =
        by_loops(q, k, v, [](double e, auto, auto, std::size_t s, std::size_t t) { return t <= s ? e : hidden; });
    compare("cache, the prompt", contexts, part(must, 0, 8));
    compare("cache, the last word", last, part(must, T - 1, T));
}

void onnx()
{
    const auto Q = numbers<3>({B, S, H * d}, 1), K = numbers<3>({B, T, G * d}, 2), V = numbers<3>({B, T, G * D}, 3);
    // section: onnx
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto memory = attend.on(split_heads(K, G), split_heads(V, G));  // kv_num_heads; no axis is split
    const auto Y = join_heads(attend(memory, split_heads(Q, H)));         // q_num_heads; [B,S,H·D]
    // end
    const auto apart = [](const array<float, 3>& x, std::size_t n) {
        const auto shape = x.shape();
        return ops::permuted(ops::reshaped(x, shape[0], shape[1], n, shape[2] / n), 0, 2, 1, 3);
    };
    compare("Attention of three axes", apart(Y, H), by_loops(apart(Q, H), apart(K, G), apart(V, G)));

    const auto q = apart(Q, H), k = apart(K, G), v = apart(V, G);
    // section: scores
    const auto rows = attend.on(k, v);
    const auto raw = attend.scores_of(rows, q);                 // [B,H,S,T]
    const auto masked = attend.scores_of(rows, q, causal{});    // -inf where a query does not see a key
    const auto weights = attend.weights_of(rows, q, causal{});  // after softmax
    // end
    compare("qk_matmul_output", ops::softmax(masked), weights);
    compare("scores of visible keys", ops::softmax(raw), attend.weights_of(rows, q));
}

void multi_head_attention()
{
    const std::size_t E = H * d;
    const auto x = numbers<3>({B, T, E}, 1);
    const auto W_Q = numbers<2>({E, E}, 2), W_K = numbers<2>({E, E}, 3), W_V = numbers<2>({E, E}, 4),
               W_O = numbers<2>({E, E}, 5);
    // section: projections
    const attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head heads{std::vector(H, attend), W_Q, W_K, W_V, W_O};  // nn.MultiheadAttention(E, H, bias=False)
    const auto y = heads(heads.on(x), x);                                // [B,T,E]

    const auto memory = attend.on(split_heads(ops::linear(x, W_K), H), split_heads(ops::linear(x, W_V), H));
    const auto contexts = join_heads(attend(memory, split_heads(ops::linear(x, W_Q), H)));
    const auto same = ops::linear(contexts, W_O);
    // end
    compare("heads of MultiheadAttention", ops::scale(split_heads(contexts, H).apart(), 0.1),
            by_loops(split_heads(ops::linear(x, W_Q), H).apart(), split_heads(ops::linear(x, W_K), H).apart(),
                     ops::scale(split_heads(ops::linear(x, W_V), H).apart(), 0.1)));
    const auto seen = [](const array<float, 3>& z) { return ops::scale(ops::reshaped(z, B, 1, T, E), 1e-2); };
    compare("MultiheadAttention", seen(y), seen(same));
}

}  // namespace

int main()
{
    pytorch();
    first_lines();
    generate();
    onnx();
    multi_head_attention();
    return failures;
}
