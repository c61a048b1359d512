"""Starts programs with one of the two MPIs, under the drop-in or without it: preloaded, or as Open MPI's component."""

import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
TARGET = ROOT / os.environ.get("CARGO_TARGET_DIR", "target")
# The program, built if necessary.
PROGRAM = ["cargo", "run", "-q", "--locked", "-p", "topocoll-cli", "--"]
# Without networks of other kinds, whose search takes a third of a start. Options come before these.
LOCAL = {"OMPI_MCA_pml": "^ucx,cm", "OMPI_MCA_btl": "^openib,ofi,usnic", "OMPI_MCA_osc": "^ucx"}
failures = []


def run(command, env=None, timeout=120, **others):
    env = os.environ | (env or {})
    return subprocess.run(
        command, env=env, timeout=timeout, capture_output=True, text=True, **others
    )


def must(command, **others):
    done = run(command, timeout=1800, **others)
    if done.returncode != 0:
        sys.exit(f"{command}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Mpi:
    def __init__(self, name, scratch, release=False, component=False):
        self.name, self.scratch, self.release, self.component = name, scratch, release, component
        if release:
            built = TARGET / name / "release"
            cargo = ["cargo", "build", "--locked", "--release", "-p", "topocoll-mpi", "--target-dir", built.parent]
        else:
            # As `cargo test --workspace`, which has the features of a test's dependencies: nothing else is built.
            built = TARGET / "debug"
            cargo = ["cargo", "build", "--locked", "--workspace", "--lib", "--bins", "--test", "layering"]
            # The build script of mpi-sys does not watch MPICC. With another setting MPICH has bindings of its own.
            cargo += ["--config", "profile.dev.package.mpi-sys.opt-level=1"] if name == "mpich" else []
        must(cargo, env={"MPICC": f"mpicc.{name}"}, cwd=ROOT)
        if {"openmpi": "[libmpi.so", "mpich": "[libmpich.so"}[name] not in must(["readelf", "-d", built / "topocoll-mpi"]):
            sys.exit(f"{built} has the bindings of another MPI: run `cargo clean -p mpi-sys`")
        own = scratch / name
        own.mkdir()
        for file in ["libtopocoll_mpi.so", "topocoll-mpi"]:
            shutil.copy(built / file, own)
        self.library = own / "libtopocoll_mpi.so"
        if component:
            self.path = f"{self.made(own / 'components')}:{must(['ompi_info', '--path', 'pkglibdir', '--parsable']).split(':')[-1].strip()}"

    def made(self, folder, *settings):
        """A folder in which `make install` has installed the component."""
        make = ["make", "-s", "-C", ROOT / "crates/mpi", f"core={self.library}", f"COMPONENTS={folder}", *settings]
        must([*make, "-B", "install"])
        return folder

    def compiled(self, source):
        out = self.scratch / f"{source}.{self.name}"
        if not out.exists():
            # A Fortran program has one source, compiled for each module.
            file, _, module = source.partition(":")
            compiler = "mpif90" if module else "mpicc"
            define = [f"-DMODULE={module}"] if module else []
            must([f"{compiler}.{self.name}", "-O1", "-pthread", *define, "-o", out, HERE / file])
        return str(out)

    def shim(self, source):
        out = self.scratch / f"{source}.{self.name}.so"
        if not out.exists():
            inside = ["-DINSIDE"] if self.component else []
            must([f"mpicc.{self.name}", "-O2", *inside, "-shared", "-fPIC", "-o", out, HERE / source, "-ldl"])
        return str(out)

    def preloaded(self, *sources):
        """The drop-in and other libraries. For MPICH one counts messages, and yields the processor while
        none arrives."""
        sources += ("sends.c",) if self.name == "mpich" else ()
        own = [] if self.component else [str(self.library)]
        return ":".join([*own, *map(self.shim, sources)])

    def own_library(self):
        """The MPI library of the programs."""
        lines = must(["ldd", self.compiled("once.c")]).splitlines()
        return next(line.split()[2] for line in lines if "libmpich.so" in line)

    def without(self):
        """The environment of a run without the drop-in."""
        own = self.shim("sends.c") if self.name == "mpich" else ""
        return {"LD_PRELOAD": own, "TOPOCOLL_TRACE": ""} | ({"OMPI_MCA_coll": "^topocoll"} if self.component else {})

    def start(self, ranks, command, variables=None, options=(), timeout=120, within=()):
        ours = {"LD_PRELOAD": self.preloaded(), "TOPOCOLL_TRACE": "1"} | (variables or {})
        if self.name == "openmpi":
            start = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]
            start += ["--mca", "mca_base_component_path", self.path] if self.component else []
            sets = [word for name, value in ours.items() for word in ("-x", f"{name}={value}")]
        else:
            start = ["mpirun.mpich"]
            sets = [word for name, value in ours.items() for word in ("-genv", name, value)]
        command = [*within, *start, "-np", str(ranks), *sets, *options, *command]
        try:
            return run(command, LOCAL, timeout=timeout)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, -1, "", f"no end within {timeout} s")

    def passes(self, what, ranks, command, variables=None, says=(), never=(), options=(), timeout=120):
        done = self.start(ranks, command, variables, options, timeout)
        said = done.stdout + done.stderr
        wrong = [f"status {done.returncode}"] if done.returncode != 0 else []
        wrong += [f"does not say `{text}`" for text in says if text not in said]
        wrong += [f"says `{text}`" for text in never if text in said]
        self.report(f"{what}, {ranks} ranks", wrong, said)
        return done

    def report(self, what, wrong, said=""):
        print(f"{self.name}{' component' * self.component}: {what}: {'; '.join(wrong) or 'ok'}", flush=True)
        if wrong:
            failures.append(what)
            print(said[-2000:])


def topocoll(*arguments):
    return must([*PROGRAM, *arguments], cwd=ROOT)
