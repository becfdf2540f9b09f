// SPDX-License-Identifier: BSD-3-Clause
// expect: argument_of_wrong_rank<heed::([a-z0-9_]+::)?ops::dot_per_position_op, 0
// expect: heed: the first argument of this operation has rank 3 but must have rank 2
// expect: argument_of_wrong_rank<heed::([a-z0-9_]+::)?ops::matvec_op, 1
// expect: heed: the second argument of this operation has rank 2 but must have rank 1
// expect: heed: the first argument of this operation has rank 1 but must have rank 2 or 3
// expect: heed: the first argument of this operation has rank 2 but must have rank 3
// expect: heed: the third argument of this operation has rank 2 but must have rank 1
// expect: heed: the second argument of this operation has rank 0 but must have rank 2
// expect: argument_of_wrong_rank<heed::([a-z0-9_]+::)?ops::rotate_op, 1
// expect: heed: the second argument of this operation has rank 1 but must have rank 2
// expect: heed: the first argument of this operation has rank 5 but must have rank 2, 3 or 4
// expect: heed: word ids are not a std::vector: write `heed::word_ids ids.steps, batch.`
// expect: heed: a std::vector has the wrong integer type for this operation
// expect: heed: the numbers of real positions are `heed::lengths`
// expect: heed: this operation does not take arguments of these types and ranks in this order
// expect: heed: operations compute with float and double, and these tensors have another element type
// expect: heed: an operation takes tensors, and none of these is a tensor
// expect: heed: this operation takes one std::vector of tensors of one type
// expect: heed: backward takes a scalar loss
#include <heed/ad/ad.hpp>
#include <heed/heed.hpp>

#include <vector>

using namespace heed;

void use(const array<float, 3>& keys, const array<float, 2>& query, const array<float, 1>& v,
         const std::vector<int>& numbers, ad::tape<float>& on, const workspace_tensor<float, 2>& rows)
{
    const array<float, 2> scores = ops::dot_per_position(keys, query);  // the arguments swapped
    const ad::var<float, 2> taped = ops::matvec(on.parameter(keys), query);
    (void)ops::softmax(v, lengths{3});
    const workspace_tensor<float, 2> step = ops::step_of(rows, 1);
    (void)ops::linear(rows, rows, rows);
    (void)ops::add_per_position(keys, on.constant(array<float, 0>{}));
    (void)ops::rotate(keys, v, v, numbers);
    (void)ops::rotate(array<float, 5>{}, numbers);
    (void)ops::lookup(query, numbers);
    (void)ops::rows_of(query, numbers);
    (void)ops::softmax(query, std::vector<std::size_t>{2, 1});
    (void)ops::softmax(lengths{2, 1}, query);
    (void)ops::tanh(3.0);
    (void)ops::tanh(array<int, 2>{});
    (void)ops::stack(query, query);
    on.backward(taped);
}
