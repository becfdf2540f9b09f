// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <heed/core/workspace.hpp>
#include <heed/kernels/tiles/comparisons.hpp>
#include <heed/kernels/tiles/products.hpp>
#include <heed/kernels/tiles/tiles.hpp>
#include <heed/simd/simd.hpp>

/// Inner products of queries with keys and with embeddings of their relative positions, in tiles.
///
///     e_{s,j} = scale · q_s · (k_j + d_r),  r = clip(j − s, −R, R)        Shaw, Uszkoreit, Vaswani 2018, eq. 4 and 5
///
/// q_s · d_r is computed once for a block of queries, for all 2 R + 1 columns of D. In a tile, lane l of the row of key
/// j needs column j − (s + l) + R, a diagonal. It is copied into rows of lanes,
///
///     row_r[l] = q_{s+l} · d_{clip(r − l, 0, 2R)},  r = 0 … 2 R + lanes − 1
///
/// so that a score costs one addition; more distant keys share the first or the last row. Gradients are added to such
/// rows, and copied back once for all keys.
namespace heed::inline HEED_TARGET::kernels::tiles {

/// The factors are D [A,2R+1] of each head, consecutive.
struct inner_product_with_distances {
    static constexpr bool has_factors = true, of_distances = true, prepares = false;

    template <std::size_t registers, class T>
    class block : public inner_product::block<registers, T> {
        using product = inner_product::block<registers, T>;

    public:
        block(const head<T>& of, std::size_t s, std::size_t n)
            : product(of, s, n),
              columns_(of.width == 0 ? 1 : of.factor_count / of.width),
              rows_(columns_ + lane_count - 1)
        {
            by_row_ = here_.template take<T>(rows_ * width);
            scratch brief;
            T* const by_column = brief.template take<T>(columns_ * width);
            detail::products<registers, false>(columns_, of.width, of.factors, 1, columns_, product::panel_, by_column,
                                               width);
            each_lane([&](std::size_t of_row, std::size_t of_column) { by_row_[of_row] = by_column[of_column]; });
        }

        void scores(const visible_tile& visible, T* tile) const
        {
            product::scores(visible, tile);
            each_run(visible, [&](std::size_t row, std::size_t step, const range& run, std::size_t lane) {
                const T* own = by_row_ + row;
                for (std::size_t j = run.begin; j < run.end; ++j, own += step) {
                    T* const at = tile + j * width + lane;
                    simd::unrolled<lane_count / one>([&](auto c) {
                        simd::store(at + c * one, simd::load(at + c * one) + simd::load(own + c * one));
                    });
                }
            });
        }

        void begin_back()
        {
            product::begin_back();
            d_by_row_ = detail::filled(here_, rows_ * width, T(0));
        }
        void back(const visible_tile& visible, const T* d, const head_gradients<T>& to, bool selects)
        {
            each_run(visible, [&](std::size_t row, std::size_t step, const range& run, std::size_t lane) {
                simd::unrolled<lane_count / one>([&](auto c) {
                    T* own = d_by_row_ + row + c * one;
                    const T* const from = d + lane + c * one;
                    if (step == 0) {  // a sum in a register, which does not wait for the last store
                        simd::vec<T> sum = simd::load(own);
                        for (std::size_t j = run.begin; j < run.end; ++j) sum += simd::load(from + j * width);
                        simd::store(own, sum);
                    } else {
                        for (std::size_t j = run.begin; j < run.end; ++j, own += step)
                            simd::store(own, simd::load(own) + simd::load(from + j * width));
                    }
                });
            });
            product::back(visible, d, to, selects);
        }
        void add_to(const head_gradients<T>& to)
        {
            const head<T>& of = product::of_;
            scratch brief;
            T* const by_column = detail::filled(brief, columns_ * width, T(0));
            each_lane([&](std::size_t of_row, std::size_t of_column) { by_column[of_column] += d_by_row_[of_row]; });
            detail::products<registers, true>(of.width, columns_, of.factors, columns_, 1, by_column,
                                              product::d_queries_, width);
            product::add_to(to);
            if (to.factors == nullptr) return;
            const rows<T> sum{detail::filled(brief, columns_ * of.width, T(0)), of.width};
            detail::products_of_lanes<registers>(product::finite(), columns_, product::n_, by_column,
                                                 product::queries(), sum, of.width);
            for (std::size_t r = 0; r < columns_; ++r)
                for (std::size_t i = 0; i < of.width; ++i) to.factors[i * columns_ + r] += sum[r][i];
        }

    private:
        static constexpr std::size_t width = lanes<T, registers>, groups = width / lane_count, one = simd::lanes<T>;

        /// f(index in rows, index in columns) for each lane of each row.
        void each_lane(const auto& f) const
        {
            for (std::size_t g = 0; g < groups; ++g) {
                for (std::size_t row = 0; row < rows_; ++row) {
                    for (std::size_t l = 0; l < lane_count; ++l) {
                        const std::size_t column = row < l ? 0 : std::min(row - l, columns_ - 1);
                        f((g * rows_ + row) * lane_count + l, column * width + g * lane_count + l);
                    }
                }
            }
        }

        /// f(row, step, keys, lane) for runs of the keys that a group may see: the row of the first key, and the step
        /// from key to key, 0 beyond the clipped distances.
        HEED_SIMD_INLINE void each_run(const visible_tile& visible, const auto& f) const
        {
            for (std::size_t g = 0; g < groups; ++g) {
                const range& rows = visible.rows[g];
                if (rows.empty()) continue;
                const auto query = static_cast<std::int64_t>(product::of_.first_query + product::s_ + g * lane_count);
                const std::int64_t count = static_cast<std::int64_t>(rows_),
                                   row = static_cast<std::int64_t>(visible.first + rows.begin + columns_ / 2) - query;
                const auto after = [&](std::int64_t number) {  // this number of rows after the first
                    const std::int64_t size = static_cast<std::int64_t>(rows.size());
                    return rows.begin + static_cast<std::size_t>(std::clamp(number, std::int64_t{0}, size));
                };
                const std::size_t here = g * rows_ * lane_count, near = after(-row), far = after(count - row);
                if (rows.begin < near) f(here, 0, range{rows.begin, near}, g * lane_count);
                if (near < far) {
                    const auto at = static_cast<std::size_t>(std::max(row, std::int64_t{0}));
                    f(here + at * lane_count, lane_count, range{near, far}, g * lane_count);
                }
                if (far < rows.end) f(here + (rows_ - 1) * lane_count, 0, range{far, rows.end}, g * lane_count);
            }
        }

        scratch here_;
        std::size_t columns_, rows_;
        T *by_row_, *d_by_row_ = nullptr;  // [group][row][lane]
    };
};

}  // namespace heed::inline HEED_TARGET::kernels::tiles
