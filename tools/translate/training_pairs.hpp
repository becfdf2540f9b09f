// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <heed/core/random.hpp>
#include <heed/seq2seq/batch.hpp>
#include <heed_kit/text/id_pairs.hpp>
#include <heed_kit/text/pair_shards.hpp>

#include "library.hpp"
#include "quality.hpp"

namespace translation {

using heed::text::id_pairs;

inline batch make_batch(const id_pairs& from, const std::vector<std::size_t>& which)
{
    std::vector<id_sentence> source, target;
    std::vector<const id_sentence*> sources, targets;
    for (const std::size_t i : which) {
        source.push_back(from.source[i]);
        target.push_back(from.target[i]);
    }
    for (std::size_t i = 0; i < which.size(); ++i) {
        sources.push_back(&source[i]);
        targets.push_back(&target[i]);
    }
    return heed::seq2seq::make_training_batch<float>(sources, targets);
}

using heed::translator::token_links;

/// Links of sentence pairs, stored consecutively.
class link_lines {
public:
    void add(const token_links& of_pair)
    {
        all_.insert(all_.end(), of_pair.begin(), of_pair.end());
        ends_.push_back(all_.size());
    }

    std::size_t size() const { return ends_.size(); }
    token_links operator[](std::size_t i) const
    {
        const auto at = [&](std::size_t k) { return all_.begin() + static_cast<std::ptrdiff_t>(k); };
        return {at(i == 0 ? 0 : ends_[i - 1]), at(ends_[i])};
    }

    /// A hash of the links, to be continued.
    std::uint64_t hash(std::uint64_t from) const
    {
        for (std::size_t i = 0; i < size(); ++i) {
            for (const auto& [source, target] : (*this)[i]) {
                from = heed::mix(from ^ static_cast<std::uint64_t>(source));
                from = heed::mix(from ^ static_cast<std::uint64_t>(target));
            }
            from = heed::mix(from + 1);
        }
        return from;
    }

private:
    std::vector<std::pair<int, int>> all_;
    std::vector<std::size_t> ends_;  // of each pair
};

/// The training pairs: in memory, or in a file of shards, one of which is in memory at a time. Each shard is a random
/// part of the text.
class training_pairs {
public:
    /// `links`: of the tokens of each pair, for guided alignment.
    explicit training_pairs(id_pairs all, std::optional<link_lines> links = {})
        : here_(std::move(all)), links_(std::move(links)), all_(here_.size())
    {}
    explicit training_pairs(const examples& all) : training_pairs(in_numbers(all)) {}
    explicit training_pairs(heed::text::pair_shards file)
        : file_(std::move(file)), all_(file_->pairs()), which_(file_->size())
    {}

    /// The total number of pairs.
    std::size_t size() const { return all_; }
    /// The number of shards; 1 if the pairs are in memory.
    std::size_t shards() const { return file_ ? file_->size() : 1; }
    /// The pairs of a shard. It replaces the previous one.
    const id_pairs& shard(std::size_t which)
    {
        if (file_ && which != which_) {
            here_ = id_pairs();  // before the next shard
            here_ = file_->read(which);
            which_ = which;
        }
        return here_;
    }
    /// The number of pairs in a shard.
    std::size_t size_of(std::size_t which) const { return file_ ? file_->size_of(which).pairs : all_; }

    /// The order of the shards in an epoch, and the stream that shuffles a shard. In memory, the stream of the epoch.
    std::vector<std::size_t> order(std::uint64_t epoch_stream) const
    {
        std::vector<std::size_t> result(shards());
        std::iota(result.begin(), result.end(), std::size_t{0});
        for (std::size_t i = result.size(); i > 1; --i)
            std::swap(result[i - 1], result[heed::below(i, heed::mix(epoch_stream), i)]);
        return result;
    }
    std::uint64_t stream(std::uint64_t epoch_stream, std::size_t which) const
    {
        return file_ ? heed::mix(epoch_stream ^ heed::mix(which + 1)) : epoch_stream;
    }

    /// The links of these pairs; empty without guided alignment.
    std::vector<token_links> links(const std::vector<std::size_t>& which) const
    {
        std::vector<token_links> result;
        if (!links_) return result;
        for (const std::size_t i : which) result.push_back((*links_)[i]);
        return result;
    }

    /// A hash of the text and of the links.
    std::uint64_t hash() const
    {
        if (file_) return file_->hash();
        const std::uint64_t text = here_.target.hash(here_.source.hash(1));
        return links_ ? links_->hash(text) : text;
    }

    /// The first shard as vectors, for learning dictionaries.
    examples some()
    {
        const id_pairs& from = shard(0);
        examples result;
        for (std::size_t i = 0; i < from.size(); ++i) {
            result.source.push_back(from.source[i]);
            result.target.push_back(from.target[i]);
        }
        return result;
    }

private:
    static id_pairs in_numbers(const examples& all)
    {
        id_pairs result;
        for (const id_sentence& each : all.source) result.source.add(each);
        for (const id_sentence& each : all.target) result.target.add(each);
        return result;
    }

    std::optional<heed::text::pair_shards> file_;
    id_pairs here_;
    std::optional<link_lines> links_;
    std::size_t all_, which_ = 0;  // which_: shard of the file; all pairs if there are no shards
};

}  // namespace translation
