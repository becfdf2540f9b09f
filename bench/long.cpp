// SPDX-License-Identifier: BSD-3-Clause

// Attention of many queries: the share of the processor's peak; the cost of masks, functions and normalizers; the gain
// of linear attention.
//
//     build-bench/bench/long [--threads=N] [--rounds=N] [--work=NAME] [--peer=build-bench/peers/peer_libtorch_long]
//
// --peer may be repeated; a method of the peer may follow its name, as in --peer=…/peer_onednn_long:whole.
//
// The columns of a line take turns, round after round; ratios are the medians of the ratios within a round. Seconds are
// CPU time with one thread, wall time with more. A product of a query with a key costs 2 d operations, and so does a
// value with its weight: forward costs 4 d for each visible pair, backward 2.5 times as much.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/ops/tiles_in_bfloat16.hpp>

#include "columns.hpp"
#include "harness.hpp"
#include "limits.hpp"
#include "long_peer.hpp"
#include "peer.hpp"
#include "search.hpp"

namespace {

using namespace heed;
using bench::column;
using bench::made;
using bench::mechanism;
using bench::numbers;
using bench::size;
using bench::timed;

/// Operations per second.
double peak(int threads)
{
    constexpr std::size_t steps = 12 * (std::size_t{1} << 22);
    const double begin = bench::search::now(threads);
    parallel_for(static_cast<std::size_t>(threads), 1, [&](std::size_t first, std::size_t last, std::size_t) {
        for (std::size_t shard = first; shard < last; ++shard)
            benchmark::DoNotOptimize(bench::multiply_and_add(steps, 0.9999F, 0.0001F));
    });
    return 2.0 * static_cast<double>(steps * simd::lanes<float>) * threads / (bench::search::now(threads) - begin);
}

/// Several heads, forward, or forward and backward on a reused tape.
template <class Operation>
column tiles(int threads, const std::string& name, const size& z, bool backward, const Operation& attend)
{
    struct kept {
        array<float, 3> q, k, v, d;
        lengths real;
        ad::tape<float> tape;
    };
    const std::shared_ptr<kept> s(
        new kept{numbers(z, 1), numbers(z, 2), numbers(z, 3), numbers(z, 4), lengths::full(z.batch, z.length), {}});
    return {name, timed(threads, [=] {
                if (!backward) {
                    benchmark::DoNotOptimize(attend(s->q, s->k, s->v, s->real, z.how()));
                } else {
                    s->tape.clear();
                    const auto q = s->tape.parameter(s->q), k = s->tape.parameter(s->k), v = s->tape.parameter(s->v);
                    s->tape.backward(ops::dot(attend(q, k, v, s->real, z.how()), s->d));
                    benchmark::DoNotOptimize(s->tape.gradient(q));
                }
            })};
}

/// The digest that a peer returns with its seconds: the sum of the absolute contexts, or of the gradients of queries,
/// keys and values.
template <class Operation>
double digest(const size& z, bool backward, const Operation& attend)
{
    const auto sum = [](const auto& x) { return bench::sum_of_absolutes(x.data, x.size()); };
    ad::tape<float> tape;
    const auto q = numbers(z, 1), k = numbers(z, 2), v = numbers(z, 3), d = numbers(z, 4);
    const auto queries = tape.parameter(q), keys = tape.parameter(k), values = tape.parameter(v);
    const auto contexts = attend(queries, keys, values, lengths::full(z.batch, z.length), z.how());
    if (!backward) return sum(contexts.value());
    tape.backward(ops::dot(contexts, d));
    return sum(tape.gradient(queries)) + sum(tape.gradient(keys)) + sum(tape.gradient(values));
}

/// A program that measures another library.
struct named_peer {
    std::string name;
    std::unique_ptr<bench::peer> program;
    bool goes_back;

    /// `program` or `program:way`.
    named_peer(const std::string& said, int threads)
    {
        const std::size_t colon = std::min(said.find(':'), said.size());
        const std::string path = said.substr(0, colon), way = said.substr(std::min(colon + 1, said.size()));
        name = path.substr(path.rfind('/') + 1);
        if (name.ends_with(".js")) name.resize(name.size() - 3);
        if (name.starts_with("peer_")) name.erase(0, 5);
        if (name.ends_with("_long")) name.resize(name.size() - 5);
        if (!way.empty()) name += ":" + way;
        program = std::make_unique<bench::peer>(path, threads, way.c_str());
        goes_back = program->run("full 1 1 1 64 64").seconds > 0;
    }
};

struct settings : bench::choices {
    std::vector<named_peer> peers;
};

/// Prints one line. If the operations of the first column are known, it includes its share of the peak. If the other
/// columns compute only a `share` of the first column's pairs, it includes their time relative to that share.
void line(const settings& with, const std::string& name, const std::vector<column>& columns, double operations = 0,
          double share = 0)
{
    std::vector<double> peaks;
    const bench::timings took = bench::in_turn(columns, with.rounds, [&] {
        if (operations > 0) peaks.push_back(peak(with.threads));
    });
    std::printf("%-34s", name.c_str());
    if (operations > 0) {
        std::vector<double> reached;
        for (std::size_t i = 0; i < took.seconds[0].size(); ++i)  // excludes the first round
            reached.push_back(100 * operations / took.seconds[0][i] / peaks[i + 1]);
        std::printf(" %3.0f%% of the peak", bench::median(reached));
    }
    for (std::size_t i = 0; i < columns.size(); ++i) {
        std::printf("  %s %.1f ms", columns[i].name.c_str(), 1e3 * bench::median(took.seconds[i]));
        if (i > 0) std::printf(" (%.2f)", bench::median(took.ratios[i]));
        if (i > 0 && share > 0) std::printf(", %.2f of its share", bench::median(took.ratios[i]) / share);
    }
    std::printf("\n");
    std::fflush(stdout);
}

void peak_and_peer(const settings& with)
{
    const ops::attend_tiled_op<> all;
    const ops::attend_tiled_op<kernels::tiles::unmodified, not_behind> past{kernels::tiles::unmodified{}, not_behind{}};
    for (const std::size_t width : {std::size_t{64}, std::size_t{128}}) {
        for (const std::size_t length : {std::size_t{512}, std::size_t{2048}}) {
            const size z{length == 512 ? std::size_t{8} : std::size_t{1}, 8, length, width};
            for (const bool backward : {false, true}) {
                const std::string name = std::string(backward ? "forward+backward" : "forward") + "/" +
                                         std::to_string(length) + "/" + std::to_string(width);
                if (!with.wants(name)) continue;
                std::vector<column> full{tiles(with.threads, "full", z, backward, all),
                                         tiles(with.threads, "causal", z, backward, past)},
                    masked{full[1]};  // a peer's ratios are those of the same mask
                for (const std::string mask : {"full", "causal"}) {
                    if (with.peers.empty()) break;
                    const std::string request = mask + " " + (backward ? "1" : "0") + " " + std::to_string(z.batch) +
                                                " " + std::to_string(z.heads) + " " + std::to_string(length) + " " +
                                                std::to_string(width);
                    const double ours = mask == "full" ? digest(z, backward, all) : digest(z, backward, past);
                    for (const named_peer& peer : with.peers) {
                        if (backward && !peer.goes_back) continue;
                        (mask == "full" ? full : masked)
                            .push_back({peer.name + " " + mask, [&peer, request, ours] {
                                            const bench::answer answer = peer.program->run(request);
                                            if (answer.digest != 0 && !(std::abs(answer.digest / ours - 1) < 1e-3))
                                                std::fprintf(stderr, "long: %s, %s: %g, but heed has %g\n",
                                                             peer.name.c_str(), request.c_str(), answer.digest, ours);
                                            return answer.seconds;
                                        }});
                    }
                }
                line(with, name, full, z.operations(backward));
                if (masked.size() > 1) line(with, name + "/causal", masked);
            }
        }
    }
}

/// Operations per second of products in bfloat16 that are in the first-level cache, on one thread.
double peak_in_bfloat16()
{
    constexpr std::size_t rows = 32, depth = 256, repeats = std::size_t{1} << 14;
    const std::vector<float> x(rows * depth, 0.5F);
    std::vector<float> y(rows * rows);
    scratch here;
    const bool amx = simd::amx_is_permitted();
    const auto a = kernels::left_pairs_of(rows, depth, x.data(), depth, 1, amx, here);
    const auto b = kernels::right_pairs_of(depth, rows, x.data(), rows, 1, here);
    [[maybe_unused]] const simd::amx_scope matrices;
    const double begin = bench::search::now(1);
    for (std::size_t i = 0; i < repeats; ++i) {
        kernels::multiply_pairs<false>(rows, rows, depth, a, b, y.data(), rows, amx);
        benchmark::ClobberMemory();
    }
    return 2.0 * static_cast<double>(rows * rows * depth * repeats) / (bench::search::now(1) - begin);
}

/// Products with operands rounded to bfloat16 against those of floats.
void in_bfloat16(const settings& with)
{
    if (with.wants("bfloat16/")) std::printf("peak in bfloat16: %.1f Gflop/s\n", 1e-9 * peak_in_bfloat16());
    for (const std::size_t width : {std::size_t{64}, std::size_t{128}}) {
        for (const bool backward : {false, true}) {
            const std::string name =
                "bfloat16/2048/" + std::to_string(width) + (backward ? "/forward+backward" : "/forward");
            if (!with.wants(name)) continue;
            const size z{1, 8, 2048, width};
            line(with, name,
                 {tiles(with.threads, "float", z, backward, ops::attend_tiled_op<>{}),
                  tiles(with.threads, "bfloat16", z, backward, ops::attend_tiled_in_bfloat16)});
        }
    }
}

void functions(const settings& with)
{
    const size z{8, 1, 1024, 64};
    array<float, 1> bias(shape_of_rank<1>{2047});
    bench::fill(bias.data(), bias.size(), 9, 0.1F);
    for (const bool backward : {false, true}) {
        const std::string name = backward ? "functions/forward+backward" : "functions/forward";
        if (!with.wants(name)) continue;
        const auto of = [&](const char* what, const auto& f) {
            return mechanism(with.threads, what, z, backward, made(score::modified{score::scaled_dot{}, f}), no_mask{});
        };
        line(with, name,
             {mechanism(with.threads, "none", z, backward, made(), no_mask{}),
              of("ALiBi", [](auto e, score_index p) { return e - 0.01 * abs(p.query - p.key); }),
              of("soft-cap", [](auto e, score_index) { return 20 * tanh(e / 20); }),
              mechanism(with.threads, "learned bias", z, backward,
                        made(score::modified{
                            score::scaled_dot{}, bias,
                            [](auto e, score_index p, const auto& b) { return e + b(p.key - p.query + 1023); }}),
                        no_mask{})});
    }
}

void normalizers(const settings& with)
{
    const size z{8, 1, 1024, 64};
    for (const bool backward : {false, true}) {
        const std::string name = backward ? "normalizers/forward+backward" : "normalizers/forward";
        if (!with.wants(name)) continue;
        const auto of = [&](const char* what, const auto& normalize) {
            return mechanism(with.threads, what, z, backward, made(score::scaled_dot{}, normalize), no_mask{});
        };
        line(with, name,
             {of("softmax", normalize::softmax{}), of("sink", normalize::softmax_with_sink{array<float, 1>{0.0F}}),
              of("sigmoid", normalize::sigmoid{-7}), of("sparsemax", normalize::sparsemax{}),
              of("entmax15", normalize::entmax15{}), of("entmax 1.57", normalize::entmax{array<float, 1>{0.3F}}),
              of("entmax 1.4", normalize::entmax{array<float, 1>{-0.4F}}),
              of("entmax 1.3", normalize::entmax{array<float, 1>{-0.85F}}),
              of("entmax 1.2", normalize::entmax{array<float, 1>{-1.39F}}), of("top 32", normalize::top_k{32}),
              of("temporal", normalize::temporal{}), of("stick-breaking", normalize::stick_breaking{})});
    }
}

void one_window(const settings& with)
{
    if (!with.wants("window")) return;
    const size z{1, 1, 32768, 64};
    constexpr double causal_pairs = 32768.0 * 32769 / 2, outside = 31744.0 * 31745 / 2;
    line(with, "window of 1024 in 32768, forward",
         {mechanism(with.threads, "causal", z, false, made(), causal{}),
          mechanism(with.threads, "window", z, false, made(), causal{} & sliding_window{1024})},
         0, 1 - outside / causal_pairs);
}

/// Predicate masks: one that hides whole blocks, and one that does not.
void masks(const settings& with)
{
    const size z{1, 1, 4096, 64};
    std::vector<std::int32_t> ids(z.length);
    for (std::size_t i = 0; i < z.length; ++i) ids[i] = static_cast<std::int32_t>(i / 512);
    const auto document = looked_up(ids);
    for (const bool backward : {false, true}) {
        const std::string way = backward ? "forward+backward" : "forward";
        if (!with.wants("masks/" + way)) continue;
        const auto full = mechanism(with.threads, "full", z, backward, made(), no_mask{});
        line(with, "masks/" + way + ", 8 documents of 512",
             {full, mechanism(with.threads, "documents", z, backward, made(),
                              [=](score_index p) { return document(p.query) == document(p.key); })},
             0, 1.0 / 8);
        line(with, "masks/" + way + ", each third key",
             {full, mechanism(with.threads, "scattered", z, backward, made(),
                              [](score_index p) { return (p.query + p.key) % 3 == 0; })});
        boolean_mask<2> scattered(shape_of_rank<2>{z.length, z.length});
        array<float, 2> bias(shape_of_rank<2>{z.length, z.length});
        bench::fill(bias.data(), bias.size(), 5, 1.0F);
        for (std::size_t i = 0; i < z.length * z.length; ++i) scattered[i] = (i / z.length + i) % 3 == 0 ? 1 : 0;
        line(with, "masks/" + way + ", of tensors",
             {full, mechanism(with.threads, "boolean", z, backward, made(), scattered),
              mechanism(with.threads, "additive", z, backward, made(), additive_mask{view_of(bias)})});
    }
}

/// Projected heads: as rows, as [B,H,S,d], side by side in [B,S,H·d], and split by copying.
void projected_heads(const settings& with)
{
    constexpr std::size_t B = 8, H = 8, S = 512, d = 64;
    for (const bool backward : {false, true}) {
        const std::string name = std::string("projected heads, ") + (backward ? "forward+backward" : "forward");
        if (!with.wants(name)) continue;
        const auto of = [&](const char* what, const auto& shape, const auto& attend) {
            using numbers = array<float, std::tuple_size_v<std::remove_cvref_t<decltype(shape)>>>;
            struct kept {
                numbers q, k, v;
                ad::tape<float> tape;
            };
            const auto filled_with = [&](unsigned seed) {
                numbers x(shape);
                bench::fill(x.data(), x.size(), seed, 1.0F);
                return x;
            };
            const std::shared_ptr<kept> s(new kept{filled_with(1), filled_with(2), filled_with(3), {}});
            return column{what, timed(with.threads, [=] {
                              if (!backward) {
                                  benchmark::DoNotOptimize(attend(view_of(s->q), view_of(s->k), view_of(s->v)));
                              } else {
                                  s->tape.clear();
                                  const auto q = s->tape.parameter(s->q), k = s->tape.parameter(s->k),
                                             v = s->tape.parameter(s->v);
                                  s->tape.backward(ops::dot(attend(q, k, v), s->q));
                                  benchmark::DoNotOptimize(s->tape.gradient(q));
                              }
                          })};
        };
        const auto attend = made();
        const auto as_given = [=](const auto& q, const auto& k, const auto& v) { return attend(attend.on(k, v), q); };
        const auto side_by_side = [=](const auto& q, const auto& k, const auto& v) {
            return join_heads(attend(attend.on(split_heads(k, H), split_heads(v, H)), split_heads(q, H)));
        };
        const auto copied = [=](const auto& q, const auto& k, const auto& v) {
            const auto keys = split_heads(k, H).apart(), values = split_heads(v, H).apart();
            return join_heads(attend(attend.on(keys, values), split_heads(q, H).apart()));
        };
        line(with, name,
             {of("rows", shape_of_rank<3>{B * H, S, d}, as_given), of("heads", shape_of_rank<4>{B, H, S, d}, as_given),
              of("side by side", shape_of_rank<3>{B, S, H * d}, side_by_side),
              of("copied apart", shape_of_rank<3>{B, S, H * d}, copied)});
    }
}

void in_linear_time(const settings& with)
{
    const auto linear = made(score::kernel{score::elu_plus_one{}}, normalize::ratio{});
    const size z{1, 1, 16384, 64};
    for (const bool backward : {false, true}) {
        const std::string name = backward ? "linear/forward+backward" : "linear/forward";
        if (!with.wants(name)) continue;
        line(with, name,
             {mechanism(with.threads, "linear", z, backward, linear, causal{}),
              mechanism(with.threads, "softmax", z, backward, made(), causal{})});
    }
}

/// One query, as in generation, which reads keys and values once; compared with a loop that sums the same numbers.
void one_query(const settings& with)
{
    if (!with.wants("one query")) return;
    constexpr std::size_t repeats = 16;
    struct kept {
        memory<array<float, 3>, array<float, 3>> source;
        array<float, 2> query;
    };
    for (const std::size_t batch : {std::size_t{1}, std::size_t{8}}) {
        const size z{batch, 1, 16384, 64};
        const std::shared_ptr<kept> s(new kept{{numbers(z, 1), numbers(z, 2), lengths::full(z.batch, z.length)},
                                               array<float, 2>(shape_of_rank<2>{z.batch, z.width}, 0.1F)});
        const auto attend = made();
        const auto result = std::make_shared<decltype(attend.step(s->source, s->query, attend.start(s->source)))>(
            attend.step(s->source, s->query, attend.start(s->source)));
        const auto read = [=] {
            for (std::size_t i = 0; i < repeats; ++i) {
                parallel_for(2 * z.batch, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
                    for (std::size_t part = begin; part < end; ++part) {
                        const auto& from = part % 2 == 0 ? s->source.keys : s->source.values;
                        const std::size_t count = from.size() / z.batch;
                        benchmark::DoNotOptimize(bench::read_all_of(count, from.data() + part / 2 * count));
                    }
                });
            }
        };
        const auto ask = [=] {
            for (std::size_t i = 0; i < repeats; ++i)
                attend.step_into(*result, s->source, s->query, attend.start(s->source));
        };
        line(with, "one query of 16384 keys, batch " + std::to_string(batch),
             {{"reading alone", timed(with.threads, read)}, {"step", timed(with.threads, ask)}});
    }
}

/// Words generated after a text, each of which attends to all earlier words: with a growing cache, and with a memory
/// copied for each word. A beam continues four of its five hypotheses, one of these twice.
void generation(const settings& with)
{
    if (!with.wants("generation")) return;
    constexpr std::size_t words = 50;
    const std::vector<std::size_t> chosen{1, 0, 0, 3, 4};
    for (const std::size_t hypotheses : {std::size_t{1}, chosen.size()}) {
        for (const std::size_t length : {std::size_t{1000}, std::size_t{10000}}) {
            const auto attend = made();
            const auto text = attend.on(numbers({hypotheses, 1, length, 64}, 1));
            const auto word = numbers({hypotheses, 1, 1, 64}, 2);
            const auto query = ops::step_of(word, std::size_t{0});
            const auto of = [&, attend](const char* name, auto begin) {
                return column{name, [=, threads = with.threads] {
                                  auto known = attend.extend(begin(text), word);  // leaves room for further words
                                  const double before = bench::search::now(threads);
                                  for (std::size_t i = 0; i < words; ++i) {
                                      if (hypotheses > 1) known = known.rows(chosen);
                                      known = attend.extend(known, word);
                                      benchmark::DoNotOptimize(attend.step(known, query, attend.start(known)));
                                  }
                                  return bench::search::now(threads) - before;
                              }};
            };
            line(with,
                 "generation: " + std::to_string(words) + " words after " + std::to_string(length) +
                     (hypotheses > 1 ? ", beam of 5" : ""),
                 {of("growing", [](const auto& memory) { return with_cache(memory); }),
                  of("copied", [](const auto& memory) { return memory; })});
        }
    }
}

/// The backward pass of one head of one sentence, divided among threads.
void one_head(const settings& with)
{
    if (!with.wants("one head")) return;
    const size z{1, 1, 4096, 64};
    line(with, "one head of 4096, forward+backward", {tiles(with.threads, "full", z, true, ops::attend_tiled_op<>{})});
}

}  // namespace

int main(int argc, char** argv)
{
    std::vector<std::string> peers;
    settings with{bench::take_choices(argc, argv, 7,
                                      [&](const std::string& argument) {
                                          if (!argument.starts_with("--peer=")) return false;
                                          peers.push_back(argument.substr(7));
                                          return true;
                                      }),
                  {}};
    for (const std::string& peer : peers) with.peers.emplace_back(peer, with.threads);
    set_threads(static_cast<std::size_t>(with.threads));
    (void)peak(with.threads);  // starts the threads
    std::printf("peak: %.1f Gflop/s\n", peak(with.threads) / 1e9);
    peak_and_peer(with);
    in_bfloat16(with);
    functions(with);
    normalizers(with);
    one_window(with);
    masks(with);
    projected_heads(with);
    in_linear_time(with);
    one_query(with);
    generation(with);
    one_head(with);
    return 0;
}
