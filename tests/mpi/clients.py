"""Programs of other projects, unchanged: the results with trials, with schedules and without the drop-in are the
same. Sources of Debian and PyPI come into the target directory."""

import re
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

from launch import HERE, TARGET, must, run

SOURCES = TARGET / "sources"
MPI4PY = "mpi4py-3.1.4"
# What MPICH's programs know of a computer from their own `configure`, which takes minutes.
CONFIGURED = """
HAVE_DOUBLE__COMPLEX HAVE_FLOAT__COMPLEX HAVE_GETRUSAGE HAVE_INTTYPES_H HAVE_LONG_DOUBLE HAVE_LONG_DOUBLE__COMPLEX
HAVE_LONG_LONG HAVE_MPI_WIN_CREATE HAVE_PTHREAD_H HAVE_STDARG_H HAVE_STDINT_H HAVE_STDLIB_H HAVE_STRING_H
HAVE_SYS_RESOURCE_H HAVE_SYS_TIME_H HAVE_UNISTD_H HAVE__BOOL USE_LONG_DOUBLE_COMPLEX
"""


def made(name, make):
    """A folder of the target directory, made once."""
    folder = SOURCES / name
    if not folder.exists():
        SOURCES.mkdir(parents=True, exist_ok=True)
        half = Path(tempfile.mkdtemp(dir=SOURCES))
        make(half)
        half.rename(folder)
    return folder


def debian(package):
    """A package's source, from the archives that this computer installs from."""

    def download(folder):
        (folder / "lists/partial").mkdir(parents=True)
        about = ["--format", "deb-src $(REPO_URI) $(RELEASE) $(COMPONENT)", "Created-By: Packages", "Origin: Debian"]
        archives = must(["apt-get", "indextargets", *about])
        (folder / "sources.list").write_text("\n".join(sorted(set(archives.splitlines()))) + "\n")
        settings = {"Dir::Etc::sourcelist": folder / "sources.list", "Dir::Etc::sourceparts": "-",
                    "Dir::State::lists": folder / "lists", "Dir::Cache::pkgcache": "", "Dir::Cache::srcpkgcache": ""}
        apt = ["apt-get", "-qq", *(word for name, value in settings.items() for word in ("-o", f"{name}={value}"))]
        must([*apt, "update"], cwd=folder)
        must([*apt, "source", "--download-only", package], cwd=folder)
        must(["tar", "-xf", next(folder.glob("*.orig.tar.*"))], cwd=folder)

    return next(path.parent for path in made(package, download).glob("*/configure"))


def same(mpi, name, ranks, command, outcome, forced="direct,concat", also=None, timeout=120):
    """Runs a program in three ways, each in its own folder."""
    outcomes, also = [], also or {}
    for what, variables, says in [("without the drop-in", mpi.without(), []), ("with trials", {}, [": tries "]),
                                  ("with schedules", {"TOPOCOLL_ALGORITHM": forced}, [", forced"])]:
        with tempfile.TemporaryDirectory(dir=mpi.scratch) as folder:
            inside = ["env", "-C", folder, *map(str, command)]
            done = mpi.passes(f"{name} {what}", ranks, inside, variables | also, says, timeout=timeout)
            outcomes.append(outcome(Path(folder), done.stdout + done.stderr))
    is_same = outcomes[0] and outcomes[0] == outcomes[1] == outcomes[2]
    mpi.report(f"{name} has the same results, {ranks} ranks", [] if is_same else [str(outcomes)])


def hpcc(mpi, ranks):
    """The HPC Challenge, whose Fourier transform calls MPI_Alltoall."""
    kept = ["PTRANS_residual", "MPIRandomAccess_Errors", "MPIFFT_maxErr", "Success"]

    def outcome(folder, _):
        file = folder / "hpccoutf.txt"
        pairs = (line.partition("=") for line in file.read_text().splitlines()) if file.exists() else []
        found = {name: value for name, _, value in pairs if name in kept}
        return found if found.get("Success") == "1" else None

    # A copy by one rank might not be complete when another one reads it.
    command = ["sh", "-c", f"ln -sf {HERE}/hpccinf.txt . && exec hpcc"]
    same(mpi, "HPC Challenge", ranks, command, outcome, "alltoall:direct")


def espresso(mpi, ranks):
    """Quantum ESPRESSO: the energy of silicon. Its Fourier transforms call MPI_Alltoall and MPI_Alltoallv."""

    def outcome(_, said):
        return re.findall(r"^! .*total energy.*Ry$|convergence has been achieved.*", said, re.MULTILINE)

    command = ["pw.x", "-in", HERE / "silicon.in"]
    same(mpi, "pw.x", ranks, command, outcome, also={"OMP_NUM_THREADS": "1"})


def mpi4py(mpi, ranks):
    """The tests of mpi4py: with Open MPI of Debian's package, with MPICH of one built here."""

    def download(folder):
        must(["/usr/bin/python3", "-m", "venv", folder / "venv"])
        pip = [folder / "venv/bin/pip", "--quiet", "--disable-pip-version-check"]
        must([*pip, "install", "wheel"])
        source = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", MPI4PY.replace("-", "==")]
        must([*pip, "download", *source], cwd=folder)
        must(["tar", "-xf", f"{MPI4PY}.tar.gz"], cwd=folder)

    def build(folder):
        shutil.copytree(made("mpi4py", download) / MPI4PY, folder, dirs_exist_ok=True)
        # MPICC in the environment comes before an option.
        must(["/usr/bin/python3", "setup.py", "build"], cwd=folder, env={"MPICC": f"mpicc.{mpi.name}"})

    if mpi.name == "openmpi":
        tests, built = made("mpi4py", download) / MPI4PY, {}
    else:
        tests = made(f"mpi4py-{mpi.name}", build)
        # The tests look for the folder by a name that setuptools no longer gives it.
        built = {"PYTHONPATH": str(next(tests.glob("build/lib*")))}

    def outcome(_, said):
        found = re.findall(r"Ran (\d+) tests|skipped=(\d+)", said)
        return sorted(found) if sum(bool(count) for count, _ in found) == ranks else None

    # The tests that start more processes fail without the drop-in too.
    command = ["/usr/bin/python3", tests / "test/runtests.py", "--no-builddir", "-e", "spawn", "-e", "dynproc"]
    same(mpi, "mpi4py's tests", ranks, command, outcome, also=built, timeout=600)


def fftw(mpi, ranks):
    """FFTW's benchmark, which verifies its transforms. Its plans may exchange by MPI_Alltoall only if they may destroy
    their input (`d`)."""
    problems = ["docf64x64", "dobr48x32", "docb30x14x6"]
    program = fftw_benchmark(mpi)

    def outcome(_, said):
        return re.findall(r"^(\S+) [\d.e-]+ [\d.e-]+ [\d.e-]+$", said, re.MULTILINE) == problems

    verified = ["-v", *(word for problem in problems for word in ("--verify", problem))]
    same(mpi, "mpi-bench", ranks, [program, *verified], outcome, timeout=600)
    keeps = [program, "-v", "--verify", "ocf64x64"]
    mpi.passes("mpi-bench that keeps its input", ranks, keeps, says=["ocf64x64 "], never=["topocoll: "], timeout=600)


def fftw_benchmark(mpi):
    source = debian("fftw3")

    def build(folder):
        without = ["--disable-fortran", "--disable-doc"]
        compilers = ["CC=gcc", f"MPICC=mpicc.{mpi.name}", "CFLAGS=-O1"]
        must([source / "configure", "--quiet", "--enable-mpi", *without, *compilers], cwd=folder)
        must(["make", "--quiet", "-j2"], cwd=folder)

    return made(f"fftw3-{mpi.name}", build) / "mpi/mpi-bench"


def transposes(mpi):
    """The messages of FFTW's transposes are those that were recorded, which `tests/exec/transforms.rs` reads."""
    program = mpi.scratch / "transposes"
    must([f"mpicc.{mpi.name}", "-o", program, HERE / "transposes.c", "-lfftw3_mpi", "-lfftw3", "-lm"])
    lines = []
    for ranks in [4, 8]:
        done = mpi.passes("FFTW's transposes", ranks, [program], mpi.without())
        lines += sorted(done.stdout.splitlines())
    recorded = (HERE.parent / "inputs/fftw-transposes.txt").read_text().splitlines()[1:]
    mpi.report("FFTW's transposes send what was recorded", [] if sorted(lines) == sorted(recorded) else ["other bytes"])


def mpich(mpi, most):
    """MPICH's tests of collectives, with at most this number of ranks."""
    source = debian("mpich") / "test/mpi"
    folder = mpi.scratch / f"coll-{mpi.name}"
    folder.mkdir()
    defined = [f"#define {name} 1" for name in CONFIGURED.split()]
    defined += ["#define THREAD_PACKAGE_NAME THREAD_PACKAGE_POSIX"]
    (folder / "mpitestconf.h").write_text("\n".join(defined) + "\n")
    compiler = [f"mpicc.{mpi.name}", "-w", f"-I{folder}", f"-I{source}/include"]
    shared = ["mtest", "mtest_single", "mtest_common", "dtypes"]
    must([*compiler, "-c", *(source / f"util/{name}.c" for name in shared)], cwd=folder)
    missing, failing, wrong, exchanging, count = [], [], [], 0, 0
    # Lines of a program, ranks and settings; `nb` programs are others linked with non-blocking calls.
    for line in (source / "coll/testlist.in").read_text().splitlines():
        found = re.fullmatch(r"((?!nb[^c]|nbc)[a-z]\w*) (\d+)(?: arg=(\S+))?(?: \w+=\S+)*", line.strip())
        if not found:
            continue
        name, ranks, argument = found.groups()
        program, ranks = folder / name, min(int(ranks), most)
        if name not in missing and not program.exists():
            objects = [f"{name}.o" for name in shared]
            linked = run([*compiler, "-o", program, source / f"coll/{name}.c", *objects, "-lm"], cwd=folder)
            missing += [name] if linked.returncode != 0 else []
        if name in missing:
            continue
        outcomes = []
        for variables in [mpi.without(), {}, {"TOPOCOLL_ALGORITHM": "direct,concat"}, {"TOPOCOLL_ALGORITHM": "bruck,ring"}]:
            done = mpi.start(ranks, [program, *([argument] if argument else [])], variables, timeout=600)
            outcomes.append((done.returncode, "No Errors" in done.stdout))
            exchanging += ", forced" in done.stderr
            # Schedules are forced only where the drop-in gets a call.
            if len(outcomes) == 2 and ": tries " not in done.stderr:
                break
        count += 1
        failing += [name] if outcomes[0] != (0, True) else []
        wrong += [f"{line}: {outcomes}"] if set(outcomes) != {outcomes[0]} else []
    what = f"MPICH's collectives: {count} runs, {exchanging} with schedules"
    mpi.report(f"{what}; without the drop-in {failing} fail and {missing} do not build", wrong)
    mpi.report("MPICH's collectives use schedules", [] if exchanging > 20 and count > 80 else [what])


def run_all(mpi):
    """All programs."""
    counts = [2, 3, 4, 5] if mpi.name == "openmpi" else [2, 3]
    for ranks in counts:
        mpi4py(mpi, ranks)
    mpich(mpi, 10 if mpi.name == "openmpi" else 5)
    fftw(mpi, counts[-1])
    if mpi.name == "openmpi":
        transposes(mpi)
        hpcc(mpi, 4)
        for ranks in [2, 3, 4]:
            espresso(mpi, ranks)


def figures(mpi, rounds):
    """Rows of a table, program by program: seconds of whole runs without the drop-in and with it, in turn."""
    programs = [("FFTW's mpi-bench", 4 if mpi.name == "openmpi" else 2, [fftw_benchmark(mpi), "docf64x64x64"])]
    if mpi.name == "openmpi":
        programs += [("Quantum ESPRESSO's pw.x", ranks, ["pw.x", "-in", HERE / "silicon.in"]) for ranks in [2, 4]]
        programs += [("HPC Challenge", 4, ["sh", "-c", f"ln -sf {HERE}/hpccinf.txt . && exec hpcc"])]
    for name, ranks, command in programs:
        times, calls = ([], []), 0
        for turn in range(2 * rounds):
            variables = [mpi.without(), {}][turn % 2] | {"OMP_NUM_THREADS": "1"}
            with tempfile.TemporaryDirectory(dir=mpi.scratch) as folder:
                begin = time.perf_counter()
                done = mpi.start(ranks, ["env", "-C", folder, *map(str, command)], variables, timeout=600)
                times[turn % 2].append(time.perf_counter() - begin)
            if done.returncode != 0:
                mpi.report(name, [f"status {done.returncode}"], done.stdout + done.stderr)
            rows = [re.split(r"\s{2,}", line) for line in done.stderr.splitlines() if line.startswith("topocoll: ")]
            calls = sum(int(row[2]) for row in rows if len(row) > 8 and row[2].isdigit())
        without, preloaded = map(median, times)
        ratio = median(own / library for library, own in zip(*times))
        print(f"| {name} | {mpi.name} | {ranks} | {calls} | {without:.2f} | {preloaded:.2f} | {ratio:.2f} |", flush=True)
