// SPDX-License-Identifier: BSD-3-Clause

// Every allocation and every system call that writes fails once: no data is lost or torn.

#include <support/failing_files.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include <heed/core/parallel.hpp>
#include <heed/io/atomic_file.hpp>
#include <heed/io/npy.hpp>
#include <heed/io/safetensors.hpp>
#include <heed/io/weights.hpp>
#include <heed/train/adam.hpp>
#include <heed/train/checkpoint.hpp>
#include <heed/train/training_lock.hpp>
#include <heed_kit/text/pair_shards.hpp>
#include <heed_kit/text/spilled_numbers.hpp>
#include <heed_translator/batcher.hpp>
#include <support/temporary_directory.hpp>
#include <support/tensors.hpp>

using namespace heed;

namespace faulty {

template <class Matrix, class Vector>
struct model {
    Matrix W;
    Vector b;

    static auto parameters(auto& self, auto&& visit) { return faulty::model{visit("W", self.W), visit("b", self.b)}; }
};
template <class Matrix, class Vector>
model(Matrix, Vector) -> model<Matrix, Vector>;

}  // namespace faulty

namespace {

/// All parts of a checkpoint, filled with numbers that depend on `seed`.
struct run {
    explicit run(std::uint64_t seed)
        : model{support::random<float>({2, 3}, seed), support::random<float>({3}, seed + 1)}
    {
        std::vector<train::adam<float>::moments> state;
        for (const auto& [parameter, size] : {std::pair("W", std::size_t{6}), std::pair("b", std::size_t{3})}) {
            const auto number = static_cast<float>(seed);
            state.push_back({parameter, std::vector<float>(size, number), std::vector<float>(size, number + 1)});
        }
        adam.restore(seed, state);
        at.epoch = seed;
        last.add(model);
        norms.assign(5, static_cast<double>(seed));
        name = "a name that is too long for a string without memory, " + std::to_string(seed);
    }

    void save(const std::filesystem::path& path) const
    {
        train::save_checkpoint(path, model, adam, at, last, train::named("norms", norms), train::named("name", name));
    }
    void load(const std::filesystem::path& path)
    {
        train::load_checkpoint(path, model, adam, at, last, train::named("norms", norms), train::named("name", name));
    }

    /// Whether every part belongs to this seed, so that no part is torn or from another seed.
    bool is(std::uint64_t seed) const
    {
        const run other(seed);
        bool same = at.epoch == other.at.epoch && adam.steps() == other.adam.steps() && norms == other.norms &&
                    name == other.name && last.state() == other.last.state() &&
                    support::same_bits(model.W, other.model.W) && support::same_bits(model.b, other.model.b);
        REQUIRE(adam.state().size() == 2);
        for (std::size_t i = 0; i < 2; ++i) {
            same = same && adam.state()[i].first == other.adam.state()[i].first &&
                   adam.state()[i].second == other.adam.state()[i].second;
        }
        return same;
    }

    faulty::model<array<float, 2>, array<float, 1>> model;
    train::adam<float> adam{{.rate = 0.1}};
    train::position at;
    train::average_of_last<float> last{2};
    std::vector<double> norms;
    std::string name;
};

/// The seed of the run in a file, which must be complete.
std::uint64_t seed_in(const std::filesystem::path& path)
{
    run read(99);
    read.load(path);
    REQUIRE(read.is(read.at.epoch));
    return read.at.epoch;
}

/// Shards of numbered sentence pairs: two shards have a pair, the others are empty. The words depend on `seed`. With
/// this many shards, each buffers only 4 KB in memory, so part of the first shard is written before all pairs are
/// added.
struct shards {
    std::uint64_t seed;
    std::size_t large = 2500;  // words

    std::vector<text::word_id> sentence(std::size_t shard) const
    {
        std::vector<text::word_id> ids(shard == 0 ? large : 3);
        for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<text::word_id>((i + seed) % 100);
        return ids;
    }
    void write(const std::filesystem::path& path) const
    {
        std::vector<text::shard_size> sizes(large > 1000 ? 1100 : 3);
        sizes[0] = {1, large, 3};
        sizes[1] = {1, 3, 3};
        text::pair_shards_writer file(path, sizes, 100, 100, std::to_string(seed), "a note");
        for (const std::size_t shard : {1u, 0u}) file.add(shard, sentence(shard), sentence(1));
        file.commit();
    }
    /// The seed in a file, which must be complete.
    static std::uint64_t in(const std::filesystem::path& path, std::size_t large)
    {
        const text::pair_shards file(path);
        const shards written{std::stoull(file.stamp()), large};
        REQUIRE(file.size() > 2);
        for (const std::size_t shard : {0u, 1u}) {
            const text::id_pairs read = file.read(shard);
            REQUIRE(read.size() == 1);
            CHECK(read.source[0] == written.sentence(shard));
            CHECK(read.target[0] == written.sentence(1));
        }
        return written.seed;
    }
};

/// The file descriptor that the next open() will return.
int next_descriptor()
{
    const int file = ::dup(STDERR_FILENO);
    ::close(file);
    return file;
}

}  // namespace

TEST_CASE("every allocation of a save fails once: the file is the old or the new one, and no other file remains")
{
    const temporary_directory directory;
    const auto path = directory.path() / "a name that is too long for a string without memory";
    const run first(1), second(2);
    bool complete = false;
    first.save(path);
    const long count = support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([&] { second.save(path); });
            complete = true;
        },
        [&] {
            CHECK(directory.files() == 1);
            CHECK(seed_in(path) == (complete ? 2 : 1));
            first.save(path);  // a retry succeeds
            CHECK(seed_in(path) == 1);
        });
    CHECK(count > 100);
}

TEST_CASE("every allocation of a resume fails once: either all parts change or none")
{
    const temporary_directory directory;
    const auto path = directory.path() / "file";
    run(1).save(path);
    run resumed(2);
    bool complete = false;
    const long count = support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([&] { resumed.load(path); });
            complete = true;
        },
        [&] {
            CHECK(resumed.is(complete ? 1 : 2));
            resumed = run(2);
        });
    CHECK(count > 100);

    auto weights = run(2).model;
    const auto file = io::load(path);
    support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([&] { io::take(file, weights); });
            complete = true;
        },
        [&] {
            const auto whole = run(complete ? 1 : 2).model;
            CHECK(support::same_bits(weights.W, whole.W));
            CHECK(support::same_bits(weights.b, whole.b));
            weights = run(2).model;
        });
}

TEST_CASE("every allocation of writing and reading shards fails once: the file is the old or the new one, and no file "
          "stays open")
{
    const temporary_directory directory;
    const auto path = directory.path() / "a name that is too long for a string without memory";
    const shards first{1, 30}, second{2, 30};
    first.write(path);
    const int descriptor = next_descriptor();
    bool complete = false;
    const long written = support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([&] { second.write(path); });
            complete = true;
        },
        [&] {
            CHECK(directory.files() == 1);
            CHECK(shards::in(path, 30) == (complete ? 2 : 1));
            first.write(path);
            CHECK(next_descriptor() == descriptor);
        });
    CHECK(written > 20);
    const long read = support::fail_each_allocation(
        [&] {
            support::expects([&] {
                const text::pair_shards file(path);
                if (file.read(0).size() != 1) throw std::logic_error("a different number of pairs");
            });
        },
        [&] { CHECK(next_descriptor() == descriptor); });
    CHECK(read > 5);
}

TEST_CASE("every allocation of a lock fails once: a retry succeeds")
{
    const temporary_directory directory;
    const auto path = directory.path() / "a name that is too long for a string without memory";
    const long count =
        support::fail_each_allocation([&] { support::expects([&] { const train::training_lock lock(path); }); },
                                      [&] { const train::training_lock lock(path); });
    CHECK(count > 3);
    CHECK(directory.files() == 0);
}

TEST_CASE("every allocation of the threads fails once: their number does not change")
{
    const auto sum = [] {
        std::vector<std::size_t> all(8);
        parallel_for(8, 1, [&](std::size_t begin, std::size_t end, std::size_t) {
            for (std::size_t i = begin; i < end; ++i) all[i] = i;
        });
        return all == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7};
    };
    set_threads(2);
    bool complete = false;
    const long count = support::fail_each_allocation(
        [&] {
            complete = false;
            support::expects([] { set_threads(3); });
            complete = true;
        },
        [&] {
            CHECK(threads() == (complete ? 3 : 2));
            CHECK(sum());
            set_threads(2);
        });
    CHECK(count >= 3);  // the pool, its shards, its threads; the system allocates the threads themselves
    set_threads(1);
}

TEST_CASE("every allocation of a request fails once: it is answered or rejected, and so is the next request")
{
    using batcher = translator::batcher<std::string, std::string>;
    const std::string how = "options that are too long for a string without memory";
    const auto work = [](const std::vector<std::string>& lines, const std::string&) {
        std::vector<std::string> results;
        for (const std::string& each : lines) results.push_back(each + " is translated to that");
        return results;
    };
    batcher at(work, {.batch = 2, .queue = 3});  // one batcher for all requests
    const auto ask = [&] {
        const std::vector<std::string> texts{"a line", "another line, which is longer", "a third line"};
        std::vector<batcher::line> lines;
        for (const std::string& each : texts) lines.push_back({each, each.size()});
        const auto results = at.submit(std::move(lines), how, std::chrono::seconds(60))->get();
        REQUIRE(results.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) CHECK(results[i] == texts[i] + " is translated to that");
    };
    const auto one = [&] {
        support::expects([&] {
            auto asked =
                at.submit({{"a line", 6}, {"another line", 12}, {"a third", 7}}, how, std::chrono::seconds(60));
            const auto results = asked->get();
            if (results.size() != 3 || results[1] != "another line is translated to that")
                throw std::logic_error("a different result");
        });
    };
    const long count = support::fail_each_allocation(one, [&] {
        CHECK(at.counters().waiting == 0);
        ask();
    });
    CHECK(count > 10);

    // The threads, the queue and the message for late requests are allocated at construction.
    support::fail_each_allocation(
        [&] { support::expects([&] { const batcher other(work, {.batch = 2, .queue = 3, .workers = 3}); }); }, [] {});
}

#if defined(HEED_TEST_WRAPS)
struct fault {
    const char* call;
    int reason;
    bool passes;  // the call is retried, or its failure is ignored
};

/// Each of these calls of write_new() fails once, after write_old(). Either write_new() succeeds, or it throws with the
/// path and the reason and the file keeps the old content, as is_new() tests. The last run has no failure. Returns the
/// number of failures.
long fail_each_call(std::initializer_list<fault> faults, const temporary_directory& directory,
                    const std::filesystem::path& path, const auto& write_old, const auto& write_new, const auto& is_new)
{
    long failed = 0;
    for (const fault& each : faults) {
        for (long n = 0;; ++n) {
            CAPTURE(each.call);
            CAPTURE(each.reason);
            CAPTURE(n);
            write_old();
            support::calls_before = n;
            support::fails_with = each.reason;
            support::has_failed = false;
            support::failing_call = each.call;
            std::string problem;
            try {
                write_new();
            } catch (const io::write_failed& caught) {
                problem = caught.what();
                CHECK(caught.reason == each.reason);
            }
            support::failing_call = "";
            CHECK(directory.files() == 1);
            CHECK(is_new() == problem.empty());
            if (!support::has_failed) {
                CHECK(problem.empty());
                break;
            }
            // The last open and fsync are those of the directory.
            const bool of_directory = std::string(each.call) == "open" || std::string(each.call) == "fsync";
            CHECK(problem.empty() == (each.passes || (of_directory && n > 0)));
            if (!problem.empty()) {
                CHECK(problem.starts_with(path.string() + ": cannot "));
                CHECK(support::contains(problem, std::strerror(each.reason)));
            }
            ++failed;
        }
    }
    return failed;
}

TEST_CASE("every system call of a save fails once: the file is the old one or the new one")
{
    const temporary_directory directory;
    const auto path = directory.path() / "file";
    const run first(1), second(2);
    const long failed = fail_each_call(
        {{"write", ENOSPC, false},  {"write", EIO, false},   {"write", EDQUOT, false}, {"write", EINTR, true},
         {"write", 0, true},        {"fsync", EIO, false},   {"fsync", ENOSPC, false}, {"fsync", EINTR, true},
         {"rename", ENOSPC, false}, {"rename", EIO, false},  {"rename", EINTR, true},  {"open", EMFILE, false},
         {"open", ENOSPC, false},   {"open", EINTR, true},   {"close", EIO, true},     {"close", EINTR, true},
         {"fchmod", EPERM, false},  {"fchmod", EINTR, true}, {"flock", ENOLCK, true},  {"flock", EINTR, true}},
        directory, path, [&] { first.save(path); }, [&] { second.save(path); },
        [&] {
            const auto seed = seed_in(path);
            CHECK((seed == 1 || seed == 2));
            return seed == 2;
        });
    CHECK(failed > 40);
}

TEST_CASE(
    "every system call in writing shards fails once: the error names the file and the reason, and the old file remains")
{
    const temporary_directory directory;
    const auto path = directory.path() / "shards";
    const shards first{1}, second{2};
    const long failed = fail_each_call(
        {{"pwrite", ENOSPC, false},
         {"pwrite", EIO, false},
         {"pwrite", EINTR, true},
         {"pwrite", 0, true},
         {"fsync", EIO, false},
         {"rename", EIO, false},
         {"open", EMFILE, false}},
        directory, path, [&] { first.write(path); }, [&] { second.write(path); },
        [&] {
            const auto found = shards::in(path, second.large);
            CHECK((found == 1 || found == 2));
            return found == 2;
        });
    CHECK(failed > 40);
}

TEST_CASE(
    "every system call in spilling numbers fails once: the error names the folder and the reason, and no file remains")
{
    const temporary_directory directory;
    constexpr std::uint32_t count = 50;
    for (const fault& each :
         {fault{"pwrite", ENOSPC, false}, {"pwrite", 0, true}, {"pwrite", EINTR, true}, {"open", EOPNOTSUPP, true}}) {
        for (long n = 0;; ++n) {
            CAPTURE(each.call);
            CAPTURE(each.reason);
            CAPTURE(n);
            text::spilled_numbers numbers(directory.path(), 8);
            support::calls_before = n;
            support::fails_with = each.reason;
            support::has_failed = false;
            support::failing_call = each.call;
            std::string problem;
            try {
                for (std::uint32_t i = 0; i < count; ++i) numbers.push_back(i);
            } catch (const heed::error& caught) {
                problem = caught.what();
            }
            support::failing_call = "";
            CHECK(directory.files() == 0);
            CHECK(problem.empty() == (each.passes || !support::has_failed));
            if (problem.empty()) {
                text::spilled_numbers::reader read(numbers);
                for (std::uint32_t i = 0; i < count; ++i) CHECK(read.next() == i);
            } else {
                CHECK(problem == directory.path().string() +
                                     ": cannot write a temporary file there: " + std::strerror(each.reason));
            }
            if (!support::has_failed) break;
        }
    }
}

TEST_CASE("every system call in writing an array or a text fails once: the file is the old one or the new one")
{
    const temporary_directory directory;
    const auto path = directory.path() / "file";
    const auto check = [&](const auto& write) {
        write(2);
        const std::string after = directory.read("file");
        write(1);
        const std::string before = directory.read("file");
        const long failed = fail_each_call(
            {{"write", ENOSPC, false},
             {"write", 0, true},
             {"fsync", EIO, false},
             {"rename", EIO, false},
             {"open", EMFILE, false}},
            directory, path, [&] { write(1); }, [&] { write(2); },
            [&] {
                const std::string now = directory.read("file");
                CHECK((now == before || now == after));
                return now == after;
            });
        CHECK(failed >= 7);
    };
    check([&](int number) {
        io::save_npy(path, io::tensor_entry::of("file", {2}, std::vector<float>(2, static_cast<float>(number))));
    });
    check([&](int number) { io::write_file(path, std::to_string(number)); });
}

TEST_CASE("every system call of a save to a new name fails once: the file is complete or does not exist")
{
    const temporary_directory directory;
    const auto path = directory.path() / "file";
    io::archive file;
    file.metadata["text"] = "whole";
    for (const char* const call : {"write", "fsync", "link", "open", "close"}) {
        for (long n = 0;; ++n) {
            CAPTURE(call);
            CAPTURE(n);
            support::calls_before = n;
            support::fails_with = EIO;
            support::has_failed = false;
            support::failing_call = call;
            bool done = true;
            try {
                io::save(path, file, io::existing::keep);
            } catch (const io::write_failed&) {
                done = false;
            }
            support::failing_call = "";
            CHECK(directory.files() == (done ? 1 : 0));
            if (done) CHECK(io::load(path).metadata.at("text") == "whole");
            std::filesystem::remove(path);
            if (!support::has_failed) break;
        }
    }
    // Without hard links, and with a failing rename: the reserved name is free again.
    support::failing_call = "link";
    support::calls_before = 0;
    support::fails_with = EPERM;
    io::save(path, file, io::existing::keep);
    support::failing_call = "";
    CHECK(io::load(path).metadata.at("text") == "whole");
}
#endif
