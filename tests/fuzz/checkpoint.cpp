// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"
#include "headers.hpp"

#include <heed/train/adam.hpp>
#include <heed/train/checkpoint.hpp>

#include <fstream>
#include <iterator>

namespace fuzz::checkpoint {

template <class Matrix, class Vector>
struct model {
    Matrix W;
    Vector b;

    static auto parameters(auto& self, auto&& visit)
    {
        return checkpoint::model{visit("W", self.W), visit("b", self.b)};
    }
};
template <class Matrix, class Vector>
model(Matrix, Vector) -> model<Matrix, Vector>;

/// The training state of a program.
struct training {
    model<heed::array<float, 2>, heed::array<float, 1>> weights{heed::array<float, 2>({2, 3}),
                                                                heed::array<float, 1>({3})};
    heed::train::adam<float> optimizer{};
    heed::train::average_of_last<float> average{2};
    heed::train::position at{};
    double best = 0;
    std::vector<std::int64_t> counts{};

    training()
    {
        weights.W.fill(1);
        weights.b.fill(2);
    }

    void load(const std::filesystem::path& path)
    {
        heed::train::load_checkpoint(path, weights, optimizer, average, at, heed::train::named("best", best),
                                     heed::train::named("counts", counts));
    }
    heed::io::archive state() const
    {
        heed::io::archive all;
        heed::train::detail::checkpoint_writer writer{all};
        heed::train::detail::each_part write{writer};
        const auto add = [&](const auto&... parts) { (write(parts), ...); };
        add(weights, optimizer, average, at, heed::train::named("best", best), heed::train::named("counts", counts));
        return all;
    }
    std::string saved() const
    {
        const auto path = path_of("written");
        heed::train::save_checkpoint(path, weights, optimizer, average, at, heed::train::named("best", best),
                                     heed::train::named("counts", counts));
        std::ifstream stream(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(stream), {}};
    }
};

void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    static const heed::io::archive before = training().state();
    training into;
    const auto done = read(path, bytes.size(), 32, [&] { return into.load(path), true; });
    if (!done) {
        const heed::io::archive after = into.state();
        require(after.tensors == before.tensors && after.metadata == before.metadata,
                "a rejected checkpoint changed the state");
        return;
    }
    const std::string written = into.saved();
    training again;
    again.load(file_of(written));
    require(again.saved() == written, "the checkpoint changes in a round trip");
}

std::vector<std::string> seeds()
{
    training begun;
    begun.at.epoch = 3;
    begun.counts = {1, 2, 3};
    begun.best = 0.5;
    begun.optimizer.restore(7, {{"W", std::vector<float>(6, 1), std::vector<float>(6, 2)},
                                {"b", std::vector<float>(3, 1), std::vector<float>(3, 2)}});
    begun.average.restore({std::vector<float>(9, 1)});
    return {training().saved(), begun.saved()};
}

const registered target({"checkpoint", run, seeds, mutated_safetensors});

}  // namespace fuzz::checkpoint
