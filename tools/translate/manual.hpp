// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "../support/environment.hpp"
#include "../support/manual.hpp"

namespace translation {

/// What the manual pages say beyond --help.
inline program::manual_sections manual()
{
    return {
        {"",
         {{"FILES",
           "MODEL: a trained translator in one safetensors file: weights, vocabularies, byte-pair codes and the "
           "options it was trained with.\n\n"
           "MODEL.checkpoint: all that `translate train --resume` needs to continue. It is itself a model."}}},
        {"train",
         {{"FILES",
           "MODEL: the best model so far, in safetensors. It is written beside the old one and takes its place as a "
           "whole, so that neither a full disk nor a power failure leaves half a file.\n\n"
           "MODEL.checkpoint: weights, state of the optimizer and position of the last epoch, or of the moment of an "
           "interruption, for --resume.\n\n"
           ".MODEL.lock: exists while a run trains this model; a second run is refused. A killed run blocks no "
           "other."}}},
        {"*", {program::environment_section}}};
}

}  // namespace translation
