// SPDX-License-Identifier: BSD-3-Clause
#include <products/interpreter/scope.hpp>

// Combiners from their equations.
namespace interpreter {

namespace {

using combiner = vector (*)(const scope&, const matrix& alpha);
extern const std::map<std::string, combiner> table;

vector combine(const scope& at, const matrix& alpha)
{
    vector c = at.entry(table)(at, alpha);
    at.spoil(c);
    return c;
}

/// c^d = Σ_j α_j^{g(d)} h_j^d,  g(d) = ⌊d G / D⌋        Bahdanau et al. 2015, eq. 5 with G = 1; Choi et al. 2018, eq. 9
vector sum(const scope& at, const matrix& alpha)
{
    const std::size_t D = at.run.values.shape.empty() ? at.run.annotations.shape[2] : at.run.values.shape[2];
    vector c(D);
    for (std::size_t j = 0; j < alpha.size(); ++j) {
        for (std::size_t d = 0; d < D; ++d) {
            const number& weight = alpha[j][d * alpha[j].size() / D];
            const bool none = weight.value == 0 && weight.u == 0 && weight.w == 0 && weight.uw == 0;
            if (!none) c[d] += weight * at.in.values()[j][d];  // a masked annotation may be NaN
        }
    }
    return c;
}

/// tanh(W_c [c; h]), 0 if no position is visible        Luong et al. 2015, eq. 5
vector attentional(const scope& at, const matrix& alpha)
{
    vector y = times(joined(combine(at.inner(), alpha), at.query()), at["W_c"]);
    for (number& each : y) each = at.in.visible[at.step].any() ? tanh(each) : number();
    return y;
}

/// β c,  β = σ(W h + b)                                 Xu et al. 2015, section 4.2.1
vector gated(const scope& at, const matrix& alpha)
{
    vector c = combine(at.inner(), alpha);
    const vector gate = plus(times(at.query(), at["W"]), at["b"]);
    for (std::size_t d = 0; d < c.size(); ++d) c[d] *= sigmoid(gate[gate.size() == 1 ? 0 : d]);
    return c;
}

const std::map<std::string, combiner> table{
    {"attentional", attentional}, {"elementwise_sum", sum}, {"gated", gated},
    {"grouped_sum", sum},         {"weighted_sum", sum},
};

}  // namespace

vector context(const scope& at, const matrix& weights) { return combine(at, weights); }

std::vector<std::string> combiner_names()
{
    std::vector<std::string> all;
    for (const auto& [name, function] : table) all.push_back(name);
    return all;
}

}  // namespace interpreter
