# SPDX-License-Identifier: BSD-3-Clause
"""Whether heed and NumPy read each other's files: the test io.numpy runs this.

    python3 numpy.py build/demo/tests/io_npz

Writes files, lets the program read them (its test cases read the folder HEED_NUMPY_FILES if it is set) and write them
again, and reads those. Ends with status 77, "skipped", where there is no NumPy. With --print it prints the files that
tests/io/npz.cpp holds as bytes.
"""
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

sys.path = [place for place in sys.path if pathlib.Path(place or ".").resolve() != pathlib.Path(__file__).parent.resolve()]
try:
    import numpy
except ImportError:
    print("there is no NumPy for", sys.executable, "(Debian: apt install python3-numpy)")
    sys.exit(77)


def arrays():
    """What tests/io/npz.cpp expects, by name."""
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
        numpy.savez(here / "stored.npz", **arrays())
        numpy.savez_compressed(here / "deflated.npz", **arrays())
        numpy.savez_compressed(here / "zeros.npz", zeros=numpy.zeros((1000, 300)))
        for version in (1, 2, 3):
            with open(here / f"version{version}.npy", "wb") as file:
                numpy.lib.format.write_array(file, arrays()["f4.big.F"], version=(version, 0))
        subprocess.run([program], check=True, env=dict(os.environ, HEED_NUMPY_FILES=name))
        readable = {key: x for key, x in arrays().items() if key not in ("words", "fields")}
        for written in ("again.stored.npz", "again.deflated.npz", "again.zip64.npz"):
            assert zipfile.ZipFile(here / written).testzip() is None, written
            again = numpy.load(here / written)
            assert set(again.files) == set(readable), written
            for key, x in readable.items():
                assert again[key].dtype == x.dtype.newbyteorder("<"), (written, key, again[key].dtype)
                assert again[key].shape == x.shape and (again[key] == x).all(), (written, key)
        single = numpy.load(here / "again.npy")
        assert single.dtype == numpy.float32 and (single == arrays()["f4.big.F"]).all()

        # Each of the 65,536 numbers of 16 bits, as a float.
        halves = numpy.load(here / "halves.npz")
        values = halves["float16"].astype(numpy.float32)
        assert halves["float16"].dtype == numpy.float16 and halves["float16"].size == 65536
        assert numpy.array_equal(values.view(numpy.uint32), halves["float32"].view(numpy.uint32))
        rounded = halves["float32.more"].astype(numpy.float16)
        numbers = ~numpy.isnan(halves["float32.more"])
        assert numpy.array_equal(rounded[numbers].view(numpy.uint16), halves["rounded"][numbers].view(numpy.uint16))


def print_as_bytes():
    def show(name, data):
        print(f"// {len(data)} bytes\nconst unsigned char {name}[] = {{")
        text = "".join(f"{byte}," for byte in data)
        while text:
            end = text.rfind(",", 0, 112) + 1
            print("    " + text[:end])
            text = text[end:]
        print("};")

    some = {"a": numpy.arange(6, dtype=">f4").reshape(2, 3, order="F"), "b": numpy.array([True, False])}
    for name, save in (("stored_npz", numpy.savez), ("deflated_npz", numpy.savez_compressed)):
        file = io.BytesIO()
        save(file, **some)
        show(name, file.getvalue())


if "--print" in sys.argv:
    print_as_bytes()
else:
    check(sys.argv[1])
