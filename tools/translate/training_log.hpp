// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <charconv>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <heed/core/errors.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed_kit/text/corpus.hpp>

#include "progress.hpp"

namespace translation {

/// The training log as CSV: one row per validation. The file is replaced as a whole, so that it never ends in the
/// middle of a row. A resumed run appends after the rows of the epochs that it does not repeat.
class training_log {
public:
    struct row {
        std::size_t epoch, updates;  // completed
        double minutes;              // of training and validation, all runs together
        double training_loss;        // nats per target token, end of sentence included, as minimized
        double learning_rate;
        double validation_loss;                   // nats per token, without dropout and label smoothing
        double validation_bleu;                   // of words
        std::optional<double> tokens_per_second;  // of the target; empty if only the validation was pending
    };

    static constexpr std::string_view header =
        "epoch,updates,minutes,training_loss,learning_rate,validation_loss,validation_bleu,tokens_per_second";

    explicit training_log(std::filesystem::path path) : path_(std::move(path))
    {
        std::error_code ignored;
        if (std::filesystem::exists(path_, ignored) && !std::filesystem::is_regular_file(path_, ignored))
            throw heed::error(path_.string() +
                              ": is not a regular file; a log must be one, since it is replaced as a whole");
    }

    /// The log of a new run, or of a run that continues after this many epochs.
    void begin(bool resumed, std::size_t epochs)
    {
        text_ = std::string(header) + '\n';
        if (resumed && std::filesystem::exists(path_)) keep(epochs);
        heed::io::write_file(path_, text_);
    }

    void add(const row& next)
    {
        text_ += fmt::format("{},{},{:.3f},{},{:.6g},{},{:.4f},", next.epoch, next.updates, next.minutes,
                             number_text(next.training_loss, 6), next.learning_rate,
                             number_text(next.validation_loss, 6), next.validation_bleu);
        text_ += next.tokens_per_second ? fmt::format("{:.1f}\n", *next.tokens_per_second) : "\n";
        heed::io::write_file(path_, text_);
    }

private:
    void keep(std::size_t epochs)
    {
        std::ifstream file = heed::text::open_text(path_);
        heed::text::sentence_reader lines(file, path_.string(), heed::text::empty_lines::keep);
        heed::text::sentence fields;
        if (!lines.next(fields)) return;
        if (fields.size() != 1 || fields[0] != header)
            throw heed::error(lines.where() + ": not a log of this program: the first line must be " +
                              std::string(header));
        while (lines.next(fields)) {
            std::size_t epoch = 0;
            const std::string line = heed::text::join(fields);
            const auto [end, problem] = std::from_chars(line.data(), line.data() + line.size(), epoch);
            if (problem != std::errc{} || *end != ',')
                throw heed::error(lines.where() + ": expected a row that begins with the epoch and a comma");
            if (epoch <= epochs) text_ += line + '\n';
        }
    }

    std::filesystem::path path_;
    std::string text_;
};

}  // namespace translation
