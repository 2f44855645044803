#!/usr/bin/env python3
"""Counts what nvcc makes of the heaviest kernels (kernels.cu), without a GPU.

usage: count.py [--arch sm_90] [--root FOLDER] [--include FOLDER]... [--markdown] [--keep FILE.sass]

Per kernel: machine instructions in all; instructions of the loop with the most multiply-adds, and per nine
multiply-adds (an arc, at d = 3 and one channel); 64-bit divisions; 128-bit loads; registers; bytes of the
stack and of spills.
--root is the checkout whose headers are compiled (default: this one), so that two commits are compared by one list of
kernels. --include adds a folder with Eigen/. Needs nvcc, and cuobjdump or nvdisasm for what is more than registers,
stack and spills: NVCC, CUOBJDUMP, NVDISASM say where they are.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def tool(name):
    places = [os.environ.get(name.upper()), shutil.which(name), f"/usr/local/cuda/bin/{name}"]
    return next((p for p in places if p and os.access(p, os.X_OK)), None)


def short_name(mangled):
    """run_parts<Items<NAMESPACE::Kernel<...>>> as Kernel<...>."""
    name = subprocess.run(["c++filt", mangled], capture_output=True, text=True, check=True).stdout.strip()
    name = re.sub(r"sheafnn::(batch::)?(detail::)?", "", name)
    name = re.sub(r"^void .*?run_parts<(Items|Teams)<(.*)>\s*>\(.*$", r"\2", name)
    name = re.sub(r"\(int\)|, float|<float>", "", name)
    name = re.sub(r"SpecialOrthogonal<(\d)>", r"SO(\1)", name)
    name = re.sub(r"GeneralLinear<(\d)>", r"GL(\1)", name)
    name = re.sub(r"Diagonal<(\d)>", r"Diag(\1)", name)
    name = re.sub(r", SampledMaps<.*", "", name)
    name = re.sub(r"<[A-Za-z]*<((?:SO|GL|Diag)\(\d\)).*", r"<\1", name)
    return re.sub(r"[<>, ]+", " ", name).strip()


def resources(log):
    """Kernel: registers, stack, spilled bytes, from ptxas -v."""
    found, kernel = {}, None
    for line in log.splitlines():
        if m := re.search(r"Compiling entry function '(\S+)'", line):
            kernel = m[1]
        elif m := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            if kernel:
                found.setdefault(kernel, {}).update(stack=int(m[1]), spills=int(m[2]) + int(m[3]))
        elif (m := re.search(r"Used (\d+) registers", line)) and kernel:
            found.setdefault(kernel, {}).update(registers=int(m[1]))
    return found


def functions(listing):
    """Kernel: list of (address, instruction), from cuobjdump or nvdisasm."""
    found, code, labels, pending = {}, None, {}, []
    for line in listing.splitlines():
        if m := re.match(r"\s*(?:Function : |\.section\s+\.text\.)([A-Za-z_]\w*)", line):
            code, labels, pending = found.setdefault(m[1], []), {}, []
        elif (m := re.match(r"\s*(\.L_\w+):", line)) and code is not None:
            pending.append(m[1])
        elif (m := re.match(r"\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;", line)) and code is not None:
            address = int(m[1], 16)
            for label in pending:
                labels[label] = address
            pending = []
            code.append([address, m[2], labels])
    return found


def target(instruction, labels):
    """Address that a branch goes to."""
    m = re.search(r"\bBRA(?:\.\S+)?\s.*?(0x[0-9a-f]+|`\((\.L_\w+)\))", instruction)
    if not m:
        return None
    return labels.get(m[2]) if m[2] else int(m[1], 16)


def count(code):
    kept = [(a, i, l) for a, i, l in code if not re.search(r"\bNOP\b", i)]
    while kept and re.match(r"BRA\b", kept[-1][1]) and target(kept[-1][1], kept[-1][2]) == kept[-1][0]:
        kept.pop()  # the loop behind the end of every kernel
    multiply_adds = r"\b[FD](FMA|MUL)\b"
    best = (0, 0)
    for address, instruction, labels in kept:
        start = target(instruction, labels)
        if start is None or start >= address:
            continue
        body = [i for a, i, _ in kept if start <= a <= address]
        inner = [a for a, i, l in kept if start <= a < address and (t := target(i, l)) is not None and start < t < a]
        products = sum(bool(re.search(multiply_adds, i)) for i in body)
        # Of two loops that do the same, one for whole quads of channels and one for others, the short one is meant.
        if products and not inner and (products, -len(body)) > (best[0], -best[1]):
            best = (products, len(body))
    all_of = lambda pattern: sum(bool(re.search(pattern, i)) for _, i, _ in kept)
    return {
        "instructions": len(kept),
        "loop": best[1],
        "products": best[0],
        "per_nine": 9 * best[1] / best[0] if best[0] else 0,
        "divisions": all_of(r"\bCALL\b.*_(div|rem)_[su]64"),
        "narrow_divisions": all_of(r"\bI2F(\.U32)?\.RP\b"),
        "wide_loads": all_of(r"\bLDG?\.E\.(\w+\.)*128"),
    }


def main():
    here = pathlib.Path(__file__).resolve()
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90")
    parser.add_argument("--root", default=here.parents[3], type=pathlib.Path)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--keep", type=pathlib.Path, help="write the machine code to this file")
    options = parser.parse_args()
    nvcc = tool("nvcc")
    if nvcc is None:
        sys.exit("count.py: no nvcc here; set NVCC")
    folders = [options.root / "include", *options.include]
    if os.path.isdir("/usr/include/eigen3"):
        folders.append("/usr/include/eigen3")
    with tempfile.TemporaryDirectory() as folder:
        cubin = pathlib.Path(folder) / "kernels.cubin"
        run = subprocess.run([nvcc, "-std=c++20", "-O3", "-DNDEBUG", "--expt-relaxed-constexpr", "-cubin",
                              f"-arch={options.arch}", "-Xptxas=-v", *(f"-I{f}" for f in folders),
                              here.with_name("kernels.cu"), "-o", cubin], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(run.stderr)
        table = resources(run.stdout + run.stderr)
        if disassembler := tool("nvdisasm"):
            listing = subprocess.run([disassembler, "-c", cubin], capture_output=True, text=True, check=True).stdout
        elif disassembler := tool("cuobjdump"):
            listing = subprocess.run([disassembler, "-sass", cubin], capture_output=True, text=True, check=True).stdout
        else:
            listing = ""
            print("no cuobjdump and no nvdisasm: only registers, stack and spills", file=sys.stderr)
        if options.keep:
            options.keep.write_text(listing)
    for kernel, code in functions(listing).items():
        if kernel in table:
            table[kernel].update(count(code))
    columns = [("instructions", "instructions"), ("loop", "in the loop"), ("products", "multiply-adds in it"),
               ("per_nine", "per nine of them"), ("divisions", "64-bit divisions"),
               ("narrow_divisions", "32-bit divisions"), ("wide_loads", "128-bit loads"), ("registers", "registers"),
               ("stack", "stack, bytes"), ("spills", "spilled, bytes")]
    if options.markdown:
        print("| kernel | " + " | ".join(title for _, title in columns) + " |")
        print("| --- |" + " --- |" * len(columns))
    else:
        print("kernel\t" + "\t".join(title for _, title in columns))
    for name, row in sorted((short_name(kernel), row) for kernel, row in table.items()):
        cells = [f"{row[key]:.0f}" if key in row else "–" for key, _ in columns]
        print(f"| {name} | " + " | ".join(cells) + " |" if options.markdown else name + "\t" + "\t".join(cells))


if __name__ == "__main__":
    main()
