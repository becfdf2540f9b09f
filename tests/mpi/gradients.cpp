// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/train/sgd.hpp>
#include <heed_mpi/gradients.hpp>
#include <heed_mpi/optimizer.hpp>
#include <support/tensors.hpp>

#include "engines.hpp"

using namespace heed;
using distributed::any_ranks;
using support::random;

namespace {

/// Parameters with every kind of gradient: a table that is looked up, one that only some steps look up, one that is
/// both looked up and multiplied, vectors, and a matrix that is large enough for a separate sum.
template <class Matrix, class Vector>
struct model {
    Matrix E, sometimes, tied, wide;
    Vector b, none;

    /// Σ over the sentences, which are columns; each word of the whole batch has its own weight.
    auto loss(const word_ids& words, const auto& weights) const
    {
        const auto x = ops::add(ops::lookup(E, words), ops::lookup(tied, words));
        const auto y = ops::linear(ops::linear(x, tied, b), wide);  // [S,B,wide]
        return ops::dot(ops::square(y), weights);
    }
    static auto parameters(auto& self, auto&& visit)
    {
        return std::apply([](auto... x) { return of(std::move(x)...); },
                          std::tuple{visit("E", self.E), visit("sometimes", self.sometimes), visit("tied", self.tied),
                                     visit("wide", self.wide), visit("b", self.b), visit("none", self.none)});
    }
    template <class M, class V>
    static model<M, V> of(M E, M sometimes, M tied, M wide, V b, V none)
    {
        return {std::move(E), std::move(sometimes), std::move(tied), std::move(wide), std::move(b), std::move(none)};
    }
};

constexpr std::size_t columns = 4200;  // 4 · 4200 numbers

template <class T>
auto some_model()
{
    return model<array<T, 2>, array<T, 1>>{random<T>({40, 4}, 1),      random<T>({40, 4}, 2), random<T>({4, 4}, 3),
                                           random<T>({4, columns}, 5), random<T>({4}, 4),     random<T>({0}, 4)};
}

/// The gradient of a parameter: dense, or rows.
template <class T>
struct gradient {
    std::string name;
    std::vector<std::uint32_t> ids;
    std::vector<T> numbers;

    bool operator==(const gradient&) const = default;
};

/// The work of a rank in a step.
struct plan {
    std::size_t sentences;
    bool with_second;    // the last rank looks up `sometimes`
    bool reads_whole_E;  // rank 0 reads the gradient of the whole table
};
const std::vector<plan> steps{
    {7, false, false}, {7, true, false}, {1, false, false}, {2, true, false},  // ranks without a sentence
    {7, true, true},   {7, true, false}, {0, false, false}, {7, false, true},  // E is sparse again after a dense step
    {3, true, false},
};

/// The gradients of all parameters in all steps. `meanwhile`: sums start in the backward pass.
template <class T, class R>
std::vector<gradient<T>> gradients_of(R& over, bool meanwhile)
{
    const auto plain = some_model<T>();
    std::vector<gradient<T>> all;
    distributed::gradients<T> sums;
    ad::tape<T> on;
    for (const plan& step : steps) {
        const distributed::share mine = distributed::share_of(over, step.sentences);
        word_ids words(2, mine.size());
        array<T, 3> weights = filled<T, 3>({2, mine.size(), columns}, T(0));
        for (std::size_t s = 0; s < 2; ++s) {
            for (std::size_t b = mine.first; b < mine.last; ++b) {
                words(s, b - mine.first) = static_cast<std::uint32_t>((3 * b + s) % 4);  // also rows of `tied`
                for (std::size_t c = 0; c < columns; ++c)
                    weights(s, b - mine.first, c) =
                        static_cast<T>(0.1 + 0.01 * static_cast<double>((b + c) % 11)) / T(99);
            }
        }
        on.clear();
        const auto lifted = ad::lift(on, plain);
        const bool whole = step.reads_whole_E && over.rank() == 0;
        if (mine.size() > 0) {
            // Only the last sentence is looked up in `sometimes`, so that with several ranks one rank has it.
            auto loss = lifted.loss(words, weights);
            if (step.with_second && mine.last == step.sentences) {
                word_ids last(2, 1);
                last.ids = {static_cast<std::uint32_t>(step.sentences % 5), 7};
                const auto more = ops::lookup(lifted.sometimes, last);
                loss = ops::add(loss, ops::dot(more, more));
            }
            if (meanwhile && !whole) {
                sums.backward(over, lifted, loss);
            } else {
                on.backward(loss);
            }
        }
        if (step.sentences == 0) on.gradients_given();  // no rank has a loss: zeros are intended
        if (whole) on.gradient(lifted.E);
        sums.sum(over, lifted, on);
        for_each_parameter(lifted, [&](const std::string& name, const auto& x) {
            const ad::sparse_gradient<T> rows = ad::gradient_rows(x);
            const std::size_t count = rows.rows != nullptr ? rows.ids.size() * rows.width : x.size();
            const T* const from = rows.rows != nullptr ? rows.rows : on.gradient(x).data;
            all.push_back({name, {rows.ids.begin(), rows.ids.end()}, {from, from + count}});
        });
    }
    return all;
}

/// Two names for one variable.
struct twice {
    ad::var<double, 1> a, b;

    static auto parameters(auto& self, auto&& visit)
    {
        visit("a", self.a);
        visit("b", self.b);
        return visited{};
    }
};

template <class T>
void check(double tolerance)
{
    distributed::alone one;
    const auto whole = gradients_of<T>(one, false);
    support::on_ranks([&](any_ranks& over) {
        const auto got = gradients_of<T>(over, false);
        REQUIRE(got.size() == whole.size());
        for (std::size_t i = 0; i < got.size(); ++i) {
            CAPTURE(i);
            CHECK(got[i].ids == whole[i].ids);  // lazy updates: the same rows change
            REQUIRE(got[i].numbers.size() == whole[i].numbers.size());
            double greatest = 0, worst = 0;
            for (std::size_t k = 0; k < got[i].numbers.size(); ++k) {
                const double expected = static_cast<double>(whole[i].numbers[k]);
                greatest = std::max(greatest, std::abs(expected));
                worst = std::max(worst, std::abs(static_cast<double>(got[i].numbers[k]) - expected));
            }
            CHECK(worst <= tolerance * greatest);
        }
        CHECK(gradients_of<T>(over, true) == got);   // sums that start early, and
        CHECK(gradients_of<T>(over, false) == got);  // a second run: bit for bit
        const auto same = [&](const gradient<T>& each) {
            const auto all = over.gather(std::as_bytes(std::span<const T>(each.numbers)));
            return std::all_of(all.begin(), all.end(), [&](const auto& other) { return other == all[0]; });
        };
        CHECK(std::all_of(got.begin(), got.end(), same));  // on all ranks
    });
}

}  // namespace

TEST_CASE_TEMPLATE("the ranks' gradients equal those of one process with the whole batch", T, float, double)
{
    check<T>(std::is_same_v<T, double> ? 1e-12 : 1e-6);
}

TEST_CASE("the comparison covers every kind of gradient")
{
    distributed::alone one;
    const auto whole = gradients_of<double>(one, false);
    const auto at = [&](std::size_t step, const std::string& name) {
        const auto first = whole.begin() + static_cast<std::ptrdiff_t>(6 * step);
        return *std::find_if(first, first + 6, [&](const auto& each) { return each.name == name; });
    };
    CHECK(!at(0, "E").ids.empty());                // rows
    CHECK(at(0, "sometimes").ids.empty());         // no gradient
    CHECK(at(1, "sometimes").ids.size() == 2);     // rows of one rank
    CHECK(at(0, "tied").ids.empty());              // dense
    CHECK(at(4, "E").ids.empty());                 // a dense gradient of a table, since one rank reads it,
    CHECK(!at(5, "E").ids.empty());                // and rows again
    CHECK(at(0, "wide").numbers.size() > 16'384);  // large
}

TEST_CASE("sums start while the gradients of other parameters are still computed")
{
    support::on_ranks([](any_ranks& plain_engine) {
        support::noting over(plain_engine);
        const auto plain = some_model<double>();
        const word_ids words(2, 1);
        const array<double, 3> weights = filled<double, 3>({2, 1, columns}, 0.01);
        distributed::gradients<double> sums;
        distributed::optimizer together{over, train::sgd<double>({.rate = 0})};
        ad::tape<double> on;
        for (int step = 0; step < 3; ++step) {
            CAPTURE(step);
            for (const bool by_optimizer : {false, true}) {
                CAPTURE(by_optimizer);
                std::size_t at_end = 0, moved_at_end = 0;  // when the backward pass of all other operations is done
                over.begun = over.moved_on = 0;
                on.clear();
                on.record([&] {
                    at_end = over.begun;
                    moved_at_end = over.moved_on;
                });
                auto model = plain;
                const auto lifted = ad::lift(on, model);
                const auto loss = lifted.loss(words, weights);
                if (by_optimizer) {
                    together.backward(lifted, loss);
                    CHECK(over.begun == at_end);
                    together.step(model, lifted, on);
                } else {
                    sums.backward(over, lifted, loss);
                    CHECK(over.begun == at_end);
                    sums.sum(over, lifted, on);
                }
                // In the first step the order is still unknown; a single rank has no sums.
                const bool early = step > 0 && over.size() > 1;
                CHECK(at_end == (early ? 2u : 0u));  // `wide`, and `b` with `tied`
                CHECK((moved_at_end > 1) == early);  // others were final after the sum of `wide` had started
            }
        }
    });
}

TEST_CASE("a variable with two names is summed once")
{
    support::on_ranks([](any_ranks& over) {
        ad::tape<double> on;
        const auto plain = some_model<double>();
        const auto x = on.parameter(plain.b);
        on.backward(ops::dot(x, x));
        const double before = on.gradient(x).data[0];
        distributed::gradients<double> sums;
        sums.sum(over, twice{x, x}, on);
        CHECK(on.gradient(x).data[0] == doctest::Approx(before * static_cast<double>(over.size())).epsilon(1e-14));
    });
}

TEST_CASE("all ranks report different models")
{
    support::on_ranks([](any_ranks& over) {
        if (over.size() == 1) return;
        ad::tape<double> on;
        auto plain = some_model<double>();
        if (over.rank() == over.size() - 1) plain.b = random<double>({5}, 4);
        const auto lifted = ad::lift(on, plain);
        distributed::gradients<double> sums;
        CHECK_THROWS_WITH_AS(sums.sum(over, lifted, on), doctest::Contains("different models"), error);
        CHECK_THROWS_WITH_AS(distributed::broadcast_parameters<double>(over, plain),
                             doctest::Contains("different models"), error);
        over.barrier();
    });
}

TEST_CASE("errors: no rank ran backward, or gradients are summed twice")
{
    support::on_ranks([](any_ranks& over) {
        ad::tape<double> on;
        auto model = some_model<double>();
        distributed::optimizer together{over, train::sgd<double>({.rate = 0.1})};
        const auto before = model.b;
        const auto step = [&](const auto& lifted) { together.step(model, lifted, on); };
        {
            const auto lifted = ad::lift(on, model);
            CHECK_THROWS_WITH_AS(step(lifted), doctest::Contains("call tape.backward(loss) first"), error);
        }
        on.clear();
        const auto lifted = ad::lift(on, model);
        if (over.rank() == 0) together.backward(lifted, ops::dot(lifted.b, lifted.b));  // the others have no loss
        step(lifted);
        CHECK(model.b(0) == doctest::Approx(0.8 * before(0)).epsilon(1e-14));
        CHECK_THROWS_WITH_AS(step(lifted), doctest::Contains("call tape.clear(), lift the model again"), error);
        CHECK(model.b(0) == doctest::Approx(0.8 * before(0)).epsilon(1e-14));
        over.barrier();
    });
}
