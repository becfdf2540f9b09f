// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <heed/verify/contracts.hpp>

/// Does your mechanism keep heed's contracts?
///
///     attention attend{mine::distance{W}, normalize::temporal{}, combine::weighted_sum{}};   // of double
///     const verification report = heed::verify(attend, {.query = 3, .width = 5});
///     if (!report) std::puts(report.text().c_str());
///
/// A multi_head or multi_hop is verified in the same way.
///
/// The mechanism runs on generated sentences of several lengths, including 0 and 1, alone and in batches, in every
/// form, with and without masks, on and off a tape, in double and in float. `contract::name` names each contract.
namespace heed::inline HEED_TARGET {

/// One contract, and whether it passed.
struct contract {
    std::string name;
    bool passed = false;
    std::string detail;  // the first failure, or the comparison made
};

/// The results of heed::verify; converts to true if every contract passed.
struct verification {
    std::vector<contract> contracts;

    explicit operator bool() const
    {
        for (const contract& c : contracts) {
            if (!c.passed) return false;
        }
        return !contracts.empty();
    }

    /// One line per contract.
    std::string text() const
    {
        std::string lines;
        for (const contract& c : contracts) {
            lines += (c.passed ? "passed  " : "FAILED  ") + c.name + " (" + c.detail + ")\n";
        }
        return lines;
    }
};

/// The sizes to verify with; the mechanism's parameters must fit them.
struct verification_sizes {
    std::size_t query = 4;      // Q
    std::size_t width = 4;      // D
    std::size_t batch = 4;      // B: the lengths are T, 0, 1, about T/2, and so on
    std::size_t positions = 6;  // T
    std::size_t steps = 3;      // S
    std::uint64_t seed = 1;     // of annotations and queries
};

/// Verifies a mechanism of double arrays with a query of several parts. `describe` builds a query from parts that it
/// requests by name and size:
///
///     heed::verify(attend, sizes, [](auto part) { return state_and_word{part("state", 3), part("word", 2)}; });
template <class Mechanism, class Describe>
verification verify(const Mechanism& attend, const verification_sizes& sizes, const Describe& describe)
{
    using namespace detail::verifying;
    static_assert(
        requires { attend.on(array<double, 3>(), lengths()); },
        "heed: verify takes a mechanism: an attention{score, normalize, combine}, a multi_head or multi_hop of "
        "attentions, or a type with the same member functions");
    using numbers_are_double [[maybe_unused]] =
        decltype(transform_parameters(attend, requires_double{}));  // runs nothing

    using tried = problem<Mechanism, array<double, 3>>;
    using circumstances = setting<Describe>;
    const std::vector<part_layout> layout = layout_of(describe);
    const auto made_up = [&](std::size_t B, std::size_t T, std::size_t S) {
        made_up_sentences of = sentences(layout, sizes.seed, B, T, S, sizes.width);
        return std::pair{tried{attend, std::move(of.annotations), std::move(of.parts)},
                         circumstances{describe, layout, std::move(of.real), S}};
    };
    const auto some = made_up(sizes.batch, sizes.positions, sizes.steps), single = made_up(1, 1, 1);

    struct check {
        const char* name;
        std::string (*check)(const tried&, const circumstances&);
        bool of_a_single_position = false;
    };
    static constexpr check checks[] = {
        {"the mechanism runs with these sizes", check_first_run},
        {"two runs agree", check_repeatable},
        {"every parameter has a distinct name", check_names},
        {"gradients agree with finite differences", check_gradient},
        {"gradients with one sentence, one position, one step", check_gradient, true},
        {"training and inference give the same results", check_families},
        {"a row without positions gets weights 0, context 0, gradient 0", check_empty_rows},
        {"the contents of the padding change nothing", check_padding},
        {"a sentence has the same results alone and in a batch", check_alone},
        {"scores of +-1e4 are handled in float", check_large_scores},
        {"float agrees with double", check_float},
        {"returning the weights changes nothing", check_weights_do_not_matter},
        {"nothing is remembered outside the state", check_nothing_hidden},
        {"selecting rows before a step equals selecting them after it", check_rows},
        {"hidden positions get weight 0, and hiding the last ones equals shorter lengths", check_masks},
        {"all queries at once equal one by one", check_at_once},
        {"step, fused or not, agrees with compose", check_composed},
        {"step_into agrees with step", check_step_into},
        {"shapes that do not fit are refused before anything is written", check_shapes},
    };

    verification report;
    for (const check& made : checks) {
        const auto& [p, at] = made.of_a_single_position ? single : some;
        contract c{made.name, false, ""};
        try {
            c.detail = made.check(p, at);
            c.passed = true;
        } catch (const std::exception& e) {
            c.detail = e.what();
        }
        report.contracts.push_back(std::move(c));
        if (report.contracts.size() == 1 && !report)
            break;  // if the mechanism does not run, other checks are meaningless
    }
    return report;
}

/// Verifies a mechanism of double arrays with a query that is one tensor [B,Q].
template <class Mechanism>
verification verify(const Mechanism& attend, const verification_sizes& sizes = {})
{
    return verify(attend, sizes, detail::verifying::plain_query{sizes.query});
}

/// Verifies a mechanism without parameters: `heed::verify<attention<score::dot, mine, combine::weighted_sum>>()`.
template <class Attention>
verification verify(const verification_sizes& sizes = {})
{
    static_assert(
        std::is_default_constructible_v<Attention>,
        "heed: verify<Attention>() default-constructs the mechanism; if it has parameters, call verify(attend, sizes)");
    return verify(Attention{}, sizes);
}

}  // namespace heed::inline HEED_TARGET
