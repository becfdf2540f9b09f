// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/errors.hpp>

/// Which source positions exist. True = attend, in every mask of heed.
namespace heed {

/// The number of real positions of each sentence of a batch; what lies behind is padding.
class lengths {
public:
    lengths() = default;
    lengths(std::initializer_list<std::size_t> counts) : counts_(counts) {}
    explicit lengths(std::vector<std::size_t> counts) : counts_(std::move(counts)) {}

    /// A batch without padding.
    static lengths full(std::size_t batch, std::size_t positions)
    {
        return lengths(std::vector<std::size_t>(batch, positions));
    }

    std::size_t batch() const { return counts_.size(); }
    std::size_t operator[](std::size_t row) const { return counts_[row]; }
    const std::size_t* data() const { return counts_.data(); }

    bool is_full(std::size_t positions) const
    {
        for (const std::size_t count : counts_) {
            if (count != positions) return false;
        }
        return true;
    }

    /// Throws shape_error unless there is one length a row and none above `positions`.
    void require(const char* where, std::size_t batch, std::size_t positions) const
    {
        if (counts_.size() != batch) {
            throw shape_error(std::string(where) + ": " + std::to_string(counts_.size()) + " lengths for a batch of " +
                              std::to_string(batch) + " rows; give one length a row");
        }
        for (std::size_t row = 0; row < batch; ++row) {
            if (counts_[row] > positions) {
                throw shape_error(std::string(where) + ": the length of row " + std::to_string(row) + " is " +
                                  std::to_string(counts_[row]) + " but there are only " + std::to_string(positions) +
                                  " positions");
            }
        }
    }

private:
    std::vector<std::size_t> counts_;
};

}  // namespace heed
