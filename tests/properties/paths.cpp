// SPDX-License-Identifier: BSD-3-Clause
#include <doctest/doctest.h>

#include <heed/ad/ad.hpp>
#include <heed/attention/execute/many_queries.hpp>
#include <heed/heed.hpp>
#include <heed/papers.hpp>
#include <support/tensors.hpp>

#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

// The executor of each preset, so that none loses a fast path silently: 100 queries over 100 positions, and one step;
// both again on a tape, and a step over a growing memory.

using namespace heed;
namespace paper = heed::papers;
using support::random;

namespace {

constexpr std::size_t D = 8, A = 6, S = 100, T = 100;

const auto square = random({D, D}, 1), W = random({D, A}, 2), U = random({D, A}, 3), Y = random({D, A}, 4);
const auto v = random({A}, 5), w = random({D}, 6), one = random({1}, 7);
const auto column = random({D, 1}, 8);

/// The word before the colon of an explanation.
std::string word(const std::string& sentence) { return sentence.substr(0, sentence.find(':')); }

const auto plain = [](const auto& q) -> const auto& { return q; };
const auto with_word = [](const auto& q) { return state_and_word{q, q}; };

/// Checks the executors of many queries and of a step, e.g. "tiled, fused".
void pin(const char* name, const auto& attend, const std::string& must, const auto& mask, const auto& asked)
{
    CAPTURE(name);
    const auto h = random({2, T, D}, 9), many = random({2, S, D}, 10);
    const auto query = random({2, D}, 11);
    const auto path = [&](const auto& by, const auto& x, const auto& queries, const auto& q) {
        const auto memory = by.on(x);
        return word(explain(by, memory, queries, mask)) + ", " + word(explain(by, memory, q));
    };
    CHECK(path(attend, h, asked(many), asked(query)) == must);
    ad::tape<double> on;
    CHECK(path(ad::lift(on, attend), on.constant(h), asked(on.constant(many)), asked(on.constant(query))) == must);
    // The sentences of a KV cache are not contiguous.
    const std::string step = must.substr(must.find(", ") + 2);
    CHECK(word(explain(attend, with_cache(attend.on(h)), asked(query))) == (step == "fused" ? "fused_by_row" : step));
}
void pin(const char* name, const auto& attend, const std::string& must) { pin(name, attend, must, no_mask{}, plain); }

}  // namespace

TEST_CASE("translation")
{
    pin("bahdanau2015", paper::bahdanau2015::additive(W, U, v), "tiled, fused");
    pin("luong2015 dot", paper::luong2015::global_dot(), "tiled, fused");
    pin("luong2015 general", paper::luong2015::global_general(square), "tiled, fused");
    pin("luong2015 concat", paper::luong2015::global_concat(random({2 * D, A}, 12), v), "tiled, fused");
    pin("luong2015 location", paper::luong2015::global_location(random({D, T}, 13)), "stepwise, composed_by_row");
    pin("luong2015 local_m", paper::luong2015::local_m(), "stepwise, fused_by_row");
    pin("luong2015 local_p", paper::luong2015::local_p(W, v), "stepwise, composed_by_row");
    pin("luong2015 attentional", paper::luong2015::attentional(paper::luong2015::global_dot(), random({2 * D, D}, 14)),
        "stepwise, fused");
    pin("sankaran2016 temporal", paper::sankaran2016::temporal(W, U, v), "stepwise, fused");
    pin("sankaran2016 recent_temporal", paper::sankaran2016::recent_temporal(W, U, v, 3), "stepwise, composed_by_row");
    pin("sankaran2016 learned_temporal", paper::sankaran2016::learned_temporal(W, U, v, one),
        "stepwise, composed_by_row");
    pin("gehring2017", paper::gehring2017::layer(square, w), "tiled, fused", no_mask{}, with_word);
    pin("choi2018 att_y", paper::choi2018::att_y(W, U, v, Y), "stepwise, fused", no_mask{}, with_word);
    pin("choi2018 att_y_2d", paper::choi2018::att_y_2d(W, U, random({A, D}, 15), Y), "stepwise, fused", no_mask{},
        with_word);
    const nn::coverage_gru cell{random({D, 3 * A}, 16), random({3 * A}, 17), random({A, 3 * A}, 18)};
    pin("mi2016", paper::mi2016::coverage(W, U, v, random({A, A}, 19), cell), "stepwise, fused_by_row", no_mask{},
        with_word);
}

TEST_CASE("captioning, speech and handwriting")
{
    pin("xu2015 soft", paper::xu2015::soft(W, U, v), "tiled, fused");
    pin("xu2015 gated", paper::xu2015::gated(W, U, v, column, one), "tiled, fused");
    pin("xu2015 hard", paper::xu2015::hard(W, U, v, 1), "stepwise, composed_by_row");
    pin("graves2013",
        paper::graves2013::window(random({D, 9}, 20), random({9}, 21), random({D, 3}, 22), random({3}, 23)),
        "stepwise, composed_by_row");
    pin("raffel2017 monotonic", paper::raffel2017::monotonic(W, U, v, one), "stepwise, composed_by_row");
    pin("raffel2017 monotonic_hard", paper::raffel2017::monotonic_hard(W, U, v, one), "stepwise, composed_by_row");
    pin("chiu2018 chunkwise", paper::chiu2018::chunkwise(W, U, v, one, one, 3), "stepwise, composed_by_row");
    pin("chiu2018 chunkwise_hard", paper::chiu2018::chunkwise_hard(W, U, v, one, one, 3), "stepwise, composed_by_row");
}

TEST_CASE("the Transformer and its descendants")
{
    pin("vaswani2017", paper::vaswani2017::scaled_dot(), "tiled, fused", causal{}, plain);
    pin("vaswani2017 multi_head", paper::vaswani2017::multi_head(2, square, square, square, square), "tiled, fused",
        causal{}, plain);
    pin("henry2020", paper::henry2020::normalized(one), "tiled, fused", causal{}, plain);
    pin("ainslie2023", paper::ainslie2023::grouped(4, square, random({D, 4}, 24), random({D, 4}, 25), square),
        "tiled, fused", causal{}, plain);
    pin("qiu2025", paper::qiu2025::gated(2, square, square, square, square, square), "tiled, fused", causal{}, plain);
}

TEST_CASE("positions")
{
    pin("shaw2018", paper::shaw2018::relative(random({D, 9}, 26)), "tiled, composed_by_row", causal{}, plain);
    pin("shaw2018 values", paper::shaw2018::relative(random({D, 9}, 26), random({9, D}, 27)),
        "blocked, composed_by_row", causal{}, plain);
    pin("raffel2020", paper::raffel2020::relative_bias(random({1, 32}, 28)), "tiled, composed_by_row", causal{}, plain);
    pin("su2021", paper::su2021::rotary(), "tiled, fused", causal{}, plain);
    pin("press2022", paper::press2022::alibi(1), "tiled, composed_by_row", causal{}, plain);
    pin("golovneva2024", paper::golovneva2024::contextual(random({D, 9}, 29)), "blocked, composed_by_row", causal{},
        plain);
}

TEST_CASE("normalizers other than softmax")
{
    pin("correia2019", paper::correia2019::adaptive(one), "tiled, composed_by_row");
    pin("gupta2021", paper::gupta2021::top_k(4), "tiled, composed_by_row");
    pin("gemma2024", paper::gemma2024::capped(), "tiled, composed_by_row", causal{}, plain);
    pin("xiao2024", paper::xiao2024::zero_sink<double>(), "tiled, composed_by_row", causal{}, plain);
    pin("openai2025", paper::openai2025::with_sink(one), "tiled, composed_by_row", causal{}, plain);
    pin("lin2025", paper::lin2025::forgetting(column, one), "tiled, composed_by_row", causal{}, plain);
    pin("ramapuram2025", paper::ramapuram2025::sigmoid(T), "tiled, composed_by_row");
    pin("tan2025", paper::tan2025::stick_breaking(), "tiled, composed_by_row", causal{}, plain);
}

TEST_CASE("linear attention and convolutions")
{
    pin("katharopoulos2020", paper::katharopoulos2020::linear(), "linear, composed_by_row", causal{}, plain);
    pin("choromanski2021", paper::choromanski2021::performer(random({D, 12}, 30)), "linear, composed_by_row", causal{},
        plain);
    pin("schlag2021", paper::schlag2021::delta_net(column, one), "linear, composed_by_row", causal{}, plain);
    pin("yang2025", paper::yang2025::gated_delta_net(column, one, column, one), "linear, composed_by_row", causal{},
        plain);
    pin("sun2023", paper::sun2023::retention(0.9), "linear, composed_by_row", causal{}, plain);
    pin("dao2024", paper::dao2024::state_space(column, one), "linear, composed_by_row", causal{}, plain);
    pin("yang2024", paper::yang2024::gated_linear(column, one), "linear, composed_by_row", causal{}, plain);
    pin("wu2019 dynamic", paper::wu2019::dynamic(random({D, 3}, 31)), "blocked, composed_by_row");
    pin("wu2019 lightweight", paper::wu2019::lightweight(random({3}, 32)), "blocked, composed_by_row");
}
