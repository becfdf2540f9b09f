// SPDX-License-Identifier: BSD-3-Clause

// A peer of bench/long: ggml's attention of many queries on a CPU, forward only: ggml_flash_attn_back stops with
// "TODO". PEER_WAY chooses:
//
//   flash     ggml_flash_attn_ext, keys and values in f32 (the default)
//   flash16   ggml_flash_attn_ext with keys and values in f16, as its users store them
//   composed  mul_mat, soft_max_ext, mul_mat, in f32
//
// A mask is always a tensor of f16 [length,length]: there is no causal form.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <ggml-cpu.h>
#include <ggml.h>

#include "../long_peer.hpp"
#include "../search.hpp"

namespace {

using namespace bench::long_attention;

std::pair<double, double> run(const request& of, const std::string& way, int threads)
{
    if (of.backward) return {0, 0};
    const auto L = static_cast<std::int64_t>(of.length), d = static_cast<std::int64_t>(of.width),
               H = static_cast<std::int64_t>(of.heads), B = static_cast<std::int64_t>(of.batch);
    const std::size_t scores = sizeof(float) * of.all_heads() * of.length * of.length;
    ggml_context* const in = ggml_init({(std::size_t{1} << 26) + 64 * of.numbers() + 3 * scores, nullptr, false});
    const auto tensor = [&](ggml_type type, unsigned seed) {
        const std::vector<float> x = head_by_head(of, seed);
        ggml_tensor* const t = ggml_new_tensor_4d(in, type, d, L, H, B);
        if (type == GGML_TYPE_F16) {
            ggml_fp32_to_fp16_row(x.data(), static_cast<ggml_fp16_t*>(t->data), static_cast<std::int64_t>(x.size()));
        } else {
            std::copy(x.begin(), x.end(), static_cast<float*>(t->data));
        }
        return t;
    };
    const ggml_type kept = way == "flash16" ? GGML_TYPE_F16 : GGML_TYPE_F32;
    ggml_tensor *const q = tensor(GGML_TYPE_F32, of_queries), *const k = tensor(kept, of_keys),
                       *const v = tensor(kept, of_values);
    ggml_tensor* mask = nullptr;
    if (of.causal()) {
        mask = ggml_new_tensor_2d(in, GGML_TYPE_F16, L, L);
        auto* const at = static_cast<ggml_fp16_t*>(mask->data);
        const ggml_fp16_t hidden = ggml_fp32_to_fp16(-std::numeric_limits<float>::infinity());
        const ggml_fp16_t seen = ggml_fp32_to_fp16(0.0F);
        for (std::int64_t s = 0; s < L; ++s)
            for (std::int64_t j = 0; j < L; ++j) at[s * L + j] = j > s ? hidden : seen;
    }
    const auto scale = static_cast<float>(of.scale());
    ggml_tensor* contexts = nullptr;
    if (way == "composed") {
        ggml_tensor* const products = ggml_mul_mat(in, k, q);
        ggml_tensor* const weights = ggml_soft_max_ext(in, products, mask, scale, 0.0F);
        contexts = ggml_mul_mat(in, ggml_cont(in, ggml_transpose(in, v)), weights);
    } else {
        contexts = ggml_flash_attn_ext(in, q, k, v, mask, scale, 0.0F, 0.0F);
    }
    ggml_cgraph* const graph = ggml_new_graph(in);
    ggml_build_forward_expand(graph, contexts);
    ggml_cplan plan = ggml_graph_plan(graph, threads, nullptr);
    std::vector<std::uint8_t> work(plan.work_size);
    plan.work_data = work.data();
    ggml_graph_compute(graph, &plan);  // pages
    const double begin = bench::search::now(threads);
    ggml_graph_compute(graph, &plan);
    const double seconds = bench::search::now(threads) - begin;
    const double digest =
        bench::long_attention::sum_of_absolutes(static_cast<const float*>(contexts->data), of.numbers());
    ggml_free(in);
    return {seconds, digest};
}

}  // namespace

int main()
{
    const char* const chosen = std::getenv("PEER_WAY");
    const std::string way = chosen == nullptr || *chosen == '\0' ? "flash" : chosen;
    const int threads = threads_of_peer();
    ggml_cpu_init();
    answer([&](const request& of) { return run(of, way, threads); });
    return 0;
}
