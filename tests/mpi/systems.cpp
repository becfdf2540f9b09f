// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/seq2seq/translator.hpp>
#include <heed_translator/systems.hpp>
#include <support/sentences.hpp>

#include "../../tools/translate/sums_over.hpp"
#include "engines.hpp"

// The systems of `translate train`, whose gradients are summed in the same way.

using namespace heed;
using distributed::any_ranks;
using translator::training_step_input;

namespace {

/// Enough words that the output layer has a separate sum.
constexpr std::size_t words = 2100, updates = 3;

training_step_input some_lesson(std::uint64_t stream)
{
    constexpr std::size_t sentences = 5;
    std::vector<seq2seq::id_sentence> source(sentences), target(sentences);
    const auto fill = [&](seq2seq::id_sentence& to, std::uint64_t draws) {
        to.resize(1 + below(5, draws, 0));
        for (std::size_t j = 0; j < to.size(); ++j)
            to[j] = static_cast<std::uint32_t>(4 + below(words - 4, draws, 1 + j));
    };
    for (std::size_t b = 0; b < sentences; ++b) {
        fill(source[b], mix(100 * stream + 2 * b));
        fill(target[b], mix(100 * stream + 2 * b + 1));
    }
    return {seq2seq::make_training_batch<float>(support::pointers(source), support::pointers(target)), {}, {}};
}

/// Sums gradients, and records how many sums had started.
class watched final : public translator::system::gradient_exchange {
public:
    /// `meanwhile`: before_backward() is forwarded, so that sums start in the backward pass.
    watched(support::noting& engine, bool meanwhile) : engine_(engine), sums_(any_ranks(engine)), meanwhile_(meanwhile)
    {}

    bool told = false;                   // before_backward() was called
    std::size_t before = 0, on_way = 0;  // sums that started before the backward pass, and during it
    std::size_t others = 0;              // parameters that were final after the first of these

    void before_backward(ad::tape<float>& on, const translator::system::variables& lifted) override
    {
        told = true;
        if (meanwhile_) sums_.before_backward(on, lifted);
        before = engine_.begun;
    }
    double sum(ad::tape<float>& on, const translator::system::variables& lifted, double loss) override
    {
        on_way = engine_.begun - before;
        others = engine_.moved_on;
        return sums_.sum(on, lifted, loss);
    }

private:
    support::noting& engine_;
    translation::sums_over sums_;
    bool meanwhile_;
};

/// Trains with `batches` batches per update; calls seen(update, exchange) after each update.
template <class Seen>
std::vector<float> trained(const std::string& name, any_ranks engine, bool meanwhile, std::size_t batches, Seen seen)
{
    translator::options how;
    how.system = name;
    for (const translator::option_support& each : translator::kind_of(name).option_support_list)
        if (!each.preset.empty()) how.set(each.option, each.preset);
    how.embedding = how.hidden = how.alignment = 16;
    how.share_embeddings = "none";  // a shared table is final last
    how.optimizer = "sgd";
    const auto system = translator::make_system(how, words, words);
    support::noting over(engine);
    watched sums(over, meanwhile);
    random_source random{1};
    for (std::size_t update = 0; update < updates; ++update) {
        std::vector<training_step_input> together;
        for (std::size_t k = 0; k < batches; ++k) {
            const training_step_input whole = some_lesson(10 * update + k);
            together.push_back(over.size() == 1 ? whole : translator::part_of(whole, over.rank(), over.size()));
        }
        over.begun = over.moved_on = 0;
        sums.told = false;
        system->train(together, how, random, 0.1, over.size() == 1 ? nullptr : &sums);
        seen(update, sums);
    }
    return system->copy();
}

double difference(const std::vector<float>& a, const std::vector<float>& b)
{
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, static_cast<double>(std::abs(a[i] - b[i])));
    return most;
}

constexpr auto nothing = [](auto&&...) {};

}  // namespace

TEST_CASE("gradients are summed during the backward pass, and each system's model is the same, bit for bit")
{
    for (const translator::system_kind& kind : translator::systems()) {
        CAPTURE(kind.name);
        distributed::alone one;
        const auto whole = trained(kind.name, any_ranks(one), true, 1, nothing);
        support::on_ranks([&](any_ranks& over) {
            if (over.size() == 1) return;
            const auto early = trained(kind.name, over, true, 1, [](std::size_t update, const watched& sums) {
                CHECK(sums.told);
                CHECK(sums.before == 0);
                if (update == 0) return;  // the first step determines the order of the gradients
                CHECK(sums.on_way > 0);
                CHECK(sums.others > 1);  // more than the parameter whose sum had started
            });
            CHECK(difference(early, whole) < 1e-6);
            const auto late =
                trained(kind.name, over, false, 1, [](std::size_t, const watched& sums) { CHECK(sums.on_way == 0); });
            CHECK(early == late);
        });
    }
}

TEST_CASE("with several batches per update, gradients are summed after the last")
{
    distributed::alone one;
    const auto whole = trained("rnnsearch", any_ranks(one), true, 2, nothing);
    support::on_ranks([&](any_ranks& over) {
        if (over.size() == 1) return;
        const auto got = trained("rnnsearch", over, true, 2, [](std::size_t, const watched& sums) {
            CHECK_FALSE(sums.told);
            CHECK(sums.on_way == 0);
        });
        CHECK(difference(got, whole) < 1e-6);
    });
}
