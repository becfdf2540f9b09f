// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <heed/ops/operation.hpp>

namespace heed::inline HEED_TARGET {

/// The words of a batch at each step, as vocabulary ids: [S,B], in order of steps.
struct word_ids {
    std::size_t steps = 0, batch = 0;
    std::vector<std::uint32_t> ids;  // [S,B]

    word_ids() = default;
    word_ids(std::size_t s, std::size_t b, std::uint32_t fill = 0) : steps(s), batch(b), ids(s * b, fill) {}
    std::uint32_t& operator()(std::size_t step, std::size_t row) { return ids[step * batch + row]; }
    std::uint32_t operator()(std::size_t step, std::size_t row) const { return ids[step * batch + row]; }

    /// Throws shape_error unless each step of each sentence has an id.
    void require(std::string_view where) const
    {
        if (ids.size() == steps * batch) return;
        ops::detail::refuse(where, ": ", counted(ids.size(), "word id"), " for ", counted(steps, "step"), " of ",
                            counted(batch, "sentence"), "; give one for each step of each sentence, ", steps * batch);
    }
};

namespace ops {

/// y[s,b] = E[ids[s,b]]: a table of embeddings E [V,N] -> [S,B,N]. Throws heed::error for an id that is V or more.
///
///     ∂E[ids[s,b]] += ∂y[s,b]                    on the tape: ad/lookup.hpp
struct lookup_op : operation<lookup_op> {
    static shape_of_rank<3> shape(const auto& table, const word_ids& words)
    {
        words.require("lookup");
        for (const std::uint32_t id : words.ids) {
            if (id >= table.shape[0]) {
                throw error("lookup: word " + std::to_string(id) + " of a table of " +
                            counted(table.shape[0], "embedding") + "; ids count from 0");
            }
        }
        return {words.steps, words.batch, table.shape[1]};
    }

    template <class T>
    static void forward(in<T, 2> table, const word_ids& words, out<T, 3> y)
    {
        T* to = y.data;
        for (const std::uint32_t id : words.ids) to = std::copy_n(table.data + id * table.shape[1], table.shape[1], to);
    }
};
inline constexpr lookup_op lookup{};

}  // namespace ops

}  // namespace heed::inline HEED_TARGET
