// SPDX-License-Identifier: BSD-3-Clause

// A batch in parts: the updates of several processes with their parts equal that of one process with the whole batch.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <heed_translator/systems.hpp>

namespace {

using namespace heed;
using translator::training_step_input;

constexpr std::size_t words_known = 13;  // on both sides: some systems share their embeddings

training_step_input some_batch(std::size_t sentences)
{
    std::vector<seq2seq::id_sentence> sources(sentences), targets(sentences);
    for (std::size_t b = 0; b < sentences; ++b) {
        for (std::size_t i = 0; i < 2 + below(5, 1, b); ++i)
            sources[b].push_back(static_cast<std::uint32_t>(4 + below(words_known - 4, 2, 10 * b + i)));
        for (std::size_t i = 0; i < 1 + b / 2; ++i)  // sorted, as batches are
            targets[b].push_back(static_cast<std::uint32_t>(4 + below(words_known - 4, 3, 10 * b + i)));
    }
    std::vector<const seq2seq::id_sentence*> from, to;
    for (std::size_t b = 0; b < sentences; ++b) {
        from.push_back(&sources[b]);
        to.push_back(&targets[b]);
    }
    return {seq2seq::make_training_batch<float>(from, to), {}, {}};
}

/// The same batch with a link for each target word.
training_step_input with_links(training_step_input one)
{
    const auto target = one.examples.target_lengths();
    for (std::size_t b = 0; b < one.examples.source.words.batch; ++b) {
        translator::token_links& links = one.links.emplace_back();
        for (std::size_t j = 0; j + 1 < target[b]; ++j)
            links.emplace_back(static_cast<int>(below(one.examples.source.real[b], 4, 10 * b + j)),
                               static_cast<int>(j));
    }
    return one;
}

/// The gradients that a process passes to the others.
struct given final : translator::system::gradient_exchange {
    double loss = 0;
    std::vector<double> gradient;
    std::map<std::string, std::vector<std::uint32_t>> rows;  // of tables that were only looked up

    double sum(ad::tape<float>& on, const translator::system::variables& lifted, double own_loss) override
    {
        loss += own_loss;
        std::size_t at = 0;
        for (const auto& [name, x] : lifted) {
            const auto looked_up = ad::gradient_rows(x);
            for (const std::uint32_t id : looked_up.ids) rows[name].push_back(id);
            const auto g = on.gradient(x);
            gradient.resize(std::max(gradient.size(), at + x.size()));
            for (std::size_t i = 0; i < x.size(); ++i) gradient[at++] += static_cast<double>(g.data[i]);
        }
        return own_loss;
    }
};

/// A step by each of these processes, from the same model; returns how many random streams the first has drawn.
std::size_t learn(const translator::options& how, const std::vector<std::vector<training_step_input>>& processes,
                  given& to)
{
    std::size_t streams = 0;
    for (std::vector<training_step_input> own : processes) {
        const auto system = translator::make_system(how, words_known, words_known);
        random_source random{5};
        system->train(own, how, random, 1e-3, &to);
        if (streams == 0) streams = random.streams;
        CHECK(random.streams == streams);  // every process continues with the same random numbers
    }
    for (auto& [name, ids] : to.rows) {
        std::sort(ids.begin(), ids.end());
        ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    }
    return streams;
}

void require_the_same(const translator::options& how, const std::vector<training_step_input>& batches)
{
    given whole;
    const std::size_t streams = learn(how, {batches}, whole);
    double norm = 0;
    for (const double g : whole.gradient) norm += g * g;
    REQUIRE(norm > 0);
    for (const std::size_t n : {1u, 2u, 3u, 7u}) {
        CAPTURE(how.system);
        CAPTURE(how.attention);
        CAPTURE(n);
        std::vector<std::vector<training_step_input>> processes(n);
        for (std::size_t r = 0; r < n; ++r)
            for (const training_step_input& each : batches) processes[r].push_back(translator::part_of(each, r, n));
        given parts;
        CHECK(learn(how, processes, parts) == streams);
        CHECK(parts.loss == doctest::Approx(whole.loss).epsilon(1e-6));
        CHECK(parts.rows == whole.rows);
        REQUIRE(parts.gradient.size() == whole.gradient.size());
        double far = 0;
        for (std::size_t i = 0; i < whole.gradient.size(); ++i)
            far += (parts.gradient[i] - whole.gradient[i]) * (parts.gradient[i] - whole.gradient[i]);
        CHECK(std::sqrt(far / norm) < 1e-6);
    }
}

translator::options small(const std::string& name)
{
    translator::options how;
    how.system = name;
    for (const translator::option_support& each : translator::kind_of(name).option_support_list)
        if (!each.preset.empty()) how.set(each.option, each.preset);
    how.embedding = how.hidden = how.alignment = 8;
    how.dropout = 0.3;
    how.layers = translator::support_of("layers", translator::kind_of(name)) != nullptr ? 2 : 1;
    return how;
}

}  // namespace

TEST_CASE("the parts of a batch have each sentence once and a balanced cost")
{
    const training_step_input whole = some_batch(11);
    for (const std::size_t n : {1u, 2u, 3u, 4u, 11u, 13u}) {
        std::vector<std::size_t> found(11);
        std::size_t words = 0, most = 0;
        for (std::size_t r = 0; r < n; ++r) {
            const training_step_input part = translator::part_of(whole, r, n);
            REQUIRE(part.part.has_value());
            CHECK(part.part->sentences.of == 11);
            CHECK(part.part->target_words == whole.examples.target_words);
            CHECK(part.part->learns == (r < 11 || n <= 11));
            CHECK(part.examples.source.words.steps == whole.examples.source.words.steps);
            CHECK(part.examples.previous.steps == whole.examples.previous.steps);
            most = std::max(most, part.part->sentences.sentences.size());
            if (!part.part->learns) continue;
            words += part.examples.target_words;
            for (std::size_t k = 0; k < part.part->sentences.sentences.size(); ++k) {
                const std::size_t b = part.part->sentences.sentences[k];
                ++found.at(b);
                CHECK(part.examples.source.real[k] == whole.examples.source.real[b]);
                for (std::size_t s = 0; s < whole.examples.previous.steps; ++s) {
                    CHECK(part.examples.previous(s, k) == whole.examples.previous(s, b));
                    CHECK(part.examples.targets.words(s, k) == whole.examples.targets.words(s, b));
                }
                for (std::size_t t = 0; t < whole.examples.source.words.steps; ++t)
                    CHECK(part.examples.source.words(t, k) == whole.examples.source.words(t, b));
            }
        }
        CHECK(found == std::vector<std::size_t>(11, 1));
        CHECK(words == whole.examples.target_words);
        CHECK(most == (11 + n - 1) / n);
    }
}

TEST_CASE("the gradients of the parts add up to that of the whole batch, including dropout")
{
    for (const translator::system_kind& each : translator::systems())
        require_the_same(small(each.name), {some_batch(7)});
    translator::options two = small("rnnsearch");
    two.cell = "lstm";
    require_the_same(two, {some_batch(7)});
    two = small("luong");
    two.input_feeding = true;
    require_the_same(two, {some_batch(5)});
}

TEST_CASE("R-Drop in parts: the same dropout in both passes as for the whole batch")
{
    for (const std::string name : {"rnnsearch", "convs2s", "transformer"}) {
        translator::options how = small(name);
        how.r_drop = 5;
        require_the_same(how, {some_batch(7)});
    }
}

TEST_CASE("penalties and links in parts")
{
    for (const std::string name : {"rnnsearch", "luong", "transformer"}) {
        translator::options how = small(name);
        how.input_feeding = name == "luong";
        how.penalty = "coverage:0.5,monotone:0.25,doubly-stochastic:0.5";
        how.guided_shift = 1;
        require_the_same(how, {with_links(some_batch(7)), with_links(some_batch(2))});
    }
}

TEST_CASE("several batches for one update, in parts, some without a sentence")
{
    require_the_same(small("rnnsearch"), {some_batch(2), some_batch(7), some_batch(1)});
}
