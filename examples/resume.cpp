// SPDX-License-Identifier: BSD-3-Clause
//
// resume: a training run that may be stopped or killed at any time, and resumed.
//
//     resume largest.checkpoint      trains; stop it with Ctrl-C or kill -9. The same command resumes.
//     resume                         demonstration: a run that is killed twice gives the bits of an uninterrupted
//     one.
//
// The task: find the largest number of a list. Attention scores each number, and the context, the weighted mean of the
// numbers, should be the largest.
//
// test:

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <sys/wait.h>
#include <unistd.h>

#include <heed/ad/ad.hpp>
#include <heed/attention.hpp>
#include <heed/combine/weighted_sum.hpp>
#include <heed/core/parallel.hpp>
#include <heed/nn/init.hpp>
#include <heed/normalize/softmax.hpp>
#include <heed/ops/elementwise.hpp>
#include <heed/ops/products.hpp>
#include <heed/score/additive.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/averaging.hpp>
#include <heed/train/checkpoint.hpp>
#include <heed/train/stop_signals.hpp>
#include <heed/train/training_lock.hpp>

using namespace heed;

namespace {

constexpr std::size_t lists = 32, numbers = 6, hidden = 8, epochs = 20, batches = 10;

/// Lists, drawn again for every batch.
struct batch {
    array<float, 3> lists_of_numbers = filled<float, 3>({lists, numbers, 1}, 0.0f);  // [B,T,1]
    array<float, 2> query = filled<float, 2>({lists, 1}, 1.0f);
    array<float, 2> largest = filled<float, 2>({lists, 1}, 0.0f);

    explicit batch(random_source& random)
    {
        const std::uint64_t stream = random.next_stream();
        for (std::size_t b = 0; b < lists; ++b) {
            for (std::size_t j = 0; j < numbers; ++j)
                lists_of_numbers(b, j, 0) = static_cast<float>(uniform(stream, b * numbers + j));
            largest(b, 0) = *std::max_element(&lists_of_numbers(b, 0, 0), &lists_of_numbers(b, 0, 0) + numbers);
        }
    }
};

auto make_model()
{
    random_source random{1};
    return attention{score::additive{nn::gaussian<float>(random, 1, hidden, 0.1),
                                     nn::gaussian<float>(random, 1, hidden, 0.1), filled<float, 1>({hidden}, 0.3f)},
                     normalize::softmax{}, combine::weighted_sum{}};
}

/// The mean squared error.
auto loss_of(const auto& attend, const batch& now)
{
    const auto memory = attend.on(now.lists_of_numbers);
    const auto context = attend.step(memory, now.query, attend.start(memory)).context;  // [B,1]
    const auto wrong = ops::subtract(context, now.largest);
    return ops::scale(ops::dot(wrong, wrong), 1.0 / lists);
}

/// Trains to the end, or until it is interrupted; returns the exit status. `patience`: microseconds between batches,
/// since this small model would finish before you could interrupt it.
int train_largest(const std::filesystem::path& path, unsigned patience)
{
    // section: parts
    const train::training_lock alone(path);  // only one run at a time may write this file
    auto model = make_model();
    train::adam<float> optimizer({.rate = 0.05});
    train::position at;                     // the next epoch and batch, and the random numbers drawn so far
    train::average_of_last<float> last(3);  // of the epochs
    double loss = 0;                        // of the epoch so far
    const auto save = [&] { train::save_checkpoint(path, model, optimizer, at, last, train::named("loss", loss)); };
    if (std::filesystem::exists(path)) {
        train::load_checkpoint(path, model, optimizer, at, last, train::named("loss", loss));
        std::printf("resumes in epoch %zu, batch %zu\n", at.epoch + 1, at.batch + 1);
    }
    // end

    // section: loop
    const train::stop_signals stop;  // records Ctrl-C, SIGTERM and SIGHUP
    ad::tape<float> tape;
    while (at.epoch < epochs) {
        for (; at.batch < batches; ++at.batch) {
            if (stop) {
                save();
                return stop.status();
            }
            tape.clear();
            const auto lifted = ad::lift(tape, model);
            const auto mean = loss_of(lifted, batch(at.random));
            tape.backward(mean);
            optimizer.step(model, lifted, tape, 1.0);
            loss += static_cast<double>(*mean.data()) / batches;
            ::usleep(patience);
        }
        std::printf("epoch %2zu  loss %.6f\n", at.epoch + 1, loss);
        last.add(model);
        optimizer.settings.rate *= 0.95;  // the checkpoint saves it
        ++at.epoch;                       // before saving, or the end of this epoch would run twice
        at.batch = 0;
        loss = 0;
        save();
    }
    last.mean(model);
    // end
    return 0;
}

// A demonstration that is also a test.

/// Trains in a child process, and kills it shortly after it has written its first or next checkpoint.
void train_and_kill(const std::filesystem::path& path, unsigned milliseconds)
{
    std::fflush(stdout);
    const ::pid_t child = ::fork();
    if (child < 0) throw error("cannot start a process");
    if (child == 0) std::_Exit(train_largest(path, 2'000));
    while (!std::filesystem::exists(path)) {
        if (::waitpid(child, nullptr, WNOHANG) != 0) throw error("the training ended before it was killed");
        ::usleep(1'000);
    }
    ::usleep(1'000 * milliseconds);
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    std::puts("killed");
}

std::string bytes_of(const std::filesystem::path& path)
{
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

int demonstrate()
{
    const std::filesystem::path whole = "whole.checkpoint", killed = "killed.checkpoint";
    std::filesystem::remove(whole);
    std::filesystem::remove(killed);
    std::puts("Without interruption:");
    train_largest(whole, 0);
    std::puts("\nKilled twice:");
    train_and_kill(killed, 60);
    train_and_kill(killed, 110);
    train_largest(killed, 0);
    const bool same = bytes_of(whole) == bytes_of(killed);
    std::printf("\nThe two checkpoints are %s.\n", same ? "equal, byte for byte" : "DIFFERENT");
    return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv)
{
    std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a killed process loses buffered output
    set_threads(1);
    try {
        return argc > 1 ? train_largest(argv[1], 100'000) : demonstrate();
    } catch (const error& problem) {
        std::fprintf(stderr, "resume: %s\n", problem.what());
        return 1;
    }
}
