// SPDX-License-Identifier: BSD-3-Clause
#include <heed/seq2seq/systems/xu2015.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <heed/ad/ad.hpp>
#include <heed/papers/captioning.hpp>
#include <support/gradients.hpp>
#include <support/sentences.hpp>

using namespace heed;
using namespace heed::seq2seq;
namespace xu = heed::papers::xu2015;
using support::random;

namespace {

const std::vector<id_sentence> said{{4, 5, 4}, {6}};

xu::sizes small()
{
    xu::sizes n;
    n.picture = {5, 6};
    n.vocabulary = 7;
    n.maps = {2, 3, 4};
    n.embedding = 3;
    n.hidden = 2;
    n.alignment = 3;
    return n;
}

auto model_with(const auto& normalize)
{
    auto model = xu::reader<double>(2, small(), normalize);
    model.decoder.b_h = random({2}, 40);  // with zeros, a missing bias would not be detected
    model.decoder.b_c = random({2}, 41);
    model.decoder.b = random({7}, 42);
    for (auto& layer : model.encoder.layers) layer.b = random({layer.b.size()}, 43, 0.1);
    return model;
}

const auto pictures = random({2, 30, 1}, 1);

auto words() { return make_training_batch<double>(support::pointers(said), support::pointers(said)); }

}  // namespace

TEST_CASE("gradients of the whole system, with a penalty on the weights, are correct")
{
    auto model = model_with(normalize::softmax{});
    const auto found = ad::grad_check(model, [](auto&, const auto& lifted) {
        const auto is = lifted.decoder.follow(lifted.encoder.encode(pictures), words());
        return ops::add(ops::dot(is.costs, support::uneven(is.costs.shape())),
                        xu::doubly_stochastic(is.weights, lengths{4, 4}, words().target_lengths(), 0.3));
    });
    CHECK_MESSAGE(bool(found), found.text());
    CHECK(found.entries == parameter_count(model));
}

TEST_CASE("a system without convolutions is rejected")
{
    xu::sizes n = small();
    n.maps.clear();
    CHECK(support::message_of<error>([&] { (void)xu::reader<double>(1, n, normalize::softmax{}); }) ==
          "xu2015::reader: there are no convolutions; give the number of maps for at least one");
}
