// SPDX-License-Identifier: BSD-3-Clause
#include <heed/translator/definitions/raw.hpp>
