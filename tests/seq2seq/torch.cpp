// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/seq2seq/torch.hpp>

#include <doctest/doctest.h>

#include <support/temporary_directory.hpp>
#include <support/tensors.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

// The layers of PyTorch, with the outputs and gradients that it computes: stored in torch.safetensors, or just now by
// torch.py, which runs this program. docs/how_to/load_weights.md quotes the sections.

using namespace heed;
using support::distance;

namespace {

const io::archive& values()
{
    static const io::archive file = [] {
        const char* const fresh = std::getenv("HEED_TORCH_VALUES");
        return io::load(fresh != nullptr ? std::filesystem::path(fresh)
                                         : std::filesystem::path(__FILE__).parent_path() / "torch.safetensors");
    }();
    return file;
}

template <std::size_t N>
array<double, N> stored(const std::string& name)
{
    return io::array_of<double, N>(values().at(name));
}

constexpr double bound = 1e-10;

/// The module with PyTorch's weights computes run(module, inputs…) as PyTorch did, forward and backward.
template <class M, class Run, std::size_t... N>
void agrees(const std::string& name, M module, const Run& run, std::index_sequence<N...>,
            std::string_view suffix = "_l0")
{
    CAPTURE(name);
    io::load_torch(values(), module, name, suffix);
    ad::tape<double> tape;
    const auto lifted = ad::lift(tape, module);
    std::size_t count = 0;
    const auto next = [&] { return name + "/" + std::to_string(count++); };
    const std::tuple arrays{stored<N>("in/" + next())...};
    const auto inputs = std::apply([&](const auto&... x) { return std::tuple{tape.parameter(x)...}; }, arrays);
    const auto y = std::apply([&](const auto&... x) { return run(lifted, x...); }, inputs);
    constexpr std::size_t R = rank_of<decltype(y)>;
    const auto factors = stored<R>("factors/" + name);

    // Only real positions: the padding is 0 in PyTorch's file.
    auto is = copy_of(view_of(y));
    auto must = stored<R>("out/" + name);
    for (std::size_t i = 0; i < is.size(); ++i) is.data()[i] = must.data()[i] == 0 ? 0 : is.data()[i];
    CHECK(distance(is, must) < bound);

    tape.backward(ops::dot(y, factors));
    count = 0;
    std::apply(
        [&](const auto&... x) {
            (..., [&](const auto& each) {
                CHECK(distance(copy_of(tape.gradient(each)), stored<rank_of<decltype(each)>>("d/in/" + next())) <
                      bound);
            }(x));
        },
        inputs);

    // Gradients have the places of the weights, except for the biases that heed sums.
    const auto gradient = map_parameters(lifted, [&](const auto& x) { return copy_of(tape.gradient(x)); });
    io::archive as_torch;
    io::save_torch(as_torch, gradient, "d/" + name, suffix);
    std::size_t compared = 0;
    for (const io::tensor_entry& each : as_torch.tensors) {
        CAPTURE(each.name);
        const io::tensor_entry* const theirs = values().find(each.name);
        if (theirs == nullptr) {
            CHECK(each.name.find("bias") != std::string::npos);  // bias=False
            continue;
        }
        const auto a = each.values<double>(), b = theirs->values<double>();
        REQUIRE(each.shape == theirs->shape);
        const bool second = each.name.find("bias_hh") != std::string::npos;
        const bool gru = each.name.find("gru") != std::string::npos;
        double worst = 0;
        for (std::size_t i = second ? (gru ? a.size() / 3 * 2 : a.size()) : 0; i < a.size(); ++i)
            worst = std::max(worst, std::abs(a[i] - b[i]) / (1 + std::abs(b[i])));
        CHECK(worst < bound);
        ++compared;
    }
    CHECK(compared >= 2);
}

using one = std::index_sequence<3>;
using two = std::index_sequence<3, 3>;

array<double, 2> matrix(std::size_t rows, std::size_t columns) { return array<double, 2>({rows, columns}, 9.0); }
array<double, 1> vector(std::size_t size) { return array<double, 1>({size}, 9.0); }

constexpr std::size_t D = 4, n = 2, F = 5, X = 3;

auto lstm(std::size_t in) { return nn::lstm{matrix(in, 4 * D), vector(4 * D), matrix(D, 4 * D)}; }
auto gru(std::size_t in) { return nn::gru_reset_after{matrix(in, 3 * D), vector(3 * D), matrix(D, 3 * D), vector(D)}; }

/// A cell over all steps of x [T,B,X].
constexpr auto over_steps = [](const auto& cell, const auto& x) {
    const auto shape = shape_of(x);
    auto state = cell.begin(constant_like(x, shape_of_rank<2>{shape[1], D}, 0.0));
    std::vector<std::remove_cvref_t<decltype(nn::output_of(state))>> outputs;
    const auto inputs = cell.project(x);
    for (std::size_t t = 0; t < shape[0]; ++t) {
        state = cell.step(ops::block(inputs, t), state);
        outputs.push_back(nn::output_of(state));
    }
    return ops::stack(outputs);
};

auto softmax_heads()
{
    return std::vector(n, attention{score::scaled_dot{}, normalize::softmax{}, combine::weighted_sum{}});
}
auto heads(std::size_t in = D)
{
    return multi_head{softmax_heads(),
                      matrix(D, D),
                      matrix(in, D),
                      matrix(in, D),
                      matrix(D, D),
                      per_head::identity{},
                      biases{vector(D), vector(D), vector(D), vector(D)}};
}
auto feed_forward(auto activation)
{
    return nn::feed_forward{matrix(D, F), vector(F), matrix(F, D), vector(D), activation};
}
auto post() { return nn::post_norm{nn::layer_norm{vector(D), vector(D)}}; }
auto pre() { return nn::pre_norm{nn::layer_norm{vector(D), vector(D)}}; }

const lengths real{4, 2};

}  // namespace

TEST_CASE("nn.LSTM: one layer, two, without biases, backwards")
{
    agrees("lstm", lstm(X), over_steps, one{});
    agrees("lstm_bare", lstm(X), over_steps, one{});
    agrees("lstm_two", nn::stacked{std::vector{lstm(X), lstm(D)}}, over_steps, one{});

    auto backward = lstm(X);
    io::load_torch(values(), backward, "lstm_both", "_l0_reverse");
    const auto x = stored<3>("in/lstm_both/0");
    const auto must = stored<3>("out/lstm_both");
    const std::size_t T = shape_of(x)[0], B = shape_of(x)[1];
    auto state = backward.begin(array<double, 2>({B, D}, 0.0));
    for (std::size_t t = T; t-- > 0;) {
        state = backward.step(backward.project(ops::block(x, t)), state);
        for (std::size_t b = 0; b < B; ++b)
            for (std::size_t d = 0; d < D; ++d) CHECK(std::abs(state.hidden(b, d) - must(t, b, D + d)) < bound);
    }
}

TEST_CASE("nn.GRU: one layer, two, and a single cell")
{
    agrees("gru", gru(X), over_steps, one{});
    agrees("gru_two", nn::stacked{std::vector{gru(X), gru(D)}}, over_steps, one{});
    agrees(
        "gru_cell", gru(X),
        [](const auto& cell, const auto& x, const auto& h) { return cell.step(cell.project(x), h); },
        std::index_sequence<2, 2>{}, "");
}

TEST_CASE("nn.MultiheadAttention: with biases and without, and with keys of a different width")
{
    const auto attend = [](const auto& heads, const auto& q, const auto& k) { return heads(heads.on(k, real), q); };
    agrees("heads", heads(), attend, two{});
    agrees("heads_wide", heads(3), attend, two{});
    agrees("heads_bare", multi_head{softmax_heads(), matrix(D, D), matrix(D, D), matrix(D, D), matrix(D, D)}, attend,
           two{});
    agrees("heads_bare", heads(), attend, two{});  // zeros, then
}

TEST_CASE("nn.TransformerEncoderLayer: norm_first or not, relu and gelu; several in a row")
{
    const auto run = [](const auto& layer, const auto& x) { return layer(x, real); };
    agrees("encoder_post", seq2seq::transformer_encoder_layer{heads(), post(), feed_forward(ops::relu), post()}, run,
           one{});
    agrees("encoder_pre", seq2seq::transformer_encoder_layer{heads(), pre(), feed_forward(ops::gelu), pre()}, run,
           one{});

    std::vector layers(2, seq2seq::transformer_encoder_layer{heads(), post(), feed_forward(ops::relu), post()});
    auto norm = nn::layer_norm{vector(D), vector(D)};
    io::load_torch(values(), layers, "stack.layers");
    io::load_torch(values(), norm, "stack.norm");
    auto x = stored<3>("in/stack/0");
    for (const auto& layer : layers) x = layer(x, real);
    x = norm(x);
    auto must = stored<3>("out/stack");
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = must.data()[i] == 0 ? 0 : x.data()[i];
    CHECK(distance(x, must) < bound);
}

TEST_CASE("nn.TransformerDecoderLayer: norm_first or not, relu and gelu")
{
    const auto run = [](const auto& layer, const auto& y, const auto& x) { return layer(y, layer.cross.on(x, real)); };
    agrees("decoder_post",
           seq2seq::transformer_decoder_layer{heads(), heads(), post(), post(), feed_forward(ops::relu), post()}, run,
           two{});
    agrees("decoder_pre",
           seq2seq::transformer_decoder_layer{heads(), heads(), pre(), pre(), feed_forward(ops::gelu), pre()}, run,
           two{});
}

// ---- a complete model
// -----------------------------------------------------------------------------------------------------

namespace {

using layer_type = decltype(seq2seq::transformer_encoder_layer{heads(), post(), feed_forward(ops::relu), post()});

/// Class Tagger of torch.py.
struct tagger {
    array<double, 2> words = matrix(7, X);
    decltype(gru(X)) rnn = gru(X);
    layer_type layer{heads(), post(), feed_forward(ops::relu), post()};
    array<double, 2> W = matrix(D, 3);
    array<double, 1> b = vector(3);

    array<double, 3> operator()(const word_ids& ids) const
    {
        const auto states = over_steps(rnn, ops::lookup(words, ids));  // [T,B,D]
        return ops::linear(layer(ops::swap_axes(states), lengths::full(ids.batch, ids.steps)), W, b);
    }
};

io::archive state_dict_of(const tagger& model)
{
    // section: totorch
    io::archive state_dict;
    io::save_torch(state_dict, io::as_embedding(model.words), "words");
    io::save_torch(state_dict, model.rnn, "rnn");
    io::save_torch(state_dict, model.layer, "layer");
    io::save_torch(state_dict, io::as_linear(model.W, model.b), "out");
    // end
    return state_dict;
}

}  // namespace

TEST_CASE("a complete model from PyTorch, and back")
{
    const io::archive& file = values();
    tagger model;
    // The lines of docs/how_to/load_weights.md, with a prefix.
    io::load_torch(file, io::as_embedding(model.words), "tagger.words");
    io::load_torch(file, model.rnn, "tagger.rnn");
    io::load_torch(file, model.layer, "tagger.layer");
    io::load_torch(file, io::as_linear(model.W, model.b), "tagger.out");

    const auto sentences = values().at("in/tagger").values<std::int64_t>();
    const std::size_t B = 2, T = 4;
    word_ids ids(T, B);
    for (std::size_t b = 0; b < B; ++b)
        for (std::size_t t = 0; t < T; ++t) ids(t, b) = static_cast<std::uint32_t>(sentences[b * T + t]);
    CHECK(distance(model(ids), stored<3>("out/tagger")) < bound);

    io::archive same = state_dict_of(model);
    CHECK(same.tensors.size() == 1 + 4 + 12 + 2);
    tagger other;
    io::load_torch(same, io::as_embedding(other.words), "words");
    io::load_torch(same, other.rnn, "rnn");
    io::load_torch(same, other.layer, "layer");
    io::load_torch(same, io::as_linear(other.W, other.b), "out");
    CHECK(distance(other(ids), model(ids)) == 0);

    if (const char* const folder = std::getenv("HEED_TORCH_BACK")) {
        io::save(std::filesystem::path(folder) / "same.safetensors", same);
        for (double& w : model.rnn.U) w *= 1.25;
        for (double& w : model.rnn.c_h) w -= 0.5;
        for (double& w : model.rnn.b) w += 0.25;
        for (double& w : model.layer.attention.W_K) w += 0.5;
        io::archive changed = state_dict_of(model);
        changed.tensors.push_back(io::entry_of("out", model(ids)));
        io::save(std::filesystem::path(folder) / "changed.safetensors", changed);
    }
}

TEST_CASE("the code of docs/how_to/load_weights.md")
{
    const temporary_directory directory;
    std::filesystem::copy_file(std::filesystem::path(__FILE__).parent_path() / "torch.safetensors",
                               directory.path() / "model.safetensors");
    const std::filesystem::path path = directory.path() / "model.safetensors";
    tagger model;
    // section: fromtorch
    const io::archive file = io::load(path);            // safetensors.torch.save_file(model.state_dict(), path)
    io::load_torch(file, model.rnn, "tagger.rnn");      // nn.GRU
    io::load_torch(file, model.layer, "tagger.layer");  // nn.TransformerEncoderLayer
    io::load_torch(file, io::as_embedding(model.words), "tagger.words");  // nn.Embedding
    io::load_torch(file, io::as_linear(model.W, model.b), "tagger.out");  // nn.Linear
    // end
    CHECK(model.W(0, 1) == file.at("tagger.out.weight").values<double>()[4]);
    // section: onetensor
    const auto table = io::array_of<double, 2>(file.at("tagger.words.weight"));  // [7,3]; also from F16, BF16 or F32
    // end
    CHECK(table == model.words);
    tagger other = model;
    // section: sixteen
    io::archive half;
    io::put<io::bfloat16>(half, model.rnn, "rnn.");  // rounded to the nearest
    io::save(path, half);
    // end
    io::take(io::load(path), other.rnn, "rnn.");
    CHECK(distance(other.rnn.W, model.rnn.W) < 0x1p-7);
    CHECK(distance(other.rnn.W, model.rnn.W) > 0);
}

TEST_CASE("mismatches are reported and change nothing")
{
    const auto said = [](const io::archive& file, auto module, const std::string& prefix) {
        const auto before = module;
        const std::string message = support::message_of<error>([&] { io::load_torch(file, module, prefix); });
        io::archive a, b;
        io::put(a, before);
        io::put(b, module);
        CHECK(a.tensors == b.tensors);
        return message;
    };
    const auto bare = multi_head{softmax_heads(), matrix(D, D), matrix(D, D), matrix(D, D), matrix(D, D)};
    CHECK(said(values(), bare, "heads") ==
          "torch: the file has \"heads.in_proj_bias\", but this multi_head has no biases; "
          "add heed::biases as its last part");
    CHECK(said(values(), lstm(D), "lstm") ==
          "torch: tensor \"lstm.weight_ih_l0\" is F64 [16,3] in the file, but the module needs F64 [16,4]");
    CHECK(support::contains(said(values(), lstm(X), "rnn"), "there is no tensor \"rnn.weight_ih_l0\"; it holds "));
    CHECK(support::contains(said(values(), nn::stacked{std::vector{gru(X)}}, "gru_two"),
                            "the file has \"gru_two.weight_ih_l1\", but this module has only 1 layer"));
    CHECK(support::contains(said(values(), nn::stacked{std::vector{gru(X), gru(D), gru(D)}}, "gru_two"),
                            "there is no tensor \"gru_two.weight_ih_l2\""));
    auto narrow = heads();
    narrow.W_Q = matrix(D, 2);
    CHECK(support::contains(said(values(), narrow, "heads"),
                            "queries, contexts and the concatenated heads have the same width"));
    // Doubles cannot be stored as floats.
    nn::layer_norm floats{nn::zeros<float>(D), nn::zeros<float>(D)};
    CHECK(said(values(), floats, "stack.norm") ==
          "torch: tensor \"stack.norm.weight\" is F64 [4] in the file, but the module needs F32 [4]");
    // Unsupported options.
    io::archive odd = values();
    odd.tensors.push_back(io::entry_of("lstm.weight_hr_l0", matrix(2, D)));
    CHECK(support::contains(said(odd, lstm(X), "lstm"), "heed does not support projected outputs (proj_size)"));
    odd.tensors.push_back(io::entry_of("heads.bias_k", matrix(1, D)));
    CHECK(support::contains(said(odd, heads(), "heads"), "heed does not support add_bias_kv"));
    auto W = matrix(D, 3);
    CHECK(
        support::contains(support::message_of<error>([&] { io::load_torch(values(), io::as_linear(W), "tagger.out"); }),
                          "io::as_linear was called without a bias"));
}
