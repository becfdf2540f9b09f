// SPDX-License-Identifier: BSD-3-Clause
#include <heed/ad/ad.hpp>
#include <heed/attention/execute/linear.hpp>
#include <heed/attention/execute/step.hpp>
#include <heed/attention/masks.hpp>
#include <heed/combine/relative.hpp>
#include <heed/heads/differential.hpp>
#include <heed/heads/talking_heads.hpp>
#include <heed/normalize/local_p.hpp>
#include <heed/pairs/abcnn.hpp>
#include <heed/penalty/guided_alignment.hpp>
#include <heed/score/contextual_positions.hpp>
#include <heed/score/dynamic_convolution.hpp>
#include <heed/score/location.hpp>
#include <heed/score/with_location.hpp>
#include <heed/score/with_neighbors.hpp>

#include <doctest/doctest.h>

#include <support/gradients.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

using namespace heed;
using support::random;

// An operation runs on tensors that own their values, in a thread's workspace, and on a tape.

namespace {

/// Checks that f(x...) has the same bits for owning tensors, in the workspace and on a tape, and that its result has
/// the family of its arguments.
template <class F, class... X>
void check_families(F&& f, const X&... x)
{
    const auto must = f(x...);
    const scratch here;
    const auto in_workspace = f(workspace_tensor(view_of(x))...);
    static_assert(std::is_same_v<family_of<decltype(in_workspace)>, workspace_family>);
    CHECK(support::same_bits(in_workspace, must));
    ad::tape<double> on;
    CHECK(support::same_bits(f(on.parameter(x)...), must));
}

/// Checks that the backward pass of f(x, setting) uses the setting of the call even if the caller changes it later.
template <class F, class X, class Setting>
void check_kept(F&& f, const X& x, const Setting& at_the_call, const Setting& later)
{
    const auto gradient_where = [&](const Setting& then) {
        Setting setting = at_the_call;
        ad::tape<double> on;
        const auto v = on.parameter(x);
        const auto y = f(v, setting);
        setting = then;
        on.backward(ops::dot(y, support::uneven(y.shape())));
        return copy_of(on.gradient(v));
    };
    CHECK(support::same_bits(gradient_where(later), gradient_where(at_the_call)));
}

constexpr double none = -std::numeric_limits<double>::infinity();
const lengths real{3, 0};
const window where{{1, 0}, lengths{2, 1}, 2};

boolean_mask<2> mask_of(const array<bool, 2>& attend) { return boolean_mask<2>(attend); }

}  // namespace

TEST_CASE("slices of tensors are the same in the workspace and on a tape")
{
    const auto x = random({2, 3, 4}, 1), y = random({2, 3, 2}, 2);
    check_families([](const auto& a, const auto& b) { return ops::concat(a, b); }, x, y);
    check_families([](const auto& a) { return ops::step_of(a, std::size_t{1}); }, x);
    check_families([](const auto& a) { return ops::block(a, std::size_t{1}); }, x);
    check_families([](const auto& a) { return ops::stack(std::vector{a, ops::tanh(a)}); }, x);
    check_families([](const auto& a, const auto& b) { return ops::concat_heads(std::vector{b, a, b}); }, x, y);
    check_families([](const auto& a) { return ops::split_heads(a, std::size_t{2})[1]; }, x);
    check_families([](const auto& a) { return ops::columns_of(a, std::vector<std::uint32_t>{3, 0}); }, x);
    check_families([](const auto& a) { return ops::rows_of(a, std::vector<std::size_t>{1, 1}); }, x);
    check_families([](const auto& a) { return ops::slice_rows(a, std::size_t{1}, std::size_t{3}); }, random({4, 3}, 3));
    check_families([](const auto& a) { return ops::repeat(a, std::size_t{3}); }, random({4}, 3));
    check_families([](const auto& a) { return ops::swap_axes(a); }, x);
    check_families([](const auto& a) { return ops::transpose(a); }, x);
    check_families([](const auto& a) { return ops::gather(a, array<double, 3>{{{2.0}}, {{0.0}}}); }, random({2, 3}, 3));
}

TEST_CASE("masks, windows and sums are the same in the workspace and on a tape")
{
    const auto e = random({2, 3}, 1);
    const auto x = random({2, 3, 4}, 2);
    const auto mask = mask_of({{true, false, true}, {false, false, true}});
    check_families([&](const auto& a) { return ops::masked_fill(a, mask); }, x);
    check_families([&](const auto& a) { return ops::zero_masked(a, mask); }, x);
    check_families([](const auto& a, const auto& m) { return ops::add_mask(a, m); }, x,
                   array<double, 2>{{0.5, none, 0.0}, {none, 1.0, 2.0}});
    check_families([](const auto& a) { return ops::clear_padding(a, real); }, x);
    check_families([](const auto& a) { return ops::clear_ended(a, lengths{2, 0, 1}); }, x);

    check_families([](const auto& a) { return ops::window_of(a, where); }, x);
    check_families([](const auto& a, const auto& w) { return ops::put_window(a, w, where); }, e, random({2, 2}, 3));
    check_families([](const auto& w) { return ops::spread_window(w, where, std::size_t{3}); }, random({2, 2, 4}, 3));
    check_families([](const auto& a) { return ops::neighborhood(a, std::size_t{1}); }, e);
    check_families([](const auto& a, const auto& F) { return ops::convolve(a, F); }, e, random({2, 3}, 3));
    check_families([](const auto& a) { return ops::unfold(a, std::size_t{2}); }, x);
    check_families([](const auto& a, const auto& w) { return ops::pool_windows(a, w, std::size_t{2}); }, x, e);

    check_families([](const auto& a) { return ops::sum_last(a); }, x);
    check_families([](const auto& a, const auto& c) { return ops::dot(a, c); }, e, random({2, 3}, 3));
    check_families([](const auto& a, const auto& g) { return ops::multiply_parts(a, g); }, x, random({2, 3, 2}, 3));
    check_families([](const auto& a, const auto& g) { return ops::rms_norm(a, g, 1e-5); }, x, random({2}, 3));

    check_families([](const auto& a) { return ops::log_sigmoid(a); }, x);
    check_families([](const auto& a) { return ops::carried_sums(a); }, random({2, 3, 1}, 3));
    check_families([](const auto& a, const auto& b) { return ops::carry_sums(a, b); }, x, random({2, 5, 4}, 3));
    check_families([](const auto& a) { return ops::carried_to(a, std::span<const std::size_t>{}, real, 1, 2); }, x);
    check_families([](const auto& a, const auto& b) { return ops::decay_history(a, b); }, e, random({2, 3}, 3));
    check_families([](const auto& q, const auto& k,
                      const auto& v) { return ops::gated_linear_attention(q, k, v, real, std::size_t{0}, true); },
                   random({2, 3, 2}, 3),
                   ops::concat(ops::carried_sums(ops::log_sigmoid(random({2, 3, 1}, 4))), random({2, 3, 2}, 5)), x);
    const lengths up_to{3, 0};
    check_families(
        [&](const auto& a) { return ops::at_distances(a, std::size_t{1}, std::size_t{4}, up_to, lengths_view{}); }, e);
    check_families(
        [](const auto& a) { return ops::sum_by_distance(a, std::size_t{1}, std::size_t{2}, std::size_t{1}); }, e);
    check_families(
        [&](const auto& a, const auto& z) { return ops::add_contextual_positions(a, z, up_to, lengths_view{}); }, e,
        random({2, 2}, 3));
    check_families([](const auto& a) { return ops::slice_columns(a, 1, 3); }, x);
    check_families([](const auto& a) { return ops::slice(a, 1, 1, 3); }, x);
    check_families([](const auto& a) { return ops::reshaped(a, shape_of_rank<2>{2, 12}); }, x);
    check_families([](const auto& a, const auto& P) { return ops::mix_heads(a, P); }, x, random({2, 3}, 3));
}

TEST_CASE("comparisons, all pairs and penalties are the same in the workspace and on a tape")
{
    const auto x = random({2, 3, 4}, 1), y = random({2, 5, 4}, 2), weights = ops::square(random({4, 2, 3}, 3));
    check_families([](const auto& a) { return ops::normalize_l2(a); }, x);
    check_families([](const auto& a, const auto& b) { return ops::match_matrix(a, b); }, x, y);
    check_families([](const auto& a, const auto& b) { return ops::match_matrix(a, b, real, lengths{4, 5}); }, x, y);
    check_families([](const auto& q, const auto& k) { return ops::match_per_position(q, k); }, random({2, 4}, 3), y);
    check_families([](const auto& q, const auto& k) { return ops::bmm_nt(q, k); }, x, y);
    check_families([](const auto& w, const auto& h) { return ops::bmm(w, h); }, random({6, 5}, 3), y);
    const lengths source{3, 2}, target{4, 1};
    check_families([&](const auto& w) { return ops::doubly_stochastic_penalty(w, source, target); }, weights);
    check_families([&](const auto& w) { return ops::coverage_penalty(w, source, target); }, weights);
    check_families([&](const auto& w) { return ops::monotone_penalty(w, source, target); }, weights);
    check_families([&](const auto& w) { return ops::guided(w, random({2, 4, 3}, 4), source, target, 1e-3); }, weights);
}

TEST_CASE("a block is a view in the workspace and a copy of a tensor that owns its values")
{
    const auto x = random({3, 2}, 1);
    const workspace_tensor seen(view_of(x));
    CHECK(ops::block(seen, std::size_t{1}).data() == x.data() + 2);
    CHECK(ops::slice_rows(seen, std::size_t{1}, std::size_t{3}).data() == x.data() + 2);
    CHECK(ops::block(x, std::size_t{1}).data() != x.data() + 2);
}

TEST_CASE("a setting may change or be destroyed before the backward pass")
{
    const auto x = random({2, 3}, 1);
    check_kept([](const auto& v, const auto& mask) { return ops::masked_fill(ops::exp(v), mask); }, x,
               mask_of({{true, true, true}, {true, true, true}}), mask_of({{true, false, true}, {true, true, false}}));
    check_kept([](const auto& v, const auto& counts) { return ops::clear_padding(v, counts); }, x, lengths{1, 2},
               lengths{3, 0});
    check_kept([](const auto& v, const auto& counts) { return ops::clear_ended(v, counts); }, random({3, 2, 2}, 2),
               lengths{1, 2}, lengths{3, 0});
    check_kept([](const auto& v, const auto& in) { return ops::window_of(v, in); }, x, where,
               window{{0, 1}, lengths{1, 2}, 2});
    check_kept([](const auto& v, const auto& columns) { return ops::columns_of(v, columns); }, x,
               std::vector<std::uint32_t>{2, 0}, std::vector<std::uint32_t>{1, 1});
    check_kept([](const auto& v, auto& rows) { return ops::rows_of(v, std::span(rows)); }, x,
               std::vector<std::size_t>{1, 1}, std::vector<std::size_t>{0, 0});
}
