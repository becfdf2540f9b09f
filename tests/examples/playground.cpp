// SPDX-License-Identifier: BSD-3-Clause
//
// The playground's policies, which are chosen at run time: results equal those of the attentions with the same
// policies, all legal products compute, and illegal ones are rejected.

#include <algorithm>
#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include <doctest/doctest.h>

#include "../../examples/browser/playground.hpp"

#include <support/approx.hpp>
#include <support/exhaustive.hpp>

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
    const std::size_t s = diagonal_of(all.scores, score), n = diagonal_of(all.normalizers, normalizer),
                      c = diagonal_of(all.combiners, combiner);
    return all.ask(s, n, c, initial(all.scores[s].about), initial(all.normalizers[n].about),
                   initial(all.combiners[c].about), what);
}

/// The policy of this name and type, with its default parameters.
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

/// Compares `step` of the attention with static types, fused and composed by row, with the playground's.
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

TEST_CASE("a product chosen at run time equals the product with static types")
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
        if constexpr (type::traits.weights == weight_kind::per_dimension)
            compare(attention{make(initial(about)), normalize::temporal{}, combine::elementwise_sum{}},
                    of(about.name, "temporal", "elementwise_sum"));
        if constexpr (type::traits.weights == weight_kind::per_group)
            compare(attention{make(initial(about)), normalize::softmax{}, combine::grouped_sum{}},
                    of(about.name, "softmax", "grouped_sum"));
    });
}

TEST_CASE("additive, softmax and weighted sum equal plain loops")
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

TEST_CASE("every legal product has finite weights and contexts, even at the limits of its parameters")
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
                double knob::*const knobs[] = {&knob::initial, &knob::least, &knob::most};
                for (std::size_t i = 0; i < 3; ++i) {
                    if (!support::exhaustive() && i != legal % 3) continue;
                    double knob::*const which = knobs[i];
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

TEST_CASE("illegal products are rejected with the library's messages")
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

namespace {

using list = std::vector<double>;

/// Weights e -> exp(e − L) / Σ exp(e − L), by plain loops.
list plain_softmax(const list& e, const list& L = {})
{
    list weights;
    double sum = 0;
    for (std::size_t t = 0; t < e.size(); ++t) {
        weights.push_back(std::exp(e[t] - (L.empty() ? 0 : L[t])));
        sum += weights.back();
    }
    for (double& w : weights) w /= sum;
    return weights;
}
list plain_context(const list& weights, const scene& what)
{
    list c(4, 0.0);
    for (std::size_t t = 0; t < weights.size(); ++t) {
        c[0] += weights[t] * what.words[t].x;
        c[1] += weights[t];
        c[2] += weights[t] * what.words[t].y;
    }
    return c;
}
/// Scores of both heads, e_h = q_h · h / √4; the second head rotates the query by 90 degrees: (x, y) -> (−y, x).
std::vector<list> plain_scores(const scene& what, std::size_t s)
{
    const point q = what.queries[s];
    std::vector<list> e(2);
    for (const point& word : what.words) {
        e[0].push_back((q.x * word.x + 1 + q.y * word.y) / 2);
        e[1].push_back((-q.y * word.x + 1 + q.x * word.y) / 2);
    }
    return e;
}
void check_near(const list& is, const list& should)
{
    REQUIRE(is.size() == should.size());
    for (std::size_t i = 0; i < is.size(); ++i) CHECK(is[i] == support::approx(should[i]));
}
/// Interleaves both heads, word by word.
list beside(const list& a, const list& b)
{
    list both;
    for (std::size_t t = 0; t < a.size(); ++t) both.insert(both.end(), {a[t], b[t]});
    return both;
}

}  // namespace

TEST_CASE("two heads, joined in each way, equal plain loops")
{
    const scene what = first_scene();
    const answers alone = of("scaled_dot", "softmax", "multi_head"), gated = of("scaled_dot", "softmax", "gated_heads"),
                  pair = of("scaled_dot", "softmax", "differential"),
                  talking = of("scaled_dot", "softmax", "talking_heads"),
                  latent = of("scaled_dot", "softmax", "latent_heads");
    CHECK(alone.numbers == 2);
    CHECK(pair.numbers == 1);
    for (std::size_t s = 0; s < what.queries.size(); ++s) {
        const auto e = plain_scores(what, s);
        const list a = plain_softmax(e[0]), b = plain_softmax(e[1]);
        const list c = plain_context(a, what), d = plain_context(b, what);
        check_near(alone.scores[s], beside(e[0], e[1]));
        check_near(alone.weights[s], beside(a, b));
        const double x = what.queries[s].x, right = 1 / (1 + std::exp(-3 * x)), left = 1 / (1 + std::exp(3 * x));
        list mean, opened, difference, between;
        double squares = 0;
        for (std::size_t i = 0; i < 4; ++i) {
            mean.push_back((c[i] + d[i]) / 2);
            opened.push_back((right * c[i] + left * d[i]) / 2);
            difference.push_back(c[i] - 0.5 * d[i]);
            squares += difference[i] * difference[i];
        }
        for (double& each : difference) each *= 0.5 / std::sqrt(squares / 4 + 1e-5);
        for (std::size_t t = 0; t < a.size(); ++t) between.push_back(a[t] - 0.5 * b[t]);
        check_near(alone.contexts[s], mean);
        check_near(gated.weights[s], alone.weights[s]);
        check_near(gated.contexts[s], opened);
        check_near(pair.weights[s], between);
        check_near(pair.contexts[s], difference);
        check_near(pair.scores[s], alone.scores[s]);

        // Talking heads: half of the other head's scores are added; weights stay.
        list first, second;
        for (std::size_t t = 0; t < a.size(); ++t) {
            first.push_back(e[0][t] + 0.5 * e[1][t]);
            second.push_back(e[1][t] + 0.5 * e[0][t]);
        }
        const list talked = plain_softmax(first), answered = plain_softmax(second);
        check_near(talking.scores[s], beside(first, second));
        check_near(talking.weights[s], beside(talked, answered));
        const list m = plain_context(talked, what), n = plain_context(answered, what);
        for (std::size_t i = 0; i < 4; ++i) mean[i] = (m[i] + n[i]) / 2;
        check_near(talking.contexts[s], mean);

        // Latent heads: the first reads (x, y), the second reads the distance, one radian per position.
        list reads, stands;
        for (std::size_t t = 0; t < a.size(); ++t) {
            reads.push_back(4 * (x * what.words[t].x + what.queries[s].y * what.words[t].y) / 2);
            stands.push_back(8 * std::cos(static_cast<double>(s) - static_cast<double>(t)) / 2);
        }
        check_near(latent.scores[s], beside(reads, stands));
        const list p = plain_softmax(reads), q = plain_softmax(stands);
        check_near(latent.weights[s], beside(p, q));
        const list k = plain_context(p, what), l = plain_context(q, what);
        check_near(latent.contexts[s], {(k[0] + l[0]) / 2, 0, (k[2] + l[2]) / 2, 0});
    }
}

TEST_CASE("talking heads exchange weights")
{
    const catalogue& all = policies();
    const auto ask = [&](const list& knobs) {
        return all.ask(diagonal_of(all.scores, "scaled_dot"), 0, diagonal_of(all.combiners, "talking_heads"), {}, {},
                       knobs, first_scene());
    };
    const answers apart = ask({90, 0, 0}), together = ask({90, 0, 0.25});
    for (std::size_t s = 0; s < apart.weights.size(); ++s) {
        for (std::size_t t = 0; t < 6; ++t) {
            const double a = apart.weights[s][2 * t], b = apart.weights[s][2 * t + 1];
            CHECK(together.weights[s][2 * t] == doctest::Approx(a + b / 4).epsilon(1e-12));
            CHECK(together.weights[s][2 * t + 1] == doctest::Approx(b + a / 4).epsilon(1e-12));
        }
    }
}

TEST_CASE("each head has its own memory")
{
    const answers both = of("additive", "temporal", "multi_head"), one = of("additive", "temporal", "weighted_sum");
    for (std::size_t s = 0; s < one.weights.size(); ++s) {
        for (std::size_t t = 0; t < 6; ++t)
            CHECK(both.weights[s][2 * t] == doctest::Approx(one.weights[s][t]).epsilon(1e-12));
    }
}

TEST_CASE("document state equals plain loops when a sentence occurs twice")
{
    const answers found = of("additive", "document_temporal", "weighted_sum");
    const auto& e = of("additive", "temporal", "weighted_sum").scores;
    list history(6, 0.0);  // Σ exp(e)
    for (const list& step : e) {
        for (std::size_t t = 0; t < 6; ++t) history[t] += std::exp(step[t]);
    }
    history[0] = history[3] = (history[0] + history[3]) / 2;  // "the" occurs twice: each position gets half of the sum
    for (std::size_t s = 0; s < e.size(); ++s) {
        list L;
        for (const double sum : history) L.push_back(std::log(sum));
        check_near(found.weights[s], plain_softmax(e[s], L));
        for (std::size_t t = 0; t < 6; ++t) history[t] += std::exp(e[s][t]);
    }
}

TEST_CASE("penalties of the displayed weights equal plain loops")
{
    const answers found = of("additive", "softmax", "weighted_sum");
    double once = 0, again = 0, back = 0, guided = 0, last = 0;
    list seen(6, 0.0);
    for (std::size_t s = 0; s < 6; ++s) {
        double mean = 0;
        for (std::size_t t = 0; t < 6; ++t) {
            const double w = found.weights[s][t];
            again += std::min(w, seen[t]);
            seen[t] += w;
            mean += static_cast<double>(t) * w;
        }
        back += s > 0 ? std::max(0.0, last - mean) : 0;
        guided -= std::log(found.weights[s][s]);
        last = mean;
    }
    for (const double sum : seen) once += (1 - sum) * (1 - sum);
    list values;
    for (const auto& each : penalties_of(found)) values.push_back(each.value);
    check_near(values, {once, again, back, guided});
    CHECK(penalties_of(of("scaled_dot", "softmax", "multi_head")).empty());
}

TEST_CASE("every mechanism page has a legal product, and unsupported heads are rejected")
{
    const catalogue& all = policies();
    const auto pages = all.pages();
    CHECK(pages.size() > 40);
    for (const page_entry& each : pages) {
        INFO(each.page);
        CHECK(all.fault(each.score, each.normalizer, each.combiner).empty());
    }
    CHECK_THROWS_AS(of("additive_grouped", "softmax", "multi_head"), heed::error);
    CHECK_THROWS_AS(of("additive", "softmax", "talking_heads"), heed::error);
    CHECK_THROWS_AS(of("scaled_dot", "temporal", "latent_heads"), heed::error);
    CHECK_THROWS_AS(of("additive", "document_temporal", "multi_head"), heed::error);
    CHECK_THROWS_AS(of("additive_per_dimension", "document_temporal", "elementwise_sum"), heed::error);
}
