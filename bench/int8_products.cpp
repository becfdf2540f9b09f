// SPDX-License-Identifier: BSD-3-Clause

// Products of few rows with 8-bit weights, compared with float weights in the same layout and with the BLAS, on one
// thread.
//
//     build-bench/bench/int8_products [--rounds=N] [--work=NAME]
//
// The three take turns; ratios are medians of the ratios within a round. Times include rounding the rows to 8 bits and
// rescaling the sums. Sizes RxNxK: output layers, gates of a recurrent unit and layers of a Transformer for 1 row, for
// the 12 rows of a beam, and for 64 sentences.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <heed/gemm/blas.hpp>
#include <heed/gemm/int8_panels.hpp>

#include "harness.hpp"
#include "rounds.hpp"
#include "search.hpp"

namespace {

/// y [R,N] = x W, with W [K,N].
void compare(const bench::choices& with, std::size_t R, std::size_t N, std::size_t K)
{
    const std::string name = std::to_string(R) + "x" + std::to_string(N) + "x" + std::to_string(K);
    if (!with.wants(name)) return;
    std::vector<float> x(R * K), W(K * N), y(R * N);
    bench::fill(x.data(), x.size(), 1, 1.0F);
    bench::fill(W.data(), W.size(), 2, 1.0F);
    heed::kernels::panels<float> floats;
    floats.pack(K, N, W.data(), N);
    heed::kernels::int8_panels bytes;
    bytes.pack(K, N, W.data(), N);
    const double operations = 2.0 * static_cast<double>(R) * static_cast<double>(N) * static_cast<double>(K);
    const auto repeats = static_cast<std::size_t>(std::max(1.0, 1e8 / operations));
    const auto timed = [&](const auto& multiply) {
        return [&, multiply] {
            const double begin = bench::search::now(1);
            for (std::size_t i = 0; i < repeats; ++i) {
                multiply();
                benchmark::DoNotOptimize(y.data());
                benchmark::ClobberMemory();
            }
            return (bench::search::now(1) - begin) / static_cast<double>(repeats);
        };
    };
    using heed::blas::op;
    const bench::timings took = bench::in_turn(
        {{"int8", timed([&] { bytes.multiply(R, x.data(), K, y.data(), N, false); })},
         {"float", timed([&] { floats.multiply(R, x.data(), K, y.data(), N, false); })},
         {"BLAS", timed([&] { heed::blas::gemm(op::plain, op::plain, R, N, K, x.data(), W.data(), 0.0F, y.data()); })}},
        with.rounds);
    const auto microseconds = [&](std::size_t i) { return 1e6 * bench::median(took.seconds[i]); };
    std::printf("%-16s int8 %8.2f us  float %8.2f us  BLAS %8.2f us  int8 is %.2f times as fast as float, %.2f as the "
                "BLAS\n",
                name.c_str(), microseconds(0), microseconds(1), microseconds(2), bench::median(took.ratios[1]),
                bench::median(took.ratios[2]));
}

}  // namespace

int main(int argc, char** argv)
{
    const bench::choices with = bench::take_choices(argc, argv, 9);
    heed::set_threads(1);
    std::printf("%s\n", heed::kernels::int8_is_fast()
                            ? "this processor has 8-bit multiply instructions"
                            : "this processor has no 8-bit multiply instructions: searches do not use int8");
    for (const std::size_t R : {1u, 12u, 64u}) {
        compare(with, R, 8000, 256);
        compare(with, R, 768, 256);
        compare(with, R, 1024, 256);
        compare(with, R, 256, 1024);
        compare(with, R, 256, 256);
    }
    return 0;
}
