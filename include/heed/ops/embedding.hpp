// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <heed/ops/operation.hpp>

namespace heed {

/// The words of a batch at each step, as numbers of a vocabulary: [S,B], step by step.
struct word_ids {
    std::size_t steps = 0, batch = 0;
    std::vector<std::uint32_t> ids;  // [S,B]

    word_ids() = default;
    word_ids(std::size_t s, std::size_t b, std::uint32_t fill = 0) : steps(s), batch(b), ids(s * b, fill) {}
    std::uint32_t& operator()(std::size_t step, std::size_t row) { return ids[step * batch + row]; }
    std::uint32_t operator()(std::size_t step, std::size_t row) const { return ids[step * batch + row]; }
};

namespace ops {

/// y[s,b] = E[ids[s,b]]: a table of embeddings E [V,N] -> [S,B,N].                    SPEC E1
struct lookup_op : operation<lookup_op> {
    static shape_of_rank<3> result_shape(const shape_of_rank<2>& table, const word_ids& words)
    {
        for (const std::uint32_t id : words.ids) {
            if (id >= table[0]) {
                throw error("lookup: word " + std::to_string(id) + " of a table of " + std::to_string(table[0]) +
                            " embeddings; ids count from 0");
            }
        }
        return {words.steps, words.batch, table[1]};
    }

    template <class T>
    static void compute(const word_ids& words, std::size_t width, const T* table, T* y)
    {
        for (const std::uint32_t id : words.ids) y = std::copy_n(table + id * width, width, y);
    }

    template <plain_tensor E>
    auto plain(const E& table, const word_ids& words) const
    {
        array<element_of<E>, 3> y(result_shape(shape_of(table), words));
        compute(words, shape_of(table)[1], view_of(table).data, y.data());
        return y;
    }
};
inline constexpr lookup_op lookup{};

}  // namespace ops

}  // namespace heed
