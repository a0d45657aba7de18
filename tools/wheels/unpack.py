"""python3 unpack.py FOLDER WHEELS: unpacks the libraries, headers and licenses that a build needs from the wheels in
WHEELS.

Wheels are zip archives; the checksum of each member is verified. PyTorch's Python part is not unpacked. Libraries for
CUDA devices are unpacked only if the wheels that they depend on exist (cpu.txt).
"""
import os
import re
import shutil
import sys
import zipfile

KEPT = re.compile(r"torch/(include/|version\.py$|lib/lib(torch|torch_cpu|c10|gomp)(\.so|-)[^/]*$)|nvidia/.*\.so[.0-9]*$"
                  r"|[^/]+\.dist-info/(METADATA|licenses/.*)$")
KEPT_FOR_DEVICES = re.compile(r"torch/lib/lib(torch_cuda|torch_cuda_linalg|c10_cuda|caffe2_nvrtc|torch_nvshmem)\.so$"
                              r"|nvidia/")
# Profiling tools in these wheels, which are not needed and ten times as large as the rest.
LEFT_OUT = re.compile(r"nvidia/.*/lib(nvperf_\w+|checkpoint|pcsamplingutil)\.so$")


def unpack(wheel, folder, devices):
    """Writes the required members below the folder. A damaged member raises zipfile.BadZipFile."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            name = member.filename
            kept = KEPT.match(name) or devices and KEPT_FOR_DEVICES.match(name)
            if not kept or LEFT_OUT.search(name) or ".." in name.split("/") or name.endswith("/"):
                continue
            path = os.path.join(folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with archive.open(member) as packed, open(path, "wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)


def main():
    folder, wheels = sys.argv[1:]
    names = sorted(name for name in os.listdir(wheels) if name.endswith(".whl"))
    devices = any(name.startswith("nvidia_cudnn") for name in names)
    for name in names:
        unpack(os.path.join(wheels, name), folder, devices)


if __name__ == "__main__":
    main()
