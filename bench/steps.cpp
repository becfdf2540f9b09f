// SPDX-License-Identifier: BSD-3-Clause

// Training of attention alone: eight decoder steps on a tape, forward and backward, for mechanisms with a kernel, for
// scores that wrap such a mechanism, and for a custom score. Time and bytes are of one step.

#include <memory>
#include <string>
#include <utility>

#include <heed/heed.hpp>

#include "decoder_steps.hpp"
#include "harness.hpp"
#include "sizes.hpp"

namespace {

using namespace heed;
using bench::asks;
using bench::attention_size;

template <asks with, class Attend>
bench::work work_of(const attention_size& z, const Attend& attend, const lengths& real, float scale)
{
    const auto s = std::make_shared<bench::decoder_steps<with, Attend>>(z, attend, real, scale);
    return {[s] { s->forward_backward(); }, [s] { return s->digest(); },
            [s]() -> bench::counters {
                const auto [recorded, with_gradients] = s->per_step();
                return {{"bytes_recorded", recorded}, {"bytes_with_gradients", with_gradients}};
            }};
}

/// Registers `steps/<group>/<mechanism>/<size>` with sentences of one length, and `…/ragged` with different lengths.
/// `scale` is that of keys and queries.
template <asks with = asks::state, class Make>
void add(const std::string& group, const char* mechanism, const attention_size& z, Make make, float scale = 1)
{
    const std::string name = bench::name_of("steps/" + group, mechanism, z);
    const int steps = bench::decoder_steps<with, decltype(make(z))>::steps;
    bench::add(
        name,
        [=] {
            return work_of<with>(z, make(z), lengths::full(bench::size_of(z.batch), bench::size_of(z.positions)),
                                 scale);
        },
        steps);
    bench::add(
        name + "/ragged", [=] { return work_of<with>(z, make(z), bench::ragged(z.batch, z.positions), scale); }, steps);
}

template <class Score, class Normalize = normalize::softmax>
auto summed(Score score, Normalize normalize = {})
{
    return attention{std::move(score), std::move(normalize), combine::weighted_sum{}};
}

void add_fused(const attention_size& z)
{
    add("fused", "additive", z, [](const auto& size) { return summed(bench::additive_of(size)); });
    add("fused", "additive-temporal", z,
        [](const auto& size) { return summed(bench::additive_of(size), normalize::temporal{}); });
    add("fused", "per_dimension", z, [](const auto& size) {
        return attention{bench::per_dimension_of(size), normalize::softmax{}, combine::elementwise_sum{}};
    });
    // Inner products need keys of the query's size.
    add(
        "fused", "dot", {z.alignment, z.value, z.alignment, z.batch, z.positions},
        [](const auto&) { return summed(score::dot{}); }, 0.3F);
}

void add_wrapped(const attention_size& z)
{
    add<asks::state_and_word>("wrapped", "with_coverage", z,
                              [](const auto& size) { return summed(bench::with_coverage_of(size, 10)); });
    add("wrapped", "with_fertility", z, [](const auto& size) { return summed(bench::with_fertility_of(size)); });
    add("wrapped", "with_location", z, [](const auto& size) { return summed(bench::with_location_of(size)); });
    // The width of Mi et al. 2016, where the coverage itself dominates time and memory of a step.
    add<asks::state_and_word>("wide_coverage", "with_coverage", z,
                              [](const auto& size) { return summed(bench::with_coverage_of(size, 100)); });
}

void add_own(const attention_size& z)
{
    // Small numbers, so that the distances do not put all weight on one position.
    add(
        "own", "nearness", z,
        [](const auto& size) {
            return summed(
                bench::nearness{bench::random_weight(size.query, size.alignment, 4), bench::no_keys_weight()});
        },
        0.1F);
}

}  // namespace

int main(int argc, char** argv)
{
    const auto chosen = bench::take_options(argc, argv);
    set_threads(static_cast<std::size_t>(chosen.threads));
    for (const long batch : {12L, 80L}) {
        add_wrapped({256, 512, 256, batch, 50});
        for (const long positions : {20L, 50L, 200L}) add_own({512, 512, 512, batch, positions});
        add_fused({256, 512, 256, batch, 50});
    }
    return bench::run(argc, argv, chosen);
}
