// SPDX-License-Identifier: BSD-3-Clause
#include <heed/core/dual_number.hpp>
#include <heed/gemm/blas.hpp>
#include <heed/kernels/softmax.hpp>
#include <heed/simd/dual_lanes.hpp>
#include <heed/simd/simd.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

// Registers, lanes and products of dual numbers against single ones, and single ones against what derivatives are.

using namespace heed;

namespace {

/// Values around 0.9, slopes around 0, none of them special.
template <class T>
std::vector<dual_number<T>> numbers(std::size_t n, double phase = 0)
{
    std::vector<dual_number<T>> x;
    for (std::size_t i = 0; i < n; ++i) {
        const double k = static_cast<double>(i) + phase;
        x.push_back({static_cast<T>(0.9 + 0.7 * std::sin(1.3 * k)), static_cast<T>(std::cos(2.1 * k))});
    }
    return x;
}

/// But for rounding; `operations`: how many there were.
template <class T>
bool near(const dual_number<T>& a, const dual_number<T>& b, std::size_t operations = 16)
{
    const double most = static_cast<double>(operations) * static_cast<double>(std::numeric_limits<T>::epsilon());
    return std::abs(static_cast<double>(a.value - b.value)) <= most * (1 + std::abs(static_cast<double>(b.value))) &&
           std::abs(static_cast<double>(a.slope - b.slope)) <= most * (1 + std::abs(static_cast<double>(b.slope)));
}

/// A function of registers, of lanes and of single numbers gives the same.
template <class T>
void check_function(const char* name, const auto& of_register, const auto& of_one)
{
    CAPTURE(name);
    const std::size_t n = 3 * simd::lanes<T> + 1;
    const auto x = numbers<T>(n), y = numbers<T>(n, 0.5);
    std::vector<dual_number<T>> z(n);
    simd::transform(n, z.data(), of_register, static_cast<const dual_number<T>*>(x.data()),
                    static_cast<const dual_number<T>*>(y.data()));
    for (std::size_t i = 0; i < n; ++i) CHECK(near(z[i], of_one(x[i], y[i])));
}

template <class T>
void check_all()
{
    using D = dual_number<T>;
    const auto both = [](const char* name, const auto& f) { check_function<T>(name, f, f); };
    both("+", [](auto a, auto b) { return a + b; });
    both("-", [](auto a, auto b) { return -a - b; });
    both("*", [](auto a, auto b) { return a * b; });
    both("/", [](auto a, auto b) { return a / b; });
    both("constants", [](auto a, auto) { return 2 * a - a / 3 + (1 - a) * 0.5; });
    check_function<T>(
        "fma", [](auto a, auto b) { return simd::fma(a, b, a); }, [](D a, D b) { return a * b + a; });
    check_function<T>(
        "exp", [](auto a, auto) { return simd::exp(a); }, [](D a, D) { return exp(a); });
    check_function<T>(
        "log", [](auto a, auto) { return simd::log(a); }, [](D a, D) { return log(a); });
    check_function<T>(
        "log1p", [](auto a, auto) { return simd::log1p(a); }, [](D a, D) { return log1p(a); });
    check_function<T>(
        "tanh", [](auto a, auto) { return simd::tanh(a); }, [](D a, D) { return tanh(a); });
    check_function<T>(
        "sin", [](auto a, auto) { return simd::sin(a); }, [](D a, D) { return sin(a); });
    check_function<T>(
        "cos", [](auto a, auto) { return simd::cos(a); }, [](D a, D) { return cos(a); });
    check_function<T>(
        "sqrt", [](auto a, auto) { return simd::sqrt(a); }, [](D a, D) { return sqrt(a); });
    check_function<T>(
        "sigmoid", [](auto a, auto) { return simd::sigmoid(a); }, [](D a, D) { return 1 / (1 + exp(-a)); });
    check_function<T>(
        "normal_cdf", [](auto a, auto) { return simd::normal_cdf(a); },
        [](D a, D) {
            using real = decltype(a.value);
            const real below = std::erfc(-a.value / std::sqrt(real(2))) / 2;
            return D(below, std::exp(-a.value * a.value / 2) / std::sqrt(2 * std::acos(real(-1))) * a.slope);
        });
    check_function<T>(
        "max", [](auto a, auto b) { return simd::max(a, b); }, [](D a, D b) { return a > b ? a : b; });
    check_function<T>(
        "min", [](auto a, auto b) { return simd::min(a, b); }, [](D a, D b) { return a < b ? a : b; });
    check_function<T>(
        "select", [](auto a, auto b) { return simd::select(a >= b, a + b, a * b); },
        [](D a, D b) { return a >= b ? a + b : a * b; });
}

}  // namespace

TEST_CASE("functions of registers are those of numbers")
{
    check_all<float>();
    check_all<double>();
}

TEST_CASE("functions of numbers have the slopes that differences find")
{
    const double h = 1e-5;
    const auto check = [&](const auto& f) {
        for (const double x : {0.3, 0.9, 2.0}) {
            const auto y = f(dual_number<double>(x, 3));
            CHECK(y.value == doctest::Approx(value_of(f(x))).epsilon(1e-14));
            CHECK(y.slope == doctest::Approx(3 * (value_of(f(x + h)) - value_of(f(x - h))) / (2 * h)).epsilon(1e-8));
        }
    };
    using std::exp, std::log, std::log1p, std::sqrt, std::tanh, std::sin, std::cos, std::abs;
    check([](auto x) { return exp(x); });
    check([](auto x) { return log(x); });
    check([](auto x) { return log1p(x); });
    check([](auto x) { return sqrt(x); });
    check([](auto x) { return tanh(x); });
    check([](auto x) { return sin(x); });
    check([](auto x) { return cos(x); });
    check([](auto x) { return abs(-x); });
    check([](auto x) { return (x * x - 2) / (x + 1) - x * 0.5; });
    auto x = dual_number<double>(2, 1);
    x *= x;  // x²
    x += 1;
    x -= 2 * x;
    x /= -1;
    CHECK(x.value == 5);
    CHECK(x.slope == 4);
}

TEST_CASE("loads and stores of any number of them touch no more than these")
{
    const auto check = [](auto element) {
        using T = decltype(element);
        using D = dual_number<T>;
        constexpr std::size_t L = simd::lanes<D>;
        static_assert(L == simd::lanes<T>);
        const auto x = numbers<T>(L);
        for (std::size_t n = 0; n < L; ++n) {
            const auto v = simd::load(x.data(), n);
            std::vector<D> y(L, D(7, 8));
            simd::store(y.data(), v, n);
            for (std::size_t i = 0; i < L; ++i) {
                CHECK(v[i].value == (i < n ? x[i].value : 0));
                CHECK(v[i].slope == (i < n ? x[i].slope : 0));
                CHECK(y[i].value == (i < n ? x[i].value : 7));
                CHECK(y[i].slope == (i < n ? x[i].slope : 8));
            }
        }
        const auto whole = simd::load(x.data());
        D total = 0, top = x[0];
        for (const D& each : x) {
            total += each;
            top = each > top ? each : top;
        }
        CHECK(near(simd::sum(whole), total));
        CHECK(simd::max(whole).value == top.value);
        CHECK(simd::max(whole).slope == top.slope);
        const auto filled = simd::fill_behind<D>(whole, 1, D(3, 4));
        CHECK(filled[0].slope == x[0].slope);
        CHECK(filled[L - 1].slope == 4);
    };
    check(float{});
    check(double{});
}

TEST_CASE("a 0 that changes is not 0, and what is infinite does not change")
{
    using D = dual_number<double>;
    constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    CHECK(D(0, 0) == 0);
    CHECK(D(0, 1) != 0);
    CHECK(D(-infinity, nan) == -infinity);
    CHECK(D(nan, 0) != D(nan, 0));
    CHECK(!(D(0, 1) < 0));
    CHECK(D(1, 5) <= D(1, 3));
    CHECK(exp(D(-infinity, nan)) == 0);
    const auto lanes_of = [](D x) { return simd::vec<D>(x); };
    CHECK(!simd::any(lanes_of(D(0, 0)) != 0));
    CHECK(simd::any(lanes_of(D(0, 1)) != 0));
    CHECK(simd::any(lanes_of(D(-infinity, nan)) == -infinity));
    CHECK(simd::exp(lanes_of(D(-infinity, nan)))[0] == 0);
    CHECK(simd::sigmoid(lanes_of(D(-infinity, nan)))[0] == 0);
    CHECK(simd::sqrt(lanes_of(D(0, 0)))[0] == 0);
    CHECK((lanes_of(D(-infinity, 0)) * 2)[0].slope == 0);
    CHECK((pack<D>(D(0, 1)) != 0).at[0] != 0);
    CHECK((pack<D>(D(0, 0)) != 0).at[0] == 0);
}

TEST_CASE("lanes of dual numbers, their functions, and derivatives of these by a score")
{
    const auto check = [](auto element) {
        using T = decltype(element);
        using D = dual_number<T>;
        const auto x = numbers<T>(lane_count), y = numbers<T>(lane_count, 0.5);
        const auto a = detail::load_lanes(x.data()), b = detail::load_lanes(y.data());
        std::vector<D> back(lane_count);
        detail::store_lanes(back.data(), a);
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(back[i].slope == x[i].slope);
        const auto f = [](auto e, auto c) {
            using std::exp, std::log, std::tanh, std::sqrt, std::sin, std::cos, std::abs;
            return tanh(e * c) / (2 + sqrt(abs(c - e))) + 3 * exp(-e) * log(c + 1) - sin(e) * cos(c);
        };
        const auto of_lanes = f(a, b);
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(near(of_lanes[i], f(x[i], y[i])));
        // By the score: ∂f/∂e and its own slope, against a difference in double.
        const dual<D> by_score = f(dual<D>(a, 1), b);
        const double h = 1e-5;
        for (std::size_t i = 0; i < lane_count; ++i) {
            const dual_number<double> e(x[i]), c(y[i]);
            const auto above = f(e + h, c), below = f(e - h, c);
            const double most = 2e-4;
            CHECK(static_cast<double>(by_score.slope[i].value) ==
                  doctest::Approx((above.value - below.value) / (2 * h)).epsilon(most));
            CHECK(static_cast<double>(by_score.slope[i].slope) ==
                  doctest::Approx((above.slope - below.slope) / (2 * h)).epsilon(most));
        }
        const auto chosen = select(a > b, a, T(2));
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(chosen[i].slope == (x[i] > y[i] ? x[i].slope : T(0)));
        // Whole numbers and plain scores among them have no slope.
        const auto mixed = a * pack<std::int32_t>(3) + pack<T>(T(0.5));
        for (std::size_t i = 0; i < lane_count; ++i) CHECK(near(mixed[i], 3 * x[i] + T(0.5)));
    };
    check(float{});
    check(double{});
}

TEST_CASE("products of matrices of dual numbers, each way round, added or not, and where one is constant")
{
    const auto check = [](auto element, bool constant_a, bool constant_b, std::size_t M, std::size_t N, std::size_t K) {
        using T = decltype(element);
        using D = dual_number<T>;
        using blas::op;
        const std::size_t wide = std::max({M, N, K}) + 2;
        for (const op op_a : {op::plain, op::transposed}) {
            for (const op op_b : {op::plain, op::transposed}) {
                for (const D beta : {D(0), D(1), D(T(0.5), T(2))}) {
                    auto A = numbers<T>(wide * wide, 1), B = numbers<T>(wide * wide, 2);
                    for (D& x : A) x.slope = constant_a ? 0 : x.slope;
                    for (D& x : B) x.slope = constant_b ? 0 : x.slope;
                    auto C = numbers<T>(M * wide, 3);
                    const auto before = C;
                    blas::gemm(op_a, op_b, M, N, K, static_cast<const D*>(A.data()), wide,
                               static_cast<const D*>(B.data()), wide, beta, C.data(), wide);
                    for (std::size_t i = 0; i < M; ++i) {
                        for (std::size_t j = 0; j < wide; ++j) {
                            D sum = j < N ? beta * before[i * wide + j] : before[i * wide + j];
                            for (std::size_t k = 0; j < N && k < K; ++k) {
                                sum += (op_a == op::plain ? A[i * wide + k] : A[k * wide + i]) *
                                       (op_b == op::plain ? B[k * wide + j] : B[j * wide + k]);
                            }
                            CHECK(near(C[i * wide + j], sum, 2 * K + 8));
                        }
                    }
                }
            }
        }
    };
    for (const bool a : {false, true}) {
        for (const bool b : {false, true}) {
            // Few rows, short sums, and neither.
            const std::size_t sizes[][3]{{5, 7, 3},   {6, 70, 20}, {1, 70, 41}, {3, 41, 20},
                                         {2, 141, 1}, {7, 3, 300}, {40, 70, 41}};
            for (const auto& [M, N, K] : sizes) {
                check(float{}, a, b, M, N, K);
                check(double{}, a, b, M, N, K);
            }
        }
    }
    const dual_number<double>* const none = nullptr;
    std::vector<dual_number<double>> C(4, dual_number<double>(3, 4));
    blas::gemm(blas::op::plain, blas::op::plain, 2, 2, 0, none, none, dual_number<double>(0), C.data());
    CHECK(C[3] == 0);
    C.assign(4, dual_number<double>(3, 4));
    blas::gemm(blas::op::plain, blas::op::transposed, 2, 2, 0, none, none, dual_number<double>(0), C.data());
    CHECK(C[3] == 0);
}

TEST_CASE("sums of many are as accurate as those of single numbers")
{
    std::vector<dual_number<float>> x(20000, dual_number<float>(0.1F, 0.3F)), y(20000);
    kernels::detail::softmax_row(x.size(), static_cast<const dual_number<float>*>(x.data()), y.data());
    CHECK(y[7].value == doctest::Approx(1.0 / 20000).epsilon(1e-6));
    CHECK(std::abs(y[7].slope) < 1e-10F);
}
