// SPDX-License-Identifier: BSD-3-Clause
#include <products/policies.hpp>

namespace composition {

namespace {

/// e_j = -|W s - U h_j|², the score of examples/own_policy.cpp, with U h_j computed once per batch.
template <class Matrix>
struct nearness {
    Matrix W, U;  // [Q,A], [D,A]
    static constexpr heed::score_traits traits{.weights = heed::weight_kind::per_position};

    auto prepare(const heed::tensor auto& annotations) const { return heed::ops::linear(annotations, U); }
    auto project(const heed::tensor auto& query) const { return heed::ops::linear(query, W); }
    auto match(const heed::tensor auto& projected, const heed::tensor auto& keys) const  // [B,A], [B,T,A] -> [B,T]
    {
        using namespace heed;
        return ops::scale(ops::sum_last(ops::square(ops::subtract_per_position(keys, projected))), -1);
    }
    auto operator()(const heed::tensor auto& query, const heed::tensor auto& keys) const
    {
        return match(project(query), keys);
    }

    static auto parameters(auto& self, auto&& visit)
    {
        return composition::nearness{visit("W", self.W), visit("U", self.U)};
    }
};
template <class Matrix>
nearness(Matrix, Matrix) -> nearness<Matrix>;

}  // namespace

void add_own_score(table& to)
{
    using score_type = nearness<heed::array<double, 2>>;
    static constexpr auto score = [](const extents& of) {
        return nearness{random({of.width, of.hidden}, 91), random({of.width, of.hidden}, 92)};
    };
    each_normalizer([&]<class Normalizer>(const char* normalizer, const Normalizer& normalize) {
        using Normalize = made_by<Normalizer>;
        using Combine = heed::combine::weighted_sum;
#ifdef HEED_TEST_EACH_POLICY
        constexpr bool chosen =
            std::is_same_v<Normalize, heed::normalize::softmax> || std::is_same_v<Normalize, heed::normalize::temporal>;
#else
        constexpr bool chosen = true;
#endif
        if constexpr (chosen && heed::fault_of<score_type, Normalize, Combine>() == heed::composition_fault::none) {
            using made = of<false, score_type, Normalize, Combine>;
            add_row(to, "nearness", normalizer, "weighted_sum", heed::weight_kind::per_position,
                    heed::composition_fault::none, {},
                    std::make_unique<made>(
                        typename made::makers{score, normalize, [](const extents&) { return Combine{}; }}));
        }
    });
}

}  // namespace composition
