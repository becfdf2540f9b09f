// SPDX-License-Identifier: BSD-3-Clause
//
// characters: a language model that generates text letter by letter, in the style of its training text.
//
//     characters README.md docs/*.md --prompt "Attention "
//
// A small version of current language models: causal self-attention layers, rotary positions, heads that share keys and
// values and, for generation, a KV cache that grows by one letter at a time. Without a file it learns the poem below,
// which it soon memorizes.
//
// test: --steps 3 --length 30 --context 32
// test, exhaustive: --steps 60 --length 60 --context 64 --must-reach 1.5

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/utf8.hpp>
#include <heed/heed.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/nn/feed_forward.hpp>
#include <heed/nn/init.hpp>
#include <heed/nn/layer_norm.hpp>
#include <heed/nn/residual.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/learning_rate.hpp>

#include "../tools/support/program.hpp"
#include "../tools/support/progress.hpp"

using namespace heed;

namespace {

// 1. The model.

/// x ← x + Attention(norm(x)),  x ← x + FFN(norm(x)), causal.
template <class Attention, class Residual, class FeedForward>
struct layer {
    Attention attention;
    Residual around_attention;
    FeedForward feed_forward;
    Residual around_feed_forward;

    /// All letters in parallel, for training: x [B,S,D].
    auto operator()(const tensor auto& x) const
    {
        return through(x, [&](const auto& in) { return attention(attention.on(in), in, causal{}); });
    }

    /// The next letters [B,n,D]; `known` becomes the memory of all letters so far. They see at most `context` letters
    /// back, the largest distance in training.
    template <class Memory>
    auto next(const tensor auto& x, Memory& known, bool first, std::size_t context) const
    {
        return through(x, [&](const auto& in) {
            known = first ? with_cache(attention.on(in)) : attention.extend(known, in);
            const auto here = from_query(attention.start(known), known.positions() - in.shape()[1]);
            const sliding_window near{static_cast<std::int32_t>(context)};
            return attention.read_all(known, in, here, causal{} & near).contexts;
        });
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return ::layer{visit("attention", self.attention), visit("around_attention", self.around_attention),
                       visit("feed_forward", self.feed_forward),
                       visit("around_feed_forward", self.around_feed_forward)};
    }

private:
    auto through(const tensor auto& x, const auto& see) const
    {
        return around_feed_forward.around(around_attention.around(x, see, {}), feed_forward, {});
    }
};
template <class Attention, class Residual, class FeedForward>
layer(Attention, Residual, FeedForward, Residual) -> layer<Attention, Residual, FeedForward>;

/// p(letter) = softmax(norm(x) Eᵀ + b), E the embeddings of letters.
template <class Matrix, class Layers, class Norm, class Vector>
struct language_model {
    Matrix E;  // [256,D]
    Layers layers;
    Norm last;
    Vector b;  // [256]

    auto embedded(const word_ids& letters) const  // [S,B] -> [B,S,D]
    {
        const auto x = ops::swap_axes(ops::lookup(E, letters));
        return ops::scale(x, std::sqrt(static_cast<double>(shape_of(E)[1])));
    }

    /// −log p of all letters, summed.
    auto loss(const word_ids& letters, const ops::expected_words<float>& targets) const
    {
        auto x = embedded(letters);
        for (const auto& each : layers) x = each(x);
        return ops::cross_entropy(ops::swap_axes(last(x)), ops::transpose(E), b, targets, 0.0F);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto E = visit("E", self.E);
        auto layers = visit("layers", self.layers);
        auto last = visit("last", self.last);
        auto b = visit("b", self.b);
        return ::language_model{std::move(E), std::move(layers), std::move(last), std::move(b)};
    }
};
template <class Matrix, class Layers, class Norm, class Vector>
language_model(Matrix, Layers, Norm, Vector) -> language_model<Matrix, Layers, Norm, Vector>;

struct sizes {
    std::size_t width = 128, layers = 4, heads = 4, groups = 2;
};

auto make_layer(random_source& random, const sizes& n)
{
    const std::size_t D = n.width, shared = D / n.heads * n.groups;
    const attention one{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
    auto W_Q = nn::glorot<float>(random, D, D), W_K = nn::glorot<float>(random, D, shared);
    auto W_V = nn::glorot<float>(random, D, shared), W_O = nn::glorot<float>(random, D, D);
    const nn::pre_norm residual{nn::make_layer_norm<float>(D)};
    return layer{multi_head{std::vector(n.heads, one), std::move(W_Q), std::move(W_K), std::move(W_V), std::move(W_O)},
                 residual, nn::make_feed_forward<float>(random, D, 4 * D, ops::gelu), residual};
}

auto make_model(random_source& random, const sizes& n)
{
    auto E = nn::gaussian<float>(random, 256, n.width, 1 / std::sqrt(static_cast<double>(n.width)));
    std::vector<decltype(make_layer(random, n))> layers;
    for (std::size_t i = 0; i < n.layers; ++i) layers.push_back(make_layer(random, n));
    return language_model{std::move(E), std::move(layers), nn::make_layer_norm<float>(n.width), nn::zeros<float>(256)};
}

// 2. The text: windows at random positions.

const char* const poem = "Tell me, where do you look, said the word to the word,\n"
                         "at the one that came first, or the last one you heard?\n"
                         "I look, said the other, wherever I must,\n"
                         "at the near ones a lot, at the far ones with trust.\n"
                         "And the weights that I give, when I add them, are one,\n"
                         "so I never give more, though I look at a ton.\n";

struct batch {
    word_ids letters;
    ops::expected_words<float> targets;
};

/// Windows of `context` letters, each with the following letter.
batch windows(std::span<const char> text, std::size_t count, std::size_t context, std::uint64_t stream)
{
    batch made{{context, count}, {{context, count}, std::vector<float>(context * count, 1.0F)}};
    for (std::size_t b = 0; b < count; ++b) {
        const std::size_t begin = below(text.size() - context, stream, b);
        for (std::size_t s = 0; s < context; ++s) {
            made.letters(s, b) = static_cast<unsigned char>(text[begin + s]);
            made.targets.words(s, b) = static_cast<unsigned char>(text[begin + s + 1]);
        }
    }
    return made;
}

std::string read(const std::vector<std::string>& files)
{
    std::string text;
    for (const std::string& file : files) {
        std::ifstream in(file, std::ios::binary);
        text.append(std::istreambuf_iterator<char>(in), {});
        if (!in) throw error(file + ": cannot be read");
    }
    return files.empty() ? poem : text;
}

// 3. Training and generation.

struct settings {
    std::vector<std::string> files;
    sizes model;
    std::size_t steps = 1000, batch = 16, context = 128, length = 500, threads = 1;
    double rate = 2e-3, temperature = 0.7, must_reach = INFINITY;
    std::string prompt, save, load;
    std::uint64_t seed = 1;
};

constexpr double nats_per_bit = 0.6931471805599453;

/// Bits per letter of unseen text.
double bits(const auto& model, std::span<const char> text, std::size_t context)
{
    const std::size_t count = std::clamp<std::size_t>(text.size() / (context + 1), 1, 32);
    const batch held = windows(text, count, context, 5);
    const auto loss = model.loss(held.letters, held.targets);
    return static_cast<double>(*view_of(loss).data) / static_cast<double>(count * context) / nats_per_bit;
}

void train(auto& model, std::span<const char> text, std::span<const char> held, const settings& how,
           random_source& random)
{
    ad::tape<float> tape;
    train::adam<float> adam;
    const auto begin = program::clock::now();
    const std::size_t report = std::max<std::size_t>(1, how.steps / 10);
    program::live_line line;
    double sum = 0;
    for (std::size_t step = 1; step <= how.steps; ++step) {
        const batch now = windows(text, how.batch, how.context, random.next_stream());
        tape.clear();
        const auto lifted = ad::lift(tape, model);
        const auto loss =
            ops::scale(lifted.loss(now.letters, now.targets), 1.0 / static_cast<double>(how.batch * how.context));
        tape.backward(loss);
        adam.settings.rate = train::inverse_square_root{how.rate, 100}(step);
        if (!std::isfinite(adam.step(model, lifted, tape, 1.0)))
            throw error("step " + std::to_string(step) + ": the gradient is not finite; try a smaller --rate");
        sum += static_cast<double>(*loss.value().data) / nats_per_bit;
        const double took = program::seconds_since(begin);
        line.show(fmt::format("step {} of {}, {:.0f} letters/s", step, how.steps,
                              static_cast<double>(step * how.batch * how.context) / took));
        if (step % report == 0 || step == how.steps) {
            line.clear();
            fmt::print(stderr, "step {:5}   {:.3f} bits per letter, {:.3f} on held-out text   {}\n", step,
                       sum / static_cast<double>((step - 1) % report + 1), bits(model, held, how.context),
                       program::duration_text(took));
            sum = 0;
        }
    }
}

/// Appends `length` letters to the prompt. Each layer stores the keys and values of all letters so far.
std::string write(const auto& model, const settings& how, random_source& random)
{
    std::string text = how.prompt.empty() ? "\n" : how.prompt;
    using memory = decltype(with_cache(model.layers[0].attention.on(model.embedded({1, 1}))));
    std::vector<memory> known;
    for (const auto& each : model.layers) known.push_back(with_cache(each.attention.on(model.embedded({1, 1}))));
    const std::uint64_t stream = random.next_stream();
    for (std::size_t done = 0, i = 0; i < how.length; ++i) {
        word_ids letters(text.size() - done, 1);
        for (std::size_t s = 0; s < letters.steps; ++s) letters(s, 0) = static_cast<unsigned char>(text[done + s]);
        auto x = model.embedded(letters);
        for (std::size_t k = 0; k < known.size(); ++k) x = model.layers[k].next(x, known[k], done == 0, how.context);
        done = text.size();
        const auto last = ops::step_of(model.last(x), letters.steps - 1);
        const auto scores = ops::linear(last, ops::transpose(model.E), model.b);
        // Samples from softmax(scores / temperature).
        const double top = *std::max_element(scores.begin(), scores.end());
        std::vector<double> sums;
        for (const float score : scores)
            sums.push_back((sums.empty() ? 0 : sums.back()) + std::exp((score - top) / how.temperature));
        const double drawn = uniform(stream, i) * sums.back();
        const auto letter = std::lower_bound(sums.begin(), sums.end(), drawn) - sums.begin();
        text += static_cast<char>(std::min<std::ptrdiff_t>(letter, 255));
    }
    return text;
}

int run(const settings& how)
{
    set_threads(how.threads);
    if (how.model.width % how.model.heads != 0 || how.model.width / how.model.heads % 2 != 0 ||
        how.model.heads % how.model.groups != 0) {
        throw error(fmt::format("--width {} with {} heads in {} groups: heads must have an even width, and groups the "
                                "same number of heads",
                                how.model.width, how.model.heads, how.model.groups));
    }
    random_source random{how.seed};
    auto model = make_model(random, how.model);
    if (!how.load.empty()) io::take(io::load(how.load), model);
    if (how.steps > 0) {
        const std::string all = read(how.files);
        const std::size_t back = std::max(all.size() / 20, how.context + 2);  // the end is held out
        if (all.size() < 2 * back) {
            throw error(fmt::format("the text has {} letters; a --context of {} requires at least {}", all.size(),
                                    how.context, 2 * (how.context + 2)));
        }
        const std::span<const char> text{all.data(), all.size() - back}, held{text.data() + text.size(), back};
        fmt::print(stderr, "{} letters, {} parameters\n", all.size(), parameter_count(model));
        train(model, text, held, how, random);
        if (const double is = bits(model, text, how.context); is > how.must_reach)
            throw error(fmt::format("{:.3f} bits per letter, but --must-reach is {}", is, how.must_reach));
    }
    if (!how.save.empty()) {
        io::archive archive;
        io::put(archive, model);
        io::save(how.save, archive);
    }
    std::istringstream lines(write(model, how, random));  // the last letter may be an incomplete UTF-8 character
    for (std::string line; std::getline(lines, line);) fmt::print("{}\n", text::printable(line));
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Train a letter-by-letter language model, and generate text."};
    settings how;
    const auto number = [&](const char* name, std::size_t& to, std::size_t least, const char* what) {
        app.add_option(name, to, what)->check(CLI::Range(least, std::size_t{1} << 30))->capture_default_str();
    };
    app.add_option("text", how.files, "training files, concatenated; default: a poem")->type_name("FILE");
    number("--steps", how.steps, 0, "updates; 0: only generate, with a loaded model");
    number("--batch", how.batch, 1, "windows per update");
    number("--context", how.context, 2, "letters per window");
    number("--width", how.model.width, 2, "width of the model");
    number("--layers", how.model.layers, 1, "layers");
    number("--heads", how.model.heads, 1, "heads per layer");
    number("--groups", how.model.groups, 1, "groups of heads that share keys and values");
    app.add_option("--rate", how.rate, "maximum learning rate of Adam")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--prompt", how.prompt, "the beginning of the generated text");
    number("--length", how.length, 0, "letters to generate");
    app.add_option("--temperature", how.temperature, "sampling temperature; below 1: likely letters become more likely")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--save", how.save, "where to save the model")->type_name("FILE");
    app.add_option("--load", how.load, "a saved model of the same sizes to continue with")->type_name("FILE");
    app.add_option("--must-reach", how.must_reach,
                   "fail unless the training loss is at most this many bits per letter");
    app.add_option("--seed", how.seed, "random seed of the model and the text")->capture_default_str();
    program::ask_for_threads(app, how.threads);
    return program::run(app, "characters", argc, argv, [&] { return run(how); });
}
