// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ops/operation.hpp>

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>

#include <heed/heed.hpp>
#include <support/approx.hpp>
#include <support/gradients.hpp>

// The operation of docs/how_to/write_an_operation.md: a user's operation, in every family, with its derivative.
// tests/quotes.cmake compares the text.

using namespace heed;
using support::random;

// section: operation
namespace mine {

/// y = x ⊙ σ(g)                      ∂x += ∂y ⊙ σ(g),  ∂g += ∂y ⊙ y ⊙ (1 − σ(g))
struct gate_op : ops::operation<gate_op> {
    static auto shape(const auto& x, const auto& g)
    {
        require_shape("gate", "g", g.shape, x.shape, "one value per element of x");
        return x.shape;
    }
    static void forward(const auto& x, const auto& g, const auto& y)
    {
        for (std::size_t i = 0; i < y.size(); ++i) y.data[i] = x.data[i] * sigma(g.data[i]);
    }
    static void backward(const auto&, const auto& g, const auto& y, const auto& d_y, const auto& d_x, const auto& d_g)
    {
        for (std::size_t i = 0; i < y.size(); ++i) {
            if (d_x) d_x.data[i] += d_y.data[i] * sigma(g.data[i]);
            if (d_g) d_g.data[i] += d_y.data[i] * y.data[i] * (1 - sigma(g.data[i]));
        }
    }
    static auto sigma(auto g)
    {
        using std::exp;  // then exp(x), not std::exp(x): x may be a dual number, for second derivatives
        return 1 / (1 + exp(-g));
    }
};
inline constexpr gate_op gate{};

}  // namespace mine
// end

namespace mine {

/// e_j = vᵀ (M h_j ⊙ σ(h_j + q))
template <class Matrix, class Vector>
struct gated {
    Matrix M;  // [D,A]
    Vector v;  // [A]
    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::matvec(mine::gate(ops::linear(keys, M), ops::add_per_position(keys, query)), v);
    }
    static auto parameters(auto& self, auto&& visit) { return mine::gated{visit("M", self.M), visit("v", self.v)}; }
};
template <class Matrix, class Vector>
gated(Matrix, Vector) -> gated<Matrix, Vector>;

}  // namespace mine

TEST_CASE("a user's operation has the same bits on owning tensors, in the workspace and on a tape")
{
    const auto x = random({2, 3, 4}, 1), g = random({2, 3, 4}, 2);
    const auto must = mine::gate(x, g);
    static_assert(std::is_same_v<decltype(must), const array<double, 3>>);
    CHECK(must(1, 2, 3) == support::approx(x(1, 2, 3) / (1 + std::exp(-g(1, 2, 3)))));
    const scratch here;
    const auto in_workspace = mine::gate(workspace_tensor(view_of(x)), workspace_tensor(view_of(g)));
    static_assert(std::is_same_v<family_of<decltype(in_workspace)>, workspace_family>);
    CHECK(support::same_bits(in_workspace, must));
    ad::tape<double> on;
    CHECK(support::same_bits(mine::gate(on.parameter(x), g), must));
    CHECK(mine::gate(random<float>({3}, 3), random<float>({3}, 4)).size() == 3);
}

TEST_CASE("the gradient of a user's operation matches finite differences")
{
    const auto f = [](const auto& x, const auto& g) { return mine::gate(x, g); };
    CHECK_GRADIENT(f, random({1}, 1), random({1}, 2));
    CHECK_GRADIENT(f, random({2, 3, 4}, 3), random({2, 3, 4}, 4));
    support::check_empty(f, random({2, 0}, 5), random({2, 0}, 6));
}

TEST_CASE("a user's operation rejects shapes that do not fit")
{
    const auto message = support::message_of<shape_error>([] {
        (void)mine::gate(random({2, 3}, 1), random({2, 4}, 2));
    });
    CHECK(message == "gate: g is [2,4] but must be [2,3] (one value per element of x)");
}

TEST_CASE("a score with a user's operation trains, one sentence at a time")
{
    attention attend{mine::gated{random({4, 4}, 4), random({4}, 1)}, normalize::softmax{}, combine::weighted_sum{}};
    const auto found = ad::grad_check(attend, [](auto&, const auto& lifted) {
        const auto memory = lifted.on(random({2, 3, 4}, 2), lengths{3, 2});
        return ops::dot(lifted.read(memory, random({2, 4}, 3), lifted.start(memory)).context,
                        support::uneven(shape_of_rank<2>{2, 4}));
    });
    CHECK_MESSAGE(bool(found), found.text());
}
