// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/environment.hpp"
#include "../support/manual.hpp"

namespace translation {

/// Sections of the manual pages that are not in --help.
inline program::manual_sections manual()
{
    return {{"",
             {{"FILES",
               "MODEL: a trained translator in one safetensors file: weights, vocabularies, byte-pair codes and the "
               "options it was trained with.\n\n"
               "MODEL.checkpoint: the state required by `translate train --resume`. It is also a valid model."}}},
            {"train",
             {{"FILES",
               "MODEL: the best model so far, in safetensors. It is written next to the old one and replaces it as a "
               "whole, so that a full disk or a power failure never leaves a partial file.\n\n"
               "MODEL.checkpoint: weights, optimizer state and position at the end of the last epoch, or at an "
               "interruption, for --resume.\n\n"
               ".MODEL.lock: exists while a run trains this model; a second run is rejected. A killed run does not "
               "block others."}}},
            {"*", {program::environment_section}}};
}

}  // namespace translation
