// SPDX-License-Identifier: BSD-3-Clause
//
// Evaluates functions of registers at every float, and at a sample of doubles, for each register width that this
// processor has, and compares them with the C library's in double (long double for doubles). scripts/every_float.sh
// compiles and runs it; docs/explanation/accuracy.md has the results.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <support/functions_of_registers.hpp>

#include "widths.hpp"

namespace {

using namespace heed;

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A number, how large it is, and the input that it belongs to.
struct extreme {
    double size = 0, at = 0;
    void take(double s, double x)
    {
        if (s > size) *this = {s, x};
    }
    void take(const extreme& other) { take(other.size, other.at); }
};

/// Inputs with a fault, and the first one.
struct faults {
    std::uint64_t count = 0;
    double at = 0;
    void take(double x, std::uint64_t n = 1)
    {
        if (n > 0 && (count == 0 || std::abs(x) < std::abs(at))) at = x;
        count += n;
    }
    void take(const faults& other) { take(other.at, other.count); }
};

struct measured {
    std::uint64_t inputs = 0, digest = 0;
    // The largest errors. `ulps` and `subnormal` omit results of 0 where the exact one is not 0: see `flushed`.
    extreme ulps;       // if the exact result is a normal number
    extreme subnormal;  // if it is smaller, in units of the smallest number
    extreme of_one;     // if it is at most 1, in units of the last place of 1
    faults flushes;     // results of 0, although the exact one does not round to 0
    extreme flushed;    // the largest exact one of these
    faults drops;       // results below that of a neighbor, although the function rises between the two; or vice versa
    extreme drop;       // by this many numbers of T
    faults nan, parity, sign_of_zero, position;
    double lowest = infinity, highest = -infinity;

    void take(const measured& b)
    {
        inputs += b.inputs, digest += b.digest;
        ulps.take(b.ulps), subnormal.take(b.subnormal), of_one.take(b.of_one), drop.take(b.drop);
        flushes.take(b.flushes), flushed.take(b.flushed), drops.take(b.drops), nan.take(b.nan), parity.take(b.parity);
        sign_of_zero.take(b.sign_of_zero), position.take(b.position);
        lowest = std::min(lowest, b.lowest), highest = std::max(highest, b.highest);
    }
};

template <class To, class From>
To bits_as(From x)
{
    To y;
    static_assert(sizeof x == sizeof y);
    std::memcpy(&y, &x, sizeof y);
    return y;
}
/// The place of a float among all, in their order; −0 precedes +0.
std::int32_t place(float x)
{
    const auto bits = bits_as<std::int32_t>(x);
    return bits ^ ((bits >> 31) & 0x7fffffff);
}

// ---- floats ---------------------------------------------------------------------------------------------------------

// A block: this number of consecutive magnitudes, the one before, and the same with a minus sign.
constexpr std::uint32_t block = 1u << 15, magnitudes = 0x7f800001u, blocks = (magnitudes + block - 1) / block;

// Eight numbers: the errors of every float take vector instructions.
using doubles = double __attribute__((vector_size(64)));
using longs = std::int64_t __attribute__((vector_size(64)));
using floats = float __attribute__((vector_size(32)));
using ints = std::int32_t __attribute__((vector_size(32)));

template <class V>
V first_of(const auto* x, std::size_t count)
{
    V v{};
    std::memcpy(&v, x, std::min<std::size_t>(count * sizeof *x, sizeof v));
    return v;
}
auto folded(auto v, auto f)
{
    auto y = v[0];
    for (std::size_t i = 1; i < 8; ++i) y = f(y, v[i]);
    return y;
}

constexpr double top = 0x1p128, least_normal = 0x1p-126;

/// Adds the errors of y, whose exact values are `want`. Infinity counts as 2^128.
void add_errors(std::size_t n, const float* x, const float* y, const double* want, measured& total)
{
    // Errors are not negative: their order is that of their bits.
    longs normal{}, tiny{}, of_one{}, digest{}, nan{}, flushes{}, zeros{};
    ints lowest = ints{} + place(infinity), highest = ints{} + place(-infinity);
    const longs all = longs{} - 1, counted = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto larger = [](longs a, longs b) { return a > b ? a : b; };
    for (std::size_t i = 0; i < n; i += 8) {
        const longs valid = n - i < 8 ? longs(counted < static_cast<std::int64_t>(n - i)) : all;
        const auto got = first_of<floats>(y + i, n - i);
        const auto exact = first_of<doubles>(want + i, n - i);
        doubles is = __builtin_convertvector(got, doubles), must = exact;
        const longs no = is != is, not_exact = must != must, number = ~(no | not_exact);
        is = is > top ? doubles{} + top : is, is = is < -top ? doubles{} - top : is;
        must = must > top ? doubles{} + top : must, must = must < -top ? doubles{} - top : must;
        const longs magnitude_bits = reinterpret_cast<longs>(must) & std::numeric_limits<std::int64_t>::max();
        const auto magnitude = reinterpret_cast<doubles>(magnitude_bits);
        const longs off_bits = reinterpret_cast<longs>(is - must) & std::numeric_limits<std::int64_t>::max() & number;
        const auto off = reinterpret_cast<doubles>(off_bits);
        longs exponent = magnitude_bits >> 52;
        exponent = exponent < 897 ? longs{} + 897 : exponent;
        exponent = exponent > 1150 ? longs{} + 1150 : exponent;
        const longs none = (is == 0.0) & (magnitude > 0x1p-150), small = magnitude < least_normal;
        const longs in_ulps = reinterpret_cast<longs>(off * reinterpret_cast<doubles>((2069 - exponent) << 52)) & ~none;
        normal = larger(normal, in_ulps & ~small);
        tiny = larger(tiny, in_ulps & small);
        of_one = larger(of_one, off_bits & (magnitude <= 1.0));
        nan -= (no ^ not_exact) & valid;
        flushes -= none & valid;
        const longs other_sign = (reinterpret_cast<longs>(is) ^ reinterpret_cast<longs>(must)) < 0;
        zeros -= (is == 0.0) & (must == 0.0) & other_sign & valid;
        const auto bits = reinterpret_cast<ints>(got);
        const ints at = bits ^ ((bits >> 31) & 0x7fffffff),
                   counts = (got == got) & __builtin_convertvector(valid, ints);
        lowest = (counts & (at < lowest)) ? at : lowest;
        highest = (counts & (at > highest)) ? at : highest;
        const ints one_nan = got == got ? bits : ints{} + 0x7fc00000;
        const auto of = reinterpret_cast<ints>(first_of<floats>(x + i, n - i));
        digest += (__builtin_convertvector(one_nan, longs) + 0x1e3779b97f4a7c15) *
                      (2 * __builtin_convertvector(of, longs) + 1) &
                  valid;
    }
    const auto plus = [](auto a, auto b) { return a + b; };
    const auto most = [&](longs v) {
        return bits_as<double>(folded(v, [](auto a, auto b) { return std::max(a, b); }));
    };
    total.inputs += n;
    for (std::size_t i = 0; i < 8; ++i) total.digest += static_cast<std::uint64_t>(digest[i]);

    // The inputs of the largest errors and of faults, which are rare.
    const bool any_ulps = most(normal) > total.ulps.size || most(tiny) > total.subnormal.size;
    const bool any_of_one = most(of_one) * 0x1p23 > total.of_one.size;
    const bool any_fault = folded(nan + flushes + zeros, plus) > 0;
    for (std::size_t i = 0; i < n && (any_ulps || any_of_one || any_fault); ++i) {
        const auto at = static_cast<double>(x[i]);
        if (std::isnan(y[i]) != std::isnan(want[i])) total.nan.take(at);
        if (std::isnan(y[i]) || std::isnan(want[i])) continue;
        const double must = std::clamp(want[i], -top, top), magnitude = std::abs(must);
        const double off = std::abs(std::clamp(static_cast<double>(y[i]), -top, top) - must);
        if (magnitude <= 1) total.of_one.take(off * 0x1p23, at);
        if (y[i] == 0 && magnitude > 0x1p-150) {
            total.flushes.take(at);
            total.flushed.take(magnitude, at);
        } else {
            const int exponent = magnitude == 0 ? -126 : std::clamp(std::ilogb(magnitude), -126, 127);
            (magnitude < least_normal ? total.subnormal : total.ulps).take(std::ldexp(off, 23 - exponent), at);
        }
        if (y[i] == 0 && must == 0 && std::signbit(y[i]) != std::signbit(must)) total.sign_of_zero.take(at);
    }
    const auto number = [](std::int32_t at) {
        return static_cast<double>(bits_as<float>(at ^ ((at >> 31) & 0x7fffffff)));
    };
    const std::int32_t low = folded(lowest, [](auto a, auto b) { return std::min(a, b); });
    const std::int32_t high = folded(highest, [](auto a, auto b) { return std::max(a, b); });
    if (low > high) return;  // all are NaN
    total.lowest = std::min(total.lowest, number(low));
    total.highest = std::max(total.highest, number(high));
}

/// y[0] is the result at the magnitude before; `sign` is the direction of change with growing magnitudes.
void add_drops(std::size_t n, const float* x, const float* y, int sign, measured& total)
{
    if (sign == 0) return;
    const float* const high = sign > 0 ? y : y + 1;  // the neighbor that should be lower, and the other one
    const float* const low = sign > 0 ? y + 1 : y;
    ints found{};
    std::size_t i = 0;
    for (; i + 9 <= n; i += 8) found |= first_of<floats>(low + i, 8) < first_of<floats>(high + i, 8);
    for (; i + 1 < n; ++i) found[0] |= low[i] < high[i];
    if (folded(found, [](auto a, auto b) { return a | b; }) == 0) return;
    for (i = 0; i + 1 < n; ++i) {
        if (!(low[i] < high[i])) continue;
        const auto at = static_cast<double>(x[i + 1]);
        total.drops.take(at);
        total.drop.take(static_cast<double>(place(high[i])) - static_cast<double>(place(low[i])), at);
    }
}

bool same(float a, float b) { return bits_as<std::uint32_t>(a) == bits_as<std::uint32_t>(b) || (a != a && b != b); }

/// Evaluates x again in other lanes, in remainders, and next to special numbers.
template <class T>
void add_positions(std::size_t n, const T* x, const T* y, every_float::loop<T> f, measured& total)
{
    const T specials[] = {T(0),
                          T(-0.0),
                          T(1),
                          T(-1),
                          std::numeric_limits<T>::infinity(),
                          -std::numeric_limits<T>::infinity(),
                          std::numeric_limits<T>::quiet_NaN(),
                          std::numeric_limits<T>::denorm_min(),
                          std::numeric_limits<T>::max(),
                          T(-2e6)};
    n = std::min<std::size_t>(n, 4096);
    std::vector<T> in(2 * n), out(2 * n);
    const auto compare = [&](std::size_t count, const T* again, const T* before, const T* at, std::size_t step) {
        for (std::size_t i = 0; i < count; ++i) {
            const T a = again[step * i], b = before[i];
            if (std::memcmp(&a, &b, sizeof a) != 0 && !(a != a && b != b))
                total.position.take(static_cast<double>(at[i]));
        }
    };
    for (const std::size_t first : {1u, 2u, 3u, 5u, 7u, 8u, 11u, 14u, 15u}) {
        if (first >= n) break;
        f(n - first, x + first, out.data());
        compare(n - first, out.data(), y + first, x + first, 1);
    }
    for (std::size_t count = 1; count <= 17; ++count) {
        for (std::size_t first = 0; first + count <= n; first += 509) {
            f(count, x + first, out.data());
            compare(count, out.data(), y + first, x + first, 1);
        }
    }
    for (std::size_t i = 0; i < n; ++i) in[2 * i] = x[i], in[2 * i + 1] = specials[i / 16 % std::size(specials)];
    f(2 * n, in.data(), out.data());
    compare(n, out.data(), y, x, 2);
}

struct evaluated {
    const every_float::width* width;
    std::size_t function;
    measured result;
};

/// The floats of a block, or with `part` > 1 its first part.
template <class F>
void measure_block(std::uint32_t number, std::uint32_t part, std::vector<evaluated>& widths)
{
    static thread_local std::vector<float> x(2 * (block + 1)), y(2 * (block + 1)), earlier(2 * (block + 1));
    static thread_local std::vector<double> want(2 * (block + 1));
    const std::uint32_t first = number * block, before = first == 0 ? 0 : 1;
    const std::uint32_t count = std::min(std::max(block / part, 64u), magnitudes - first) + before;
    float* const minus = x.data() + count;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint32_t bits = first - before + i;
        x[i] = bits_as<float>(bits);
        minus[i] = bits_as<float>(bits | 0x80000000u);
    }
    for (std::size_t i = 0; i < 2 * count; ++i) {
        const auto at = static_cast<double>(x[i]);
        if constexpr (F::parity != 0) {
            want[i] = i < count ? static_cast<double>(F::exact(at)) : F::parity * want[i - count];
        } else {
            want[i] = F::domain(at) ? static_cast<double>(F::exact(at)) : 0;
        }
    }
    const bool plus_counts = F::domain(1.0), minus_counts = F::domain(-1.0) || F::domain(-0.0);
    const std::uint32_t zero = first == 0 && F::domain(0.0) && !plus_counts,
                        minus_zero = first == 0 && !F::domain(-1.0);
    bool again = false;
    measured last;
    for (evaluated& each : widths) {
        const auto f = each.width->functions[each.function].floats;
        f(2 * count, x.data(), y.data());
        if (number % 64 == 37) add_positions(2 * count, x.data(), y.data(), f, each.result);
        if (again && std::memcmp(y.data(), earlier.data(), 2 * count * sizeof(float)) == 0) {
            each.result.take(last);
            continue;
        }
        last = {};
        const auto side = [&](std::size_t from, std::size_t n, int sign) {
            add_errors(n - before, x.data() + from + before, y.data() + from + before, want.data() + from + before,
                       last);
            add_drops(n, x.data() + from, y.data() + from, sign, last);
        };
        const int up = F::falls_off ? -1 : F::rises, down = F::falls_off ? -1 : -F::rises;
        if (plus_counts || zero) side(0, plus_counts ? count : zero, up);
        if (minus_counts && (F::domain(-1.0) || minus_zero)) side(count, F::domain(-1.0) ? count : minus_zero, down);
        if (F::parity != 0) {
            for (std::size_t i = before; i < count; ++i) {
                if (!same(y[count + i], F::parity < 0 ? -y[i] : y[i])) last.parity.take(static_cast<double>(x[i]));
            }
        }
        each.result.take(last);
        earlier.swap(y);
        again = true;
    }
}

/// Every NaN becomes NaN.
void measure_nans(std::uint32_t part, std::vector<evaluated>& widths)
{
    std::vector<float> x(block), y(block);
    for (std::uint64_t first = 0x7f800001u; first < 0x80000000u; first += std::uint64_t{block} * part) {
        for (const std::uint32_t sign : {0u, 0x80000000u}) {
            const auto bits = static_cast<std::uint32_t>(first), count = std::min(block, 0x80000000u - bits);
            for (std::uint32_t i = 0; i < count; ++i) x[i] = bits_as<float>((bits + i) | sign);
            for (evaluated& each : widths) {
                each.width->functions[each.function].floats(count, x.data(), y.data());
                each.result.inputs += count;
                for (std::uint32_t i = 0; i < count; ++i) {
                    if (y[i] == y[i]) each.result.nan.take(static_cast<double>(x[i]));
                }
            }
        }
    }
}

template <class F>
void measure_floats(std::uint32_t part, std::size_t threads, std::vector<evaluated>& widths)
{
    std::atomic<std::uint32_t> next{0};
    std::mutex adding;
    std::vector<std::thread> team;
    for (std::size_t i = 0; i < threads; ++i) {
        team.emplace_back([&] {
            std::vector<evaluated> mine = widths;
            for (std::uint32_t number = next++; number < blocks; number = next++) {
                measure_block<F>(number, part, mine);
                if (number % 4096 == 4095) std::fprintf(stderr, "  %s: %u of %u\n", F::name, number + 1, blocks);
            }
            const std::lock_guard lock{adding};
            for (std::size_t w = 0; w < widths.size(); ++w) widths[w].result.take(mine[w].result);
        });
    }
    for (std::thread& each : team) each.join();
    measure_nans(part, widths);
}

// ---- doubles --------------------------------------------------------------------------------------------------------

/// The bits of x, mixed.
std::uint64_t mixed(std::uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/// Numbers of every exponent and sign: the first and last mantissas, and others; more of the exponents of 1e-9 to 1e6.
template <class F>
void measure_doubles(std::uint32_t part, std::vector<evaluated>& widths)
{
    std::vector<double> x, y, kept;
    std::vector<long double> want;
    for (std::uint64_t exponent = 0; exponent < 2047; ++exponent) {
        x.clear(), want.clear();
        const std::uint64_t all = exponent > 993 && exponent < 1043 ? std::uint64_t{1} << 15 : std::uint64_t{1} << 8;
        for (std::uint64_t i = 0; i < std::max<std::uint64_t>(all / part, 32); ++i) {
            const std::uint64_t random = mixed(exponent << 32 | i) >> 12, end = (std::uint64_t{1} << 52) - 1;
            const std::uint64_t mantissa = i < 8 ? i : i < 16 ? end - (i - 8) : random;
            for (const std::uint64_t sign : {0u, 1u}) {
                const auto each = bits_as<double>(sign << 63 | exponent << 52 | mantissa);
                if (F::domain(each)) x.push_back(each);
            }
        }
        y.resize(x.size());
        for (const double each : x) want.push_back(F::exact(static_cast<long double>(each)));
        for (evaluated& one : widths) {
            measured& total = one.result;
            const auto f = one.width->functions[one.function].doubles;
            f(x.size(), x.data(), y.data());
            for (std::size_t i = 0; i < x.size(); ++i) {
                const double got = y[i];
                const auto must = static_cast<double>(want[i]);
                ++total.inputs;
                total.digest +=
                    (bits_as<std::uint64_t>(got != got ? 0 : got) + 1) * (2 * bits_as<std::uint64_t>(x[i]) + 1);
                if ((got != got) != (must != must)) total.nan.take(x[i]);
                if (got != got || must != must) continue;
                total.lowest = std::min(total.lowest, got), total.highest = std::max(total.highest, got);
                if (got == must) {
                    if (got == 0 && std::signbit(got) != std::signbit(must) && want[i] == 0)
                        total.sign_of_zero.take(x[i]);
                    if (std::isinf(got)) continue;
                }
                const long double end = 0x1p1024L;
                const long double exact = std::clamp(want[i], -end, end);
                const long double off = std::abs((std::isinf(got) ? std::copysign(end, got) : got) - exact);
                const int last = std::clamp(std::ilogb(exact), -1022, 1023) - 52;
                const auto in_ulps = static_cast<double>(std::ldexp(off, -last));
                if (std::abs(exact) <= 1) total.of_one.take(static_cast<double>(off * 0x1p52L), x[i]);
                if (got == 0 && must != 0) {
                    total.flushes.take(x[i]), total.flushed.take(std::abs(must), x[i]);
                } else {
                    (std::abs(exact) < 0x1p-1022L ? total.subnormal : total.ulps).take(in_ulps, x[i]);
                }
            }
            if (exponent % 16 == 7 || (exponent > 993 && exponent < 1043))
                add_positions(x.size(), x.data(), y.data(), f, total);
        }
    }
}

// ---- reports --------------------------------------------------------------------------------------------------------

template <class T>
std::string values_at_specials(every_float::loop<T> f)
{
    using limits = std::numeric_limits<T>;
    const T x[] = {T(0),
                   T(-0.0),
                   T(1),
                   T(-1),
                   limits::infinity(),
                   -limits::infinity(),
                   limits::quiet_NaN(),
                   limits::denorm_min(),
                   limits::min(),
                   limits::max(),
                   limits::lowest()};
    std::string text;
    for (const T each : x) {
        T y = 0;
        f(1, &each, &y);
        char number[40];
        std::snprintf(number, sizeof number, "%.*g", limits::max_digits10,
                      static_cast<double>(y != y ? std::abs(y) : y));
        text += (text.empty() ? "" : ",") + std::string(number);
    }
    return text;
}

void print(const evaluated& each, const char* type, double seconds)
{
    const measured& m = each.result;
    const every_float::compiled_function& f = each.width->functions[each.function];
    const int digits = type[0] == 'f' ? 9 : 17;
    std::printf("%s\t%s\t%s\t%llu", f.name, type, each.width->name, static_cast<unsigned long long>(m.inputs));
    for (const extreme& e : {m.ulps, m.subnormal, m.of_one, m.drop, m.flushed})
        std::printf("\t%.6g\t%.*g", e.size, digits, e.at);
    for (const faults& e : {m.drops, m.flushes, m.nan, m.parity, m.sign_of_zero, m.position})
        std::printf("\t%llu\t%.*g", static_cast<unsigned long long>(e.count), digits, e.at);
    std::printf("\t%.*g\t%.*g\t%016llx\t%s\t%.1f\n", digits, m.lowest, digits, m.highest,
                static_cast<unsigned long long>(m.digest),
                (type[0] == 'f' ? values_at_specials(f.floats) : values_at_specials(f.doubles)).c_str(), seconds);
    std::fflush(stdout);
}

constexpr const char* heading = "function\ttype\twidth\tinputs\tulps\tat\tsubnormal\tat\tof_"
                                "one\tat\tdrop\tat\tflushed\tat\tdrops\tat\tflushes\tat\tnan\tat\tparity\tat\t"
                                "sign_of_zero\tat\tposition\tat\tlowest\thighest\tdigest\tspecials\tseconds";

constexpr const char* usage =
    "usage: every_float [--width NAME] [--part N] [--threads N] FUNCTION...\n"
    "       every_float --list\n"
    "\n"
    "Evaluates each function at every float, and at a sample of doubles, and prints a line for each type and width.\n"
    "\n"
    "  --width NAME   portable, sse2, avx2 or avx512 (default: all that this processor has)\n"
    "  --part N       only the first 1/N of each 32,768 consecutive floats, at least 64 (default: 1)\n"
    "  --threads N    default: one for each core\n"
    "  --list         the names of the functions and of the widths that this processor has\n"
    "  --heading      the line with the names of the columns\n";

double now()
{
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

int fail(const std::string& text)
{
    std::fprintf(stderr, "every_float: %s\n", text.c_str());
    return 2;
}

}  // namespace

int main(int argc, char** argv)
{
    std::vector<const every_float::width*> widths{&every_float::portable, &every_float::sse2};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) widths.push_back(&every_float::avx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        widths.push_back(&every_float::avx512);
    std::vector<std::string> functions;
    std::uint32_t part = 1;
    std::size_t threads = std::max(1u, std::thread::hardware_concurrency());
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option == "-h" || option == "--help") return std::fputs(usage, stdout), 0;
        if (option == "--heading") return std::puts(heading), 0;
        if (option == "--list") {
            accuracy::each_function([](auto f) { std::puts(f.name); });
            for (const auto* width : widths) std::printf("--width %s\n", width->name);
            return 0;
        }
        if (option[0] != '-') {
            functions.push_back(option);
            continue;
        }
        if (i + 1 == argc) return fail(option + " takes a value; see --help");
        const std::string value = argv[++i];
        if (option == "--width") {
            std::erase_if(widths, [&](const auto* width) { return value != width->name; });
            if (widths.empty()) return fail("this processor has no width '" + value + "'; see --list");
        } else if (option == "--part" || option == "--threads") {
            const int n = std::atoi(value.c_str());
            if (n < 1) return fail(option + " takes a positive number, not '" + value + "'");
            if (option == "--part") part = static_cast<std::uint32_t>(n);
            if (option == "--threads") threads = static_cast<std::size_t>(n);
        } else {
            return fail("unknown option " + option + "; see --help");
        }
    }
    if (functions.empty()) return std::fputs(usage, stderr), 2;
    std::size_t found = 0, number = 0;
    accuracy::each_function([&](auto f) {
        using F = decltype(f);
        const auto wanted = static_cast<std::size_t>(std::count(functions.begin(), functions.end(), F::name));
        for (std::size_t i = 0; i < std::min<std::size_t>(wanted, 1); ++i) {
            std::vector<evaluated> floats;
            for (const auto* width : widths) floats.push_back({width, number, {}});
            std::vector<evaluated> doubles = floats;
            double start = now();
            measure_floats<F>(part, threads, floats);
            for (const evaluated& each : floats) print(each, "float", now() - start);
            start = now();
            measure_doubles<F>(part, doubles);
            for (const evaluated& each : doubles) print(each, "double", now() - start);
        }
        found += wanted;
        ++number;
    });
    return found == functions.size() ? 0 : fail("a function is unknown; see --list");
}
