// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/averaging.hpp>
#include <heed/train/gradient_accumulation.hpp>
#include <support/approx.hpp>
#include <support/tensors.hpp>

using namespace heed;
using support::random;

namespace {

/// Parameters with every kind of gradient: a table that is looked up in each batch, one that only some batches look up,
/// one that is looked up and multiplied, and a vector.
template <class Matrix, class Vector>
struct model {
    Matrix E, sometimes, tied;
    Vector b;

    auto loss(const word_ids& words, bool with_second) const
    {
        auto x = ops::add(ops::lookup(E, words), ops::lookup(tied, words));
        if (with_second) x = ops::add(x, ops::lookup(sometimes, words));
        return ops::dot(ops::square(ops::linear(x, tied, b)), support::uneven<element_of<Matrix>>(shape_of(x)));
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return std::apply([](auto... x) { return of(std::move(x)...); },
                          std::tuple{visit("E", self.E), visit("sometimes", self.sometimes), visit("tied", self.tied),
                                     visit("b", self.b)});
    }
    template <class M, class V>
    static model<M, V> of(M E, M sometimes, M tied, V b)
    {
        return {std::move(E), std::move(sometimes), std::move(tied), std::move(b)};
    }
};

auto some_model()
{
    return model<array<double, 2>, array<double, 1>>{random<double>({8, 4}, 1), random<double>({8, 4}, 2),
                                                     random<double>({4, 4}, 3), random<double>({4}, 4)};
}

struct lesson {
    std::vector<std::uint32_t> ids;
    bool with_second;

    word_ids words() const
    {
        word_ids result(2, ids.size() / 2);
        result.ids = ids;
        return result;
    }
};

/// Three updates by Adam with these batches, all on one tape, or one after the other.
auto trained(const std::vector<lesson>& batches, bool one_tape)
{
    auto plain = some_model();
    train::adam<double> optimizer({0.1});
    train::accumulated_gradients<double> sum;
    ad::tape<double> on;
    for (int update = 0; update < 3; ++update) {
        if (one_tape) {
            on.clear();
            const auto lifted = ad::lift(on, plain);
            auto loss = lifted.loss(batches[0].words(), batches[0].with_second);
            for (std::size_t k = 1; k < batches.size(); ++k)
                loss = ops::add(loss, lifted.loss(batches[k].words(), batches[k].with_second));
            on.backward(loss);
            optimizer.step(plain, lifted, on, 0.5);
            continue;
        }
        for (std::size_t k = 0; k < batches.size(); ++k) {
            on.clear();
            const auto lifted = ad::lift(on, plain);
            on.backward(lifted.loss(batches[k].words(), batches[k].with_second));
            if (k + 1 < batches.size()) {
                sum.add(lifted, on);
            } else {
                sum.give(lifted, on);
                optimizer.step(plain, lifted, on, 0.5);
            }
        }
    }
    return plain;
}

}  // namespace

TEST_CASE("accumulated gradients of several batches equal those of one large batch")
{
    const std::vector<std::vector<lesson>> cases{
        {{{3, 0, 3, 1}, true}, {{2, 0}, true}},                                          // rows in both, and in one
        {{{3, 0, 3, 1}, true}, {{2, 0}, false}, {{1, 1, 3, 2}, false}},                  // none in the last one
        {{{2, 1}, false}, {{0, 0}, true}, {{3, 2, 2, 0}, true}, {{1, 3, 0, 2}, false}},  // and none in the first
        {{{1, 3}, false}, {{3, 1}, false}},                                              // none at all
        {{{1, 2, 3, 0}, true}},                                                          // one batch
    };
    for (const auto& batches : cases) {
        const auto before = train::copy_parameters<double>(some_model());
        const auto model = trained(batches, false);
        const auto expected = train::copy_parameters<double>(trained(batches, true));
        const auto got = train::copy_parameters<double>(model);
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(i);
            CHECK(got[i] == support::approx(expected[i]));
            // Lazy updates: a row that no batch used does not change.
            CHECK((got[i] == before[i]) == (expected[i] == before[i]));
        }
        for (std::size_t i = 4 * 4; i < 8 * 4; ++i) CHECK(model.E.data()[i] == some_model().E.data()[i]);
    }
}

TEST_CASE("a gradient may be read as a dense tensor before it is summed")
{
    const auto plain = some_model();
    const auto gradients = [&](int whole) {  // of batch 1, of batch 2, of neither
        ad::tape<double> on;
        train::accumulated_gradients<double> sum;
        std::vector<double> all;
        for (int k = 1; k <= 2; ++k) {
            on.clear();
            const auto lifted = ad::lift(on, plain);
            word_ids words(1, 2);
            words.ids = {static_cast<std::uint32_t>(k), 3};
            on.backward(lifted.loss(words, true));
            if (k == whole) on.gradient(lifted.E);
            if (k == 1) {
                sum.add(lifted, on);
                continue;
            }
            sum.give(lifted, on);
            CHECK((ad::gradient_rows(lifted.E).rows == nullptr) == (whole > 0));
            for_each_parameter(lifted, [&](const std::string&, const auto& x) {
                const auto g = on.gradient(x);
                all.insert(all.end(), g.data, g.data + g.size());
            });
        }
        return all;
    };
    const auto expected = gradients(0);
    for (const int whole : {1, 2}) {
        const auto got = gradients(whole);
        REQUIRE(got.size() == expected.size());
        for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(expected[i]).epsilon(1e-14));
    }
}

TEST_CASE("accumulated gradients are cleared after the update")
{
    const auto plain = some_model();
    ad::tape<double> on;
    train::accumulated_gradients<double> sum;
    word_ids words(1, 2);
    words.ids = {1, 2};
    std::vector<double> norms;
    for (int k = 0; k < 3; ++k) {
        on.clear();
        const auto lifted = ad::lift(on, plain);
        on.backward(lifted.loss(words, true));
        if (k == 0) {
            sum.add(lifted, on);
        } else {
            sum.give(lifted, on);
            norms.push_back(train::gradient_norm(lifted, on));
        }
    }
    CHECK(norms[0] == doctest::Approx(2 * norms[1]).epsilon(1e-12));
}

TEST_CASE("a batch counts once: without backward, twice, or added to itself it is rejected")
{
    const auto plain = some_model();
    ad::tape<double> on;
    train::accumulated_gradients<double> sum;
    word_ids words(1, 2);
    words.ids = {1, 2};
    {
        const auto lifted = ad::lift(on, plain);
        const auto loss = lifted.loss(words, true);
        CHECK_THROWS_WITH_AS(sum.add(lifted, on), doctest::Contains("call tape.backward(loss) first"), error);
        CHECK(sum.state().empty());
        on.backward(loss);
        sum.add(lifted, on);
        CHECK_THROWS_WITH_AS(sum.add(lifted, on), doctest::Contains("are already in the sum"), error);
        CHECK_THROWS_WITH_AS(sum.give(lifted, on), doctest::Contains("are already in the sum"), error);
    }
    on.clear();
    const auto lifted = ad::lift(on, plain);  // a process without a batch uses the gradients of the others
    CHECK_FALSE(on.has_gradients());
    sum.give(lifted, on);
    CHECK(train::gradient_norm(lifted, on) > 0);
}
