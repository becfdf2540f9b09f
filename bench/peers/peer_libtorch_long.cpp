// SPDX-License-Identifier: BSD-3-Clause

// The peer of bench/long: libtorch's attention of many queries, forward, or forward and backward. Heads are batched
// products, since this version does not have a fused kernel for a CPU.

#include <torch/torch.h>

#include <limits>
#include <utility>
#include <vector>

#include "../long_peer.hpp"
#include "../search.hpp"

namespace {

using namespace bench::long_attention;
using at::Tensor;

std::pair<double, double> run(const request& of, int threads)
{
    const auto L = static_cast<long>(of.length);
    const auto filled = [&](unsigned seed) {
        std::vector<float> x = head_by_head(of, seed);
        return at::from_blob(x.data(), {static_cast<long>(of.all_heads()), L, static_cast<long>(of.width)}).clone();
    };
    const auto input = [&](unsigned seed) { return filled(seed).requires_grad_(of.backward); };
    const Tensor q = input(of_queries), k = input(of_keys), v = input(of_values), to = filled(of_gradient);
    const bool causal = of.causal();
    const Tensor later = causal ? at::full({L, L}, -std::numeric_limits<float>::infinity()).triu(1) : Tensor{};
    const double by = of.scale();
    const double begin = bench::search::now(threads);
    const auto attend = [&] {
        // One product that scales and adds the mask; the weights overwrite the scores if the scores are not needed
        // later.
        Tensor scores = causal ? at::baddbmm(later, q, k.transpose(1, 2), 1, by)
                               : at::baddbmm(at::zeros({1}), q, k.transpose(1, 2), 0, by);
        return at::bmm(at::softmax(scores, 2), v);
    };
    const auto sum = [](const Tensor& x) { return x.abs().sum(at::kDouble).item<double>(); };
    if (of.backward) {
        attend().backward(to);
        const double seconds = bench::search::now(threads) - begin;
        return {seconds, sum(q.grad()) + sum(k.grad()) + sum(v.grad())};
    }
    const torch::NoGradGuard guard;
    const Tensor contexts = attend();
    const double seconds = bench::search::now(threads) - begin;
    return {seconds, sum(contexts)};
}

}  // namespace

int main()
{
    const int threads = threads_of_peer();
    at::set_num_threads(threads);
    answer([&](const request& of) { return run(of, threads); });
    return 0;
}
