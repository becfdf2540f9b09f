# SPDX-License-Identifier: BSD-3-Clause
"""Defines the public names, and which require a comment.

Public is every name that the headers of include declare at namespace scope, and every public member of a public
type, except

- names in a namespace `detail`, and headers that only heed includes (INTERNAL below): implementation, not called by users;
- macros, and names that a macro declares (the concepts of heed::hook, which the page of the hooks explains).

A public name needs a comment above it, or a trailing one, such as the shape of a member. A missing comment is a fault for
names at namespace scope and for member functions. Data members and nested types without a comment are counted, and listed by
check_names.py --members: their declaration and the comment of their type explain most. The comment of an operation must have
its equation, its shapes and its derivative (operations.py). Exempt are

- a deduction guide, which only repeats its type;
- an operator, a constructor, a destructor, an assignment: the type's comment covers them;
- an overload or a specialization of a name that is documented once, anywhere in the same namespace or type;
- an object of a documented type on the next lines: `struct linear_op { … }; inline constexpr linear_op linear{};`;
- a member that the hooks' page explains for all policies, operations and modules (HOOKS below), and a function that
  overrides one of the base class;
- a member named in the comment of its type, and data in one block, without an empty line, with a neighbor that has a
  comment.
"""

import re

from names import Name

# The table at the head of policy/concepts.hpp; the members of operations and their families (ops/operation.hpp,
# ops/rows.hpp, ops/penalties.hpp), of modules (core/parameters.hpp), of predicate
# masks (simd/score_index.hpp); and those common to all containers or tensors.
HOOKS = set("""
traits prepare continue_keys project match start observe_memory advance groups score_matrix asked_all project_words check_state kernel_tag
in_tiles query query_all keys init_state update_state observe_query weigh_and_advance weights_for_combiner window inner_in_window tile_rule linear_rule differentiable
wraps prepare_values combine_matrix finish finish_matrix map step parameters adapts passes_state base inner hooks
shape forward backward saved saves scratch reads_result tapes value slope slope_a slope_b
results each_move piece fill needs back make visible_range full_range
begin end size empty data rows columns operator()
""".split())


# Headers included only by headers of heed.
INTERNAL = ("heed/kernels/", *(f"heed/simd/{name}.hpp" for name in ("registers", "dual_registers", "simd", "trig", "lookup")),
            *(f"heed/gemm/{name}.hpp" for name in ("gemm_kernel", "panels", "int8_panels", "weight_panels", "weights")))


def is_public(name: Name) -> bool:
    return (not name.header.startswith(INTERNAL) and "detail" not in name.full.split("::")
            and name.kind != "define" and not name.generated and not name.full.startswith("heed::kernels"))


def public(all_names: list[Name]) -> list[Name]:
    kept = [name for name in all_names if is_public(name)]
    for name in kept:
        name.members = public(name.members)
    return kept


def is_special(name: Name, owner: Name | None) -> bool:
    if name.is_guide or name.name.startswith(("operator", "~")):
        return True
    return owner is not None and name.name == owner.name


def is_fault(name: Name, at_namespace_scope: set[str]) -> bool:
    return name.full in at_namespace_scope or name.kind == "function"


def undocumented(names: list[Name], owner: Name | None = None) -> list[Name]:
    """The public names and members that lack a required comment."""
    documented = {name.full for name in names if name.doc}
    types = {name.full: name for name in names if name.is_type}
    found = []
    for i, name in enumerate(names):
        if not (name.doc or name.beside or name.full in documented or is_special(name, owner)):
            exempt = owner is not None and (name.name in HOOKS or re.search(r"\boverride\b", name.text))
            exempt = exempt or is_object_of_documented(name, types) or in_documented_block(names, i, owner)
            exempt = exempt or owner is not None and re.search(rf"`?\b{re.escape(name.name)}\b", owner.doc)
            if not exempt:
                found.append(name)
        found += undocumented(name.members, name)
    return found


def is_object_of_documented(name: Name, types: dict[str, Name]) -> bool:
    """`inline constexpr linear_op linear{};` after the documented type linear_op."""
    match = re.match(r"inline constexpr (\w+)(?:<>)? \w+$", name.text)
    type_ = types.get(f"{name.scope}::{match.group(1)}") if match and name.kind == "variable" else None
    return type_ is not None and bool(type_.doc)


def in_documented_block(names: list[Name], i: int, owner: Name | None) -> bool:
    """Data members, enumerators and aliases on consecutive lines share the comments of their block."""
    kinds = ("variable", "enumvalue", "typedef")
    if names[i].kind not in kinds or (owner is None and names[i].kind != "typedef"):
        return False
    for step in (-1, 1):
        j = i
        while 0 <= j + step < len(names) and names[j + step].kind in kinds:
            near, far = sorted((names[j], names[j + step]), key=lambda n: n.line)
            if far.first - near.line > 1 + far.doc.count("\n") + bool(far.doc):
                break
            j += step
            if names[j].doc or names[j].beside:
                return True
    return False
