#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# run.sh <mpirun> <ranks> <program> [<argument>...]: runs the program on this number of local ranks, regardless of the
# number of cores. By default Open MPI refuses root and more ranks than cores; other MPIs ignore these variables.

set -euo pipefail
mpirun=$1 ranks=$2
shift 2
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none # containers forbid it
export OPENBLAS_NUM_THREADS=1
exec "$mpirun" -n "$ranks" "$@"
