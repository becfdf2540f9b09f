// SPDX-License-Identifier: BSD-3-Clause
#include <heed/verify/requirements.hpp>

#include <doctest/doctest.h>

#include <support/tensors.hpp>

#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

using namespace heed;
using namespace heed::detail::verifying;
using run_numbers = heed::detail::verifying::outcome<double>;

namespace {

/// The message of an unmet requirement; empty if it is met.
std::string refused(auto&& requirement) { return support::message_of<heed::detail::verifying::broken>(requirement); }

const lengths two_and_none{2, 0};

}  // namespace

TEST_CASE("require_close, require_same_bits, require_finite")
{
    const run_numbers a{{"context", {1, 2}}}, near{{"context", {1, 2.003}}}, bad{{"context", {1, INFINITY}}};
    CHECK(require_close(a, a, 0, "twice") == "no difference");
    CHECK(require_close(a, near, 1e-2, "x") == "largest difference 1.0e-03");
    CHECK(refused([&] { require_close(a, near, 1e-4, "x against y"); }) ==
          "x against y: context[1]: 2.000000 against 2.003000");
    CHECK(refused([&] { require_close(bad, a, 1e300, "x"); }) == "x: context[1]: inf against 2.000000");
    CHECK(refused([&] { require_same_bits(a, near, "again"); }) == "again: context[1]: 2.000000 against 2.003000");
    CHECK(refused([&] { require_finite(bad, "in float"); }) == "in float: context[1] is inf");
    CHECK(refused([&] { require_finite(a, "in float"), require_same_bits(a, a, "again"); }) == "");
}

TEST_CASE("empty rows and padding")
{
    run_numbers values{{"context of step 0", {1, 2, 0, 0}}, {"weights of step 0", {1, 0, 0, 0}}};
    const run_numbers slopes{{"gradient of W", {5, 5}}, {"gradient of annotations", {1, 2, 0, 0}}};
    CHECK(require_empty_rows(values, slopes, 1, two_and_none) == 1);
    CHECK(refused([&] { require_empty_rows(values, slopes, 2, two_and_none); }) ==
          "row 1 has no position, but the gradient of W[1] is 5.000000, not 0");
    values[0].values[3] = std::nan("");
    CHECK(refused([&] { require_zero_where_empty(values, two_and_none); }) ==
          "row 1 has no position, but the context of step 0[3] is nan, not 0");

    const auto real = as_mask(lengths{1, 2}, 2);
    const run_numbers per_position{{"weights of step 0", {1, 0, 0.5, 0.5}}},
        per_dimension{{"weights of step 0", {1, 1, 0, 0, 1, 1, 1, 1}}},  // [B,T,2]
        of_heads{{"weights of step 0", {1, 0, 1, 0, 1, 1, 1, 1}}};       // [B,2,T]
    CHECK(refused([&] { require_no_weight_where_hidden(per_position, real, true, "beyond the length"); }) == "");
    CHECK(refused([&] { require_no_weight_where_hidden(per_dimension, real, true, "beyond the length"); }) == "");
    CHECK(refused([&] { require_no_weight_where_hidden(of_heads, real, false, "beyond the length"); }) == "");
    CHECK(refused([&] { require_no_weight_where_hidden(of_heads, real, true, "beyond the length"); }) ==
          "beyond the length, the weights of step 0[2] is 1.000000, not 0");

    array<double, 3> x(shape_of_rank<3>{2, 2, 1}, 3.0);
    const auto padded = padded_with(-1, x, two_and_none);
    const double must[] = {3, 3, -1, -1};
    for (std::size_t i = 0; i < 4; ++i) CHECK(padded.data()[i] == must[i]);
}

TEST_CASE("masks")
{
    const auto holes = mask_with_holes(2, 4);
    const bool seen[] = {false, true, true, false, true, true, false, true};
    const auto bias = as_bias(holes).bias;
    for (std::size_t i = 0; i < 8; ++i) {
        CHECK(static_cast<bool>(holes[i]) == seen[i]);
        CHECK(bias.data()[i] == (seen[i] ? 0 : -INFINITY));
    }
    const lengths half = first_half(lengths{5, 1, 4});
    CHECK((half[0] == 2 && half[1] == 0 && half[2] == 2));
    const auto mask = as_mask(half, 3);
    for (std::size_t i = 0; i < 9; ++i) CHECK(static_cast<bool>(mask[i]) == (i % 3 < half[i / 3]));

    run_numbers masked{{"weights of step 1", {0, 0.5, 0.5, 0, 0.5, 0.25, 0, 0.25}}};
    CHECK(refused([&] { require_obeyed(masked, masked, holes, true); }) == "");
    auto other = masked;
    other[0].values[1] = 0.6;
    CHECK(refused([&] { require_obeyed(masked, other, holes, true); }) ==
          "an additive mask of -inf against a boolean mask: weights of step 1[1]: 0.600000 against 0.500000");
    other = masked;
    other[0].values[6] = 1e-300;
    CHECK(refused([&] { require_obeyed(other, masked, holes, true); }) ==
          "hidden by a boolean mask, the weights of step 1[6] is 0.000000, not 0");
    CHECK(refused([&] { require_obeyed(masked, other, holes, true); }).starts_with("hidden by an additive mask"));
}

TEST_CASE("selected rows, and single sentences")
{
    CHECK(surviving_rows(4) == std::vector<std::size_t>{3, 0, 2, 0});
    CHECK(surviving_rows(1) == std::vector<std::size_t>{0, 0});
    const run_numbers all{{"context of step 0", {1, 2, 3}}, {"context of step 1", {4, 5, 6}}};
    run_numbers chosen{{"context of step 0", {9, 9, 9}}, {"context of step 1", {6, 4}}};
    CHECK(require_selected(chosen, all, 3, {2, 0}) == "no difference");
    CHECK(refused([&] {
              require_selected(chosen, all, 3, {2, 1});
          }).starts_with("with rows selected after the first step: context of step 1[1]"));

    const lengths real{2, 1};
    const run_numbers batch{{"context", {1, 2, 3, 4}}, {"weights", {0.5, 0.5, 1, 0}}};
    CHECK(results_of_row(batch, 1, real, 2, true)[0].values == std::vector<double>{3, 4});
    CHECK(results_of_row(batch, 1, real, 2, true)[1].values == std::vector<double>{1});
    const run_numbers heads{{"weights", {1, 2, 3, 4, 5, 0, 6, 0}}};  // [B,2,T]
    CHECK(results_of_row(heads, 1, real, 2, false)[0].values == std::vector<double>{5, 6});
    const auto x = support::random({2, 3, 2}, 1), row = one_row(x, 1, 2);
    CHECK(shape_of(row) == shape_of_rank<3>{1, 2, 2});
    for (std::size_t i = 0; i < 4; ++i) CHECK(row.data()[i] == x.data()[6 + i]);
}

TEST_CASE("scores that a float holds exactly")
{
    const auto in_float = large_scores<float>({2, 3, 5}, 1);
    const auto in_double = large_scores<double>({2, 3, 5}, 1);
    bool below = false, above = false;
    for (std::size_t i = 0; i < 30; ++i) {
        CHECK(static_cast<double>(in_float.data()[i]) == in_double.data()[i]);
        CHECK(std::abs(std::abs(in_double.data()[i]) - 1e4) <= 1.5);
        (in_double.data()[i] < 0 ? below : above) = true;
    }
    CHECK((below && above));
}

TEST_CASE("a misfit must throw a shape_error and write nothing")
{
    const auto good = [] { throw shape_error("no"); };
    const auto careless = [] {};
    const auto other = [] { throw std::invalid_argument("widths"); };
    CHECK(refused([&] { require_refused("a query", good); }) == "");
    CHECK(refused([&] { require_refused("a query", careless); }) == "a query is not refused: shape_error expected");
    CHECK(refused([&] { require_refused("a query", other); }) ==
          "a query throws something other than shape_error: widths");

    std::vector<array<double, 3>> parts{support::random({2, 1, 3}, 1)};
    const auto right = parts[0];
    std::vector<shape_of_rank<3>> tried;
    run_numbers result{{"context", {1}}};
    const auto step = [&] {
        tried.push_back(shape_of(parts[0]));
        throw shape_error("no");
    };
    const auto written = [&] { return result; };
    CHECK(require_misfits_refused(parts, 0, "word", step, good, written) == 6);
    CHECK(tried == std::vector<shape_of_rank<3>>{{2, 1, 4}, {3, 1, 3}, {1, 1, 3}});
    CHECK(support::same_bits(parts[0], right));
    const auto writes = [&] {
        result[0].values[0] = 2;
        throw shape_error("too late");
    };
    CHECK(refused([&] {
              require_misfits_refused(parts, 0, "word", step, writes, written);
          }).starts_with("a word with one column too many throws, but has written to the results: context[0]"));
}

TEST_CASE("names of parameters")
{
    const auto parameters = [](const std::vector<std::string>& names) {
        std::vector<ad::named_variable<double>> all;
        for (const std::string& name : names) all.push_back({name, {}});
        return all;
    };
    CHECK(require_different(parameters({"attention.a", "attention.b", "annotations"}), "attention.") == "2 parameters");
    CHECK(refused([&] {
              require_different(parameters({"attention.a", "attention.a"}), "attention.");
          }) == "two parameters are named \"a\"");
    CHECK(require_different(parameters({"x", "x"}), "attention.") == "0 parameters");
}
