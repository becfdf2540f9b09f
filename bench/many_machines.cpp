// SPDX-License-Identifier: BSD-3-Clause

// The time of a training step on 2 to 64 hosts at 1, 10 and 100 Gbit/s, and the number of hosts beyond which scaling no
// longer pays off: computed from measurements on this machine.
//
//     build-bench/bench/many_machines [--threads N] [--system NAME]... [--fraction X] [--hosts N] >> page.md
//
// Prints Markdown for docs/results/many_machines.md; progress goes to standard error.
//
// Measured, for each system at the sizes of its paper: the seconds of forward, backward and update when a host has 1/n
// of the batch (the longest part); the bytes of the gradients, and the number of table rows that a batch touches; when,
// in the backward pass, each gradient is final; and how fast this machine adds. --fraction 0.5 halves all sizes.
// --hosts 8 computes 2 to 8 hosts; the number of hosts is a power of two.
//
// Computed, with one process per host, following the all-reduce of heed_mpi/mpi.hpp (D bytes over n hosts):
//
//     network(D) = 2 (n−1)/n · D / bandwidth + 2 (latency + (n−1) · overhead)
//     adding(D)  = (n−1)/n · D / (bytes added per second)
//     after      = compute(n) + Σ network + Σ adding + update
//     during     = like after, but each gradient is sent as soon as it is final, one after another
//
// Each host sends and receives its share. `after` sums after the backward pass. `during` is a lower bound: it assumes
// that messages progress without polling, while an MPI may progress them only when a rank calls it, which heed does
// whenever a gradient is final.
//
// Rows are sent after the backward pass in both cases. All hosts are as fast as this one, and the network is otherwise
// idle. Scaling stops paying off where doubling the hosts shortens the step by less than a tenth.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <time.h>

#include <heed/ad/lookup.hpp>
#include <heed/core/errors.hpp>
#include <heed/core/parallel.hpp>
#include <heed/core/random.hpp>
#include <heed/kernels/rows.hpp>
#include <heed_mpi/gradients.hpp>
#include <heed_translator/systems.hpp>

namespace {

using namespace heed;
using translator::training_step_input;

constexpr double latency = 30e-6, overhead = 3e-6;  // seconds: per message over Ethernet and TCP, and to post one

/// CPU time with one thread, which other load hardly affects; wall time with more.
double now()
{
    timespec time{};
    ::clock_gettime(heed::threads() == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// A measured system and its sizes.
struct work {
    const char* system;
    std::size_t embedding, hidden, layers, words, batch;
    std::vector<std::pair<const char*, const char*>> options;
};

const std::vector<work>& works()
{
    static const std::vector<work> all{
        {"rnnsearch", 620, 1000, 1, 30000, 80, {{"alignment", "1000"}}},
        {"luong", 1000, 1000, 4, 50000, 128, {}},
        {"sankaran", 620, 1000, 1, 30000, 80, {{"alignment", "1000"}}},
        {"choi", 620, 1000, 1, 30000, 80, {{"alignment", "1000"}}},
        {"convs2s", 512, 512, 8, 40000, 64, {}},
        {"transformer", 512, 2048, 6, 37000, 128, {{"heads", "8"}, {"share-embeddings", "all"}}},
    };
    return all;
}

translator::options options_of(const work& what, double fraction)
{
    const auto scaled = [&](std::size_t size) {
        return std::max<std::size_t>(8, static_cast<std::size_t>(static_cast<double>(size) * fraction) / 8 * 8);
    };
    translator::options how;
    how.system = what.system;
    for (const translator::option_support& each : translator::kind_of(how.system).option_support_list)
        if (!each.preset.empty()) how.set(each.option, each.preset);
    how.layers = what.layers;
    how.dropout = 0.1;
    for (const auto& [name, value] : what.options) how.set(name, value);
    how.embedding = scaled(what.embedding);
    how.hidden = scaled(what.hidden);
    how.alignment = scaled(how.alignment);
    return how;
}

/// Sentences of nearly equal length; word frequencies fall as 1 / rank (Zipf).
training_step_input some_batch(std::size_t sentences, std::size_t vocabulary)
{
    using seq2seq::id_sentence;
    std::vector<id_sentence> sources(sentences), targets(sentences);
    const double most = std::log(static_cast<double>(vocabulary - 4));
    std::uint64_t drawn = 0;
    const auto fill = [&](id_sentence& to, std::size_t length) {
        for (std::size_t i = 0; i < length; ++i)
            to.push_back(4 + static_cast<std::uint32_t>(
                                 std::min(std::exp(uniform(1, drawn++) * most), static_cast<double>(vocabulary - 5))));
    };
    for (std::size_t b = 0; b < sentences; ++b) {
        fill(targets[b], 23 + 5 * b / sentences);  // as in shuffled_batches
        fill(sources[b], 20 + below(10, 2, b));
    }
    std::vector<const id_sentence*> from, to;
    for (std::size_t b = 0; b < sentences; ++b) {
        from.push_back(&sources[b]);
        to.push_back(&targets[b]);
    }
    return {seq2seq::make_training_batch<float>(from, to), {}, {}};
}

/// One message: a large gradient, or several small ones.
struct bucket {
    double bytes, ready;  // ready: seconds from the start of the backward pass until all of it is final
};

struct measured {
    std::vector<std::size_t> hosts;
    std::vector<double> compute;  // seconds of forward and backward of the longest part, by number of hosts
    double backward = 0, update = 0;
    std::vector<bucket> dense;  // in the order in which they become final
    double dense_bytes = 0, row_bytes = 0;
};

/// Records the times of a step, and of its gradients.
struct looking final : translator::system::gradient_exchange {
    struct seen {
        const ad::slot<float>* slot;
        double when;
    };
    double back = 0, end = 0;
    std::vector<seen> final_at;

    /// Records when each gradient is final; null: stops recording.
    static void watch(ad::tape<float>& on, looking* self)
    {
        const auto note = [](void* to, ad::slot<float>& s) {
            static_cast<looking*>(to)->final_at.push_back({&s, now()});
        };
        on.when_final(self == nullptr ? nullptr : +note, self);
    }
    std::vector<bucket> dense;
    double row_bytes = 0;

    void before_backward(ad::tape<float>& on, const translator::system::variables&) override
    {
        final_at.clear();
        watch(on, this);
        back = now();
    }

    double sum(ad::tape<float>& on, const translator::system::variables& lifted, double loss) override
    {
        end = now();
        watch(on, nullptr);
        dense.clear();
        row_bytes = 0;
        using packs = distributed::gradients<float>;  // packs gradients into the same messages
        bucket small{0, 0};
        const auto close = [&] {
            if (small.bytes > 0) dense.push_back(small);
            small = {0, 0};
        };
        for (std::size_t i = lifted.size(); i-- > 0;) {
            const auto& x = lifted[i].numbers;
            const auto rows = ad::gradient_rows(x);
            if (rows.rows != nullptr) {
                row_bytes +=
                    static_cast<double>(rows.ids.size() * (rows.width * sizeof(float) + sizeof(std::uint32_t)));
                continue;
            }
            double ready = end;
            for (const seen& each : final_at)
                if (each.slot == &x.slot()) ready = each.when;
            const bucket one{static_cast<double>(x.size() * sizeof(float)), ready - back};
            if (x.size() >= packs::large) {
                dense.push_back(one);
                continue;
            }
            small = {small.bytes + one.bytes, std::max(small.ready, one.ready)};
            if (small.bytes >= static_cast<double>(packs::pack * sizeof(float))) close();
        }
        close();
        std::sort(dense.begin(), dense.end(), [](const bucket& a, const bucket& b) { return a.ready < b.ready; });
        return loss;
    }
};

measured measure(const work& what, double fraction, std::size_t most_hosts)
{
    const translator::options how = options_of(what, fraction);
    const auto vocabulary = static_cast<std::size_t>(static_cast<double>(what.words) * fraction);
    const training_step_input whole = some_batch(what.batch, vocabulary);
    const auto system = translator::make_system(how, vocabulary, vocabulary);
    measured result;
    random_source random{1};
    looking look;
    for (std::size_t n = most_hosts; n > 0; n /= 2) {  // the smallest part first, as a warm-up that touches all memory
        double compute = std::numeric_limits<double>::infinity();
        for (int round = 0; round < 3; ++round) {
            std::vector<training_step_input> one{n == 1 ? whole : translator::part_of(whole, 0, n)};
            const double begin = now();
            system->train(one, how, random, 1e-6, &look);
            const double end = now();
            if (round == 0) continue;
            if (look.end - begin < compute) {
                compute = look.end - begin;
                result.backward = look.end - look.back;
                result.dense = look.dense;
                result.row_bytes = look.row_bytes;
            }
            result.update = round == 1 && n == most_hosts ? end - look.end : std::min(result.update, end - look.end);
        }
        result.hosts.insert(result.hosts.begin(), n);
        result.compute.insert(result.compute.begin(), compute);
    }
    for (const bucket& each : result.dense) result.dense_bytes += each.bytes;
    return result;
}

/// Bytes that this machine adds per second.
double bytes_added()
{
    std::vector<float> to(1 << 22), from(1 << 22, 1.0f);
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
        const double begin = now();
        kernels::add(to.size(), to.data(), from.data());
        best = std::min(best, now() - begin);
    }
    return static_cast<double>(to.size() * sizeof(float)) / best;
}

struct step {
    double after, during;  // seconds
};

/// A step on m.hosts[k] hosts.
step computed(const measured& m, std::size_t k, double bytes_a_second, double added)
{
    const auto n = static_cast<double>(m.hosts[k]);
    const double compute = m.compute[k];
    if (m.hosts[k] == 1) return {compute + m.update, compute + m.update};
    const auto network = [&](double bytes) {
        return 2 * (n - 1) / n * bytes / bytes_a_second + 2 * (latency + (n - 1) * overhead);
    };
    const double adding = (n - 1) / n * (m.dense_bytes + m.row_bytes) / added;
    double sent = 0, all = 0;
    const double scale = compute / m.compute.front();  // the backward pass of a part is shorter
    for (const bucket& each : m.dense) {
        sent = std::max(sent, each.ready * scale) + network(each.bytes);
        all += network(each.bytes);
    }
    const double rows = m.row_bytes > 0 ? network(m.row_bytes) : 0, rest = rows + adding + m.update;
    const double back = m.backward * scale;
    return {compute + all + rest, compute - back + std::max(back, sent) + rest};
}

constexpr double bandwidths[] = {1, 10, 100};  // Gbit/s

/// The index of the last number of hosts whose step is at least a tenth shorter than with half as many hosts.
std::size_t pays_to(const measured& m, double gigabit, double added)
{
    const double bytes_a_second = gigabit * 1e9 / 8;
    std::size_t last = 0;
    while (last + 1 < m.hosts.size() &&
           computed(m, last + 1, bytes_a_second, added).during <= 0.9 * computed(m, last, bytes_a_second, added).during)
        ++last;
    return last;
}

/// The part of the backward pass that remains when this share of the dense gradients is final.
double left_when_final(const measured& m, double share)
{
    double bytes = 0, when = 0;
    for (const bucket& each : m.dense) {
        if (bytes >= share * m.dense_bytes) break;
        bytes += each.bytes;
        when = each.ready;
    }
    return std::max(0.0, 1 - when / m.backward);
}

/// A row for each system: the measurements, and the number of hosts up to which scaling pays off.
void print_summary(const std::vector<std::pair<work, measured>>& all, double added)
{
    std::printf("| | batch | forward + backward | backward | update | dense gradients | rows | backward left when 50 "
                "%%, 90%% are "
                "final | pays off up to, at 1 Gbit/s | 10 | 100 |\n|---|---|---|---|---|---|---|---|---|---|---|\n");
    for (const auto& [what, m] : all) {
        std::printf("| %s | %zu | %.2f s | %.2f s | %.3f s | %.1f MB | %.2f MB | %.0f%%, %.0f%% |", what.system,
                    what.batch, m.compute.front(), m.backward, m.update, m.dense_bytes / 1e6, m.row_bytes / 1e6,
                    100 * left_when_final(m, 0.5), 100 * left_when_final(m, 0.9));
        for (const double gigabit : bandwidths) {
            const std::size_t last = pays_to(m, gigabit, added);
            std::printf(" %zu host%s%s |", m.hosts[last], last == 0 ? "" : "s",
                        last + 1 == m.hosts.size() ? " or more" : "");
        }
        std::printf("\n");
    }
}

void print_steps(const work& what, const measured& m, double added)
{
    const double first = m.compute.front() + m.update;
    std::printf(
        "\n### %s\n\n| hosts | computing | 1 Gbit/s, after | during | 10 Gbit/s, after | during | 100 Gbit/s, after | "
        "during | speed-up at 1, 10, 100 |\n|---|---|---|---|---|---|---|---|---|\n",
        what.system);
    for (std::size_t k = 0; k < m.hosts.size(); ++k) {
        std::printf("| %zu | %.3f s |", m.hosts[k], m.compute[k]);
        std::string speed;
        for (const double gigabit : bandwidths) {
            const step s = computed(m, k, gigabit * 1e9 / 8, added);
            std::printf(" %.3f s | %.3f s |", s.after, s.during);
            char text[32];
            std::snprintf(text, sizeof text, "%s%.1f", speed.empty() ? "" : ", ", first / s.during);
            speed += text;
        }
        std::printf(" %s |\n", speed.c_str());
    }
    std::printf("\n");
    for (const double gigabit : bandwidths) {
        const std::size_t last = pays_to(m, gigabit, added);
        if (last + 1 == m.hosts.size()) {
            std::printf("At %.0f Gbit/s every number of hosts pays off, up to %zu, the largest computed.\n", gigabit,
                        m.hosts[last]);
            continue;
        }
        const double next = computed(m, last + 1, gigabit * 1e9 / 8, added).during;
        std::printf(
            "At %.0f Gbit/s it stops paying off after %zu host%s: with %zu, a step takes %.3f s, of which %.3f s is "
            "sending and adding.\n",
            gigabit, m.hosts[last], last == 0 ? "" : "s", m.hosts[last + 1], next,
            next - m.compute[last + 1] - m.update);
    }
}

/// The name of the processor (Linux).
std::string processor()
{
    std::ifstream from("/proc/cpuinfo");
    for (std::string line; std::getline(from, line);)
        if (line.starts_with("model name") && line.find(": ") != std::string::npos)
            return line.substr(line.find(": ") + 2);
    return "unknown processor";
}

struct arguments {
    std::vector<std::string> systems;
    double fraction = 1;
    std::size_t threads = 0, hosts = 64;
};

arguments read_arguments(int count, char** given)
{
    arguments result;
    for (int i = 1; i < count; i += 2) {
        const std::string name = given[i], value = i + 1 < count ? given[i + 1] : "";
        const bool number = !value.empty() && value.find_first_not_of("0123456789") == std::string::npos;
        char* end = nullptr;
        if (name == "--threads" && number) {
            result.threads = std::strtoul(value.c_str(), nullptr, 10);
        } else if (name == "--hosts" && number && std::has_single_bit(std::strtoul(value.c_str(), nullptr, 10))) {
            result.hosts = std::strtoul(value.c_str(), nullptr, 10);
        } else if (name == "--fraction" && std::strtod(value.c_str(), &end) > 0 && *end == '\0') {
            result.fraction = std::strtod(value.c_str(), nullptr);
        } else if (name == "--system" && std::any_of(works().begin(), works().end(),
                                                     [&](const work& each) { return value == each.system; })) {
            result.systems.push_back(value);
        } else {
            throw error(name + " " + value +
                        ": this program takes --threads N, --system NAME, --fraction X, and --hosts " +
                        "N, a power of two");
        }
    }
    return result;
}

}  // namespace

int main(int count, char** given)
{
    try {
        const arguments how = read_arguments(count, given);
        set_threads(how.threads);
        const double added = bytes_added();
        std::vector<std::pair<work, measured>> all;
        for (const work& what : works()) {
            if (!how.systems.empty() &&
                std::find(how.systems.begin(), how.systems.end(), what.system) == how.systems.end())
                continue;
            std::fprintf(stderr, "%s\n", what.system);
            all.emplace_back(what, measure(what, how.fraction, how.hosts));
        }
        std::printf("%s, %s, sizes × %g; additions at %.1f GB/s, latency %.0f µs, %.0f µs to post a message:\n\n",
                    processor().c_str(), counted(heed::threads(), "thread").c_str(), how.fraction, added / 1e9,
                    latency * 1e6, overhead * 1e6);
        print_summary(all, added);
        for (const auto& [what, m] : all) print_steps(what, m, added);
    } catch (const std::exception& problem) {
        std::fprintf(stderr, "many_machines: %s\n", problem.what());
        return 1;
    }
    return 0;
}
