// SPDX-License-Identifier: BSD-3-Clause
#include "../../examples/catalogue/masks.hpp"
#include "../../examples/catalogue/scores.hpp"

#include <heed/ad/ad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <support/approx.hpp>
#include <support/drawn_masks.hpp>
#include <support/tensors.hpp>

// Every entry of examples/catalogue: tiled equals composed in both precisions, and the entry is as short as documented.

using namespace heed;
using support::random;

namespace {

constexpr std::size_t B = 2, S = 91, P = catalogue::positions, D = 3, V = 5;
constexpr std::size_t head = 1;  // one of several heads
const lengths real({P - 1, 70});

/// Contexts and the gradients of a loss.
template <class T>
struct answers {
    std::vector<T> contexts, slopes;
};

/// Tiled, or `composed` of operations on all scores, [S,T].
template <class T>
answers<T> answers_of(const auto& score, const catalogue::any_mask& mask, bool composed)
{
    const attention attend{score, normalize::softmax{}, combine::weighted_sum{}};
    ad::tape<T> on;
    const auto h = random<T>({B, P, D}, 1), q = random<T>({B, S, D}, 2), v = random<T>({B, P, V}, 3);
    const auto H = on.parameter(h), Q = on.parameter(q), values = on.parameter(v);
    const auto lifted = ad::lift(on, attend);
    const auto memory = lifted.on(H, values, real);
    auto state = lifted.start(memory);
    state.head = head;
    const auto contexts = [&]() -> ad::var<T, 3> {
        if (composed)
            return support::without_tiles(lifted, memory, Q, heed::detail::materialize_mask(mask, real, 0, S, P, head),
                                          head);
        CHECK(explain(lifted, memory, Q, mask).starts_with("tiled:"));
        return lifted.read_all(memory, Q, state, mask).contexts;
    }();
    on.backward(ops::dot(contexts, random<T>({B, S, V}, 4)));
    answers<T> found;
    const auto add = [](std::vector<T>& to, const auto& x) { to.insert(to.end(), x.data, x.data + x.size()); };
    add(found.contexts, contexts.value());
    add(found.slopes, on.gradient(H));
    add(found.slopes, on.gradient(Q));
    add(found.slopes, on.gradient(values));
    for_each_parameter(lifted, [&](const std::string&, const auto& x) { add(found.slopes, on.gradient(x)); });
    return found;
}

/// The maximum of |a − b|, relative to 1 + the maximum of |b|.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b)
{
    double worst = 0, greatest = 0;
    if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < b.size(); ++i) {
        const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]), off = std::abs(x - y);
        worst = off >= 0 ? std::max(worst, off) : std::numeric_limits<double>::infinity();
        greatest = std::max(greatest, std::abs(y));
    }
    return worst / (1 + greatest);
}

template <class T>
void check(const std::string& name, const auto& score, const catalogue::any_mask& mask)
{
    CAPTURE(name);
    const auto is = answers_of<T>(score, mask, false), must = answers_of<T>(score, mask, true);
    CHECK(distance(is.contexts, must.contexts) < support::tolerance<T>);
    CHECK(distance(is.slopes, must.slopes) < (sizeof(T) == 4 ? 1e-5 : support::gradient_tolerance<T>));
    const auto somewhere = [](T x) { return std::abs(x) > T(1e-3); };
    CHECK(std::any_of(must.slopes.begin(), must.slopes.end(), somewhere));
}

/// One type for the functions that read tables.
struct any_with_table {
    int which;

    auto operator()(const auto& e, const score_index& p, const auto& b) const
    {
        return which == 0   ? catalogue::relative(e, p, b)
               : which == 1 ? catalogue::spatial(e, p, b)
                            : catalogue::edges(e, p, b);
    }
};

}  // namespace

TEST_CASE_TEMPLATE("tiled equals composed, forward and backward", T, float, double)
{
    REQUIRE(heed::detail::worth_tiles(S, P));
    const catalogue::any_mask everything{[](score_index) { return true; }};
    catalogue::tables<T> tables;
    tables.q_rope = random<T>({B, P, 4}, 5);
    tables.k_rope = random<T>({B, P, 4}, 6);
    const auto modified = [](const catalogue::any_function<T>& f) { return score::modified{score::scaled_dot{}, f}; };
    const auto functions = catalogue::functions(tables);
    REQUIRE(functions.size() == 17);
    for (const auto& [name, f] : functions) check<T>(name, modified(f), everything);
    check<T>("not divided", modified(catalogue::log_of_function), everything);
    for (const int which : {0, 1, 2})
        check<T>("table " + std::to_string(which),
                 score::modified{score::scaled_dot{}, random<T>({48}, 7), any_with_table{which}}, everything);

    const catalogue::known known;
    const auto masks = catalogue::masks(known);
    REQUIRE(masks.size() == 23);
    for (const auto& [name, mask] : masks) check<T>(name, modified([](auto e, score_index) { return e; }), mask);
}

namespace {

/// The index of one score.
struct number_place {
    int batch, head, query, key;
};
/// A function of one score in plain code: the score and its derivative.
using plain_function = std::function<dual_number<double>(const dual_number<double>&, const number_place&)>;

/// The functions of the catalogue, reimplemented without SIMD.
std::vector<plain_function> plain_functions(const catalogue::tables<double>& at)
{
    using number = dual_number<double>;
    const number none = -std::numeric_limits<double>::infinity();
    const auto away = [](const number_place& p) { return static_cast<double>(p.query - p.key); };
    return {
        [](auto e, auto) { return e; },
        [](auto e, auto) { return number(2) * e; },
        [](auto e, auto) { return e * e; },
        [=](auto e, auto p) { return p.key <= p.query ? e : none; },
        [=](auto e, auto p) { return p.key >= p.query ? e : none; },
        [=](auto e, auto p) { return e + number(0.01 * away(p)); },
        [=](auto e, auto p) { return p.key <= p.query ? e + number(0.01 * away(p)) : none; },
        [=](auto e, auto p) { return e - number(std::exp2(-(p.head + 1)) * std::abs(away(p))); },
        [](auto e, auto) { return number(3) * tanh(e / number(3)); },
        [](auto e, auto) {
            const number x = e / number(3);
            return number(3) * x * (number(27) + x * x) / (number(27) + number(9) * x * x);
        },
        [&](auto e, auto p) { return e * number(at.factor(static_cast<std::size_t>(p.head))); },
        [](auto e, auto p) { return e + sin(e) * number(std::cos(0.1 * p.key)); },
        [=](auto e, auto p) { return e + number(std::sin(0.2 * away(p))); },
        [=](auto e, auto p) {
            double bias = 0;
            for (const double omega : {1.0, 0.1, 0.01}) bias += std::cos(omega * away(p)) / (p.head + 1);
            return e + number(bias);
        },
        [](auto e, auto) { return log((e > number(0) ? e : number(0)) + number(0.1)); },
        [&](auto e, auto p) {
            double sum = 0;
            for (std::size_t i = 0; i < 4; ++i) {
                sum += 0.5 * at.q_rope(static_cast<std::size_t>(p.batch), static_cast<std::size_t>(p.query), i) *
                       at.k_rope(static_cast<std::size_t>(p.batch), static_cast<std::size_t>(p.key), i);
            }
            return e + number(sum);
        },
        [](auto e, auto p) { return e * number((p.query + p.key) % 2 == 0 ? 0.5 : 2); },
    };
}

}  // namespace

TEST_CASE("in double, functions and derivatives equal those of plain code")
{
    catalogue::tables<double> tables;
    tables.q_rope = random({B, P, 4}, 5);
    tables.k_rope = random({B, P, 4}, 6);
    const auto functions = catalogue::functions(tables);
    const auto plain = plain_functions(tables);
    REQUIRE(functions.size() == plain.size());
    const auto scores = random({P}, 7, 2);
    const auto same = [](double is, double must) { return is == must || is == support::approx(must); };
    for (std::size_t n = 0; n < functions.size(); ++n) {
        CAPTURE(functions[n].name);
        const auto& f = functions[n].f;
        for (int query = 0; query < int{S}; query += 9) {
            for (int key = 0; key < int{P}; key += 7) {
                const auto e = pack<double>(scores(static_cast<std::size_t>(key)));
                score_index p;
                p.batch = key % int{B};
                p.head = query % 2;
                p.query = pack<std::int32_t>(query);
                p.key = pack<std::int32_t>(key);
                const auto value = f(e, p);
                const auto both = f(dual<double>(e, pack<double>(1)), p);
                const auto must = plain[n]({e[0], 1}, {p.batch, p.head, query, key});
                CHECK(same(value[0], must.value));
                CHECK(same(both.value[0], must.value));
                CHECK(same(both.slope[0], must.slope));
            }
        }
    }
}

TEST_CASE("an entry is at most five lines long")
{
    const auto folder = std::filesystem::path(__FILE__).parent_path() / "../../examples/catalogue";
    std::size_t entries = 0;
    for (const char* const name : {"scores.hpp", "masks.hpp"}) {
        std::ifstream file(folder / name);
        std::string line, first;
        std::size_t lines = 0;
        int open = 0;  // brackets
        while (std::getline(file, line)) {
            const std::string start = line.substr(0, std::min(line.size(), line.find_first_not_of(' ')));
            const std::string text = line.substr(start.size());
            if (open == 0 && !text.starts_with("add(") && !text.starts_with("inline constexpr auto ")) continue;
            if (open == 0) {
                ++entries;
                first = line;
                lines = 0;
            }
            ++lines;
            for (const char c : text.substr(0, text.find("//"))) {
                open += std::string("({[").find(c) != std::string::npos ? 1 : 0;
                open -= std::string(")}]").find(c) != std::string::npos ? 1 : 0;
            }
            if (open == 0) CHECK_MESSAGE(lines <= 5, first << " has " << lines << " lines");
        }
        CHECK(open == 0);
    }
    CHECK(entries == 17 + 3 + 2 + 23);
}
