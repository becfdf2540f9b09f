# SPDX-License-Identifier: BSD-3-Clause
"""Whether heed and NumPy read each other's files: the test io.npy.numpy runs this.

    python3 numpy.py build/dev/tests/io_npy

Writes files, lets the program read them (its test cases read the folder HEED_NUMPY_FILES if it is set) and write them
again, and reads those. Ends with status 77, "skipped", where there is no NumPy.
"""
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path = [place for place in sys.path if pathlib.Path(place or ".").resolve() != pathlib.Path(__file__).parent.resolve()]
try:
    import numpy
except ImportError:
    print("there is no NumPy for", sys.executable, "(Debian: apt install python3-numpy)")
    sys.exit(77)


def arrays():
    """The arrays that tests/io/npy.cpp expects, by name."""
    counting = numpy.arange(24).reshape(2, 3, 4)
    result = {}
    for kind in ("f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"):
        for order in "<>":
            for layout in "CF":
                values = counting - (5 if kind[0] in "fi" else 0)
                if kind[0] == "f":
                    values = values / 8
                result[f"{kind}.{'little' if order == '<' else 'big'}.{layout}"] = numpy.array(
                    values, dtype=order + kind, order=layout)
    result["truth"] = counting % 3 == 0
    result["number"] = numpy.array(2.5)
    result["row"] = numpy.arange(3, dtype="<f4")
    result["none"] = numpy.zeros((0, 4), dtype="<f4")
    result["words"] = numpy.array(["a", "bcd"])
    result["fields"] = numpy.zeros(2, dtype=[("a", "<f4"), ("b", "<i8")])
    return result


def check(program):
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        (here / "again").mkdir()
        (here / "halves").mkdir()
        for key, x in arrays().items():
            numpy.save(here / f"{key}.npy", x)
        for version in (1, 2, 3):
            with open(here / f"version{version}.npy", "wb") as file:
                numpy.lib.format.write_array(file, arrays()["f4.big.F"], version=(version, 0))
        subprocess.run([program], check=True, env=dict(os.environ, HEED_NUMPY_FILES=name))
        for key, x in arrays().items():
            if key in ("words", "fields"):
                continue
            again = numpy.load(here / "again" / f"{key}.npy")
            assert again.dtype == x.dtype.newbyteorder("<"), (key, again.dtype)
            assert again.shape == x.shape and (again == x).all(), key
        single = numpy.load(here / "again.npy")
        assert single.dtype == numpy.float32 and (single == arrays()["f4.big.F"]).all()

        # Each of the 65,536 16-bit numbers, as a float.
        halves = {key: numpy.load(here / "halves" / f"{key}.npy") for key in ("float16", "float32", "float32.more", "rounded")}
        values = halves["float16"].astype(numpy.float32)
        assert halves["float16"].dtype == numpy.float16 and halves["float16"].size == 65536
        assert numpy.array_equal(values.view(numpy.uint32), halves["float32"].view(numpy.uint32))
        rounded = halves["float32.more"].astype(numpy.float16)
        numbers = ~numpy.isnan(halves["float32.more"])
        assert numpy.array_equal(rounded[numbers].view(numpy.uint16), halves["rounded"][numbers].view(numpy.uint16))


check(sys.argv[1])
