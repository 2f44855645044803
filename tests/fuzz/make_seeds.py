#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets: small files of every form that the readers know, and bytes for the others.

usage: make_seeds.py FOLDER      FOLDER/TARGET gets the seeds of a target; run.sh --minimise makes the corpus of them
"""
import io
import json
import pathlib
import random
import struct
import sys
import zipfile

if len(sys.argv) != 2:
    sys.exit(__doc__)
folder = pathlib.Path(sys.argv[1])
here = pathlib.Path(__file__).resolve().parent


def write(target, name, content):
    path = folder / target / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def npy(dtype, shape, data, fortran=False, version=1):
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}"
    fixed = 10 if version == 1 else 12
    header += " " * (-(fixed + len(header) + 1) % 16) + "\n"
    length = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + data


arrays = {
    "node_features": npy("<f4", "(4, 2)", struct.pack("<8f", 1, 0, 0, 2, 0, 0, 3, 4)),
    "node_labels": npy("<i8", "(4,)", struct.pack("<4q", 0, 1, 2, 1)),
    "edges": npy("<i4", "(3, 2)", struct.pack("<6i", 0, 1, 1, 2, 2, 3)),
    "train_masks": npy("|b1", "(2, 4)", bytes([1, 1, 0, 0, 0, 0, 1, 1])),
    "val_masks": npy("|b1", "(2, 4)", bytes([0, 0, 1, 0, 1, 0, 0, 0])),
    "test_masks": npy("|b1", "(2, 4)", bytes([0, 0, 0, 1, 0, 1, 0, 0])),
}
for name, content in arrays.items():
    write("npy", name, content)
for dtype, data in {"<f2": b"\x00\x3c\x00\xc0\x00\x7e\x01\x00", ">f8": struct.pack(">2d", 1, 1e300), "<u8": b"\xff" * 8,
                    "|i1": b"\x00\x80\x7f", ">i2": b"\x01\x02", "<U3": "abc".encode("utf-32-le"), "|O": b""}.items():
    count = {"<f2": 4, ">f8": 2, "|i1": 3}.get(dtype, 1)
    write("npy", "type" + dtype[1:], npy(dtype, "()" if "U" in dtype else f"({count},)", data))
write("npy", "fortran", npy("<i4", "(2, 3)", struct.pack("<6i", *range(6)), fortran=True))
write("npy", "version2", npy("<f8", "(1, 1, 1)", struct.pack("<d", 0.5), version=2))


def archive(method, **more):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as out:
        for name, content in {**arrays, **more}.items():
            out.writestr(zipfile.ZipInfo(name + ".npy"), content, method)
    return buffer.getvalue()


for name, method in (("stored", zipfile.ZIP_STORED), ("deflated", zipfile.ZIP_DEFLATED)):
    write("zip", name, archive(method))
    write("npz", name, b"\x01" + archive(method, name=npy("<U3", "()", "abc".encode("utf-32-le"))))
write("zip", "empty", b"PK\x05\x06" + bytes(18))
golden = sorted((here.parent / "golden").glob("*.npz"), key=lambda path: path.stat().st_size)
write("zip", "golden", golden[0].read_bytes()[-6000:])  # its directory

edges = "node_id\tnode_id\n0\t1\n1\t2\n2\t2\n3\t0\n"
indices = "node_id\tfeature\tlabel\n0\t1,5\t0\n1\t\t1\n3\t2\t0\n2\t7,3\t-1\n"
dense = "node_id\tfeature\tlabel\r\n0\t0.5,1\t0\r\n1\t0,-2e3\t1\r\n2\t1,1\t2\r\n3\t0,0\t0\r\n"
for form in range(3):
    write("geom_gcn", f"indices{form}", bytes([form]) + edges.encode() + b"\0" + indices.encode())
    write("geom_gcn", f"dense{form}", bytes([form]) + edges.encode() + b"\0" + dense.encode())

tables = ["name,label,split_0,split_1,x,y\na,cat,train,test,1,0.5\nb,dog,val,,2,-1e-3\n\"c,\"\"d\"\"\",,test,train,0,3\n",
          "name;label;x\n1;2;3\n2;-1;4\n3;10;5\n", "\ufeffname\tlabel\tx\r\na\t1\t2\r\nb\t2\t3\r\n"]
lists = ["source,target\na,b\nb,\"c,\"\"d\"\"\"\na,a\n", "1;2\n2;3\n3;1\n", "a\tb\n"]
for i, (table, pairs) in enumerate(zip(tables, lists)):
    write("csv", f"table{i}", bytes([0]) + table.encode() + b"\0" + pairs.encode())
write("csv", "numbers", b"\x01\x000,1\n1,2\n")

for kind, text in {"coordinate": "%%MatrixMarket matrix coordinate real general\n% a\n3 3 3\n1 2 1.5\n2 3 -2e3\n3 3 1\n",
                   "pattern": "%%MatrixMarket matrix coordinate pattern symmetric\n4 4 2\n2 1\n4 3\n",
                   "array": "%%MatrixMarket matrix array integer general\n2 2\n1\n0\n-3\n4\n",
                   "symmetric": "%%MatrixMarket matrix array real symmetric\n2 2\n1\n0.5\n4\n"}.items():
    write("matrix_market", kind, text)


def tensors(header, data):
    text = json.dumps(header).encode()
    return b"\x01" + text + b"\0" + data


two = {"__metadata__": {"a": "b\n\u00e9"}, "w": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
       "v": {"dtype": "F64", "shape": [], "data_offsets": [8, 16]}, "e": {"dtype": "F32", "shape": [0, 3], "data_offsets": [8, 8]}}
write("safetensors", "two", tensors(two, struct.pack("<2fd", 1, -0.0, 1e300)))
write("safetensors", "raw", b"\x00" + struct.pack("<Q", 2) + b"{}")
state = {"__metadata__": {"format": "sheafnn training", "seed": "3", "best_epoch": "0", "best_by": "loss"}}
offset = 0
for name, size in (("parameters", 4), ("first_moment", 4), ("second_moment", 4), ("best_parameters", 4), ("best_predictions", 6)):
    state[name] = {"dtype": "F64", "shape": [size], "data_offsets": [offset, offset + 8 * size]}
    offset += 8 * size
state["history"] = {"dtype": "F64", "shape": [1, 9], "data_offsets": [offset, offset + 72]}
text = json.dumps(state).encode()
write("training_state", "file", b"\x00\x00" + struct.pack("<Q", len(text)) + text + struct.pack("<31d", *[0.5] * 31))
write("checkpoint", "file", b"\x00" + tensors({"__metadata__": {"model": "nsd", "maps": "diagonal", "stalk_dimension": "2"}}, b""))

for i, line in enumerate([
        "--model bsnn --maps diagonal --stalk-dim 2 --channels 8 --layers 2 --lr 0.01",
        "--model csnn --stalk-dim 3 --node-learner sage --learner-layers 2 --no-conformal --batch-norm",
        "--model bflow --maps general-linear --time 2 --flow-method runge-kutta --fixed-steps 5",
        "--filter jacobi --degree 4 --jacobi-alpha 0.5 --coefficients free --skip off --published-filter",
        "--make-splits 60/20/20 --stratified --split-count 3 --splits 0-2,5 --seeds 1,2,3 --dropout 0.5",
        "--dataset synthetic --synthetic-nodes 50 --synthetic-degree 4 --kl-schedule off --stop-on accuracy",
        "--parametrisation euler --normalisation degree --learner-layers 1 --learner-width 7 --edge-weights on",
        "--help", "--epochs=-1 --seed 18446744073709551615 --threads 99999999999 --input-dropout nan --weight-decay 1e999"]):
    write("options", f"line{i}", line.replace(" ", "\n"))

numbers = random.Random(1)
for kind in range(48):
    write("rotations", f"random{kind}", bytes([kind]) + numbers.randbytes(150))
for kind in range(4):
    write("checkpoint", f"random{kind}", bytes([2 * kind + 1]) + numbers.randbytes(20))
    write("training_state", f"random{kind}", bytes([2 * kind + 1]) + numbers.randbytes(20))
    write("npz", f"random{kind}", bytes([0, kind]) + bytes(numbers.choice([0, 1, 2, 4, 4, 8, 24]) for _ in range(150)))
for kind in range(12):
    write("training_step", f"random{kind}", bytes([kind]) + numbers.randbytes(250))
