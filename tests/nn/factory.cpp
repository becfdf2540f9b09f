// SPDX-License-Identifier: BSD-3-Clause
#include <heed/nn/factory.hpp>

#include <doctest/doctest.h>

#include <heed/nn/cells.hpp>
#include <heed/nn/positions.hpp>
#include <heed/nn/stacked.hpp>
#include <support/tensors.hpp>

using namespace heed;

TEST_CASE("initializers equal the functions, one stream after another")
{
    random_source mine{3}, theirs{3};
    const nn::initializers<double> init{mine};
    CHECK(support::same_bits(init.glorot(4, 3), nn::glorot<double>(theirs, 4, 3)));
    CHECK(support::same_bits(init.gaussian(4, 3, 0.5), nn::gaussian<double>(theirs, 4, 3, 0.5)));
    CHECK(support::same_bits(init.small_vector(5), nn::small_vector<double>(theirs, 5)));
    CHECK(support::same_bits(init.zeros(2), nn::zeros<double>(2)));
    CHECK(support::same_bits(init.recurrent(2, 3), nn::glorot<double>(theirs, 3, 6)));
    CHECK(support::same_bits(nn::make_gru<double>(init, 4, 3).W, nn::make_gru<double>(theirs, 4, 3).W));
    CHECK(mine.next_stream() == theirs.next_stream());
}

TEST_CASE("a recurrent matrix is drawn gate by gate if its function is given")
{
    random_source source{3};
    const nn::initializers<double> init{source, [](random_source& random, std::size_t rows, std::size_t columns) {
                                            const auto x = static_cast<double>(random.next_stream() % 7);
                                            return filled<double, 2>({rows, columns}, x);
                                        }};
    const auto gates = init.recurrent(2, 3);
    REQUIRE(shape_of(gates) == shape_of_rank<2>{3, 6});
    random_source again{3};
    const auto first = static_cast<double>(again.next_stream() % 7),
               second = static_cast<double>(again.next_stream() % 7);
    CHECK(gates(2, 2) == first);
    CHECK(gates(0, 3) == second);
}

TEST_CASE("a factory is an object, a function, or the part itself")
{
    random_source source{3}, again{3};
    const nn::initializers<double> init{source};
    const auto check = [&](const auto& factory, std::size_t parameters) {
        CHECK(parameter_count(nn::make_part(factory, init, nn::cell_sizes{4, 3})) == parameters);
    };
    check(nn::gru_factory{}, 4 * 9 + 9 + 3 * 9);
    check(nn::lstm_factory{}, 4 * 12 + 12 + 3 * 12);
    check([](auto& with, const nn::cell_sizes& n) { return nn::trained_start{with.zeros(n.hidden)}; }, 3);
    check([](random_source& random, const auto& n) { return nn::make_gru<double>(random, n.input, n.hidden); }, 72);
    check(nn::sinusoidal_positions{}, 0);
    check(nn::stacked_factory{2, [](auto& with,
                                    const nn::cell_sizes& n) { return nn::make_gru<double>(with, n.input, n.hidden); }},
          72 + 63);
    const auto table = support::random({2, 3}, 1);
    CHECK(support::same_bits(nn::make_part(table, init, nn::cell_sizes{}), table));
    static_assert(std::is_same_v<nn::part_of<nn::gru_factory, float, nn::cell_sizes>,
                                 decltype(nn::make_gru<float>(again, 1, 1))>);
    static_assert(nn::factory_of<nn::gru_factory, float, nn::cell_sizes>);
    static_assert(!nn::factory_of<nn::gru_factory, float, nn::position_sizes>);
    static_assert(!nn::factory_of<int, float, nn::cell_sizes>);
}
