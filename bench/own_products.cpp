// SPDX-License-Identifier: BSD-3-Clause

// heed's matrix products (HEED_BLAS=none), and those with operands in bfloat16, compared with those of the BLAS, on one
// thread.
//
//     build-bench/bench/own_products [--rounds=N] [--work=NAME]
//
// They take turns; a ratio is the median of the ratios within a round. Sizes: a decoder step with 80 sentences,
// the gradient of its weights, layers of a Transformer, and single rows.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include <heed/gemm/blas.hpp>
#include <heed/gemm/gemm_kernel.hpp>
#include <heed/gemm/products_in_bfloat16.hpp>

#include "harness.hpp"
#include "rounds.hpp"
#include "search.hpp"

namespace {

using heed::blas::op;
using heed::kernels::own::strided;

/// C [M,N] = op(A) op(B), with op(A) [M,K].
void compare(const bench::choices& with, std::size_t M, std::size_t N, std::size_t K, op op_a, op op_b)
{
    const auto letter = [](op which) { return which == op::plain ? "" : "T"; };
    const std::string name = std::to_string(M) + "x" + std::to_string(N) + "x" + std::to_string(K) + " A" +
                             letter(op_a) + " B" + letter(op_b);
    if (!with.wants(name)) return;
    std::vector<float> A(M * K), B(K * N), C(M * N);
    bench::fill(A.data(), A.size(), 1, 1.0F);
    bench::fill(B.data(), B.size(), 2, 1.0F);
    const double operations = 2.0 * static_cast<double>(M) * static_cast<double>(N) * static_cast<double>(K);
    const auto repeats = static_cast<std::size_t>(std::max(1.0, 1e8 / operations));
    const auto timed = [&](const auto& multiply) {
        return [&, multiply] {
            const double begin = bench::search::now(1);
            for (std::size_t i = 0; i < repeats; ++i) {
                multiply();
                benchmark::DoNotOptimize(C.data());
                benchmark::ClobberMemory();
            }
            return (bench::search::now(1) - begin) / static_cast<double>(repeats);
        };
    };
    const auto matrix = [](op which, const float* x, std::size_t rows, std::size_t columns) {
        return which == op::plain ? strided<float>{x, columns, 1} : strided<float>{x, 1, rows};
    };
    const strided<float> a = matrix(op_a, A.data(), M, K), b = matrix(op_b, B.data(), K, N);
    const auto product = [&] { heed::blas::gemm(op_a, op_b, M, N, K, A.data(), B.data(), 0.0F, C.data()); };
    const bench::timings took =
        bench::in_turn({{"BLAS", timed(product)},
                        {"own", timed([&] {
                             if (M == 1)
                                 return heed::kernels::own::gemv(N, K, b.transposed(), A.data(), 1, 0.0F, C.data());
                             heed::kernels::own::gemm(M, N, K, a, b, 0.0F, C.data(), N);
                         })},
                        {"bfloat16", timed([&] {
                             const heed::products_in_bfloat16 guard;
                             product();
                         })}},
                       with.rounds);
    const auto speed = [&](std::size_t i) { return 1e-9 * operations / bench::median(took.seconds[i]); };
    std::printf("%-24s BLAS %6.1f Gflop/s  heed %6.1f Gflop/s, %.2f times as fast  bfloat16 %6.1f Gflop/s, %.2f times "
                "as fast\n",
                name.c_str(), speed(0), speed(1), 1 / bench::median(took.ratios[1]), speed(2),
                1 / bench::median(took.ratios[2]));
}

}  // namespace

int main(int argc, char** argv)
{
    const bench::choices with = bench::take_choices(argc, argv, 9);
    heed::set_threads(1);
    compare(with, 80, 1000, 1000, op::plain, op::plain);
    compare(with, 80, 1000, 1000, op::plain, op::transposed);
    compare(with, 1000, 1000, 80, op::transposed, op::plain);
    compare(with, 2000, 512, 512, op::plain, op::plain);
    compare(with, 2000, 512, 512, op::plain, op::transposed);
    compare(with, 512, 512, 2000, op::transposed, op::plain);
    compare(with, 64, 64, 64, op::plain, op::plain);
    compare(with, 50, 50, 64, op::plain, op::transposed);
    compare(with, 5, 512, 512, op::plain, op::plain);
    compare(with, 5, 30000, 512, op::plain, op::plain);
    compare(with, 1, 1000, 1000, op::plain, op::plain);
    compare(with, 1, 1000, 1000, op::plain, op::transposed);
    return 0;
}
