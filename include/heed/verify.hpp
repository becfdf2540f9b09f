// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <heed/verify/contracts.hpp>

/// Does a mechanism of your own keep what heed promises of its mechanisms?
///
///     attention attend{mine::distance{W}, normalize::temporal{}, combine::weighted_sum{}};   // of double
///     const verification report = heed::verify(attend, {.query = 3, .width = 5});
///     if (!report) std::puts(report.text().c_str());
///
/// A multi_head or a multi_hop is verified in the same words.
///
/// The mechanism is run on made-up sentences of several lengths, 0 and 1 among them, alone and in batches, in every
/// form, on a tape and without, in double and in float; `contract::name` says what of.
namespace heed {

/// One promise, and whether it holds.
struct contract {
    std::string name;
    bool kept = false;
    std::string detail;  // where it fails, or what was compared
};

/// What heed::verify found; true if every contract is kept.
struct verification {
    std::vector<contract> contracts;

    explicit operator bool() const
    {
        for (const contract& c : contracts) {
            if (!c.kept) return false;
        }
        return !contracts.empty();
    }

    /// One line a contract.
    std::string text() const
    {
        std::string lines;
        for (const contract& c : contracts) {
            lines += (c.kept ? "kept    " : "BROKEN  ") + c.name + " (" + c.detail + ")\n";
        }
        return lines;
    }
};

/// The sizes to verify with: those that the mechanism's parameters fit.
struct verification_sizes {
    std::size_t query = 4;      // Q
    std::size_t width = 4;      // D
    std::size_t batch = 4;      // B: the lengths are T, 0, 1, about T/2, and so on
    std::size_t positions = 6;  // T
    std::size_t steps = 3;      // S
    std::uint64_t seed = 1;     // of annotations and queries
};

/// Verifies a mechanism of double arrays whose query is not one tensor [B,Q]. `describe` builds a query from parts
/// that it asks for by name and size:
///
///     heed::verify(attend, sizes, [](auto part) { return state_and_word{part("state", 3), part("word", 2)}; });
template <class Mechanism, class Describe>
verification verify(const Mechanism& attend, const verification_sizes& sizes, const Describe& describe)
{
    using namespace detail::verifying;
    static_assert(
        requires { attend.on(array<double, 3>(), lengths()); },
        "heed: verify takes a mechanism: an attention{score, normalize, combine}, or several of them in a "
        "multi_head or multi_hop, or what has the same calls");
    for_each_parameter(attend, [](const std::string&, const auto& x) {
        static_assert(std::is_same_v<element_of<decltype(x)>, double> && plain_tensor<decltype(x)>,
                      "heed: verify takes a mechanism whose parameters are arrays of double; float follows from it");
    });

    const auto made_up = [&](std::size_t B, std::size_t T, std::size_t S) {
        random_source source{sizes.seed};
        std::pair made{problem<Mechanism, array<double, 3>>{attend, {}, {}},
                       setting<Describe>{describe, layout_of(describe), {}, S}};
        made.first.annotations = normal_numbers<double, 3>({B, T, sizes.width}, source.next_stream());
        for (const part_layout& part : made.second.layout) {
            made.first.parts.push_back(normal_numbers<double, 3>({B, S, part.width}, source.next_stream()));
        }
        std::vector<std::size_t> counts;
        for (std::size_t b = 0; b < B; ++b) {
            const std::size_t kinds[] = {T, 0, T < 1 ? T : 1, (T + 1) / 2};
            counts.push_back(kinds[b % 4]);
        }
        made.second.real = lengths(std::move(counts));
        return made;
    };

    verification report;
    const auto check = [&](const char* name, auto&& promise) {
        contract c{name, false, ""};
        try {
            c.detail = promise();
            c.kept = true;
        } catch (const std::exception& e) {
            c.detail = e.what();
        }
        report.contracts.push_back(std::move(c));
    };
    const auto [p, at] = made_up(sizes.batch, sizes.positions, sizes.steps);
    const auto [single, at_single] = made_up(1, 1, 1);

    check("the mechanism runs with these sizes", [&, &p = p, &at = at] {
        require_finite(results<form::step, double>(p, at), "in a first run");
        return "B " + std::to_string(sizes.batch) + ", T " + std::to_string(sizes.positions) + ", D " +
               std::to_string(sizes.width);
    });
    if (!report) return report;
    check("every parameter has a name of its own", [&, &p = p] { return check_names(p); });
    check("gradients agree with finite differences", [&, &p = p, &at = at] { return check_gradient(p, at); });
    check("gradients with one sentence, one position, one step",
          [&, &p = single, &at = at_single] { return check_gradient(p, at); });
    check("training computes what inference computes", [&, &p = p, &at = at] { return check_families(p, at); });
    check("a row without positions gets weights 0, context 0, gradient 0",
          [&, &p = p, &at = at] { return check_empty_rows(p, at); });
    check("what lies in the padding changes nothing", [&, &p = p, &at = at] { return check_padding(p, at); });
    check("a sentence gets the same alone and in a batch", [&, &p = p, &at = at] { return check_alone(p, at); });
    check("scores of +-1e4 are no problem in float", [&, &p = p, &at = at] { return check_large_scores(p, at); });
    check("float does what double does", [&, &p = p, &at = at] { return check_float(p, at); });
    check("asking for the weights changes nothing",
          [&, &p = p, &at = at] { return check_weights_do_not_matter(p, at); });
    check("two runs agree", [&, &p = p, &at = at] { return check_repeatable(p, at); });
    check("nothing is remembered outside the state", [&, &p = p, &at = at] { return check_nothing_hidden(p, at); });
    check("all queries at once are the same as one by one", [&, &p = p, &at = at] { return check_at_once(p, at); });
    check("step, fused or not, is what compose specifies", [&, &p = p, &at = at] { return check_composed(p, at); });
    check("step_into does what step does", [&, &p = p, &at = at] { return check_step_into(p, at); });
    check("shapes that do not fit are refused before anything is written",
          [&, &p = p, &at = at] { return check_shapes(p, at); });
    return report;
}

/// Verifies a mechanism of double arrays whose query is one tensor [B,Q].
template <class Mechanism>
verification verify(const Mechanism& attend, const verification_sizes& sizes = {})
{
    return verify(attend, sizes, [&sizes](auto part) { return part("query", sizes.query); });
}

/// Verifies a mechanism that has no parameters: `heed::verify<attention<score::dot, mine, combine::weighted_sum>>()`.
template <class Attention>
verification verify(const verification_sizes& sizes = {})
{
    static_assert(std::is_default_constructible_v<Attention>,
                  "heed: verify<Attention>() builds the mechanism itself; give one with parameters: verify(attend, "
                  "sizes)");
    return verify(Attention{}, sizes);
}

}  // namespace heed
