// SPDX-License-Identifier: BSD-3-Clause
#include <products/interpreter/scope.hpp>

namespace interpreter {

namespace {

/// x W for each position of x [B,T,D]; x itself if there is no such W.
tensor projected(const tensor& x, const heads& run, const std::string& name)
{
    const auto found = run.parameters.find(name);
    if (found == run.parameters.end()) return x;
    const tensor& W = found->second;
    tensor y{{x.shape[0], x.shape[1], W.columns()}, {}};
    for (std::size_t i = 0; i < x.shape[0] * x.shape[1]; ++i) {
        for (const number& each : times(slice(x.numbers, i * x.shape[2], x.shape[2]), W)) y.numbers.push_back(each);
    }
    return y;
}

/// Slice i of n of the last axis of x [B,T,n·d].
tensor head_of(const tensor& x, std::size_t i, std::size_t n)
{
    const std::size_t d = x.shape[2] / n;
    tensor y{{x.shape[0], x.shape[1], d}, {}};
    for (std::size_t row = 0; row < x.shape[0] * x.shape[1]; ++row) {
        for (const number& each : slice(x.numbers, row * x.shape[2] + i * d, d)) y.numbers.push_back(each);
    }
    return y;
}

/// The parameters of head i: those of all heads, and its own.
std::map<std::string, tensor> parameters_of(const heads& run, std::size_t i)
{
    std::map<std::string, tensor> all;
    const std::string own = "heads." + std::to_string(i) + ".";
    for (const auto& [name, x] : run.parameters) all[name.rfind(own, 0) == 0 ? name.substr(own.size()) : name] = x;
    return all;
}

}  // namespace

/// head_i = Attention(Q W_Q^i, K W_K^i, V W_V^i)
/// MultiHead(Q, K, V) = Concat(head_1, …, head_n) W_O          Vaswani et al. 2017, section 3.2.2
std::vector<vector> interpret(const heads& run)
{
    const std::size_t n = run.each.size(), B = run.queries.shape[0], S = run.queries.shape[1], T = run.keys.shape[1];
    const tensor Q = projected(run.queries, run, "W_Q"), K = projected(run.keys, run, "W_K"),
                 V = projected(run.values, run, "W_V");
    std::vector<std::vector<vector>> of_heads;
    for (std::size_t i = 0; i < n; ++i) {
        program one = run.each[i];
        one.head = i;
        one.parameters = parameters_of(run, i);
        one.states = head_of(Q, i, n);
        one.annotations = head_of(K, i * run.groups / n, run.groups);
        one.values = head_of(V, i * run.groups / n, run.groups);
        of_heads.push_back(interpret(one));
    }
    const std::size_t width = V.shape[2] / run.groups;
    std::vector<vector> all(2 * S);
    for (std::size_t s = 0; s < S; ++s) {
        for (std::size_t b = 0; b < B; ++b) {
            vector context;
            for (std::size_t i = 0; i < n; ++i) {
                context = joined(context, slice(of_heads[i][2 * s], b * width, width));
                all[2 * s + 1] = joined(all[2 * s + 1], slice(of_heads[i][2 * s + 1], b * T, T));
            }
            const auto W_O = run.parameters.find("W_O");
            all[2 * s] = joined(all[2 * s], W_O == run.parameters.end() ? context : times(context, W_O->second));
        }
    }
    return all;
}

}  // namespace interpreter
