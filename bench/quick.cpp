// SPDX-License-Identifier: BSD-3-Clause

// Five figures in less than a minute, each with a sentence, and a picture. bench/quick.sh builds and runs this program.
//
//     build-quick/bench/quick [--threads N] [--picture FILE]
//
// The compared functions take turns, round after round, and a ratio is the median of the rounds' ratios, so that other
// load slows down both sides. bench/long.cpp and bench/run.sh measure more, and for longer.

#include <algorithm>
#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/parallel.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/normalize/ratio.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/score/kernel.hpp>
#include <heed/score/scaled_dot.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>
#include <heed_kit/view/chart.hpp>

#include "limits.hpp"

namespace {

using namespace heed;

struct settings {
    std::size_t threads = 1;
    std::string picture;
};

/// Prevents the compiler from removing the computation of x.
void use(const auto& x) { asm volatile("" : : "g"(&x) : "memory"); }

double seconds(const std::function<void()>& run)
{
    const auto begin = std::chrono::steady_clock::now();
    run();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

double median(std::vector<double> x)
{
    std::nth_element(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(x.size() / 2), x.end());
    return x[x.size() / 2];
}

/// The seconds of each function in each round, [function][round], without the first round, which warms up.
std::vector<std::vector<double>> in_turn(const std::vector<std::function<void()>>& all, std::size_t rounds = 11)
{
    std::vector<std::vector<double>> took(all.size());
    for (std::size_t round = 0; round <= rounds; ++round) {
        for (std::size_t i = 0; i < all.size(); ++i) {
            const double t = seconds(all[i]);
            if (round > 0) took[i].push_back(t);
        }
    }
    return took;
}

double median_ratio(const std::vector<double>& a, const std::vector<double>& b)
{
    std::vector<double> ratios;
    for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
    return median(ratios);
}

array<float, 3> numbers(std::size_t batch, std::size_t positions, std::size_t width, std::uint64_t stream)
{
    auto x = zeros<float>(batch, positions, width);
    for (std::size_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<float>(normal(stream, i));
    return x;
}

void line(const std::string& figure, const std::string& name, const std::string& sentence)
{
    std::printf("  %-14s %s\n  %-14s %s\n\n", figure.c_str(), name.c_str(), "", sentence.c_str());
    std::fflush(stdout);
}

[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...)
{
    char to[300];
    va_list numbers;
    va_start(numbers, format);
    std::vsnprintf(to, sizeof to, format, numbers);
    va_end(numbers);
    return to;
}

template <class Score = score::scaled_dot, class Normalize = normalize::softmax>
auto made(const Score& score = {}, const Normalize& normalize = {})
{
    return attention{score, normalize, combine::weighted_sum{}};
}

// 1. The share of the processor's peak that attention reaches.
void share_of_peak(const settings& with)
{
    constexpr std::size_t B = 8, T = 1024, D = 64;
    constexpr std::size_t steps = 12 * (std::size_t{1} << 21);
    const auto q = numbers(B, T, D, 1), k = numbers(B, T, D, 2);
    const auto attend = made();
    const auto memory = attend.on(k);
    const auto took = in_turn({[&] {
                                   parallel_for(with.threads, 1, [&](std::size_t first, std::size_t last, std::size_t) {
                                       for (std::size_t i = first; i < last; ++i)
                                           use(bench::multiply_and_add(steps, 0.9999F, 0.0001F));
                                   });
                               },
                               [&] { use(attend(memory, q)); }},
                              9);
    const double most = 2.0 * static_cast<double>(steps * simd::lanes<float> * with.threads);
    const double done = 4.0 * static_cast<double>(B * T * T * D);
    line(
        text("%.0f%%", 100 * done / most * median_ratio(took[0], took[1])), "of the processor's peak",
        text("Attention of 1024 queries, multiplications and additions; the peak, measured in the same rounds, is %.0f "
             "billion per second.",
             most / median(took[0]) / 1e9));
}

// 2. and 3. The gains of tiles and of linear attention, with the picture.
void by_length(const settings& with)
{
    constexpr std::size_t D = 64, longest = 8192;
    const auto softmax = made();
    const auto linear = made(score::kernel{score::elu_plus_one{}}, normalize::ratio{});
    view::chart picture{.title = "Attention, number of queries = number of keys",
                        .x_label = "keys",
                        .y_label = "milliseconds",
                        .all = {{"softmax, all weights stored", {}, {}},
                                {"softmax, tile by tile", {}, {}},
                                {"linear attention", {}, {}}},
                        .from_zero = true};
    double tiles_save = 0, linear_saves = 0, megabytes = 0;
    std::string of_softmax, of_linear;  // the implementations that run
    for (std::size_t T = 512; T <= longest; T *= 2) {
        const auto q = numbers(1, T, D, 1), k = numbers(1, T, D, 2);
        const auto memory = softmax.on(k);
        const auto kernel = linear.on(k);
        std::vector<std::function<void()>> ways{[&] { use(softmax(memory, q)); }, [&] { use(linear(kernel, q)); }};
        if (T <= longest / 2) {  // beyond that the weights alone take a quarter of a gigabyte
            ways.push_back([&] {
                const auto alpha = softmax.weights_of(memory, q);
                use(softmax.combine.combine_matrix(tensor_view<const float, 2>{alpha.data(), {T, T}}, memory.values));
            });
        }
        const auto took = in_turn(ways, T < longest ? 9 : 5);
        const auto draw = [&](std::size_t series, const std::vector<double>& t) {
            picture.all[series].xs.push_back(static_cast<double>(T));
            picture.all[series].ys.push_back(1e3 * median(t));
        };
        draw(1, took[0]);
        draw(2, took[1]);
        linear_saves = median_ratio(took[0], took[1]);
        of_softmax = explain(softmax, memory, q);
        of_linear = explain(linear, kernel, q);
        if (ways.size() < 3) continue;
        draw(0, took[2]);
        tiles_save = median_ratio(took[2], took[0]);
        megabytes = static_cast<double>(T * T * sizeof(float)) / 1e6;
    }
    line(text("%.1f times", tiles_save), "as fast with tiles",
         text("4096 keys; compared with storing all weights first, %.0f MB. ", megabytes) + of_softmax + ".");
    line(text("%.0f times", linear_saves), "as fast with linear attention",
         "8192 keys, a sum over features instead of a softmax: twice the text takes twice the time, not four times. " +
             of_linear + ".");
    if (!with.picture.empty()) io::write_file(with.picture, view::svg(picture));
}

// 4. One query, as in generation word by word, which is limited by reading keys and values.
void one_query()
{
    constexpr std::size_t B = 8, T = 16384, D = 64;
    const auto attend = made();
    const auto memory = attend.on(numbers(B, T, D, 1), numbers(B, T, D, 2), lengths::full(B, T));
    const auto query = filled<float, 2>({B, D}, 0.1F);
    auto answer = attend.step(memory, query, attend.start(memory));
    const auto took = in_turn({[&] { attend.step_into(answer, memory, query, attend.start(memory)); },
                               [&] {
                                   parallel_for(B, 1, [&](std::size_t first, std::size_t last, std::size_t) {
                                       for (std::size_t b = first; b < last; ++b) {
                                           use(bench::read_all_of(T * D, memory.keys.data() + b * T * D));
                                           use(bench::read_all_of(T * D, memory.values.data() + b * T * D));
                                       }
                                   });
                               }},
                              15);
    line(text("%.2f times", median_ratio(took[0], took[1])), "as long as reading alone",
         text("One query of 16384 keys and values: %.1f GB/s, compared with a loop that only sums the same numbers.",
              static_cast<double>(2 * B * T * D * sizeof(float)) / median(took[0]) / 1e9));
}

// 5. A training step of a small translator: forward, backward and Adam.
void training_step()
{
    constexpr std::size_t B = 32, words = 20, V = 2000;
    std::vector<seq2seq::id_sentence> sentences(B);
    for (std::size_t i = 0; i < B * words; ++i)
        sentences[i / words].push_back(static_cast<std::uint32_t>(4 + below(V - 4, 3, i)));
    std::vector<const seq2seq::id_sentence*> each;
    for (const auto& sentence : sentences) each.push_back(&sentence);
    const auto batch = seq2seq::make_training_batch<float>(each, each);
    auto model = seq2seq::make_translator<float>(1, {V, V, 128, 128, 128}, seq2seq::attentions::additive_factory{});
    train::adam<float> adam;
    ad::tape<float> tape;
    const auto took = in_turn({[&] {
        tape.clear();
        const auto on_tape = ad::lift(tape, model);
        tape.backward(ops::scale(on_tape.loss(batch), 1.0 / static_cast<double>(batch.target_words)));
        use(adam.step(model, on_tape, tape, 1.0));
    }});
    line(text("%.0f", static_cast<double>(batch.target_words) / median(took[0])), "target words per second in training",
         "A training step of a small RNNsearch (GRUs and attention of 128, vocabulary of 2000).");
}

int usage(int status)
{
    std::fprintf(status == 0 ? stdout : stderr, "quick [--threads N] [--picture FILE]\n");
    return status;
}

}  // namespace

int main(int argc, char** argv)
{
    settings with;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--help") return usage(0);
        if (i + 1 == argc) return usage(2);
        if (argument == "--threads") {
            with.threads = static_cast<std::size_t>(std::max(1, std::atoi(argv[++i])));
        } else if (argument == "--picture") {
            with.picture = argv[++i];
        } else {
            return usage(2);
        }
    }
    try {
        set_threads(with.threads);
        std::printf("\n");
        share_of_peak(with);
        by_length(with);
        one_query();
        training_step();
    } catch (const std::exception& error) {
        std::fprintf(stderr, "quick: %s\n", error.what());
        return 1;
    }
}
