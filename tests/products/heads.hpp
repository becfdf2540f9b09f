// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <products/products.hpp>

/// Several heads, as objects that can be run: multi_head, and an attention of heads that are already projected. Heads
/// may differ in their masks, in their parameters, and by a score that reads the head.
namespace composition {

enum class mask_kind { none, boolean, additive, predicate, causal };

/// The ways to run a product that are compiled: masks, as bits, and whether in float. All cost too much time.
struct compiled_ways {
    unsigned steps, at_once, tape;
    bool in_float;

    static constexpr bool among(unsigned set, mask_kind kind) { return (set >> static_cast<unsigned>(kind) & 1) != 0; }
};

/// The inputs of n heads, G of keys and values: [B,S,n·d], [B,T,G·d] and [B,T,G·V]; a multi_head projects [B,S,d],
/// [B,T,d] and [B,T,d] to these.
struct inputs_of_heads {
    extents of;  // the width d and the width V (`hidden`) of a head
    std::size_t heads = 1, groups = 1;
    heed::array<double, 3> queries, keys, values;
    heed::lengths real;
};

/// The masks of a call. A predicate sees the keys up to the query's number plus the head's.
struct masks_of_heads {
    mask_kind kind = mask_kind::none;
    heed::boolean_mask<4> visible;  // [B,n,1,T]
    heed::array<double, 4> added;   // [B,n,S,T]
};

struct heads_product {
    std::string form, score, normalizer;  // "multi_head" or "projected"
    bool shares_keys = true;              // G may be less than n
    compiled_ways ways{};
    inputs_of_heads data;

    virtual ~heads_product() = default;
    virtual outcome steps(const masks_of_heads& under) const = 0;                    // not causal
    virtual numbers at_once(const masks_of_heads& under) const = 0;                  // contexts [B,S,.]
    virtual outcome in_segments(const std::vector<std::size_t>& lengths) const = 0;  // contexts [B,.,.] of each
    virtual outcome growing(const std::vector<std::size_t>& positions) const = 0;    // at each step
    virtual taped_outcome on_tape(const masks_of_heads& under) const = 0;            // all queries at once
    virtual numbers at_once_in_float() const = 0;
    virtual std::vector<part> parts() = 0;
    virtual std::vector<setting> settings() = 0;
    virtual std::unique_ptr<heads_product> remade(const extents& sizes, std::size_t heads,
                                                  std::size_t groups) const = 0;
};

const std::vector<std::unique_ptr<heads_product>>& products_of_heads();

/// Zeros of these sizes; `projects`: for a multi_head.
void fill_inputs(inputs_of_heads& data, bool projects);

}  // namespace composition
