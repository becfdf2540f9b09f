// SPDX-License-Identifier: BSD-3-Clause
// expect: heed: the result refers to its argument, a temporary that owns its numbers
// expect: looked_up.*xtensor_container
// expect: looked_up.*int
// expect: view_of<double, 4U?L?>|view_of.*T = double.* N = 4
// expect: view_of.*shared_tensor<double, 5
// expect: view_of.*vector<float
// expect: heed: an alignment refers to its weights and words, but this is a temporary
// expect: deleted [a-z ]*function.*parameter
// expect: deleted [a-z ]*function.*lift
// expect: deleted (function|constructor).*shared_memory
// expect: deleted (function|constructor).*reading
// expect: deleted function.*::guided_alignment|::guided_alignment' uses deleted function
// expect: deleted function.*::text_of_named|::text_of_named' invokes a deleted function
#include <heed/heed.hpp>
#include <heed/seq2seq/embedding.hpp>
#include <heed/seq2seq/objective.hpp>
#include <heed_kit/view/alignment.hpp>

#include <string>
#include <vector>

using namespace heed;

// Functions that refer to their argument reject a temporary: its numbers, or a model's weights, would be destroyed at
// the end of the expression.
auto table() { return looked_up(array<float, 1>{1.0f, 2.0f}); }
auto table_of_vector() { return looked_up(std::vector<int>{1, 2}); }
auto view(const array<double, 4>& x) { return view_of(array<double, 4>(x)); }
auto view_of_shared(const array<double, 5>& x) { return view_of(shared_tensor<double, 5>(x)); }
auto view_of_vector() { return view_of(std::vector<float>(6), 2, 3); }
auto parameter(ad::tape<float>& on) { return on.parameter(array<float, 2>{{1.0f, 2.0f}}); }
auto lifted(ad::tape<float>& on, const array<float, 2>& W) { return ad::lift(on, score::general{W}); }
auto memory(const array<float, 3>& annotations)
{
    const attention attend{score::dot{}, normalize::softmax{}, combine::weighted_sum{}};
    return shared_memory(attend.on(annotations), std::vector<std::size_t>{0, 0});
}
auto objective_of_links() { return seq2seq::objective::guided_alignment(std::vector<penalty::links>(2)); }
struct model {};
auto reading(model make()) { return seq2seq::reading(make(), seq2seq::feature_batch<array<float, 3>>{}); }
auto picture(const std::vector<std::string>& words)
{
    const view::alignment drawn{std::vector<float>(4), words, words};
    return view::alignment{drawn.weights, words, words, {}, words[0] + "!"};
}
