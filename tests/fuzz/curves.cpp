// SPDX-License-Identifier: BSD-3-Clause
#include "fuzz.hpp"

#include <tools/translate/log_columns.hpp>

#include <heed/core/utf8.hpp>
#include <heed_kit/view/chart.hpp>

namespace fuzz::curves {

/// A training log to plot.
void run(std::string_view bytes)
{
    const auto path = file_of(bytes);
    const auto found =
        read(path, bytes.size(), 128, [&] { return translation::read_columns(path, "updates", "validation_loss"); });
    if (!found) return;
    require(!found->xs.empty() && found->xs.size() == found->ys.size(), "columns of unequal length");
    heed::view::chart picture{.title = "", .x_label = "updates", .y_label = "loss", .all = {}};
    picture.all.push_back({});
    picture.all.back().name = "curve";
    picture.all.back().xs = found->xs;
    picture.all.back().ys = found->ys;
    const allowance limited(free_bytes + 128 * bytes.size());
    const std::string drawn = heed::view::svg(picture);
    require(drawn.starts_with("<svg") && !heed::text::find_invalid_utf8(drawn), "not an SVG");
}

std::vector<std::string> seeds()
{
    const std::string header(translation::training_log::header);
    return {header + "\n1,10,0.100,5.1,0.001,4.9,1.2,100.0\n2,20,0.2,4,0.001,nan,1.3,\n3,30,0.3,3,0.001,inf,1.4,\n",
            header + "\n1,1e308,0.1,5.1,0.001,-1e308,1.2,\n2,-1e308,0.2,4,0.001,1e308,1.3,\n", header + "\n"};
}

const registered target({"curves", run, seeds});

}  // namespace fuzz::curves
