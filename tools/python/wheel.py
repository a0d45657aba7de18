"""python3 wheel.py BUILD DIST: a wheel of the package in BUILD/package, with the program and the system's libraries
that both need. LibTorch is torch's own, below the same site-packages. Prints the file's name.

What was built with Python 3.11 is for that; an extension of the stable ABI, as 3.12 and later build it, is for all of
these."""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

ROOT = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
# What belongs to the C and C++ runtime is the system's, always.
RUNTIME = re.compile(r"(ld-linux|libc|libm|libdl|librt|libpthread|libutil|libresolv|libgcc_s|libstdc\+\+)[-.]")
PATHS_OF_PROGRAM = "$ORIGIN/../lib:$ORIGIN/../../torch/lib:$ORIGIN/../../nvidia/cu13/lib"
PATHS_OF_ENGINE = "$ORIGIN/lib:$ORIGIN/../torch/lib:$ORIGIN/../nvidia/cu13/lib"

METADATA = """Metadata-Version: 2.1
Name: mneme
Version: {version}
Summary: A simulator for federated continual learning
License: {licence}
Requires-Python: {pythons}
Requires-Dist: torch==2.11.*
Requires-Dist: numpy
Provides-Extra: all
Requires-Dist: pandas; extra == "all"
Description-Content-Type: text/markdown

{readme}
"""


def system_libraries(*programs):
    """{name: path} of what these need of the system, but for its runtime."""
    found = {}
    for program in programs:
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for name, path in re.findall(r"(\S+) => (/\S+)", said):
            if path.startswith(("/lib/", "/usr/lib/", "/lib64/")) and not RUNTIME.match(name):
                found[name] = path
    return found


def relocated(program, paths):
    """Makes the program look for libraries relative to itself alone."""
    said = subprocess.run(["readelf", "-d", program], capture_output=True, text=True, check=True).stdout
    (present,) = re.findall(r"\(R(?:UN)?PATH\).*\[(.*)\]", said)
    with tempfile.NamedTemporaryFile("w", suffix=".cmake") as script:
        script.write(f'file(RPATH_CHANGE FILE "{program}" OLD_RPATH [==[{present}]==] NEW_RPATH [==[{paths}]==])\n')
        script.flush()
        subprocess.run(["cmake", "-P", script.name], check=True, stdout=subprocess.DEVNULL)


def staged(build, stage):
    """Lays the package out below `stage`."""
    package = os.path.join(stage, "mneme")
    shutil.copytree(os.path.join(build, "package", "mneme"), package, symlinks=True,
                    ignore=shutil.ignore_patterns("__pycache__", "bin"))
    os.makedirs(os.path.join(package, "bin"))
    program = os.path.join(package, "bin", "mneme")
    shutil.copy2(os.path.join(build, "mneme"), program)
    engine = next(os.path.join(package, name) for name in os.listdir(package) if re.match(r"_engine.*\.so$", name))
    libraries = system_libraries(program, engine)
    relocated(program, PATHS_OF_PROGRAM)
    relocated(engine, PATHS_OF_ENGINE)
    os.makedirs(os.path.join(package, "lib"))
    for name, path in libraries.items():
        shutil.copy2(os.path.realpath(path), os.path.join(package, "lib", name))
    for file in (program, engine):
        subprocess.run(["strip", "--strip-unneeded", file], check=True)
    shutil.copytree(os.path.join(ROOT, "scenarios"), os.path.join(package, "share", "mneme", "scenarios"))


def system_tag():
    glibc = re.sub(r"\D+", "_", os.confstr("CS_GNU_LIBC_VERSION").split()[1])
    return f"manylinux_{glibc}_{os.uname().machine}"


def has_stable_abi(build):
    return any(name.endswith(".abi3.so") for name in os.listdir(os.path.join(build, "package", "mneme")))


def described(stage, version, tag, pythons):
    """Writes the folder of what pip reads; returns its name."""
    info = f"mneme-{version}.dist-info"
    os.makedirs(os.path.join(stage, info))
    with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as file:
        readme = file.read()
    with open(os.path.join(ROOT, "CITATION.cff"), encoding="utf-8") as file:
        licence = re.search(r"^license: *(\S+)", file.read(), re.M)
    files = {
        "METADATA": METADATA.format(version=version, readme=readme, pythons=pythons,
                                    licence=licence.group(1) if licence else "see LICENSE"),
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: mneme\nRoot-Is-Purelib: false\nTag: {tag}\n",
        "entry_points.txt": "[console_scripts]\nmneme = mneme._program:main\n",
    }
    for name, text in files.items():
        with open(os.path.join(stage, info, name), "w", encoding="utf-8") as file:
            file.write(text)
    shutil.copy2(os.path.join(ROOT, "LICENSE"), os.path.join(stage, info, "LICENSE"))
    return info


def packed(stage, info, path):
    """Zips the stage, with the record of its files last."""
    record = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for folder, folders, names in os.walk(stage):
            folders.sort()
            for name in sorted(names):
                file = os.path.join(folder, name)
                inside = os.path.relpath(file, stage)
                with open(file, "rb") as opened:
                    content = opened.read()
                digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
                record.append(f"{inside},sha256={digest},{len(content)}")
                archive.write(file, inside)
        record.append(f"{info}/RECORD,,")
        archive.writestr(f"{info}/RECORD", "\n".join(record) + "\n")


def main():
    build, dist = (os.path.abspath(word) for word in sys.argv[1:])
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        version = re.search(r"^project\(mneme VERSION ([0-9.]+)", file.read(), re.M).group(1)
    python, (major, minor) = sysconfig.get_config_var("py_version_nodot"), sys.version_info[:2]
    tag, pythons = f"cp{python}-cp{python}-{system_tag()}", f">={major}.{minor}, <{major}.{minor + 1}"
    if has_stable_abi(build):
        tag, pythons = f"cp312-abi3-{system_tag()}", ">=3.12"
    os.makedirs(dist, exist_ok=True)
    path = os.path.join(dist, f"mneme-{version}-{tag}.whl")
    with tempfile.TemporaryDirectory() as stage:
        staged(build, stage)
        packed(stage, described(stage, version, tag, pythons), path + ".part")
    os.replace(path + ".part", path)
    print(os.path.relpath(path, os.getcwd()))


if __name__ == "__main__":
    main()
