// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/core/random.hpp>
#include <heed/seq2seq/systems/vaswani2017.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/averaging.hpp>
#include <heed/train/checkpoint.hpp>
#include <heed_mpi/optimizer.hpp>
#include <support/sentences.hpp>
#include <support/temporary_directory.hpp>

#include "engines.hpp"

// Complete translators, trained by several ranks and by one.

using namespace heed;
using distributed::any_ranks;
using seq2seq::id_sentence;

namespace {

constexpr std::size_t words = 40, updates = 4;

/// A rank's sentences of an update's batch: of 7, or of one, so that other ranks have none. Each word's weight is 1 /
/// (the words of the whole batch).
template <class T>
seq2seq::training_batch<T> share_of_batch(std::size_t update, std::size_t sentences, const distributed::share& mine)
{
    std::vector<id_sentence> source, target;
    std::size_t count = 0;
    for (std::size_t b = 0; b < sentences; ++b) {
        const std::uint64_t stream = mix(100 * update + b);
        id_sentence from(1 + static_cast<std::size_t>(6 * uniform(stream, 0)));
        id_sentence to(1 + static_cast<std::size_t>(6 * uniform(stream, 1)));
        for (std::size_t j = 0; j < from.size(); ++j)
            from[j] = static_cast<std::uint32_t>(4 + (words - 4) * uniform(stream, 10 + j));
        for (std::size_t j = 0; j < to.size(); ++j)
            to[j] = static_cast<std::uint32_t>(4 + (words - 4) * uniform(stream, 20 + j));
        count += to.size() + 1;
        if (b < mine.first || b >= mine.last) continue;
        source.push_back(from);
        target.push_back(to);
    }
    auto batch = seq2seq::make_training_batch<T>(support::pointers(source), support::pointers(target));
    for (T& each : batch.targets.weights) each /= static_cast<T>(count);
    return batch;
}

/// Runs some updates; appends the gradient of each to `seen`.
template <class T, class M, class Together>
void train_more(any_ranks over, M& model, Together& together, bool meanwhile, std::vector<T>* seen = nullptr)
{
    ad::tape<T> on;
    const std::size_t end = together.steps() + updates;
    for (std::size_t update = together.steps(); update < end; ++update) {
        const std::size_t sentences = update % 3 == 2 ? 1 : 7;
        const distributed::share mine = distributed::share_of(over, sentences);
        on.clear();
        const auto lifted = ad::lift(on, model);
        if (mine.size() > 0) {
            const auto loss = lifted.loss(share_of_batch<T>(update, sentences, mine));
            if (meanwhile) {
                together.backward(lifted, loss);
            } else {
                on.backward(loss);
            }
        }
        together.step(model, lifted, on, 1.0);
        if (seen == nullptr) continue;
        for_each_parameter(lifted, [&](const std::string&, const auto& x) {
            const auto g = on.gradient(x);
            seen->insert(seen->end(), g.data, g.data + g.size());
        });
    }
}

template <class T>
struct trained {
    std::vector<T> gradients, parameters;
};

template <class T, class Make>
trained<T> train_new(any_ranks over, Make make, bool meanwhile)
{
    auto model = make(over.rank() + 1);  // only the model of rank 0 counts
    distributed::optimizer together{over, train::adam<T>({.rate = 1e-3}), model};
    trained<T> result;
    train_more<T>(over, model, together, meanwhile, &result.gradients);
    result.parameters = train::copy_parameters<T>(model);
    return result;
}

template <class T>
double difference(const std::vector<T>& a, const std::vector<T>& b)
{
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
    return most;
}

/// `make`(seed) makes the model.
template <class T, class Make>
void check(Make make)
{
    distributed::alone one;
    const trained<T> whole = train_new<T>(one, make, false);
    const std::size_t count = whole.parameters.size();
    const auto first_step = [count](const trained<T>& t) {
        return std::vector<T>(t.gradients.begin(), t.gradients.begin() + static_cast<std::ptrdiff_t>(count));
    };
    support::on_ranks([&](any_ranks& over) {
        const trained<T> got = train_new<T>(over, make, false);
        CHECK(difference(first_step(got), first_step(whole)) < (std::is_same_v<T, double> ? 1e-12 : 1e-6));
        // Adam divides by the magnitude of the gradient: near 0, rounding errors become visible.
        if (std::is_same_v<T, double>) CHECK(difference(got.gradients, whole.gradients) < 1e-10);
        const trained<T> again = train_new<T>(over, make, true);
        CHECK(again.gradients == got.gradients);  // bit for bit, also with sums that start early
        CHECK(again.parameters == got.parameters);
        const auto all = over.gather(std::as_bytes(std::span<const T>(got.parameters)));
        for (const auto& each : all) CHECK(each == all[0]);
    });
}

template <class T>
auto make_recurrent(std::size_t seed)
{
    return seq2seq::make_translator<T>(seed, seq2seq::sizes{words, words, 4, 3, 5},
                                       seq2seq::attentions::additive_factory{});
}

}  // namespace

TEST_CASE_TEMPLATE("RNNsearch: the ranks together equal one process with the whole batch", T, float, double)
{
    check<T>(make_recurrent<T>);
}

TEST_CASE("Transformer: the ranks together equal one process with the whole batch")
{
    check<double>([](std::size_t seed) {
        return papers::vaswani2017::translator<double>(
            seed, papers::vaswani2017::translator_sizes{words, words, 4, 5, 2, 2, 2, 30});
    });
}

TEST_CASE("a checkpoint does not depend on the ranks: other ranks, or one process, can resume")
{
    support::on_ranks([](any_ranks& over) {
        const temporary_directory folder;
        const auto path = folder.path() / "of_all.safetensors";
        auto model = make_recurrent<double>(1);
        distributed::optimizer together{over, train::adam<double>({.rate = 1e-3})};
        together.begin(model);
        train_more<double>(over, model, together, false);
        train::save_checkpoint(path, model, together);

        // A process without ranks.
        auto alone_model = make_recurrent<double>(5);
        train::adam<double> plain;
        train::load_checkpoint(path, alone_model, plain);
        CHECK(plain.steps() == updates);
        CHECK(plain.settings.rate == 1e-3);
        distributed::alone nobody;
        any_ranks one(nobody);
        distributed::optimizer alone_optimizer{one, plain};
        train_more<double>(one, alone_model, alone_optimizer, false);

        // The same ranks: rank 0 loads, and begin() broadcasts.
        auto resumed = make_recurrent<double>(7 + over.rank());
        distributed::optimizer other{over, train::adam<double>{}};
        if (over.rank() == 0) train::load_checkpoint(path, resumed, other);
        other.begin(resumed);
        train_more<double>(over, resumed, other, false);

        train_more<double>(over, model, together, false);  // without interruption
        const auto expected = train::copy_parameters<double>(model);
        CHECK(train::copy_parameters<double>(resumed) == expected);
        CHECK(difference(train::copy_parameters<double>(alone_model), expected) < 1e-10);
    });
}
