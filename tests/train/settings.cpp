// SPDX-License-Identifier: BSD-3-Clause

#include <doctest/doctest.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <heed/train/settings.hpp>

using namespace heed;

namespace {

struct one {
    double rate = 1;
};
struct with_function {  // as AdamW's
    double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double weight_decay = 0.01;
    std::function<bool(const std::string&, std::size_t)> decays{};
};
struct mixed {
    float a = 1;
    bool b = true;
    std::string text = "no number";
    std::size_t n = 7;
};
struct eight {
    double a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7, h = 8;
};
struct nothing {};

std::vector<double> numbers_in(const auto& settings)
{
    std::vector<double> all;
    train::each_number(settings, [&](const auto& number) { all.push_back(static_cast<double>(number)); });
    return all;
}

}  // namespace

TEST_CASE("the numbers among settings are listed in order and written back")
{
    CHECK(numbers_in(nothing{}).empty());
    CHECK(numbers_in(one{}) == std::vector<double>{1});
    CHECK(numbers_in(with_function{}) == std::vector<double>{1e-3, 0.9, 0.999, 1e-8, 0.01});
    CHECK(numbers_in(mixed{}) == std::vector<double>{1, 1, 7});
    CHECK(numbers_in(eight{}) == std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
    with_function settings;
    settings.decays = [](const std::string&, std::size_t rank) { return rank > 1; };
    double next = 10;
    train::each_number(settings, [&](double& number) { number = next++; });
    CHECK(settings.rate == 10);
    CHECK(settings.weight_decay == 14);
    CHECK(settings.decays("W", 2));
}
