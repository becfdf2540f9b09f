// SPDX-License-Identifier: BSD-3-Clause
#include <heed/translator/definitions/convs2s.hpp>
