// SPDX-License-Identifier: BSD-3-Clause
//
// read_digits: reads the digits of a drawn number in order, and shows the attended region of each digit. "Show, Attend
// and Tell" (Xu et al. 2015) on generated pictures.
//
// test: --help
// test: train --batches 2 --batch 4 --height 16 --width 24 --longest 2 --hidden 16 --check 20
// test: train --attention hard --batches 4 --batch 4 --height 16 --width 24 --longest 2 --hidden 16 --check 20
// test, exhaustive: train --batches 400 --batch 16 --height 20 --width 16 --longest 1 --rate 3e-3 --expect 0.5

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed/core/parallel.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed_kit/view/overlay.hpp>

#include "../../tools/support/program.hpp"
#include "../../tools/support/progress.hpp"
#include "drawing.hpp"
#include "reader.hpp"

using namespace read_digits;

namespace {

/// The streams of pictures: for training, and for evaluation.
enum class purpose : std::uint64_t { training = 1, testing = 2, showing = 3 };

std::vector<picture> draw_many(heed::grid size, std::size_t digits, std::size_t count, purpose what_for,
                               std::uint64_t seed, std::uint64_t part)
{
    std::vector<picture> all;
    const std::uint64_t stream = heed::mix(heed::mix(seed ^ heed::mix(static_cast<std::uint64_t>(what_for))) ^ part);
    for (std::size_t i = 0; i < count; ++i) all.push_back(draw_number(size, digits, heed::mix(stream + i)));
    return all;
}

/// For numbers of one length: the count of numbers read without error, and the frequency with which the largest weight
/// is on the digit.
struct tally {
    std::size_t numbers = 0, right = 0, digits = 0, on_digit = 0;

    void add(const picture& drawn, const reading& read, heed::grid regions)
    {
        ++numbers;
        if (read.digits != drawn.digits) return;
        ++right;
        for (std::size_t i = 0; i < read.digits.size(); ++i) {
            const auto& weights = read.weights[i];
            const auto place =
                static_cast<std::size_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
            const point middle{(static_cast<double>(place % regions.width) + 0.5) *
                                   static_cast<double>(drawn.size.width) / static_cast<double>(regions.width),
                               (static_cast<double>(place / regions.width) + 0.5) *
                                   static_cast<double>(drawn.size.height) / static_cast<double>(regions.height)};
            ++digits;
            on_digit += drawn.boxes[i].contains(middle, 2) ? 1 : 0;
        }
    }
};

double percent(std::size_t part, std::size_t whole)
{
    return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Prints the accuracy for numbers of each length; returns the share of all numbers read without error.
double report(const reader& judged, std::size_t longest, std::size_t each, std::uint64_t seed)
{
    tally all;
    fmt::print("digits   numbers   read without a mistake   largest weight on the digit\n");
    const auto line = [](const std::string& name, const tally& t) {
        fmt::print("{:>6}   {:>7}   {:>21.1f}%   {:>27.1f}%\n", name, t.numbers, percent(t.right, t.numbers),
                   percent(t.on_digit, t.digits));
    };
    for (std::size_t digits = 1; digits <= longest; ++digits) {
        tally of_length;
        for (std::size_t done = 0; done < each; done += 50) {
            const auto pictures = draw_many(judged.sizes.picture, digits, std::min<std::size_t>(50, each - done),
                                            purpose::testing, seed, digits << 32 | done);
            const auto readings = judged.read(make_batch(pictures));
            for (std::size_t i = 0; i < pictures.size(); ++i) of_length.add(pictures[i], readings[i], judged.regions());
        }
        line(std::to_string(digits), of_length);
        all.numbers += of_length.numbers;
        all.right += of_length.right;
        all.digits += of_length.digits;
        all.on_digit += of_length.on_digit;
    }
    line("all", all);
    std::fflush(stdout);
    return percent(all.right, all.numbers) / 100;
}

void train(reader& model, const recipe& how, std::size_t batches, std::size_t batch_size, std::size_t longest,
           const std::string& path)
{
    fmt::print("{} attention over {} x {} regions of pictures of {} x {}; {} parameters; {} batches of {} pictures\n",
               model.hard ? "hard" : "soft", model.regions().height, model.regions().width, model.sizes.picture.height,
               model.sizes.picture.width, heed::parameter_count(model.model), batches, batch_size);
    const auto start = program::clock::now();
    learner teacher(model, how);
    program::progress bar(batches, true, "batches");
    double cost = 0;
    std::size_t since = 0;
    for (std::size_t i = 1; i <= batches; ++i) {
        const std::size_t digits =
            1 + heed::below(longest, heed::mix(how.seed), i);  // one length per batch: all rows end together
        const auto examples =
            make_batch(draw_many(model.sizes.picture, digits, batch_size, purpose::training, how.seed, i));
        // the learning rate decreases in the last third of the training
        const double left = static_cast<double>(batches - i) / static_cast<double>(batches);
        cost += teacher.learn(examples, how.rate * std::min(1.0, 0.02 + 3 * left)) / static_cast<double>(digits + 1);
        ++since;
        bar.add(1);
        if (i % 250 != 0 && i != batches) continue;
        bar.clear();
        fmt::print("batch {:5}  cost per digit {:.4f}  {}\n", i, cost / static_cast<double>(since),
                   program::duration_text(program::seconds_since(start)));
        std::fflush(stdout);
        model.save(path);
        cost = 0;
        since = 0;
    }
}

void show(const reader& judged, std::size_t longest, std::size_t each, std::uint64_t seed, const std::string& out)
{
    std::vector<heed::view::overlay> all;
    for (std::size_t digits = longest; digits > 0; --digits) {
        const auto pictures = draw_many(judged.sizes.picture, digits, each, purpose::showing, seed, digits);
        const auto readings = judged.read(make_batch(pictures));
        for (std::size_t i = 0; i < pictures.size(); ++i) {
            heed::view::overlay panel{.height = judged.sizes.picture.height,
                                      .width = judged.sizes.picture.width,
                                      .pixels = pictures[i].pixels,
                                      .rows = judged.regions().height,
                                      .columns = judged.regions().width};
            std::string drawn;
            for (const std::uint32_t digit : pictures[i].digits) drawn += std::to_string(digit);
            const std::string read = readings[i].text();
            panel.title = read == drawn ? drawn : drawn + ", read as " + (read.empty() ? "nothing" : read);
            for (std::size_t k = 0; k < read.size(); ++k) {
                panel.words.emplace_back(1, read[k]);
                panel.weights.insert(panel.weights.end(), readings[i].weights[k].begin(), readings[i].weights[k].end());
            }
            all.push_back(std::move(panel));
        }
    }
    heed::io::write_file(out, heed::view::svg(all));
    fmt::print("{}: {} pictures, with the attended regions of each digit\n", out, all.size());
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Read the digits of drawn numbers, and show the attended regions."};
    app.formatter(std::make_shared<program::formatter>());
    app.require_subcommand(1);
    std::size_t threads = 1, batches = 6000, batch_size = 32, longest = 5, check = 400, each = 1;
    double expect = 0;
    recipe how;
    xu::sizes sizes = reader::default_sizes();
    std::string path = "digits.safetensors", out = "digits.svg", attention = "soft";
    program::ask_for_threads(app, threads);

    CLI::App& train_command = *app.add_subcommand("train", "generate pictures, and learn to read them");
    CLI::App& score_command = *app.add_subcommand("score", "read new pictures; accuracy by length");
    CLI::App& show_command = *app.add_subcommand("show", "draw the attended regions as an SVG file");
    const auto size = [](CLI::App& command, const char* name, std::size_t& value, const char* help) {
        command.add_option(name, value, help)
            ->check(CLI::Range(std::size_t{1}, std::size_t{9999999}).description(""))
            ->type_name("N")
            ->capture_default_str();
    };
    train_command.add_option("--attention", attention, "soft: a mixture of regions; hard: one region, sampled")
        ->check(CLI::IsMember({"soft", "hard"}).description(""))
        ->type_name("NAME")
        ->capture_default_str();
    size(train_command, "--batches", batches, "steps of training");
    size(train_command, "--batch", batch_size, "pictures per batch");
    size(train_command, "--height", sizes.picture.height, "height of the pictures, in pixels");
    size(train_command, "--width", sizes.picture.width, "width of the pictures, in pixels");
    size(train_command, "--hidden", sizes.hidden, "size of the decoder's state");
    train_command.add_option("--rate", how.rate, "Adam's learning rate")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    train_command
        .add_option("--doubly-stochastic", how.doubly_stochastic,
                    "weight of the penalty of Xu et al., eq. 14; soft only")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    train_command
        .add_option("--reward", how.reward, "weight of the score function in hard attention, Xu et al.'s lambda_r")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    train_command.add_option("--expect", expect, "fail below this share of numbers read without a mistake");
    for (CLI::App* command : {&train_command, &score_command, &show_command}) {
        command->add_option("--model", path, "file of the model")->type_name("FILE")->capture_default_str();
        command->add_option("--seed", how.seed, "seed of the pictures and the weights")->capture_default_str();
        size(*command, "--longest", longest, "digits of the longest numbers");
        if (command != &show_command) size(*command, "--check", check, "numbers of each length to read");
    }
    size(show_command, "--each", each, "pictures of each length");
    show_command.add_option("--output", out, "the SVG file")->type_name("FILE")->capture_default_str();

    return program::run(app, "read_digits", argc, argv, [&] {
        heed::set_threads(threads);
        if (show_command.parsed()) {
            show(reader::load(path), longest, each, how.seed, out);
            return 0;
        }
        if (score_command.parsed()) {
            report(reader::load(path), longest, check, how.seed);
            return 0;
        }
        reader fresh(sizes, attention == "hard", how.seed);
        train(fresh, how, batches, batch_size, longest, path);
        if (report(reader::load(path), longest, check, how.seed) >= expect) return 0;
        fmt::print(stderr, "read_digits: that is below the expected {:.1f}%\n", 100 * expect);
        return 1;
    });
}
