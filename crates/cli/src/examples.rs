//! Examples at the end of `--help`; the tests run each of them.

pub(crate) const SELECT: &str = "Examples:
  topocoll select torus:16x16
  topocoll select paragon-16x16 --block 4KiB --all
  topocoll select full:64 --ports 2 --op allgather --json
  topocoll select torus:8x8 --model wormhole
  topocoll select torus:32x32 --model fluid --budget 1
  topocoll select full:16 --demand sparse:7
  topocoll select infiniband-8x4 --against openmpi --release 5.0
  topocoll select torus:8x8@4x2,4x2

Words:
  steps           startups, one after the other
  volume          the largest message of each step, added up, in blocks
  charged volume  the same, with the whole load of a link that messages share
  bound           a time that no schedule can be below
  settings        topocoll algorithms explains each, such as radix and lanes";

pub(crate) const ALGORITHMS: &str = "Examples:
  topocoll algorithms
  topocoll algorithms cluster:4,4,2";

pub(crate) const MACHINES: &str = "Examples:
  topocoll machines
  topocoll machines tpu-v4-4x4x4
  topocoll machines fat-tree:4,3*8";

pub(crate) const BOUNDS: &str = "Examples:
  topocoll bounds torus:16x16
  topocoll bounds torus:16x16 --steps 19
  topocoll bounds full:64 --ports 3 --op allgather

Words:
  volume          the largest message of each step, added up, in blocks
  charged volume  the same, with the whole load of a link that messages share";

pub(crate) const VERIFY: &str = "Examples:
  topocoll verify torus:12x12 --algorithm suh-shin
  topocoll verify full:64 --algorithm bruck --set radix=8
  topocoll verify torus:16x16 --algorithm pairwise-xor --conflicts 3
  topocoll verify torus:4x4 --algorithm suh-shin --certificate proof.txt";

pub(crate) const CHECK: &str = "Examples:
  topocoll check proof.txt";

pub(crate) const SIMULATE: &str = "Examples:
  topocoll simulate torus:16x16 --algorithm suh-shin
  topocoll simulate torus:8x8 --algorithm direct --model wormhole --set vcs=4
  topocoll simulate mesh:8x8 --algorithm direct --heatmap links.svg
  topocoll simulate torus:8x8 --traffic tornado --model flit --block 64 --set flit_bytes=1";

pub(crate) const RUN: &str = "Examples:
  topocoll run full:16 --algorithm bruck --block 4KiB
  topocoll run torus:4x4 --algorithm suh-shin --threads 2 --repeat 3
  topocoll run torus:4x4 --groups dim:1";

pub(crate) const SCHEDULE: &str = "Examples:
  topocoll schedule torus:8x8 --algorithm suh-shin --out schedule.jsonl
  topocoll schedule torus:4x4 --algorithm suh-shin --format dot
  topocoll schedule torus:1024x1024 --algorithm suh-shin --rank 5 --format csv --out rank5.csv";

pub(crate) const SWEEP: &str = "Examples:
  topocoll sweep torus:16x16 --svg times.svg --csv times.csv
  topocoll sweep sp1-64 --algorithm bruck --set radix=2,8,64 --blocks 16,64,256,1KiB
  topocoll sweep torus:8x8 --model fluid --blocks 64:4KiB
  topocoll sweep torus:16x16 --front --svg front.svg";

pub(crate) const REPORT: &str = "Examples:
  topocoll report torus:16x16 --out torus.html
  topocoll report mesh:8x8 --block 64 --algorithm direct --out mesh.html";

pub(crate) const CALIBRATE: &str = "Examples:
  topocoll calibrate --ranks 4 --rounds 1 --out here.toml
  topocoll calibrate --ranks 32 --measured osu_alltoall.txt --algorithm direct";

pub(crate) const COMPARE: &str = "Examples:
  topocoll compare infiniband-8x4 osu_alltoall.txt
  topocoll compare full:4 --ports 3 --bandwidth 300GB/s alltoall_perf.txt --algorithm direct

Words:
  size   of OSU and IMB bytes from a rank to each other, which is a block; of nccl-tests bytes of the
         whole buffer, which is a block for each rank
  ratio  measured over predicted";

pub(crate) const FFT: &str = "Examples:
  topocoll fft 256x256x256 torus:8x8
  topocoll fft 1000x1000x500 earth-simulator-64x8 --complex 8 --all
  topocoll fft 64x64x64 cluster:4*4 --out grids.html";

pub(crate) const DETECT: &str = "Examples:
  topocoll detect
  topocoll detect --out detected.toml";

pub(crate) const TUNE: &str = "Examples:
  topocoll tune sp1-64 --for openmpi --op alltoall
  topocoll tune full:16 --ports 15 --for openmpi --op alltoall --communicators 4,8,16 --out rules";

pub(crate) const COMPLETIONS: &str = "Examples:
  topocoll completions bash
  topocoll completions zsh";

pub(crate) const MAN: &str = "Examples:
  topocoll man --out man1";
