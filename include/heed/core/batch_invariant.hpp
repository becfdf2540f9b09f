// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/core/cxx20.hpp>

#include <utility>

/// Results that do not depend on what else is in a batch.
///
/// A BLAS chooses its loops by the number of rows of a product, and so the order in which an element's terms are added:
/// the same sentence can get other last bits beside other sentences. heed's own products (gemm/own_gemm.hpp) add the
/// terms of every element in one order, whatever the number of rows, and so do its other kernels.
namespace heed {

namespace detail {

inline thread_local bool batch_invariant_here = false;

}  // namespace detail

/// While one of these lives, every product that its thread starts, or shares among heed's threads, is heed's own: a row
/// of the result has the same bits in a batch of any size, and for any number of threads. May be nested.
///
///     const heed::batch_invariant guard;
///     model.translate(lines);      // the same bits for each line, however the lines are grouped
class batch_invariant {
public:
    explicit batch_invariant(bool wanted = true)
        : before_(std::exchange(detail::batch_invariant_here, detail::batch_invariant_here || wanted))
    {}
    ~batch_invariant() { detail::batch_invariant_here = before_; }
    batch_invariant(const batch_invariant&) = delete;
    batch_invariant& operator=(const batch_invariant&) = delete;

private:
    bool before_;
};

}  // namespace heed
