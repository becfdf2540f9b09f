// SPDX-License-Identifier: BSD-3-Clause
//
// The playground's policies, which are chosen at run time: they answer as the attentions of the same policies do, all
// legal products answer, and what is not legal is refused.

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "../../examples/browser/playground.hpp"

using namespace browser;

namespace {

const catalogue& policies()
{
    static const catalogue all;
    return all;
}

answers of(const std::string& score, const std::string& normalizer, const std::string& combiner,
           const scene& what = first_scene())
{
    const catalogue& all = policies();
    const std::size_t s = place_of(all.scores, score), n = place_of(all.normalizers, normalizer),
                      c = place_of(all.combiners, combiner);
    return all.ask(s, n, c, initial(all.scores[s].about), initial(all.normalizers[n].about),
                   initial(all.combiners[c].about), what);
}

/// The policy of this name and this type, with its first numbers.
template <class Policy, class Each>
Policy policy(const Each& each, const std::string& name)
{
    std::vector<Policy> found;
    each([&](const description& about, const auto& make) {
        if constexpr (std::is_same_v<Policy, std::remove_cvref_t<decltype(make(settings_of_policy{}))>>) {
            if (about.name == name) found.push_back(make(initial(about)));
        }
    });
    REQUIRE(found.size() == 1);
    return found[0];
}
constexpr auto normalizers = [](const auto& f) { each_normalizer(f); };
constexpr auto combiners = [](const auto& f) { each_combiner(f); };

/// `step` of the attention whose types are known, by kernels and by rows, against the playground's.
template <class Attention>
void compare(const Attention& attend, const answers& found)
{
    const auto asks = [](const query& both) {
        if constexpr (heed::score::over::reads_word<decltype(Attention::score)>()) {
            return both;
        } else {
            return both.state;
        }
    };
    const scene what = first_scene();
    const auto source = attend.on(annotations_of(what.words));
    auto state = attend.start(source);
    for (std::size_t s = 0; s < what.queries.size(); ++s) {
        auto [context, weights, next] = attend.step(source, asks(query_of(what.queries, s)), state);
        state = next;
        REQUIRE(weights.size() == found.weights[s].size());
        REQUIRE(context.size() == found.contexts[s].size());
        for (std::size_t i = 0; i < weights.size(); ++i)
            CHECK(found.weights[s][i] == doctest::Approx(weights.data()[i]).epsilon(1e-12));
        for (std::size_t i = 0; i < context.size(); ++i)
            CHECK(found.contexts[s][i] == doctest::Approx(context.data()[i]).epsilon(1e-12));
    }
}

}  // namespace

TEST_CASE("a product that is chosen at run time answers as the one whose types are known")
{
    using namespace heed;
    const auto additive = browser::detail::additive(2);
    const combine::weighted_sum sum;
    compare(attention{additive, normalize::softmax{}, sum}, of("additive", "softmax", "weighted_sum"));
    compare(attention{additive, normalize::temporal{}, sum}, of("additive", "temporal", "weighted_sum"));
    compare(attention{additive, normalize::local_m{1, normalize::temporal{}}, sum},
            of("additive", "local_m_temporal", "weighted_sum"));
    const auto local_p = normalize::local_p{browser::detail::rows(1, {1, 0, 0, 0}), browser::detail::row({2}), 2};
    compare(attention{additive, policy<std::remove_const_t<decltype(local_p)>>(normalizers, "local_p"), sum},
            of("additive", "local_p", "weighted_sum"));
    compare(attention{score::dot{}, normalize::sparsemax{}, sum}, of("dot", "sparsemax", "weighted_sum"));
    compare(attention{score::rotary{score::dot{}}, normalize::softmax{}, sum}, of("rotary", "softmax", "weighted_sum"));
    compare(attention{score::kernel{score::elu_plus_one{}}, normalize::ratio{1.0}, sum},
            of("kernel", "ratio", "weighted_sum"));
    using attentional = combine::attentional<heed::array<double, 2>>;
    compare(attention{score::dot{}, normalize::softmax{}, policy<attentional>(combiners, "attentional_weighted_sum")},
            of("dot", "softmax", "attentional_weighted_sum"));
    each_score([&](const description& about, const auto& make) {
        using type = std::remove_cvref_t<decltype(make(settings_of_policy{}))>;
        constexpr bool remembers = heed::remembers<type>;
        if constexpr (remembers)
            compare(attention{make(initial(about)), normalize::softmax{}, sum},
                    of(about.name, "softmax", "weighted_sum"));
        if constexpr (type::weights == weight_kind::per_dimension)
            compare(attention{make(initial(about)), normalize::temporal{}, combine::elementwise_sum{}},
                    of(about.name, "temporal", "elementwise_sum"));
        if constexpr (type::weights == weight_kind::per_group)
            compare(attention{make(initial(about)), normalize::softmax{}, combine::grouped_sum{}},
                    of(about.name, "softmax", "grouped_sum"));
    });
}

TEST_CASE("additive, softmax and weighted sum, by plain loops")
{
    const scene what = first_scene();
    const answers found = of("additive", "softmax", "weighted_sum", what);
    for (std::size_t s = 0; s < what.queries.size(); ++s) {
        std::vector<double> e;
        double sum = 0, x = 0, y = 0;
        for (const point& word : what.words) {
            const auto hill = [](double d) { return 2 * (std::tanh(1.2 * d + 1) - std::tanh(1.2 * d - 1)); };
            e.push_back(hill(what.queries[s].x - word.x) + hill(what.queries[s].y - word.y));
            sum += std::exp(e.back());
        }
        for (std::size_t t = 0; t < e.size(); ++t) {
            CHECK(found.scores[s][t] == doctest::Approx(e[t]).epsilon(1e-12));
            CHECK(found.weights[s][t] == doctest::Approx(std::exp(e[t]) / sum).epsilon(1e-12));
            x += std::exp(e[t]) / sum * what.words[t].x;
            y += std::exp(e[t]) / sum * what.words[t].y;
        }
        CHECK(found.contexts[s][0] == doctest::Approx(x).epsilon(1e-12));
        CHECK(found.contexts[s][1] == doctest::Approx(1).epsilon(1e-12));
        CHECK(found.contexts[s][2] == doctest::Approx(y).epsilon(1e-12));
    }
}

TEST_CASE("every legal product answers with finite weights and contexts, at the limits of its numbers, too")
{
    const catalogue& all = policies();
    std::size_t legal = 0;
    const auto at = [](const description& about, double knob::*which) {
        std::vector<double> numbers;
        for (const knob& each : about.knobs) numbers.push_back(each.*which);
        return numbers;
    };
    for (std::size_t s = 0; s < all.scores.size(); ++s) {
        for (std::size_t n = 0; n < all.normalizers.size(); ++n) {
            for (std::size_t c = 0; c < all.combiners.size(); ++c) {
                if (!all.fault(s, n, c).empty()) continue;
                ++legal;
                for (double knob::*which : {&knob::initial, &knob::least, &knob::most}) {
                    const answers found =
                        all.ask(s, n, c, at(all.scores[s].about, which), at(all.normalizers[n].about, which),
                                at(all.combiners[c].about, which), first_scene());
                    const auto finite = [](const std::vector<double>& list) {
                        return std::all_of(list.begin(), list.end(), [](double x) { return std::isfinite(x); });
                    };
                    INFO(all.scores[s].about.name, " ", all.normalizers[n].about.name, " ",
                         all.combiners[c].about.name);
                    CHECK(std::all_of(found.weights.begin(), found.weights.end(), finite));
                    CHECK(std::all_of(found.contexts.begin(), found.contexts.end(), finite));
                }
            }
        }
    }
    CHECK(legal > 1000);
}

TEST_CASE("what is not legal is refused in the library's words")
{
    using namespace heed;
    const catalogue& all = policies();
    std::size_t s = 0, refused = 0;
    each_score([&](const description&, const auto& make_score) {
        using score = std::remove_cvref_t<decltype(make_score(settings_of_policy{}))>;
        std::size_t n = 0, c = 0;
        const auto check = [&](composition_fault fault, std::size_t normalizer, std::size_t combiner) {
            const std::string why = all.fault(s, normalizer, combiner);
            CHECK(why.empty() == (fault == composition_fault::none));
            if (fault == composition_fault::different_weights) CHECK(why == HEED_SAYS_DIFFERENT_WEIGHTS);
            if (fault == composition_fault::negative_scores) CHECK(why == HEED_SAYS_NEGATIVE_SCORES);
            refused += why.empty() ? 0 : 1;
        };
        each_normalizer([&](const description&, const auto& make) {
            check(fault_of<score, std::remove_cvref_t<decltype(make(settings_of_policy{}))>, combine::weighted_sum>(),
                  n++, 0);
        });
        each_combiner([&](const description&, const auto& make) {
            check(fault_of<score, normalize::softmax, std::remove_cvref_t<decltype(make(settings_of_policy{}))>>(), 0,
                  c++);
        });
        ++s;
    });
    CHECK(refused > 100);
    CHECK_THROWS_AS(of("additive", "softmax", "grouped_sum"), heed::error);
    CHECK_THROWS_AS(of("additive", "ratio", "weighted_sum"), heed::error);
    CHECK_THROWS_AS(of("no such score", "softmax", "weighted_sum"), heed::error);
    CHECK_THROWS_AS(of("additive", "softmax", "weighted_sum", {{}, {{0, 0}}}), heed::error);
    CHECK_THROWS_AS(policies().ask(0, 0, 0, {}, {}, {}, first_scene()), heed::error);
}
