// SPDX-License-Identifier: BSD-3-Clause

// The peer of bench/long: libtorch's attention of many queries, heads by batched products (it has no fused kernel for a
// CPU in this version), forward, or forward and backward. A request is a line "full|causal backward batch heads length
// width".

#include <torch/torch.h>

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <sstream>
#include <string>

#include "harness.hpp"
#include "search.hpp"

namespace {

using at::Tensor;

double run(bool causal, bool backward, long B, long H, long L, long d, int threads)
{
    const auto drawn = [&] { return at::randn({B * H, L, d}).requires_grad_(backward); };
    const Tensor q = drawn(), k = drawn(), v = drawn(), to = at::randn({B * H, L, d});
    const Tensor later = causal ? at::full({L, L}, -std::numeric_limits<float>::infinity()).triu(1) : Tensor{};
    const double by = 1 / std::sqrt(static_cast<double>(d));
    const double begin = bench::search::now(threads);
    const auto attend = [&] {
        // One product that scales and adds the mask; weights where the scores were, if nobody needs them later.
        Tensor scores = causal ? at::baddbmm(later, q, k.transpose(1, 2), 1, by)
                               : at::baddbmm(at::zeros({1}), q, k.transpose(1, 2), 0, by);
        return at::bmm(at::softmax(scores, 2), v);
    };
    if (backward) {
        attend().backward(to);
    } else {
        const torch::NoGradGuard guard;
        attend();
    }
    return bench::search::now(threads) - begin;
}

}  // namespace

int main()
{
    const char* said = std::getenv("OMP_NUM_THREADS");
    const int threads = said == nullptr ? 1 : std::atoi(said);
    at::set_num_threads(threads);
    for (std::string request; std::getline(std::cin, request);) {
        std::istringstream from(request);
        std::string mask;
        bool backward = false;
        long B = 0, H = 0, L = 0, d = 0;
        from >> mask >> backward >> B >> H >> L >> d;
        std::cout << run(mask == "causal", backward, B, H, L, d, threads) << " 0" << std::endl;
    }
    return 0;
}
