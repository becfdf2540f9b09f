// SPDX-License-Identifier: BSD-3-Clause
#include <heed/kernels/tiles/backward.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include <heed/kernels/tiles/reference.hpp>
#include <support/contexts_of_tiles.hpp>
#include <support/kernels.hpp>
#include <support/tiles.hpp>

using namespace heed;
using namespace heed::kernels;
namespace reference = tiles::reference;
using test::contexts_of, test::head_of_numbers, test::waves;

namespace {

/// Gradients of a head, which the kernel accumulates.
template <class T>
struct gradients {
    std::vector<T> queries, keys, values;

    explicit gradients(const head_of_numbers<T>& x, T start)
        : queries(x.queries.size(), start), keys(x.keys.size(), start), values(x.values.size(), start)
    {}
    template <class U>
    explicit gradients(const head_of_numbers<U>& x)
        : queries(x.queries.size()), keys(x.keys.size()), values(x.values.size())
    {}
    tiles::head_gradients<T> to(std::size_t A, std::size_t D)
    {
        return {{queries.data(), A}, {keys.data(), A}, {values.data(), D}};
    }
};

/// Adds the gradients of all queries, block by block, over all tiles or none.
template <class T, class Rule, class Mask>
void add_gradients(head_of_numbers<T>& x, const Rule& rule, const Mask& mask, const std::vector<T>& d_contexts,
                   gradients<T>& sums, bool wanted = true)
{
    const auto is = contexts_of(x, rule, mask);
    const auto of = x.head();
    const tiles::unmodified plain;
    const tiles::score_mod_of<T, tiles::unmodified, Mask> mod(plain, mask);
    const tiles::forward_results<T> from{tiles::rows<const T>{is.contexts.data(), x.D}, is.numbers.data(),
                                         tiles::rows<const T>{d_contexts.data(), x.D}};
    const auto to = sums.to(x.A, x.D);
    tiles::with_registers<T>(x.S, [&](auto registers) {
        constexpr std::size_t width = tiles::lanes<T, registers>;
        for (std::size_t s = 0; s < x.S; s += width)
            tiles::backward<registers>(tiles::query_block<T>{of, s, std::min(width, x.S - s), mod}, rule, from, to,
                                       [wanted](std::size_t) { return wanted; });
    });
}

template <class T>
double distance(const std::vector<T>& is, const std::vector<double>& must)
{
    double worst = 0;
    for (std::size_t i = 0; i < must.size(); ++i) {
        const double off = std::fabs(static_cast<double>(is[i]) - must[i]) / (1 + std::fabs(must[i]));
        if (!(off <= worst)) worst = off;
    }
    return worst;
}

/// The difference of gradients from the definition.
template <class T>
double distance(std::size_t S, std::size_t P, const auto& rule, const auto& by_definition)
{
    head_of_numbers<T> x(S, P, 5, 9);
    const auto d_contexts = waves<T>(S * x.D, 5);
    gradients<T> is(x, T(0));
    add_gradients(x, rule, not_behind{}, d_contexts, is);
    gradients<double> must(x);
    const auto sees = [&](std::size_t s, std::size_t j) { return j <= s + P - S; };
    reference::backward(x.head(), reference::unmodified{}, sees, by_definition,
                        tiles::rows<const T>{d_contexts.data(), x.D}, must.to(x.A, x.D));
    return std::max(
        {distance(is.queries, must.queries), distance(is.keys, must.keys), distance(is.values, must.values)});
}

}  // namespace

TEST_CASE_TEMPLATE("gradients match the definition", T, float, double)
{
    const double near = 1000 * static_cast<double>(std::numeric_limits<T>::epsilon());  // sums over up to 900 keys
    const struct {
        std::size_t S, P;
    } cases[] = {{1, 1}, {3, 5}, {70, 200}, {33, 97}, {2, 900}};
    for (const auto& each : cases) {
        const std::size_t S = each.S, P = each.P;
        CAPTURE(S);
        CAPTURE(P);
        CHECK(distance<T>(S, P, tiles::softmax{}, reference::softmax{}) <= near);
        CHECK(distance<T>(S, P, tiles::sigmoid{-1}, reference::sigmoid{-1}) <= near);
        CHECK(distance<T>(S, P, tiles::sparse_weights<1>{}, reference::sparse_weights<1>{}) <= near);
        CHECK(distance<T>(S, P, tiles::sparse_weights<2>{}, reference::sparse_weights<2>{}) <= near);
        CHECK(distance<T>(S, P, tiles::stick_breaking{}, reference::stick_breaking{}) <= near);
    }
}

TEST_CASE("gradients of queries, keys and values match finite differences; an omitted tile adds nothing")
{
    const auto check = [](const auto& rule, const auto& mask) {
        head_of_numbers<double> x(4, 7, 3, 2);
        const auto g = waves<double>(x.S * x.D, 5);
        const auto loss = [&] {
            const auto is = contexts_of(x, rule, mask);
            return test::dot(is.contexts, g);
        };
        gradients<double> is(x, 0.5);
        add_gradients(x, rule, mask, g, is, false);
        CHECK(is.keys == std::vector<double>(is.keys.size(), 0.5));
        add_gradients(x, rule, mask, g, is);
        test::check_gradient("queries", x.queries, loss, is.queries, 0.5);
        test::check_gradient("keys", x.keys, loss, is.keys, 0.5);
        test::check_gradient("values", x.values, loss, is.values, 0.5);
    };
    check(tiles::softmax{}, tiles::unmasked{});
    check(tiles::softmax{}, not_behind{});
    check(tiles::sigmoid{0.5}, not_behind{});
    check(tiles::stick_breaking{}, not_behind{});
}
