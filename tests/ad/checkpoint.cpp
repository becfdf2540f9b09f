// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/checkpoint.hpp>

#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>
#include <heed/nn/feed_forward.hpp>
#include <support/approx.hpp>
#include <support/tensors.hpp>

#include <vector>

using namespace heed;
using support::random;

namespace {

constexpr std::size_t D = 4;

/// A layer with parameters of every kind, some used twice.
template <class Attention, class Forward>
struct some_layer {
    Attention attend;
    Forward forward;

    auto operator()(const tensor auto& x) const
    {
        const auto seen = ops::add(x, attend(attend.on(x), x, causal{}));
        return ops::add(forward(seen), ops::tanh(forward(x)));
    }
    static auto parameters(auto& self, auto&& visit)
    {
        auto attend = visit("attend", self.attend);
        auto forward = visit("forward", self.forward);
        return ::some_layer<decltype(attend), decltype(forward)>{std::move(attend), std::move(forward)};
    }
};

auto make()
{
    random_source source{3};
    const attention one{score::rotary{score::scaled_dot{}}, normalize::softmax{}, combine::weighted_sum{}};
    const multi_head heads{std::vector(2, one), random({D, D}, 1), random({D, D}, 2), random({D, D}, 3),
                           random({D, D}, 4)};
    auto forward = nn::make_feed_forward<double>(source, D, 6, ops::gelu);
    return some_layer<decltype(heads), decltype(forward)>{heads, forward};
}

struct result {
    std::vector<double> numbers;
    std::size_t entries;
};

/// A loss of the same layer applied `depth` times, and all gradients.
result through(std::size_t depth, bool checked, bool nested = false)
{
    const auto layer = make();
    ad::tape<double> on;
    const auto input = random({2, 70, D}, 5);
    const auto x = on.parameter(input);
    const auto lifted = ad::lift(on, layer);
    const auto once = [](const auto& of, const auto& in) { return of(in); };
    const auto inside = [once](const auto& of, const auto& in) { return ad::checkpoint(once, of, in); };
    auto y = x;
    for (std::size_t i = 0; i < depth; ++i)
        y = nested ? ad::checkpoint(inside, lifted, y) : checked ? ad::checkpoint(once, lifted, y) : lifted(y);
    const auto loss = ops::dot(y, random({2, 70, D}, 6));
    result all{{loss.value().data[0]}, on.entries()};
    on.backward(loss);
    const auto add = [&](const auto& v) {
        const auto g = on.gradient(v);
        all.numbers.insert(all.numbers.end(), g.data, g.data + g.size());
    };
    add(x);
    for_each_parameter(lifted, [&](const std::string&, const auto& p) { add(p); });
    return all;
}

double distance(const result& a, const result& b)
{
    double worst = a.numbers.size() == b.numbers.size() ? 0 : 1e9;
    for (std::size_t i = 0; i < a.numbers.size(); ++i) {
        worst = std::max(worst, std::abs(a.numbers[i] - b.numbers[i]) / (1 + std::abs(b.numbers[i])));
    }
    return worst;
}

}  // namespace

TEST_CASE("gradients equal those without a checkpoint, and the tape is shorter")
{
    const result must = through(3, false), is = through(3, true), nested = through(3, true, true);
    CHECK(distance(is, must) < 1e-12);
    CHECK(distance(nested, must) < 1e-12);
    CHECK(is.entries < must.entries);
    CHECK(must.numbers.size() > 600);
}

TEST_CASE("without parameters, with several inputs, and without a required gradient")
{
    ad::tape<double> on;
    const auto a = random({2, 3}, 1), b = random({2, 3}, 2);
    const auto x = on.parameter(a), y = on.parameter(b), c = on.constant(b);
    const auto f = [](const auto& u, const auto& v) { return ops::multiply(ops::tanh(u), v); };
    const auto z = ad::checkpoint(f, x, y);
    const auto same = ad::checkpoint(f, x, c);
    const auto none = ad::checkpoint(f, c, c);
    CHECK(!none.wanted());
    on.backward(ops::dot(ops::add(z, ops::add(same, none)), b));
    for (std::size_t i = 0; i < a.size(); ++i) {
        const double u = std::tanh(a.data()[i]), v = b.data()[i];
        CHECK(on.gradient(x).data[i] == support::approx(2 * v * v * (1 - u * u)));
        CHECK(on.gradient(y).data[i] == support::approx(u * v));
    }
}
