// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "sizes.hpp"

/// Shared by bench/long and its peers: the requests, and the inputs of attention.
namespace bench::long_attention {

/// A request: the line "full|causal backward batch heads length width".
struct request {
    std::string mask;
    bool backward = false;
    std::size_t batch = 0, heads = 0, length = 0, width = 0;

    bool causal() const { return mask == "causal"; }
    std::size_t all_heads() const { return batch * heads; }
    std::size_t numbers() const { return batch * heads * length * width; }
    double scale() const { return 1 / std::sqrt(static_cast<double>(width)); }
};

/// Queries, keys, values, and the gradient of the contexts.
enum seeds : unsigned { of_queries = 1, of_keys = 2, of_values = 3, of_gradient = 4 };

/// heed's [batch,length,heads·width] rearranged head by head: [batch·heads,length,width].
inline std::vector<float> head_by_head(const request& of, unsigned seed)
{
    std::vector<float> together(of.numbers()), result(of.numbers());
    fill(together.data(), together.size(), seed, 1.0F);
    for (std::size_t b = 0; b < of.batch; ++b)
        for (std::size_t h = 0; h < of.heads; ++h)
            for (std::size_t s = 0; s < of.length; ++s)
                for (std::size_t i = 0; i < of.width; ++i)
                    result[((b * of.heads + h) * of.length + s) * of.width + i] =
                        together[((b * of.length + s) * of.heads + h) * of.width + i];
    return result;
}

inline double sum_of_absolutes(const float* x, std::size_t count)
{
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += std::abs(static_cast<double>(x[i]));
    return sum;
}

/// The number of threads that the peer should use.
inline int threads_of_peer()
{
    const char* const said = std::getenv("OMP_NUM_THREADS");
    return said == nullptr ? 1 : std::atoi(said);
}

/// Answers each line of the input with f(request): the seconds, and the sum of the absolute contexts, or of the
/// gradients of queries, keys and values if the request is backward. Seconds 0: not supported.
template <class F>
void answer(const F& f)
{
    for (std::string line; std::getline(std::cin, line);) {
        std::istringstream from(line);
        request asked;
        from >> asked.mask >> asked.backward >> asked.batch >> asked.heads >> asked.length >> asked.width;
        const auto [seconds, digest] = f(asked);
        std::cout.precision(17);
        std::cout << seconds << " " << digest << std::endl;
    }
}

}  // namespace bench::long_attention
