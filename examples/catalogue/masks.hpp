// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <heed/heed.hpp>

/// Masks as a user writes them. A mask is a predicate over the indices of a query and a key; `&`, `|` and `!` combine
/// masks. p.query and p.key are positions, p.batch is the sentence.
namespace catalogue {

using namespace heed;

/// Any mask. (One kernel is compiled for all entries; a mask with its own type is inlined.)
struct any_mask : predicate_mask {
    std::function<lane_mask(const score_index&)> sees;

    any_mask(const auto& mask)
        : sees([mask](const score_index& p) { return lane_mask(heed::detail::as_predicate(mask)(p)); })
    {}
    lane_mask operator()(const score_index& p) const { return sees(p); }
};

struct named_mask {
    std::string name;
    any_mask mask;
};

inline constexpr int positions = 96;          // shared by all entries
inline constexpr int rows = 8, columns = 12;  // for a picture of 96 pixels
inline constexpr int frames = 4;              // for a video with 24 pixels per frame

/// Tables of the masks, which keep references.
struct known {
    std::vector<std::int32_t> document, x, y, image;
    array<std::int32_t, 2> ancestor, chosen;

    known() : ancestor(shape_of_rank<2>{positions, positions}, 0), chosen(shape_of_rank<2>{6, 6}, 0)
    {
        for (int i = 0; i < positions; ++i) {
            document.push_back(i < 20 ? 0 : i < 57 ? 1 : 2);
            image.push_back(i / 32);
            // Morton order: the bits of x and y alternate.
            x.push_back((i & 1) | (i >> 1 & 2) | (i >> 2 & 4) | (i >> 3 & 8));
            y.push_back((i >> 1 & 1) | (i >> 2 & 2) | (i >> 3 & 4));
            for (int above = i;; above = (above - 1) / 2) {  // node i's parent is (i − 1) / 2
                ancestor(i, above) = 1;
                if (above == 0) break;
            }
        }
        for (int i = 0; i < 6; ++i) chosen(i, i) = chosen(i, i * i % 6) = chosen(i, 0) = 1;
    }
};

inline std::vector<named_mask> masks(const known& at)
{
    std::vector<named_mask> all;
    const auto add = [&](const char* name, const auto& mask) { all.push_back({name, mask}); };
    const auto document = looked_up(at.document), x = looked_up(at.x), y = looked_up(at.y), image = looked_up(at.image);
    const auto ancestor = looked_up(at.ancestor), chosen = looked_up(at.chosen);
    const auto near = [](const auto& a, const auto& b, int reach) { return abs(a - b) <= reach; };

    add("causal", causal{});
    add("sliding window", causal{} & sliding_window{16});
    add(
        "dilated window",
        causal{} & [](score_index p) { return (p.query - p.key < 48) & ((p.query - p.key) % 3 == 0); });
    add(
        "global and sliding (Longformer)",
        sliding_window{8} | [](score_index p) { return (p.key < 4) | (p.query < 4); });
    add(
        "random blocks as well (BigBird)", sliding_window{8} | [=](score_index p) {
            return (chosen(p.query / 16, p.key / 16) == 1) | (p.key < 4) | (p.query < 4);
        });
    add(
        "prefix", causal{} | [](score_index p) { return p.key < 20; });
    const auto same_document = [=](score_index p) { return document(p.query) == document(p.key); };
    add("documents", same_document);
    add("documents, causal", causal{} & same_document);
    add(
        "shared prefix",
        causal{} & [=](score_index p) { return (document(p.query) == document(p.key)) | (document(p.key) == 0); });
    add("one mask for each sentence", [](score_index p) { return lane_mask(p.batch == 1) | (p.key <= p.query); });
    add("block diffusion", [](score_index p) {  // noisy words, then the same words clean, in blocks of 8
        const auto ahead = p.query % 48 / 8 - p.key % 48 / 8;
        return ((p.query / 48 == p.key / 48) & (ahead == 0)) | ((p.key >= 48) & (ahead > 0));
    });
    add("tree", [=](score_index p) { return ancestor(p.query, p.key) == 1; });
    add("trees of documents",
        [=](score_index p) { return (ancestor(p.query, p.key) == 1) & (document(p.query) == document(p.key)); });
    // Every pixel sees the same number of neighbors, also at the border: the window is moved inside.
    const auto around = [](const auto& q, const auto& k, int extent, int reach) {
        return abs(min(max(q, reach), extent - 1 - reach) - k) <= reach;
    };
    add("neighborhood (NATTEN)", [=](score_index p) {
        return around(p.query % columns, p.key % columns, columns, 2) &
               around(p.query / columns, p.key / columns, rows, 2);
    });
    add("neighborhood, in tiles of 4 by 4", [=](score_index p) {  // three adjacent tiles
        const auto column = [](const auto& i) { return i / 16 % 3 * 4 + i % 4; };
        const auto row = [](const auto& i) { return i / 48 * 4 + i % 16 / 4; };
        return around(column(p.query), column(p.key), columns, 2) & around(row(p.query), row(p.key), rows, 2);
    });
    add("neighborhood, in Morton order",
        [=](score_index p) { return around(x(p.query), x(p.key), 16, 2) & around(y(p.query), y(p.key), 8, 2); });
    add("sliding tiles, 2-D", [=](score_index p) {  // tiles of 4 by 4 pixels
        return near(p.query / 16 % 3, p.key / 16 % 3, 1) & near(p.query / 48, p.key / 48, 0);
    });
    add("sliding tiles, 3-D", [=](score_index p) {  // tiles of 1 by 2 by 4 pixels, 3 by 1 per frame
        return near(p.query / 24, p.key / 24, 1) & near(p.query / 8 % 3, p.key / 8 % 3, 1);
    });
    add("chosen tiles (top k)", [=](score_index p) { return chosen(p.query / 16, p.key / 16) == 1; });
    add("text and its image (Flamingo)", [=](score_index p) { return image(p.key) == document(p.query); });
    add("space (video)", [](score_index p) { return p.query / (positions / frames) == p.key / (positions / frames); });
    add("time (video)", [](score_index p) { return p.query % (positions / frames) == p.key % (positions / frames); });
    add("stand-alone self-attention", [=](score_index p) {
        return near(p.query % columns, p.key % columns, 2) & near(p.query / columns, p.key / columns, 2);
    });
    return all;
}

}  // namespace catalogue
