// SPDX-License-Identifier: BSD-3-Clause
#include <heed/translator/definitions/rnnsearch_lstm.hpp>
