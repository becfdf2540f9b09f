// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <heed/ad/elementwise.hpp>
#include <heed/ad/fused.hpp>
#include <heed/ad/grad_check.hpp>
#include <heed/ad/lift.hpp>
#include <heed/ad/mask.hpp>
#include <heed/ad/products.hpp>
#include <heed/ad/recurrent.hpp>
#include <heed/ad/shape.hpp>
#include <heed/ad/softmax.hpp>
#include <heed/ad/tape.hpp>
#include <heed/ad/training.hpp>
