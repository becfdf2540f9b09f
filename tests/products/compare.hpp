// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include <products/interpreter/program.hpp>
#include <products/products.hpp>

/// Comparisons of results, and the same results from the interpreter.
namespace composition {

/// The fault of a product, described by the message.
struct broken : std::runtime_error {
    using std::runtime_error::runtime_error;
};

void require(bool right, const std::string& what);
void require_close(double is, double must, double tolerance, const std::string& what);
void require_close(const outcome& is, const outcome& must, double tolerance, const std::string& what);
void require_same_bits(const outcome& is, const outcome& must, const std::string& what);
void require_finite(const outcome& is, const std::string& what);

std::string digits(double x);
std::string place(std::size_t series, std::size_t i);

/// Is the product in the interpreter's tables?
bool interpreted(const product& p);

/// The product as the interpreter's program.
interpreter::program program_of(product& p);

/// The tensor of a program with the name of a part.
interpreter::tensor& tensor_of(interpreter::program& run, const std::string& name);

/// The values by the equations.
outcome values_of(const interpreter::program& run);

}  // namespace composition
