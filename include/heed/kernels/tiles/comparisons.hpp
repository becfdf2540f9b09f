// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include <heed/core/workspace.hpp>
#include <heed/kernels/block_sums.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/kernels/tiles/transpose.hpp>
#include <heed/simd/simd.hpp>

/// How the queries and keys of a tile are compared: by inner products, or by a sum over dimensions i of a function of
/// two numbers.
///
///     e_j = scale · q · k_j
///     e_j = scale · f(Σ_i g(q_i, k_ji))
///
///     additive: g = v_i tanh(q_i + k_ji), f(x) = x            Bahdanau et al. 2015, appendix A.1.2
///     closeness: g = (q_i − k_ji)², f(x) = 1 / (1 + √x)       Yin et al. 2016, section 4
///
/// A sum is computed for a register of queries and a few keys. The backward pass recomputes g. Registers without
/// queries are skipped, since g may be expensive.
///
/// A comparison is a struct with a `block`, which compares a block of queries with any keys:
///
///     block(of, s, n)                       n queries of the head from s on
///     scores(visible, tile)                 of a tile, [keys][lanes]: the visible rows
///     finite()                              are the queries finite?
///     begin_back(), back(visible, d, to, selects)
///                                           backward from d, ∂e / scale; `d` may be changed. A key or a query gets no
///                                           gradient where d is 0: if queries are not finite, `selects` is true
///     sums_finite()                         if false, back() has to be called again with `selects`
///     add_to(to)                            adds the sums over all keys to the queries' gradients
///
/// It may name an `arithmetic` of kernels/tiles/products.hpp, which also multiplies weights and values, and
/// `most_blocks`, the number of query blocks that a forward pass by softmax processes at once.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// e_j = scale · q · k_j, by an arithmetic of kernels/tiles/products.hpp.
template <class Arithmetic>
struct inner_product_by {
    static constexpr bool has_factors = false, prepares = false;
    static constexpr std::size_t most_blocks = 32;  // query blocks that a forward pass processes at once
    using arithmetic = Arithmetic;

    template <std::size_t registers, class T>
    class block {
    public:
        block(const head<T>& of, std::size_t s, std::size_t n) : of_(of), s_(s), n_(n)
        {
            panel_ = here_.template take<T>(of.width * lanes<T, registers>);
            detail::transposed<registers>(of.width, n, queries(), of.scale, panel_);
            packed_ = Arithmetic::packed(of.width, width, static_cast<const T*>(panel_), here_);
        }

        void scores(const visible_tile& visible, T* tile) const
        {
            detail::each_part<registers, T>(visible, [&](auto some, std::size_t lane, const range& rows) {
                Arithmetic::template scores<some>(of_, {visible.first + rows.begin, visible.first + rows.end}, packed_,
                                                  lane, tile + rows.begin * width + lane, width);
            });
        }

        void begin_back()
        {
            const std::size_t size = of_.width * width;
            d_queries_ = detail::filled(here_, size, T(0));
            if (of_.positions > keys_of_sum) before_ = detail::filled(here_, 2 * size, T(0));
        }
        bool finite() const { return detail::finite_lanes<registers>(of_.width, n_, panel_); }
        void back(const visible_tile& visible, const T* d, const head_gradients<T>& to, bool selects)
        {
            const std::size_t first = visible.first;
            if (to.keys.data != nullptr)
                Arithmetic::template products_of_lanes<registers>(!selects, visible.count, n_, d, queries(),
                                                                  to.keys.from(first), of_.width, &visible);
            if (to.queries.data == nullptr) return;
            if (selects)
                return detail::selected_products<registers>(of_.width, visible.count, of_.keys.from(first), d,
                                                            d_queries_);
            if (before_ != nullptr && first / keys_of_sum != block_) end_block(first / keys_of_sum);
            detail::each_part<registers, T>(visible, [&](auto some, std::size_t lane, const range& rows) {
                Arithmetic::template products<some, true>(of_.width, rows.size(), of_.keys[first + rows.begin], 1,
                                                          of_.keys.stride, d + rows.begin * width + lane,
                                                          d_queries_ + lane, width);
            });
        }
        /// A key that no query sees may be infinite or NaN.
        bool sums_finite()
        {
            if (before_ != nullptr) {
                end_block(block_);
                std::copy_n(before_, of_.width * width, d_queries_);
                kernels::detail::add_lost(of_.width * width, d_queries_, before_ + of_.width * width);
                before_ = nullptr;
            }
            return detail::finite_lanes<registers>(of_.width, n_, d_queries_);
        }
        void add_to(const head_gradients<T>& to) const
        {
            detail::add_transposed<registers>(of_.width, s_, n_, d_queries_, to.queries);
        }

    protected:
        rows<const T> queries() const { return of_.queries.from(s_); }

        const head<T>& of_;
        std::size_t s_, n_;
        T *panel_ = nullptr, *d_queries_ = nullptr;

    private:
        static constexpr std::size_t width = lanes<T, registers>;

        /// Moves to another block of keys_of_sum keys.
        [[gnu::noinline]] void end_block(std::size_t next)
        {
            const std::size_t size = of_.width * width;
            kernels::detail::add_and_keep(size, before_, before_ + size, d_queries_);
            std::fill_n(d_queries_, size, T(0));
            block_ = next;
        }

        scratch here_;
        typename Arithmetic::template panel<T> packed_{};
        T* before_ = nullptr;  // Σ of the earlier blocks of keys, and its rounding error; null: one block
        std::size_t block_ = 0;
    };
};
/// Inner products in the element type.
struct inner_product : inner_product_by<detail::own_arithmetic> {};

namespace detail {

/// The operands of a sum over dimensions: queries in lanes, keys from index `first` on, and a factor for each
/// dimension.
template <class T>
struct summands {
    const T* panel;
    rows<const T> keys;
    const T* factors;
    std::size_t width, first;

    const T* key(std::size_t number) const { return keys[number - first]; }

    template <class Terms>
    simd::vec<T> factor(std::size_t i) const
    {
        return simd::splat(Terms::has_factors ? factors[i] : T(1));
    }
};

/// f(r, Σ_i g(q_i, k_i)) for a register of queries, in a panel with rows `across` apart, and `few` keys.
template <class Terms, std::size_t few, std::size_t across, class T>
HEED_SIMD_INLINE void sums(const summands<T>& x, std::size_t lane, std::size_t key, const auto& f)
{
    const T* const k = x.key(key);
    simd::vec<T> sum[few] = {};
    for (std::size_t i = 0; i < x.width; ++i) {
        simd::vec<T> at_key[few];
        simd::unrolled<few>([&](auto r) { at_key[r] = simd::splat(k[r * x.keys.stride + i]); });
        Terms::add(sum, simd::load(x.panel + i * across + lane), at_key, x.template factor<Terms>(i));
    }
    simd::unrolled<few>([&](auto r) { f(r, sum[r]); });
}

/// Backward from the lanes `in` of d [few][across] to d_queries [width][across], to d_keys and to d_factors [width][a
/// register]; d_keys may be null. With `selects`, for one key: adds nothing where d is 0, as at a hidden key, since it
/// or a query may be infinite or NaN.
template <class Terms, std::size_t few, std::size_t across, bool selects = false, class T>
void back_sums(const summands<T>& x, const range& in, std::size_t key, const T* d, T* d_queries, rows<T> d_keys,
               T* d_factors)
{
    using namespace simd;
    const T* const k = x.key(key);
    vec<T> all{};
    if constexpr (Terms::has_factors) {
        for (std::size_t lane = in.begin; lane < in.end; lane += simd::lanes<T>)
            unrolled<few>([&](auto r) { all += load(d + r * across + lane); });
    }
    for (std::size_t i = 0; i < x.width; ++i) {
        const vec<T> v = x.template factor<Terms>(i) * T(Terms::outer);
        vec<T> at_key[few], to_keys[few] = {}, to_factor{};
        unrolled<few>([&](auto r) { at_key[r] = splat(k[r * x.keys.stride + i]); });
        for (std::size_t lane = in.begin; lane < in.end; lane += simd::lanes<T>) {
            vec<T> d_sum[few], to_query{};
            unrolled<few>([&](auto r) { d_sum[r] = load(d + r * across + lane); });
            if constexpr (selects) {
                static_assert(few == 1);
                vec<T> of_query{}, of_key[1] = {}, of_factor{};
                Terms::back(load(x.panel + i * across + lane), at_key, d_sum, of_query, of_key, of_factor);
                const auto nothing = d_sum[0] == vec<T>{};
                to_query = select(nothing, vec<T>{}, of_query);
                to_keys[0] += select(nothing, vec<T>{}, of_key[0]);
                to_factor += select(nothing, vec<T>{}, of_factor);
            } else {
                Terms::back(load(x.panel + i * across + lane), at_key, d_sum, to_query, to_keys, to_factor);
            }
            T* const at = d_queries + i * across + lane;
            store(at, fma(v, to_query, load(at)));
        }
        if (d_keys.data != nullptr) {
            T sums[few];
            if constexpr (few == 4) {
                simd::sums(to_keys[0], to_keys[1], to_keys[2], to_keys[3], sums);
            } else {
                unrolled<few>([&](auto r) { sums[r] = sum(to_keys[r]); });
            }
            unrolled<few>([&](auto r) { d_keys[key + r][i] += v[0] * sums[r]; });
        }
        if constexpr (Terms::has_factors) {
            T* const at = d_factors + i * simd::lanes<T>;
            store(at, load(at) + Terms::of_factor(to_factor, all));
        }
    }
}

/// g = v tanh(q + k)        ∂q += v (1 − tanh²) ∂, likewise ∂k;  ∂v += tanh ∂
struct additive_terms {
    static constexpr bool has_factors = true, bends = false;
    static constexpr int outer = 1;  // a factor of the gradients of q and k, in addition to v

    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void add(V (&sum)[few], V q, const V (&k)[few], V v)
    {
        simd::unrolled<few>([&](auto r) { sum[r] = simd::fma(v, simd::tanh(q + k[r]), sum[r]); });
    }
    /// f of the sum; `factors` is their sum.
    HEED_SIMD_INLINE static auto value(auto sum, auto) { return sum; }
    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void back(V q, const V (&k)[few], const V (&d)[few], V& to_query, V (&to_keys)[few],
                                      V& to_factor)
    {
        simd::unrolled<few>([&](auto r) {
            const V t = simd::tanh(q + k[r]), along = d[r] * t, rest = simd::fma(-along, t, d[r]);
            to_query += rest;
            to_keys[r] += rest;
            to_factor += along;
        });
    }
    /// The gradient of v; `all` is the sum of the derivatives.
    HEED_SIMD_INLINE static auto of_factor(auto to_factor, auto) { return to_factor; }
};

/// additive_terms by exponentials, without a transcendental function for each pair: with r = 1 / (1 + e^2q e^2k),
///
///     tanh(q + k) = 1 − 2 r,  1 − tanh² = 4 r (1 − r)
struct additive_of_exponentials {
    static constexpr bool has_factors = true;
    static constexpr int outer = 4;
    template <class T>
    static constexpr T limit = sizeof(T) == sizeof(float) ? 10 : 80;  // the product of two 1/r stays finite

    HEED_SIMD_INLINE static auto prepared(auto x) { return simd::exp(x + x); }
    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void add(V (&sum)[few], V q, const V (&k)[few], V v)
    {
        V r[few];
        rests(q, k, r);
        simd::unrolled<few>([&](auto i) { sum[i] = simd::fma(v, r[i], sum[i]); });
    }
    HEED_SIMD_INLINE static auto value(auto sum, auto factors) { return factors - (sum + sum); }
    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void back(V q, const V (&k)[few], const V (&d)[few], V& to_query, V (&to_keys)[few],
                                      V& to_factor)
    {
        V r[few];
        rests(q, k, r);
        simd::unrolled<few>([&](auto i) {
            const V along = d[i] * r[i], rest = simd::fma(-along, r[i], along);
            to_query += rest;
            to_keys[i] += rest;
            to_factor += along;
        });
    }
    HEED_SIMD_INLINE static auto of_factor(auto to_factor, auto all) { return all - (to_factor + to_factor); }

private:
    /// r of each key; pairs of keys share a division, the slowest operation.
    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void rests(V q, const V (&k)[few], V (&r)[few])
    {
        const V one = V{} + 1;
        V x[few];
        simd::unrolled<few>([&](auto i) { x[i] = simd::fma(q, k[i], one); });
        if constexpr (few == 1) {
            r[0] = one / x[0];
        } else {
            simd::unrolled<few / 2>([&](auto i) {
                const V both = one / (x[2 * i] * x[2 * i + 1]);
                r[2 * i] = both * x[2 * i + 1];
                r[2 * i + 1] = both * x[2 * i];
            });
        }
    }
};

/// g = (q − k)², f(x) = 1 / (1 + √x)        ∂q −= f² (q − k) / √x ∂, ∂k its negative; 0 at the kink, x = 0
struct closeness_terms {
    static constexpr bool has_factors = false, bends = true;
    static constexpr int outer = 1;

    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void add(V (&sum)[few], V q, const V (&k)[few], V)
    {
        simd::unrolled<few>([&](auto r) {
            const V d = q - k[r];
            sum[r] = simd::fma(d, d, sum[r]);
        });
    }
    HEED_SIMD_INLINE static auto value(auto sum, auto) { return 1 / (1 + simd::sqrt(sum)); }
    /// The factor of q − k.
    template <class V>
    HEED_SIMD_INLINE static V slope(V sum)
    {
        const V x = simd::sqrt(sum), f = 1 / (1 + x);
        return simd::select(x == 0, V{}, -f * f / x);
    }
    template <std::size_t few, class V>
    HEED_SIMD_INLINE static void back(V q, const V (&k)[few], const V (&d)[few], V& to_query, V (&to_keys)[few], V&)
    {
        simd::unrolled<few>([&](auto r) {
            const V pulled = d[r] * (q - k[r]);
            to_query += pulled;
            to_keys[r] -= pulled;
        });
    }
};

}  // namespace detail

/// e_j = scale · f(Σ_i g(q_i, k_ji)): `Terms` has g, f and their derivatives. `Quick`: terms for the same sum, with
/// values precomputed for each query and for each key of a tile, valid if the inputs are within `limit`.
template <class Terms, class Quick = void>
struct sum_of {
    static constexpr bool has_factors = Terms::has_factors, prepares = !std::is_void_v<Quick>;

    template <std::size_t registers, class T>
    class block {
    public:
        block(const head<T>& of, std::size_t s, std::size_t n) : of_(of), s_(s), n_(n)
        {
            constexpr std::size_t one = simd::lanes<T>;
            used_ = (n + one - 1) / one * one;
            T* const panel = here_.template take<T>(of.width * width);
            detail::transposed<registers>(of.width, n, of.queries.from(s), T(1), panel);
            plain_ = {panel, of.keys, of.factors, of.width, 0};
            if constexpr (prepares) {
                quick_ = here_.template take<T>(of.width * width);
                serves_ = prepared(of.width * width, panel, quick_);
                if (serves_) keys_ = here_.template take<T>(tiles::keys * (of.width + 1));
            }
            for (std::size_t i = 0; has_factors && i < of.width; ++i) factors_ += of.factors[i];
        }

        void scores(const visible_tile& visible, T* tile) const
        {
            const std::size_t first = visible.first;
            for (std::size_t j = 0; used_ < width && j < visible.count; ++j)
                std::fill(tile + j * width + used_, tile + (j + 1) * width, T(0));
            const simd::vec<T> scale = simd::splat(of_.scale), factors = simd::splat(factors_);
            if constexpr (prepares) {
                T* to = keys_;
                for (std::size_t j = 0; serves_ && j < visible.count; ++j, to += of_.width + 1)
                    to[of_.width] = prepared(of_.width, of_.keys[first + j], to) ? T(1) : T(0);
            }
            simd::in_groups<4>(0, visible.count, [&](auto few, std::size_t j) {
                const range in = visible.lanes_of({j, j + few}, used_);
                with_terms<few>(first, j, [&](const auto& x, auto terms) {
                    using chosen = decltype(terms);
                    for (std::size_t lane = in.begin; lane < in.end; lane += simd::lanes<T>) {
                        detail::sums<chosen, few, width>(x, lane, first + j, [&](auto r, simd::vec<T> sum) {
                            simd::store(tile + (j + r) * width + lane, scale * chosen::value(sum, factors));
                        });
                    }
                });
            });
        }

        void begin_back()
        {
            d_queries_ = detail::filled(here_, of_.width * width, T(0));
            d_factors_ = detail::filled(here_, of_.width * simd::lanes<T>, T(0));
        }
        bool finite() const { return detail::finite_lanes<registers>(of_.width, n_, plain_.panel); }
        /// Each key is checked, which costs little compared with a function of each dimension.
        bool sums_finite() const { return true; }
        /// For the tile of the last call of scores().
        void back(const visible_tile& visible, T* d, const head_gradients<T>& to, bool selects)
        {
            const std::size_t first = visible.first;
            simd::in_groups<4>(0, visible.count, [&](auto few, std::size_t j) {
                const range in = visible.lanes_of({j, j + few}, used_);
                if (in.empty()) return;
                if (selects || !detail::finite_rows(few, of_.width, of_.keys.from(first + j)))
                    return back_selected(few, first, j, in, d, to);
                if constexpr (Terms::bends) {
                    for (std::size_t lane = in.begin; lane < in.end; lane += simd::lanes<T>) {
                        detail::sums<Terms, few, width>(plain_, lane, first + j, [&](auto r, simd::vec<T> sum) {
                            T* const at = d + (j + r) * width + lane;
                            simd::store(at, simd::load(at) * Terms::slope(sum));
                        });
                    }
                }
                with_terms<few>(first, j, [&](const auto& x, auto terms) {
                    detail::back_sums<decltype(terms), few, width>(x, in, first + j, d + j * width, d_queries_, to.keys,
                                                                   d_factors_);
                });
            });
        }
        void add_to(const head_gradients<T>& to) const
        {
            detail::add_transposed<registers>(of_.width, s_, n_, d_queries_, to.queries);
            for (std::size_t i = 0; to.factors != nullptr && i < of_.width; ++i)
                to.factors[i] += simd::sum(simd::load(d_factors_ + i * simd::lanes<T>));
        }

    private:
        static constexpr std::size_t width = lanes<T, registers>;

        [[gnu::noinline]] void back_selected(std::size_t few, std::size_t first, std::size_t j, const range& in, T* d,
                                             const head_gradients<T>& to)
        {
            using namespace simd;
            for (const std::size_t end = j + few; j < end; ++j) {
                if constexpr (Terms::bends) {
                    for (std::size_t lane = in.begin; lane < in.end; lane += simd::lanes<T>) {
                        detail::sums<Terms, 1, width>(plain_, lane, first + j, [&](auto, vec<T> sum) {
                            T* const at = d + j * width + lane;
                            store(at, select(load(at) == vec<T>{}, vec<T>{}, load(at) * Terms::slope(sum)));
                        });
                    }
                }
                detail::back_sums<Terms, 1, width, true>(plain_, in, first + j, d + j * width, d_queries_, to.keys,
                                                         d_factors_);
            }
        }

        /// f(summands, terms) for a few keys of a tile, with the quick terms if they are valid.
        template <std::size_t few>
        void with_terms(std::size_t first, std::size_t j, const auto& f) const
        {
            if constexpr (prepares) {
                const rows<const T> quick{keys_, of_.width + 1};
                bool all = serves_;
                for (std::size_t r = 0; all && r < few; ++r) all = quick[j + r][of_.width] != T(0);
                if (all) return f(detail::summands<T>{quick_, quick, of_.factors, of_.width, first}, Quick{});
            }
            f(plain_, Terms{});
        }

        scratch here_;
        const head<T>& of_;
        std::size_t s_, n_, used_;  // used: the lanes of registers with queries
        bool serves_ = false;       // may the quick terms be used for these queries?
        T factors_ = 0;             // the sum of the factors
        detail::summands<T> plain_;
        // As Quick reads them: queries in lanes, and keys of a tile [count][width + 1]; the last number is 1 if Quick
        // is valid, else 0.
        T *quick_ = nullptr, *keys_ = nullptr;
        T *d_queries_ = nullptr, *d_factors_ = nullptr;
    };

private:
    /// Returns whether all numbers are within the limit.
    template <class T>
    static bool prepared(std::size_t n, const T* from, T* to)
    {
        using namespace simd;
        const vec<T> limit = splat(Quick::template limit<T>);
        mask<T> within = limit == limit;
        transform(
            n, to,
            [&](auto x) {
                within &= simd::max(x, -x) <= limit;  // false for NaN
                return Quick::prepared(x);
            },
            from);
        return !any(~within);
    }
};

using additive = sum_of<detail::additive_terms, detail::additive_of_exponentials>;
using closeness = sum_of<detail::closeness_terms>;

}  // namespace heed::inline HEED_TARGET::kernels::tiles
