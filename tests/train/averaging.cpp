// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include <heed/train/averaging.hpp>
#include <support/one_table.hpp>
#include <support/tensors.hpp>

using namespace heed;

namespace {

template <class T>
using table = support::one_table<array<T, 2>>;

template <class T>
table<T> numbers(T a, T b, T c)
{
    table<T> module{array<T, 2>(shape_of_rank<2>{1, 3})};
    module.E(0, 0) = a, module.E(0, 1) = b, module.E(0, 2) = c;
    return module;
}

}  // namespace

TEST_CASE_TEMPLATE("the mean of the last models equals a manual sum", T, float, double)
{
    train::average_of_last<T> last(3);
    table<T> model = numbers<T>(1, 2, 3);
    last.add(model);
    last.mean(model);
    CHECK(last.size() == 1);
    for (std::size_t i = 0; i < 3; ++i) CHECK(model.E(0, i) == numbers<T>(1, 2, 3).E(0, i));

    last.add(numbers<T>(3, -2, 0));
    last.mean(model);
    for (std::size_t i = 0; i < 3; ++i) CHECK(model.E(0, i) == numbers<T>(2, 0, T(1.5)).E(0, i));

    last.add(numbers<T>(8, 9, 3));
    last.add(numbers<T>(T(0.25), 8, 6));  // the first model is dropped
    CHECK(last.size() == 3);
    last.mean(model);
    for (std::size_t i = 0; i < 3; ++i) CHECK(model.E(0, i) == numbers<T>(T(3.75), 5, 3).E(0, i));
}

TEST_CASE("sums in double keep digits that float would lose")
{
    train::average_of_last<float> last(3);
    for (const float each : {16777216.0f, 1.0f, -16777216.0f}) last.add(numbers<float>(each, 0, 0));
    auto model = numbers<float>(0, 0, 0);
    last.mean(model);
    CHECK(model.E(0, 0) == static_cast<float>(1.0 / 3));
}

TEST_CASE("a checkpoint of an average continues with the same snapshots")
{
    train::average_of_last<double> last(2), resumed(2);
    for (const double each : {1.0, 2.0, 5.0}) last.add(numbers<double>(each, each, -each));
    resumed.restore(last.state());
    for (auto* const each : {&last, &resumed}) {
        each->add(numbers<double>(6, 7, 8));
        auto model = numbers<double>(0, 0, 0);
        each->mean(model);
        CHECK(model.E(0, 0) == 5.5);
        CHECK(model.E(0, 1) == 6);
        CHECK(model.E(0, 2) == 1.5);
    }
}

TEST_CASE("the parameters of a model form one list")
{
    auto model = numbers<float>(4, 5, 6);
    const auto all = train::copy_parameters<float>(model);
    CHECK(all == std::vector<float>{4, 5, 6});
    train::set_parameters<float>({7, 8, 9}, model);
    CHECK(model.E(0, 2) == 9);
    CHECK(support::message_of<error>([&] {
              train::set_parameters<float>({7, 8}, model);
          }) == "a module of 3 numbers cannot take 2; they belong to another module");
}

TEST_CASE("models that do not fit cannot be averaged")
{
    CHECK(support::message_of<error>([] { train::average_of_last<float>(0); }) ==
          "the average of the last 0 models is not defined; average at least 1");
    train::average_of_last<float> last(2);
    auto model = numbers<float>(1, 2, 3);
    CHECK(support::message_of<error>([&] { last.mean(model); }) ==
          "the average of 0 models is not defined; add one first");
    last.add(model);
    CHECK(support::message_of<error>([&] {
              last.add(table<float>{array<float, 2>(shape_of_rank<2>{2, 2})});
          }) == "a model of 4 numbers cannot be averaged with one of 3; use one average per model");
}

TEST_CASE_TEMPLATE("a moving average equals manual computation", T, float, double)
{
    train::moving_average<T> average(0.75);
    CHECK(average.size() == 0);
    auto model = numbers<T>(8, 4, -16);
    average.add(model);
    average.mean(model);
    for (std::size_t i = 0; i < 3; ++i) CHECK(model.E(0, i) == numbers<T>(8, 4, -16).E(0, i));
    average.add(numbers<T>(0, 8, 16));   // 6, 5, -8
    average.add(numbers<T>(10, 5, 64));  // 7, 5, 10
    average.mean(model);
    CHECK(average.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) CHECK(model.E(0, i) == numbers<T>(7, 5, 10).E(0, i));

    train::moving_average<T> resumed(0.75);
    resumed.restore(average.size(), average.state());
    for (auto* const each : {&average, &resumed}) {
        each->add(numbers<T>(3, 9, 2));
        each->mean(model);
        CHECK(model.E(0, 0) == 6);
        CHECK(model.E(0, 1) == 6);
        CHECK(model.E(0, 2) == 8);
    }
}

TEST_CASE("a moving average of floats keeps digits that float would lose")
{
    train::moving_average<float> average(0.9999);
    average.add(numbers<float>(1, 0, 0));
    double must = 1;
    for (int i = 0; i < 1000; ++i) {
        average.add(numbers<float>(1.0001f, 0, 0));  // each adds 1e-8, less than the precision of a float near 1
        must += (1 - 0.9999) * (static_cast<double>(1.0001f) - must);
    }
    CHECK(std::abs(average.state()[0] - must) < 1e-14);
    CHECK(average.mean()[0] > 1.000009f);
}

TEST_CASE("a moving average rejects invalid decays and mismatched models")
{
    for (const double decay : {-0.1, 1.0, std::nan("")}) CHECK_THROWS_AS(train::moving_average<float>{decay}, error);
    CHECK(support::message_of<error>([] { train::moving_average<float>(1); }) ==
          "a moving average with a decay of 1.000000 is not defined; use at least 0 and below 1, such as 0.999");
    train::moving_average<float> average(0.5);
    auto model = numbers<float>(1, 2, 3);
    CHECK(support::message_of<error>([&] { average.mean(model); }) ==
          "the average of 0 models is not defined; add one first");
    average.add(model);
    CHECK(support::message_of<error>([&] {
              average.add(table<float>{array<float, 2>(shape_of_rank<2>{2, 2})});
          }) == "a model of 4 numbers cannot be averaged with one of 3; use one average per model");
    CHECK(average.size() == 1);
    CHECK(average.state() == std::vector<double>{1, 2, 3});
}
