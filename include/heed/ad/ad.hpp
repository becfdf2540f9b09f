// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/all_pairs.hpp>
#include <heed/ad/columns.hpp>
#include <heed/ad/convolution.hpp>
#include <heed/ad/coverage.hpp>
#include <heed/ad/elementwise.hpp>
#include <heed/ad/fused.hpp>
#include <heed/ad/gate.hpp>
#include <heed/ad/gaussian.hpp>
#include <heed/ad/grad_check.hpp>
#include <heed/ad/groups.hpp>
#include <heed/ad/heads.hpp>
#include <heed/ad/history.hpp>
#include <heed/ad/lift.hpp>
#include <heed/ad/mask.hpp>
#include <heed/ad/parts.hpp>
#include <heed/ad/penalty.hpp>
#include <heed/ad/products.hpp>
#include <heed/ad/recurrent.hpp>
#include <heed/ad/sampling.hpp>
#include <heed/ad/shape.hpp>
#include <heed/ad/similarity.hpp>
#include <heed/ad/softmax.hpp>
#include <heed/ad/sparse.hpp>
#include <heed/ad/tape.hpp>
#include <heed/ad/training.hpp>
