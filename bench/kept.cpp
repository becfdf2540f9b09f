// SPDX-License-Identifier: BSD-3-Clause

// The memory that a tape takes for one more decoder step of additive attention, with each normalizer and with each
// wrapping score. Also prints the limit for a step, 3 B (T + D + Q) numbers: three times one row of scores, one context
// and one query per sentence. Does not measure time.

#include <string>

#include <heed/heed.hpp>

#include "decoder_steps.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;
using bench::asks;

constexpr bench::attention_size z{512, 512, 512, 80, 50};

template <asks with = asks::state, class Attend>
void count(const std::string& name, const Attend& attend)
{
    const auto counted = [attend](benchmark::State& state) {
        bench::decoder_steps<with, Attend> steps{z, attend, bench::ragged(z.batch, z.positions)};
        typename bench::decoder_steps<with, Attend>::bytes bytes{};
        for (auto _ : state) bytes = steps.per_step();
        const double allowed = sizeof(float) * 3.0 * static_cast<double>(z.batch * (z.positions + z.value + z.query));
        state.counters["bytes_recorded"] = bytes.recorded;
        state.counters["bytes_with_gradients"] = bytes.with_gradients;
        state.counters["of_allowed"] = bytes.recorded / allowed;
    };
    benchmark::RegisterBenchmark(("kept/" + name).c_str(), counted)->Iterations(1)->Unit(benchmark::kMillisecond);
}

template <asks with = asks::state, class Score>
void count_score(const std::string& name, const Score& score)
{
    count<with>(name + "/softmax", attention{score, normalize::softmax{}, combine::weighted_sum{}});
}

template <class Normalize>
void count_normalizer(const std::string& name, const Normalize& normalize)
{
    count("additive/" + name, attention{bench::additive_of(z), normalize, combine::weighted_sum{}});
}

void count_normalizers()
{
    using namespace normalize;
    const auto W_p = bench::random_weight(z.query, z.query, 51);
    const auto v_p = bench::random_vector(z.query, 52), w = bench::random_vector(1, 53);
    count_normalizer("softmax", softmax{});
    count_normalizer("temporal", temporal{});
    count_normalizer("recent_temporal", recent_temporal{1});
    count_normalizer("decayed_temporal", decayed_temporal{0.7, 0.3});
    count_normalizer("learned_temporal", learned_temporal{w});
    count_normalizer("local_m", local_m{10});
    count_normalizer("local_m-temporal", local_m{10, temporal{}});
    count_normalizer("local_p", local_p{W_p, v_p, 10});
    count_normalizer("sparsemax", sparsemax{});
    count_normalizer("entmax15", entmax15{});
    count_normalizer("sigmoid", sigmoid{-0.5});
    count_normalizer("temperature", temperature{0.5});
    count_normalizer("hard", hard{7});
    count_normalizer("gumbel", gumbel{8});
    count_normalizer("dropout", dropout{0.4, 9, softmax{}});
}

/// Over additive, with small coverage: 10 numbers per position.
void count_scores()
{
    using namespace score;
    using bench::random_vector;
    using bench::random_weight;
    constexpr long A = z.alignment, D = z.value, Q = z.query, N = 10, R = 64;
    const auto base = bench::additive_of(z);
    count_score<asks::state_and_word>("with_word", with_word{base, random_weight(Q, A, 60)});
    count_score("with_positions", with_positions{base, random_weight(3, A, 61)});
    count_score("with_neighbors", with_neighbors{base, random_weight(3, A, 62)});
    count_score("with_fertility", bench::with_fertility_of(z));
    count_score("with_location", bench::with_location_of(z));
    count_score<asks::state_and_word>("with_coverage", bench::with_coverage_of(z, N));
    count_score("with_gated_coverage",
                with_gated_coverage{base, random_weight(N, A, 63),
                                    nn::gated_coverage{random_weight(D, 3 * N, 64), random_weight(Q, 3 * N, 65),
                                                       random_vector(3 * N, 66), random_weight(N, 2 * N, 67),
                                                       random_weight(N, N, 68)}});
    count_score<asks::state_and_word>("with_recurrence",
                                      with_recurrence{base, random_weight(R, A, 69),
                                                      nn::gru{random_weight(Q + D, 3 * R, 70), random_vector(3 * R, 71),
                                                              random_weight(R, 2 * R, 72), random_weight(R, R, 73)}});
    count_score("own", bench::nearness{random_weight(Q, A, 4), bench::no_keys_weight()});
    count("per_dimension/softmax",
          attention{bench::per_dimension_of(z), normalize::softmax{}, combine::elementwise_sum{}});
    count("grouped/softmax",
          attention{additive_grouped{random_weight(Q, A, 4), bench::no_keys_weight(), random_weight(A, 8, 7)},
                    normalize::softmax{}, combine::grouped_sum{}});
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    count_normalizers();
    count_scores();
    return bench::run(argc, argv, chosen);
}
