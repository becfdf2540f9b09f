// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <heed_translator/model_file.hpp>

#include "command_line.hpp"
#include "library.hpp"
#include "progress.hpp"

namespace translation {

namespace fs = std::filesystem;

/// `translate quantize`: stores the weights of a model in fewer bits.
struct quantize_command {
    fs::path model, output;
    std::string to = "int8";

    void declare(CLI::App& app)
    {
        app.description("Write a smaller model file with weights in 8 or 16 bits.");
        app.footer(
            "All commands that read a model also read the smaller file. int8: matrices as bytes, with a scale\n"
            "per column, or per row of embeddings; about a quarter of the size. On processors that multiply bytes\n"
            "(AVX-512 VNNI or AVX-VNNI), translation is also faster; others compute with floats. bf16: half\n"
            "the size, computed with floats. A quantized model cannot be trained further; keep the original.\n\n"
            "Example:\n"
            "  translate quantize --model en-de.safetensors --to int8 --output small.safetensors");
        app.add_option("--model", model, "a model trained by `translate train`")->required()->type_name("FILE");
        app.add_option("--to", to, "number format of the weights: int8 or bf16")
            ->check(CLI::IsMember({"int8", "bf16"}).description(""))
            ->type_name("NUMBERS")
            ->capture_default_str();
        app.add_option("--output", output, "the smaller file")->required()->type_name("FILE");
    }

    int run() const
    {
        check_output(output, {model});
        const translator_file file = load_model(model);
        about(model, [&] { heed::io::save(output, to_smaller(file, to)); });
        const auto before = fs::file_size(model), after = fs::file_size(output);
        say(fmt::format("{}: {:.2f} MB, {:.2f} times smaller than {}", output.string(),
                        static_cast<double>(after) / 1e6, static_cast<double>(before) / static_cast<double>(after),
                        model.string()));
        return 0;
    }
};

}  // namespace translation
