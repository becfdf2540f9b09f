// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/parameters.hpp>

#include <heed/heed.hpp>
#include <heed/io/weights.hpp>
#include <heed/train/adam.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

using namespace heed;
using support::random;

// Layers in a std::vector, std::array, std::tuple, std::optional or std::unique_ptr are parameters.

namespace {

template <class Matrix, class Vector>
struct layer {
    Matrix W;
    std::optional<Vector> b;  // also a tensor

    auto operator()(const tensor auto& x) const
    {
        auto y = ops::linear(x, W);
        return ops::tanh(b ? ops::add(y, *b) : y);
    }

    static auto parameters(auto& self, auto&& visit) { return ::layer{visit("W", self.W), visit("b", self.b)}; }

    layer(Matrix weights, std::optional<Vector> bias) : W(std::move(weights)), b(std::move(bias)) {}
};

template <class Layer, class Matrix>
struct model {
    std::vector<Layer> layers;
    std::optional<Layer> extra;
    std::array<Layer, 2> pair;
    std::unique_ptr<Layer> far;
    std::tuple<Matrix, Layer> mixed;
    std::vector<std::vector<Matrix>> tables;
    int depth = 3;  // not a parameter

    auto operator()(const tensor auto& x) const
    {
        auto y = ops::linear(x, std::get<0>(mixed));
        for (const Layer& each : layers) y = each(y);
        if (extra) y = (*extra)(y);
        y = pair[1](pair[0](y));
        if (far) y = (*far)(y);
        y = std::get<1>(mixed)(y);
        for (const auto& row : tables)
            for (const Matrix& each : row) y = ops::add(y, ops::linear(y, each));
        return y;
    }

    static auto parameters(auto& self, auto&& visit)
    {
        auto layers = visit("layers", self.layers);
        auto extra = visit("extra", self.extra);
        auto pair = visit("pair", self.pair);
        auto far = visit("far", self.far);
        auto mixed = visit("mixed", self.mixed);
        auto tables = visit("tables", self.tables);
        using of = typename decltype(layers)::value_type;
        using matrix = std::tuple_element_t<0, decltype(mixed)>;
        return model<of, matrix>{std::move(layers), std::move(extra),  std::move(pair), std::move(far),
                                 std::move(mixed),  std::move(tables), self.depth};
    }
};

constexpr std::size_t N = 3;

auto make_layer(std::uint64_t stream, bool bias)
{
    std::optional<array<double, 1>> b;
    if (bias) b = random({N}, stream + 1);
    return layer<array<double, 2>, array<double, 1>>(random({N, N}, stream), std::move(b));
}
using plain_layer = decltype(make_layer(1, true));

auto make_model(bool with)
{
    model<plain_layer, array<double, 2>> all{{make_layer(1, true), make_layer(3, false)},
                                             std::nullopt,
                                             {make_layer(5, true), make_layer(7, true)},
                                             nullptr,
                                             {random({N, N}, 9), make_layer(10, false)},
                                             {{random({N, N}, 12)}, {}, {random({N, N}, 13), random({N, N}, 14)}}};
    if (with) {
        all.extra = make_layer(20, true);
        all.far = std::make_unique<plain_layer>(make_layer(22, false));
    }
    return all;
}

std::vector<std::string> names_of(const auto& module)
{
    std::vector<std::string> names;
    for_each_parameter(module, [&](const std::string& name, const auto&) { names.push_back(name); });
    return names;
}

}  // namespace

TEST_CASE("every visitor visits them, named by member and index")
{
    using names = std::vector<std::string>;
    CHECK(names_of(make_model(false)) == names{"layers.0.W", "layers.0.b", "layers.1.W", "pair.0.W", "pair.0.b",
                                               "pair.1.W", "pair.1.b", "mixed.0", "mixed.1.W", "tables.0.0",
                                               "tables.2.0", "tables.2.1"});
    CHECK(names_of(make_model(true)) == names{"layers.0.W", "layers.0.b", "layers.1.W", "extra.W", "extra.b",
                                              "pair.0.W", "pair.0.b", "pair.1.W", "pair.1.b", "far.W", "mixed.0",
                                              "mixed.1.W", "tables.0.0", "tables.2.0", "tables.2.1"});
    CHECK(parameter_count(make_model(false)) == 9 * N * N + 3 * N);
    CHECK(parameter_count(make_model(true)) == 11 * N * N + 4 * N);

    const model<plain_layer, array<double, 2>> none{
        {}, {}, {make_layer(1, false), make_layer(2, false)}, {}, {random({N, N}, 3), make_layer(4, false)}, {}};
    CHECK(names_of(none) == names{"pair.0.W", "pair.1.W", "mixed.0", "mixed.1.W"});
}

TEST_CASE("lifted containers have the same type")
{
    for (const bool with : {false, true}) {
        auto plain = make_model(with);
        ad::tape<double> on;
        const auto lifted = ad::lift(on, plain);
        using taped = std::remove_cvref_t<decltype(lifted.layers[0])>;
        static_assert(std::is_same_v<decltype(lifted.layers), std::vector<taped>>);
        static_assert(std::is_same_v<decltype(lifted.extra), std::optional<taped>>);
        static_assert(std::is_same_v<decltype(lifted.pair), std::array<taped, 2>>);
        static_assert(std::is_same_v<decltype(lifted.far), std::unique_ptr<taped>>);
        CHECK(lifted.extra.has_value() == with);
        CHECK((lifted.far != nullptr) == with);
        CHECK(lifted.depth == 3);

        const auto x = random({2, N}, 30);
        CHECK(support::same_bits(lifted(x), plain(x)));
    }
}

TEST_CASE("the optimizer updates them in place")
{
    auto module = make_model(true);
    const auto before = make_model(true);
    train::adam<double> optimizer({.rate = 0.01});
    ad::tape<double> on;
    const auto x = random({2, N}, 30);
    const auto step = [&] {
        on.clear();
        const auto lifted = ad::lift(on, module);
        const auto loss = ops::dot(ops::square(lifted(x)), filled<double, 2>({2, N}, 1.0));
        on.backward(loss);
        optimizer.step(module, lifted, on);
        return loss.value().data[0];
    };
    const double first = step();
    for (int i = 0; i < 20; ++i) step();
    CHECK(step() < first);
    CHECK(optimizer.state().size() == 15);
    std::vector<const double*> places;
    for (const auto& [name, values] : numbers_of<const double>(before)) places.push_back(values.data);
    std::size_t i = 0;
    for (const auto& each : numbers_of<double>(module)) {
        CAPTURE(each.name);
        CHECK(each.numbers.data[0] != places[i++][0]);
    }
}

namespace mine {

/// e = (s W + table) · h with a constant table and a constant inner score.
template <class Matrix, class Table, class Inner>
struct shifted {
    Matrix W;
    Table table;
    Inner inner;

    static constexpr score_traits traits{.weights = weight_kind::per_position};
    auto operator()(const tensor auto& query, const tensor auto& keys) const
    {
        return ops::add(ops::dot_per_position(ops::add(ops::linear(query, W), table), keys), inner(query, keys));
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return mine::shifted{visit("W", self.W), self.table, self.inner};
    }
};
template <class Matrix, class Table, class Inner>
shifted(Matrix, Table, Inner) -> shifted<Matrix, Table, Inner>;

/// A constant of a fixed type, and an aggregate that is not a template.
template <class Matrix>
struct with_fixed {
    Matrix W;
    heed::constant<shared_tensor<double, 1>> b;
    std::size_t width = 0;
    static auto parameters(auto& self, auto&& visit) { return of(visit("W", self.W), self.b, self.width); }
    template <class M>
    static with_fixed<M> of(M W, heed::constant<shared_tensor<double, 1>> b, std::size_t width)
    {
        return {std::move(W), std::move(b), width};
    }
};

}  // namespace mine

TEST_CASE("a constant takes part in the computation, but is not trained or saved")
{
    const auto W = random({N, N}, 1), frozen = random({N, N}, 2);
    const auto table = random({N}, 3);
    const auto annotations = random({2, 5, N}, 4);
    const auto query = random({2, N}, 5), u = random({2, N}, 6);
    // The bilinear score as a constant: e = s (W + F) · h + table · h.
    const auto check = [&](auto score) {
        CHECK(names_of(score) == std::vector<std::string>{"W"});
        CHECK(parameter_count(score) == N * N);
        io::archive saved;
        io::put(saved, score);
        CHECK(saved.tensors.size() == 1);
        attention attend{score, normalize::softmax{}, combine::weighted_sum{}};
        const auto run = [&](const auto& model) {
            const auto memory = model.on(annotations, lengths{5, 3});
            return model.step(memory, query, model.start(memory));
        };
        auto sum = W;
        for (std::size_t i = 0; i < sum.size(); ++i) sum.data()[i] += frozen.data()[i];
        const auto plain = run(attend);
        for (std::size_t b = 0; b < 2; ++b) {
            const std::size_t real = b == 0 ? 5 : 3;
            std::vector<double> e(real);
            double all = 0;
            for (std::size_t t = 0; t < real; ++t) {
                double score_of = 0;
                for (std::size_t j = 0; j < N; ++j) {
                    double asked = table(j);
                    for (std::size_t i = 0; i < N; ++i) asked += query(b, i) * sum(i, j);
                    score_of += asked * annotations(b, t, j);
                }
                all += e[t] = std::exp(score_of);
            }
            for (std::size_t t = 0; t < real; ++t) CHECK(std::abs(plain.weights(b, t) - e[t] / all) < 1e-12);
        }
        ad::tape<double> on;
        CHECK(support::same_bits(run(ad::lift(on, attend)).weights, plain.weights));
        const auto found =
            ad::grad_check(attend, [&](auto&, const auto& lifted) { return ops::dot(run(lifted).context, u); });
        INFO(found.text());
        CHECK(bool(found));
        CHECK(found.entries == N * N);
        return attend;
    };
    const auto view = view_of(table);
    check(mine::shifted{W, constant{view}, constant{score::general{view_of(frozen)}}});
    const auto attend = check(mine::shifted{W, constant{table}, constant{score::general{frozen}}});
    ad::tape<double> on;
    const auto lifted = ad::lift(on, attend);
    static_assert(std::is_same_v<decltype(lifted.score.table), decltype(attend.score.table)>);
    CHECK(lifted.score.table.data() == attend.score.table.data());  // not copied
    CHECK(lifted.score.table(1) == table(1));

    const mine::with_fixed<array<double, 2>> fixed{W, table, 3};
    CHECK(parameter_count(fixed) == N * N);
    CHECK(ad::lift(on, fixed).b.data() == fixed.b.data());
}
