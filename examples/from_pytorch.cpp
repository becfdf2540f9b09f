// SPDX-License-Identifier: BSD-3-Clause
//
// from_pytorch: PyTorch idioms and their counterparts in heed. docs/learn/from_pytorch.md quotes it.
//
// test:

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <heed/heed.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/nn/dropout.hpp>
#include <heed/nn/init.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/train/adam.hpp>

using namespace heed;

namespace {

// section: module
// class Reader(nn.Module): attention over h [B,T,D] with one query q [B,Q], and a linear layer
template <class Attend, class Matrix, class Vector>
struct reader {
    Attend attend;
    Matrix W;  // [D,C]: x W, not x Wᵀ
    Vector b;  // [C]

    auto operator()(const tensor auto& h, const lengths& real, const tensor auto& q) const  // def forward
    {
        const auto memory = attend.on(h, real);
        return ops::linear(attend.step(memory, q, attend.start(memory)).context, W, b);
    }
    static auto parameters(auto& self, auto&& visit)  // automatic in nn.Module
    {
        auto attend = visit("attend", self.attend);
        auto W = visit("W", self.W);
        auto b = visit("b", self.b);
        return reader<decltype(attend), decltype(W), decltype(b)>{std::move(attend), std::move(W), std::move(b)};
    }
};
template <class Attend, class Matrix, class Vector>
reader(Attend, Matrix, Vector) -> reader<Attend, Matrix, Vector>;  // required by clang++ before 17
// end

template <class T>
auto make_reader(random_source& random, std::size_t Q, std::size_t D, std::size_t C)
{
    return reader{attention{score::additive{nn::glorot<T>(random, Q, 8), nn::glorot<T>(random, D, 8), nn::zeros<T>(8)},
                            normalize::softmax{}, combine::weighted_sum{}},
                  nn::glorot<T>(random, D, C), nn::zeros<T>(C)};
}

template <std::size_t N>
array<float, N> random_numbers(const shape_of_rank<N>& shape, std::uint64_t stream)
{
    array<float, N> x(shape);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(normal(stream, i));
    return x;
}

int failures = 0;
void holds(const char* what, bool truth)
{
    std::printf("%s: %s\n", what, truth ? "yes" : "NO");
    if (!truth) ++failures;
}

void tensors()
{
    // section: tensor
    auto x = zeros<float>(2, 3);                  // torch.zeros(2, 3)
    x(0, 2) = 5;                                  // x[0, 2] = 5
    const array<float, 2> copy = x;               // x.clone()
    const auto y = ops::add(ops::tanh(x), copy);  // x.tanh() + copy
    const auto total = ops::dot(y, x)();          // (y * x).sum()
    // end
    holds("sum", std::abs(total - 5 * (5 + std::tanh(5.0F))) < 1e-4F);

    const auto b = random_numbers<1>({3}, 1);
    const auto q = random_numbers<2>({2, 3}, 2);
    const auto k = random_numbers<3>({2, 4, 3}, 3);
    // section: broadcasting
    const auto with_bias = ops::linear(x, array<float, 2>{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}, b);  // x @ W + b
    const auto sums = ops::add_per_position(k, q);                                               // k + q[:, None]
    // ops::add(q, k) throws shape_error: shapes are never broadcast implicitly
    // end
    holds("each", sums(1, 2, 0) == q(1, 0) + k(1, 2, 0) && with_bias(1, 1) == b(1));
}

void gradients()
{
    random_source random{1};
    const auto W = nn::glorot<float>(random, 3, 3);
    const auto x = random_numbers<2>({2, 3}, 4);
    // section: autograd
    ad::tape<float> tape;                                 // the graph, as an object
    const auto W_on_tape = tape.parameter(W);             // W.requires_grad_(); refers to W, no copy
    const auto y = ops::tanh(ops::linear(x, W_on_tape));  // x is plain: a constant
    const auto loss = ops::dot(y, y);                     // (y * y).sum()
    tape.backward(loss);                                  // loss.backward()
    const auto d_W = copy_of(tape.gradient(W_on_tape));   // W.grad.clone()
    tape.clear();                                         // forgets graph and gradients, keeps the memory
    const auto plain = ops::tanh(ops::linear(x, W));      // with torch.no_grad(): no tape
    // end
    float must = 0;
    for (std::size_t i = 0; i < 2; ++i) must += x(i, 0) * 2 * plain(i, 1) * (1 - plain(i, 1) * plain(i, 1));
    holds("gradient", std::abs(d_W(0, 1) - must) < 1e-5F);
}

void attending()
{
    const auto q = random_numbers<3>({2, 5, 8}, 5), k = random_numbers<3>({2, 5, 8}, 6),
               v = random_numbers<3>({2, 5, 4}, 7);
    const lengths real{5, 3};
    // section: sdpa
    attention attend{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}};
    const auto all = attend(attend.on(k, v, real), q);          // attn_mask = (arange(T) < lengths[:, None])[:, None]
    const auto earlier = attend(attend.on(k, v), q, causal{});  // is_causal=True
    // end
    holds("causal", earlier(0, 0, 0) == v(0, 0, 0));

    // section: masks
    const std::vector<std::int32_t> ids{0, 0, 0, 1, 1};
    const auto document = looked_up(ids);  // refers to them
    const auto same = [=](score_index p) { return document(p.query) == document(p.key); };
    const auto packed = attend(attend.on(k, v), q, causal{} & same);  // create_block_mask(causal & same)
    auto words = filled<bool, 2>({2, 5}, true);
    words(1, 3) = words(1, 4) = false;  // key_padding_mask = ~words
    const auto padded = attend(attend.on(k, v, boolean_mask{words}), q);
    // end
    holds("a mask is lengths", padded == all && packed(0, 3, 0) == v(0, 3, 0));

    // section: flex
    const auto score_mod = [](auto e, score_index p) { return e - 0.5 * abs(p.query - p.key); };
    attention alibi{score::modified{score::scaled_dot{}, score_mod}, normalize::softmax{}, combine::weighted_sum{}};
    const auto near = alibi(alibi.on(k, v), q, causal{} & sliding_window{3});  // flex_attention(q, k, v, …)
    // end
    holds("flex", near(0, 0, 0) == v(0, 0, 0) && near(0, 4, 0) != earlier(0, 4, 0));

    random_source random{2};
    const std::size_t n = 2, D = 8;
    const auto W_Q = nn::glorot<float>(random, D, D), W_K = nn::glorot<float>(random, D, D),
               W_V = nn::glorot<float>(random, D, D), W_O = nn::glorot<float>(random, D, D);
    // section: multihead
    // mha = nn.MultiheadAttention(D, n, bias=False, batch_first=True)
    multi_head heads{std::vector(n, attend), W_Q, W_K, W_V, W_O};
    const auto memory = heads.on(k, real);  // key = value = k, once per batch
    const auto out = heads(memory, q);      // out, _ = mha(q, k, k, key_padding_mask=~words)
    const auto step = heads.step(memory, ops::step_of(q, 0), heads.start(memory));
    const auto& of_heads = step.weights;  // [B,n,T]: average_attn_weights=False
    // end
    holds("heads", shape_of(of_heads) == shape_of_rank<3>{2, 2, 5} && out.size() == q.size());
}

void rotary_positions()
{
    const std::size_t B = 2, H = 3, T = 5, d = 4, P = 16;
    const auto q = random_numbers<4>({B, H, T, d}, 7);
    const std::vector<std::int64_t> position_ids{0, 1, 2, 3, 4, 7, 8, 9, 10, 11};
    auto cosines = zeros<float>(P, d / 2), sines = cosines;
    for (std::size_t p = 0; p < P; ++p) {
        for (std::size_t m = 0; m < d / 2; ++m) {
            const double angle = static_cast<double>(p) * std::pow(100.0, -static_cast<double>(m));
            cosines(p, m) = static_cast<float>(std::cos(angle));
            sines(p, m) = static_cast<float>(std::sin(angle));
        }
    }

    // section: rotary
    const ops::rotation as_in_llama{.base = 10000, .pairs = ops::turned_pairs::halves};  // rotate_half
    const auto turned = ops::rotate(q, position_ids, as_in_llama);                // q [B,H,T,d], position_ids [B,T]
    const auto same = ops::rotate(q, cosines, sines, position_ids, as_in_llama);  // cos_cache, sin_cache [P,d/2]
    const auto in_part = ops::rotate(q, position_ids, {.width = 2});              // rotary_embedding_dim
    // end
    float most = 0;
    for (std::size_t i = 0; i < q.size(); ++i) most = std::max(most, std::abs(turned.data()[i] - same.data()[i]));
    holds("the same angles", most < 1e-5F && turned(1, 0, 0, 0) != q(1, 0, 0, 0));
    holds("the rest is unchanged", in_part(1, 2, 3, 1) != q(1, 2, 3, 1) && in_part(1, 2, 3, 2) == q(1, 2, 3, 2));
}

void training()
{
    const std::size_t B = 4, T = 5, D = 6, Q = 3, C = 2;
    const auto h = random_numbers<3>({B, T, D}, 8);
    const auto q = random_numbers<2>({B, Q}, 9);
    const lengths real{5, 2, 4, 1};
    ops::expected_words<float> targets{word_ids(1, B), std::vector<float>(B, 1.0F)};
    for (std::size_t b = 0; b < B; ++b) targets.words(0, b) = static_cast<std::uint32_t>(b % C);

    // section: loop
    random_source random{1};  // torch.manual_seed(1)
    auto model = make_reader<float>(random, Q, D, C);
    train::adam<float> optimizer({.rate = 1e-2});  // torch.optim.Adam(model.parameters(), lr=1e-2)
    ad::tape<float> tape;
    float first = 0, last = 0;
    for (int step = 0; step < 100; ++step) {
        tape.clear();                                                        // optimizer.zero_grad()
        const auto on_tape = ad::lift(tape, model);                          // the same struct, of variables
        const auto loss = ops::cross_entropy(on_tape(h, real, q), targets);  // F.cross_entropy(…, reduction="sum")
        tape.backward(loss);                                                 // loss.backward()
        optimizer.step(model, on_tape, tape, 1.0);  // clip_grad_norm_(…, 1.0); optimizer.step()
        last = *loss.value().data;                  // loss.item()
        if (step == 0) first = last;
    }
    // end
    holds("it learns", last < first / 10);

    // section: statedict
    io::archive file;                      // state = model.state_dict()
    io::put(file, model);                  // "attend.score.W", …, "W", "b"
    io::save("reader.safetensors", file);  // safetensors.torch.save_file(state, …)
    auto other = make_reader<float>(random, Q, D, C);
    io::take(io::load("reader.safetensors"), other);  // other.load_state_dict(…), strict=True
    // end
    holds("the same again", other(h, real, q) == model(h, real, q));
    std::filesystem::remove("reader.safetensors");

    // section: dtype
    const auto in_double = transform_parameters(model, [](const std::string&, const auto& x) {
        array<double, rank_of<decltype(x)>> y(shape_of(x));  // model.double()
        for (std::size_t i = 0; i < y.size(); ++i) y.data()[i] = static_cast<double>(x.data()[i]);
        return y;
    });
    // end
    const auto h_d = filled<double, 3>({B, T, D}, 0.5);
    const auto q_d = filled<double, 2>({B, Q}, 0.5);
    ops::expected_words<double> targets_d{targets.words, std::vector<double>(B, 1.0)};

    // section: hvp
    const auto loss = [&](auto&, const auto& m) { return ops::cross_entropy(m(h_d, real, q_d), targets_d); };
    const auto direction = in_double;
    const auto [value, gradient, product] = ad::hessian_vector(loss, in_double, direction);  // torch.func.jvp of grad
    // end
    holds("second order", std::isfinite(value) && shape_of(product.W) == shape_of(gradient.W));

    // section: dropout
    const auto kept = ops::dropout(h, 0.5, random.next_stream());  // plain: h itself, as after model.eval()
    // end
    holds("dropout", kept == h);
}

void batches()
{
    const std::vector<seq2seq::id_sentence> sources{{5, 6, 7}, {8, 9}, {5, 9, 7, 6}}, targets{{4, 5}, {6}, {7, 8, 9}};
    // section: loader
    random_source random{1};
    std::size_t seen = 0;
    for (const auto& which :
         seq2seq::shuffled_batches(sources, targets, seq2seq::batch_limits{.pairs = 2}, random.next_stream())) {
        std::vector<const seq2seq::id_sentence*> source, target;
        for (const std::size_t i : which) source.push_back(&sources[i]), target.push_back(&targets[i]);
        const auto batch = seq2seq::make_training_batch<float>(source, target);  // collate_fn: ids [T,B], and lengths
        seen += batch.source.real.batch();
    }
    // end
    holds("all seen", seen == 3);
}

void errors()
{
    std::string message;
    // section: errors
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    try {
        const auto memory = attend.on(zeros<float>(2, 5, 8), lengths{5, 6});
    } catch (const shape_error& error) {
        message = error.what();
    }
    // end
    std::printf("%s\n", message.c_str());
    holds("an error", !message.empty());
}

}  // namespace

int main()
{
    tensors();
    gradients();
    attending();
    rotary_positions();
    training();
    batches();
    errors();
    return failures;
}
