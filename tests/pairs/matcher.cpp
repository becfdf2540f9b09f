// SPDX-License-Identifier: BSD-3-Clause
#include <support/gradients.hpp>
#include <support/sentences.hpp>

#include <heed/ad/ad.hpp>
#include <heed/papers/sentence_pairs.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

// The model of sentence pairs: its output layer against loops (its blocks have separate tests), its gradient by
// differences, and that a pair's result does not depend on its batch.

using namespace heed;
namespace yin = heed::papers::yin2016;

namespace {

using numbers = std::vector<double>;

const std::vector<pairs::id_sentence> first{{4, 5, 6}, {7}, {4, 4}, {}}, second{{5, 4}, {6, 4, 7, 5}, {6}, {4, 5}};
const yin::sizes small{8, 9, 3, 4, 2, 2, 5};

auto some_pairs()
{
    return pairs::make_batch<double>(support::pointers(first), support::pointers(second), {1, 0, 0, 1});
}

/// f(model) for BCNN and the three forms of ABCNN.
template <class F>
void each_form(F&& f)
{
    f(yin::matcher<double>(3, small, yin::bcnn_factory{}));
    f(yin::matcher<double>(3, small, yin::abcnn1_factory{}));
    f(yin::matcher<double>(3, small, yin::abcnn2_factory{}));
    f(yin::matcher<double>(3, small, yin::abcnn3_factory{}));
}

/// The mean of the first `n` rows of sentence b.
numbers mean_of_words(const array<double, 3>& x, std::size_t b, std::size_t n)
{
    numbers sum(x.shape()[2], 0.0);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += x(b, i, d) / static_cast<double>(n);
    }
    return sum;
}

double cosine_of(const numbers& f, const numbers& g)
{
    double both = 0, one = 0, other = 0;
    for (std::size_t d = 0; d < f.size(); ++d) both += f[d] * g[d], one += f[d] * f[d], other += g[d] * g[d];
    return both == 0 ? 0 : both / std::sqrt(one * other);
}

double nearness(const numbers& f, const numbers& g)
{
    double squares = 0;
    for (std::size_t d = 0; d < f.size(); ++d) squares += (f[d] - g[d]) * (f[d] - g[d]);
    return 1 / (1 + std::sqrt(squares));
}

array<double, 3> words_of(const array<double, 2>& table, const std::vector<pairs::id_sentence>& sentences)
{
    auto x = filled<double, 3>({sentences.size(), 4, small.embedding}, 0.0);
    for (std::size_t b = 0; b < sentences.size(); ++b) {
        for (std::size_t i = 0; i < sentences[b].size(); ++i) {
            for (std::size_t d = 0; d < small.embedding; ++d) x(b, i, d) = table(sentences[b][i], d);
        }
    }
    return x;
}

}  // namespace

TEST_CASE("class scores are a linear function of both similarities at every level")
{
    each_form([](const auto& model) {
        const lengths first_real{3, 1, 2, 0}, second_real{2, 4, 1, 2};
        abcnn::sentences level{words_of(model.first_words, first), first_real, words_of(model.second_words, second),
                               second_real};
        std::vector<numbers> features(4);
        for (std::size_t k = 0; k <= small.blocks; ++k) {
            if (k > 0) level = model.blocks[k - 1](level);
            for (std::size_t b = 0; b < 4; ++b) {
                const numbers f = mean_of_words(level.first, b, first_real[b]),
                              g = mean_of_words(level.second, b, second_real[b]);
                features[b].push_back(cosine_of(f, g));
                features[b].push_back(nearness(f, g));
            }
        }
        auto with_bias = model;
        with_bias.b(0) = 0.25;
        with_bias.b(1) = -0.5;
        const auto is = with_bias.logits(some_pairs());
        const auto p = with_bias.probabilities(some_pairs());
        double loss = 0;
        for (std::size_t b = 0; b < 4; ++b) {
            numbers z{0.25, -0.5};
            for (std::size_t c = 0; c < 2; ++c) {
                for (std::size_t i = 0; i < features[b].size(); ++i) z[c] += features[b][i] * model.W(i, c);
                CHECK(is(b, c) == doctest::Approx(z[c]).epsilon(1e-12));
            }
            const double yes = std::exp(z[1]) / (std::exp(z[0]) + std::exp(z[1]));
            CHECK(p[b] == doctest::Approx(yes).epsilon(1e-12));
            loss -= std::log(b == 0 || b == 3 ? yes : 1 - yes);
        }
        const auto found = with_bias.loss(some_pairs());
        CHECK(view_of(found).data[0] == doctest::Approx(loss).epsilon(1e-12));
    });
}

TEST_CASE("gradients of every parameter are correct, with dropout")
{
    each_form([](auto model) {
        const auto found = ad::grad_check(model, [](auto&, const auto& lifted) {
            random_source random{5, 0};
            return lifted.loss(some_pairs(), nn::dropout{0.2, &random});
        });
        CHECK_MESSAGE(bool(found), found.text());
        CHECK(found.entries == parameter_count(model));
    });
}

TEST_CASE("a pair has the same result alone and in a batch")
{
    each_form([](const auto& model) {
        const auto together = model.probabilities(some_pairs());
        for (std::size_t b = 0; b < 4; ++b) {
            const std::vector<pairs::id_sentence> one{first[b]}, other{second[b]};
            const auto alone = model.probabilities(
                pairs::make_batch<double>(support::pointers(one), support::pointers(other), {pairs::no}));
            CHECK(alone[0] == doctest::Approx(together[b]).epsilon(1e-13));
        }
    });
}

TEST_CASE("one model may have blocks of different kinds")
{
    random_source random{1, 0};
    const nn::initializers<double> init{random};
    auto narrow = yin::bcnn_factory{}(init, {3, small.maps, small.width, small.longest});
    auto wide = yin::abcnn3_factory{}(init, {4, small.maps, small.width, small.longest});
    pairs::matcher mixed{nn::gaussian<double>(random, 8, 3, 0.1), nn::gaussian<double>(random, 9, 3, 0.1),
                         std::tuple{narrow, wide}, nn::glorot<double>(random, 6, 2), nn::zeros<double>(2)};
    const auto found = ad::grad_check(mixed, [](auto&, const auto& lifted) { return lifted.loss(some_pairs()); });
    CHECK_MESSAGE(bool(found), found.text());
}

TEST_CASE("inconsistent parts are rejected by name")
{
    CHECK(support::message_of<error>([] {
              (void)pairs::make_batch<double>(support::pointers(first), support::pointers(second), {1, 0});
          }) == "pairs::make_batch: 4 first sentences, 4 second sentences and 2 classes; their numbers must be equal");
    const auto model = yin::matcher<double>(3, small, yin::abcnn1_factory{});
    const std::vector<pairs::id_sentence> long_one{{4, 4, 4, 4, 4, 4}}, other{{4}};
    CHECK(support::contains(support::message_of<shape_error>([&] {
                                (void)model.logits(pairs::make_batch<double>(support::pointers(long_one),
                                                                             support::pointers(other), {1}));
                            }),
                            "allows 5 words, but the other sentences have up to 6"));
}
