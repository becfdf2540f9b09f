// SPDX-License-Identifier: BSD-3-Clause
#include <heed_kit/metrics/two_classes.hpp>

#include <doctest/doctest.h>

#include <support/approx.hpp>

using heed::metrics::two_classes;

TEST_CASE("accuracy, precision, recall and F1 of four different counts")
{
    two_classes counts;
    const auto add = [&](bool predicted, bool expected, int times) {
        for (int i = 0; i < times; ++i) counts.add(predicted, expected);
    };
    add(true, true, 6);
    add(true, false, 2);
    add(false, true, 3);
    add(false, false, 9);
    CHECK(counts.size() == 20);
    CHECK(counts.accuracy() == support::approx(0.75));
    CHECK(counts.precision() == support::approx(0.75));
    CHECK(counts.recall() == support::approx(2.0 / 3));
    CHECK(counts.f1() == support::approx(2 * 0.75 * (2.0 / 3) / (0.75 + 2.0 / 3)));
}

TEST_CASE("fractions with denominator 0 are 0")
{
    const two_classes none;
    CHECK(none.accuracy() == 0);
    CHECK(none.f1() == 0);
    two_classes silent;
    silent.add(false, true);
    CHECK(silent.precision() == 0);
    CHECK(silent.f1() == 0);
}
