# SPDX-License-Identifier: Apache-2.0
# scale4d. Two commands to start with: `make figures` and `make test`.
#
#: all             build/scale4d, and build/scale4d-run where MPI and CBLAS are (the default)
#: deps-run        install what scale4d-run needs
#: figures         every figure of paper-figures/: png, svg, pdf and report.md, into build/figures
#: figure-NAME     one of them, by the name of its folder, as figure-weak-scaling
#: test            all tests, also under sanitizers and with clang, and a summary
#: test-gpu        kernels and training on this machine's NVIDIA GPU against the host's
#: unit            the unit tests alone
#: golden          rewrite the golden files with what the program prints now; review the diff
#: compare-host    measure this machine, train and simulate on it: build/compare-host/report.md
#: nightly         train small models, keep the records, say what changed: build/nightly/report.html
#: accuracy        models of collectives and kernels against measurements: build/accuracy/report.md
#: bench           measure the speed and accuracy targets
#: format          clang-format every source file
#: man             man pages of both programs and their commands, into build/man (needs help2man)
#: install         programs, data, man pages and completion below PREFIX (default /usr/local)
#: uninstall       remove what install put there
#: deps            install what is missing (Debian: apt-get); on another system, list it
#: clean           remove build/
#: help            this list
#
# Variables: V=1 (show the commands), SANITIZE=1 (ASan and UBSan, into build/asan), CC, CXX, CFLAGS,
# CUDA_HOME, NCCL_HOME, CUDA_ARCHS (80 90), LDFLAGS, BUILD (the folder), GROUP (of bench: simulate, tune, train, track, change), PREFIX and DESTDIR (of install), MPICC, REAL_CFLAGS (how the kernels of scale4d-run are compiled).

BUILD ?= $(if $(SANITIZE),build/asan,build)
ifeq ($(origin CC),default)
CC := gcc
CXX := g++
endif
export CC CXX
CFLAGS ?= -O2 -g
PACKAGES := jansson yaml-0.1 expat simgrid sqlite3 zlib
comma := ,
# -Wno-error: under sanitizers gcc warns of what cannot happen (its manual says so).
SANITIZER := $(if $(SANITIZE),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined \
    -Wno-error)
Q := $(if $(V),,@)
JOBS := $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc 2>/dev/null))
say = @$(if $(V),:,printf '  %-5s %s\n' $(1) $(2))

# -ffp-contract=off: simulated times are the same on every processor.
FLAGS := -I. -D_GNU_SOURCE -ffp-contract=off -Wall -Wextra -Werror -DS4D_DATA_DIR='"$(CURDIR)"' \
    $(shell pkg-config --cflags $(PACKAGES) 2>/dev/null) $(SANITIZER)
LIBS := $(shell pkg-config --libs $(PACKAGES) 2>/dev/null) -lm

# CUDA where its compiler, cuBLAS and NCCL are; else the rest is built, and --list-backends says why.
CUDA_HOME ?= $(patsubst %/bin/nvcc,%,$(firstword $(realpath $(shell command -v nvcc)) /usr/local/cuda/bin/nvcc))
NCCL_HOME ?= $(firstword $(patsubst %/include/nccl.h,%,$(wildcard $(CUDA_HOME)/include/nccl.h)) /usr)
CUDA_ARCHS ?= 80 90
CCACHE := $(shell command -v ccache)
CUDA_LACKS := $(firstword $(foreach f,$(CUDA_HOME)/bin/nvcc $(CUDA_HOME)/include/cublas_v2.h \
    $(NCCL_HOME)/include/nccl.h,$(if $(wildcard $(f)),,$(f))))
CUDA_DIRS := $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib $(NCCL_HOME)/lib)
CUDA_LIBS := $(if $(CUDA_LACKS),,$(foreach d,$(CUDA_DIRS),-L$(d) -Wl$(comma)-rpath$(comma)$(d)) \
    -lcudart -lcublas -lnccl)

LIB := $(wildcard support/*.c schedule/*.c schedule/layers/*.c workloads/*.c sim/*.c sim/*/*.c real/*.c \
    sim/*.cpp plots/*.c plots/*/*.c)
CLI := $(wildcard cli/*.c cli/track/*.c)
# What needs MPI and CBLAS; and CUDA, but for CUDA_WORK.
CUDA_WORK := real/cuda/work.c real/cuda/attention.c
CUDA_KERNELS := $(wildcard real/cuda/kernels/*.cu)
RUN := $(filter-out real/cuda/%,$(wildcard real/*/*.c cli/run/*.c))
CUDA := $(if $(CUDA_LACKS),,$(wildcard real/cuda/*.c))
REAL_TEST := $(wildcard tests/real/*.c)
TEST_LIB := $(wildcard tests/lib/*.c tests/lib/*.cpp)
UNIT := $(wildcard tests/unit/test_*.c)
FUZZ := $(wildcard tests/fuzz/fuzz_*.c)
BENCH := $(wildcard tests/bench/*.c)
CUDA_TEST := $(wildcard tests/cuda/*.c tests/cuda/*.cpp)
GPU_TEST := $(wildcard tests/gpu/*.c)
RANKS_TEST := $(wildcard tests/ranks/*.c)
DOUBLE := $(if $(CUDA_LACKS),,$(wildcard tests/double/*.c))
ALL := $(LIB) $(CLI) $(RUN) $(sort $(CUDA) $(CUDA_WORK)) $(CUDA_KERNELS) $(CUDA_TEST) $(GPU_TEST) $(RANKS_TEST) \
    $(wildcard tests/double/*.c tests/double/*/*.c) $(REAL_TEST) $(TEST_LIB) $(UNIT) $(FUZZ) $(BENCH)
HEADERS := $(wildcard support/*.h schedule/*.h schedule/*/*.h workloads/*.h sim/*.h sim/*/*.h \
    real/*.h real/*/*.h real/*/*.inc real/cuda/kernels/*.h real/cuda/kernels/*.cuh \
    plots/*.h plots/*/*.h cli/*.h cli/*/*.h tests/*/*.h tests/*/*/*.h)
object = $(patsubst %,$(BUILD)/%.o,$(basename $(1)))
UNIT_PROGRAMS := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT))
FUZZ_PROGRAMS := $(patsubst tests/fuzz/%.c,$(BUILD)/tests/%,$(FUZZ))
FIGURES := $(patsubst %/experiment.yaml,%,$(wildcard paper-figures/*/*/experiment.yaml))

PREFIX ?= /usr/local
BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
PROGRAMS = $(BUILD)/scale4d $(wildcard $(BUILD)/scale4d-run)
DATA := $(shell find sim/machines sim/measured sim/fabric schedule/layers workloads paper-figures plots -type f \
    ! -name '*.[ch]' | LC_ALL=C sort)

MPICC ?= mpicc
export MPICC
# The code runs where it is compiled, or say otherwise: REAL_CFLAGS="-O3 -march=x86-64-v3". A loop that
# clang does not vectorise as its pragma asks is slower, not wrong: -Wno-pass-failed.
REAL_CFLAGS ?= -O3 -march=native
RUN_LACKS := $(shell .ci/deps.sh quiet run 2>/dev/null)
RUN_LIBS := $(shell pkg-config --libs jansson yaml-0.1 expat openblas 2>/dev/null) -lm -lpthread -ldl
# Of the kernels, whatever BUILD is: fat binaries, and PTX of the last for chips to come, as text: a
# test reads it.
CUDA_OBJECTS := $(if $(CUDA_LACKS),,$(CUDA_KERNELS:real/cuda/kernels/%.cu=build/cuda/%.o))
CUDA_CODE = $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a)$(comma)code=sm_$(a)) \
    -gencode arch=compute_$(lastword $(CUDA_ARCHS))$(comma)code=compute_$(lastword $(CUDA_ARCHS))
$(BUILD)/real/cuda/%.o $(BUILD)/tests/double/%.o: FLAGS += -fPIC -isystem $(CUDA_HOME)/include -isystem $(NCCL_HOME)/include
$(BUILD)/real/mpi/backend.o: DEFINE = -DS4D_CUDA_LACKS='"$(if $(CUDA_LACKS),built without: there was no $(CUDA_LACKS); CUDA_HOME and NCCL_HOME say where)"'

all: $(BUILD)/scale4d $(if $(RUN_LACKS),without-run,$(BUILD)/scale4d-run $(if $(CUDA_LACKS),,$(BUILD)/scale4d-cuda.so))

without-run:
	@echo 'scale4d-run is not built:'
	@.ci/deps.sh quiet run 2>/dev/null || true

$(BUILD)/scale4d: $(call object,$(CLI)) $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)$(CXX) $(SANITIZER) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/libscale4d.a: $(call object,$(LIB))
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

RUN_OBJECTS := $(sort $(call object,$(RUN) $(CUDA) $(CUDA_WORK) $(REAL_TEST) $(RANKS_TEST) $(GPU_TEST) $(DOUBLE) $(wildcard tests/double/self/*.c)))
# mpicc calls the compiler that these variables name (Open MPI, MPICH).
$(RUN_OBJECTS): export OMPI_CC = $(CC)
$(RUN_OBJECTS): export MPICH_CC = $(CC)
$(RUN_OBJECTS): $(BUILD)/%.o: %.c | $(BUILD)/detected
	$(call say,MPICC,$<)
	@mkdir -p $(@D)
	$(Q)$(MPICC) -std=c11 $(CFLAGS) $(REAL_CFLAGS) -fno-math-errno -fno-trapping-math $(FLAGS) $(DEFINE) -Wno-pass-failed \
	    $(shell pkg-config --cflags openblas) -MMD -MP -c -o $@ $<

# Changes with the chips that are asked for, and the kernels' objects with it.
build/cuda/archs: FORCE
	@mkdir -p $(@D)
	@[ "$(CUDA_ARCHS)" = "$$(cat $@ 2>/dev/null)" ] || echo "$(CUDA_ARCHS)" > $@
build/cuda/%.o: real/cuda/kernels/%.cu build/cuda/archs
	$(call say,NVCC,$<)
	@mkdir -p $(@D)
	$(Q)$(CCACHE) $(CUDA_HOME)/bin/nvcc -std=c++17 -O3 -I. $(CUDA_CODE) -no-compress -Xcompiler -fPIC$(comma)-Wall$(comma)-Wextra \
	    -Werror all-warnings -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

$(BUILD)/scale4d-cuda.so: $(call object,$(CUDA)) $(CUDA_OBJECTS)
	$(call say,LINK,$@)
	$(Q)$(CXX) -shared $(SANITIZER) $(LDFLAGS) -o $@ $^ $(CUDA_LIBS)

# -E: scale4d-cuda.so, which is loaded when asked for, uses the program's functions.
$(BUILD)/scale4d-run: $(call object,$(RUN)) $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) -Wl,-E $(SANITIZER) $(LDFLAGS) -o $@ $^ $(RUN_LIBS)

# The kernels for the CPU, from the files that nvcc compiles, and with the host's flags.
$(BUILD)/tests/cuda/kernels/%.o: real/cuda/kernels/%.cu | $(BUILD)/detected
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(CFLAGS) -O2 -fno-strict-aliasing $(FLAGS) -Wno-unknown-pragmas \
	    -include tests/cuda/cpu_kernels.hpp -MMD -MP -x c++ -c -o $@ $<

CPU_KERNELS := $(CUDA_KERNELS:real/cuda/kernels/%.cu=$(BUILD)/tests/cuda/kernels/%.o)
$(BUILD)/tests/cuda_kernels: $(call object,$(CUDA_TEST)) $(CPU_KERNELS) \
    $(call object,$(CUDA_WORK)) $(filter $(BUILD)/real/host/kernels_% $(BUILD)/real/host/work.o,$(call object,$(RUN))) \
    $(BUILD)/libtests.a $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)$(CXX) $(SANITIZER) $(LDFLAGS) -o $@ $^ $(RUN_LIBS)

$(BUILD)/tests/gpu_kernels: $(call object,$(GPU_TEST) tests/cuda/compare.c tests/cuda/cases.c real/gemm_tuning.c) \
    $(filter-out $(BUILD)/cli/%,$(call object,$(RUN))) $(BUILD)/libtests.a $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) -Wl,-E $(SANITIZER) $(LDFLAGS) -o $@ $^ $(RUN_LIBS)

# An archive: a test links only what it uses of it (those on ranks neither cmocka nor SimGrid).
$(BUILD)/libtests.a: $(call object,$(TEST_LIB))
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/tests/real_%: $(BUILD)/tests/real/%.o $(call object,$(RANKS_TEST)) $(filter-out $(BUILD)/cli/%,$(call object,$(RUN))) \
    $(BUILD)/libtests.a $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) $(SANITIZER) $(LDFLAGS) -o $@ $^ $(RUN_LIBS)

# The CUDA backend with the double of its libraries: the tests of ranks, and the program itself.
DOUBLE_OBJECTS := $(call object,$(DOUBLE) $(CUDA)) $(CPU_KERNELS) $(BUILD)/tests/cuda/cpu_launch.o
$(BUILD)/tests/double/grids $(BUILD)/tests/double/preflight $(BUILD)/tests/double/posts: $(BUILD)/tests/double/%: \
    $(BUILD)/tests/real/%.o $(call object,$(RANKS_TEST)) \
    $(filter-out $(BUILD)/cli/%,$(call object,$(RUN))) $(DOUBLE_OBJECTS)
$(BUILD)/tests/double/scale4d-run: $(call object,$(RUN)) $(DOUBLE_OBJECTS)
$(BUILD)/tests/double/self_test: $(BUILD)/tests/double/self/double.o $(BUILD)/tests/double/self/graphs.o $(DOUBLE_OBJECTS) $(call object,$(CUDA_WORK))
$(BUILD)/tests/double/faulty: $(BUILD)/tests/double/self/faulty.o \
    $(filter-out $(BUILD)/cli/%,$(call object,$(RUN))) $(DOUBLE_OBJECTS)
DOUBLE_PROGRAMS := $(addprefix $(BUILD)/tests/double/,self_test grids preflight posts scale4d-run faulty)
$(BUILD)/tests/double/nvml/libnvidia-ml.so.1: $(BUILD)/tests/double/nvml/nvml.o
	$(call say,LINK,$@)
	$(Q)$(CC) -shared $(SANITIZER) $(LDFLAGS) -o $@ $^
$(DOUBLE_PROGRAMS): $(BUILD)/libtests.a $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)OMPI_CC=$(CC) MPICH_CC=$(CC) $(MPICC) $(SANITIZER) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(RUN_LIBS) -lstdc++

$(BUILD)/%.o: %.c | $(BUILD)/detected
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(CFLAGS) $(FLAGS) $(DEFINE) -MMD -MP -c -o $@ $<

$(BUILD)/%.o: %.cpp | $(BUILD)/detected
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(CFLAGS) $(FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/tests/test_cause $(BUILD)/tests/test_attribution: $(call object,$(addprefix cli/track/,attribution.c attribution_record.c night_rates.c replay.c split.c))
$(BUILD)/tests/test_%: $(BUILD)/tests/unit/test_%.o $(BUILD)/libtests.a $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)$(CXX) $(SANITIZER) $(LDFLAGS) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lcmocka

$(BUILD)/tests/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)$(CXX) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LIBS)

$(BUILD)/bench: $(call object,$(BENCH)) $(BUILD)/libscale4d.a
	$(call say,LINK,$@)
	$(Q)$(CXX) $(SANITIZER) $(LDFLAGS) -o $@ $^ $(LIBS)

# The commit is part of every record: this file changes, and with it one object, when it does.
$(BUILD)/commit: FORCE
	@mkdir -p $(@D)
	@c=$$(git describe --always --dirty 2>/dev/null || echo unknown); \
	    [ "$$c" = "$$(cat $@ 2>/dev/null)" ] || echo "$$c" > $@
$(BUILD)/support/record.o: $(BUILD)/commit
$(BUILD)/support/record.o: DEFINE = -DS4D_COMMIT='"$(shell cat $(BUILD)/commit)"'

unit-programs: $(UNIT_PROGRAMS)
fuzz-programs: $(FUZZ_PROGRAMS)
real-programs: $(BUILD)/tests/cuda_kernels $(BUILD)/tests/gpu_kernels \
    $(if $(CUDA_LACKS),,$(DOUBLE_PROGRAMS) $(BUILD)/tests/double/nvml/libnvidia-ml.so.1) \
    $(patsubst tests/real/%.c,$(BUILD)/tests/real_%,$(REAL_TEST))
unit: $(UNIT_PROGRAMS)
	@for t in $(UNIT_PROGRAMS); do $$t || exit 1; done

# A second make, because this one looked for the packages before they were installed.
test:
	@.ci/deps.sh install build test
	+@MAKE="$(MAKE)" JOBS="$(JOBS)" tests/run.sh

test-gpu: all $(BUILD)/tests/gpu_kernels
	@bats --tap tests/gpu

figures: $(FIGURES:%=figure-%)
$(FIGURES:%=figure-%): figure-%: figure-program
	$(Q)build/scale4d plot $*
figure-%: figure-program
	@ls -d paper-figures/*/$* >/dev/null 2>&1 || { \
	    echo "There is no figure $*. There are: $(notdir $(FIGURES))" >&2; exit 64; }
	$(Q)for d in paper-figures/*/$*; do build/scale4d plot $$d || exit; done
figure-program:
	@.ci/deps.sh install build figures
	@$(MAKE) $(JOBS) --no-print-directory all

bench:
	@.ci/deps.sh install build figures
	@$(MAKE) $(JOBS) --no-print-directory all $(BUILD)/bench
	@$(BUILD)/bench $(GROUP)

accuracy:
	@.ci/deps.sh install build figures
	@$(MAKE) $(JOBS) --no-print-directory all
	@build/scale4d accuracy --output build/accuracy

compare-host: all
	@real/compare-host.sh $(BUILD)/compare-host

# The machine that the simulated records are of is measured on the first night.
NIGHTLY_MODELS := $(foreach m,s m l,--workload real/compare-host/gpt-compare-$m.yaml)
nightly:
	@.ci/deps.sh install build run figures
	@$(MAKE) $(JOBS) --no-print-directory all
	@if [ -x $(BUILD)/scale4d-run ]; then \
	    CALIBRATE='$(NIGHTLY_MODELS) --global-batch 4 --micro-batch 1 --precision f32' \
	        real/launch/nightly.sh real/nightly/nightly.yaml; \
	else echo 'nightly is skipped: scale4d-run is not built.'; fi

golden: all
	@tests/golden.sh --write

man: all
	@.ci/deps.sh install man
	$(Q).ci/man.sh $(BUILD)/man $(PROGRAMS)

# What is not built is not installed: scale4d-run without MPI, man pages before `make man`.
install: all
	$(Q)install -d $(BIN) $(SHARE)/scale4d $(SHARE)/bash-completion/completions
	$(Q)install -m 755 $(PROGRAMS) $(BIN)
	$(Q)for f in $(wildcard $(BUILD)/scale4d-cuda.so); do \
	    install -D -m 755 $$f $(DESTDIR)$(PREFIX)/lib/scale4d/$${f##*/} || exit; done
	$(Q)for f in $(DATA); do install -D -m 644 $$f $(SHARE)/scale4d/$$f || exit; done
	$(Q)install -D -m 644 -t $(SHARE)/doc/scale4d README.md LICENSE
	$(Q)for p in $(PROGRAMS); do \
	    $$p completion bash > $(SHARE)/bash-completion/completions/$${p##*/} || exit; done
	$(Q)for f in $(wildcard $(BUILD)/man/man1/*.1); do \
	    install -D -m 644 $$f $(SHARE)/man/man1/$${f##*/} || exit; done
	@echo "Installed below $(DESTDIR)$(PREFIX)$(if $(wildcard $(BUILD)/man),, (make man builds man pages))."

uninstall:
	$(Q)rm -f $(BIN)/scale4d $(BIN)/scale4d-run $(SHARE)/man/man1/scale4d.1 $(SHARE)/man/man1/scale4d-*.1 \
	    $(SHARE)/bash-completion/completions/scale4d $(SHARE)/bash-completion/completions/scale4d-run
	$(Q)rm -rf $(SHARE)/scale4d $(SHARE)/doc/scale4d $(DESTDIR)$(PREFIX)/lib/scale4d

format:
	$(Q)clang-format -i $(ALL) $(HEADERS)
format-check:
	$(Q)clang-format --dry-run -Werror $(ALL) $(HEADERS)

deps:
	@.ci/deps.sh install build run figures test
deps-run:
	@.ci/deps.sh install build run

# A yes or a no for everything the build needs, once, before the first object.
$(BUILD)/detected: .ci/deps.sh
	@.ci/deps.sh check build
	@mkdir -p $(@D) && touch $@

clean:
	rm -rf build

help:
	@sed -n 's/^#: /  /p' Makefile

.PHONY: all nightly without-run deps-run real-programs unit unit-programs fuzz-programs test test-gpu figures \
    figure-program accuracy bench compare-host man install uninstall golden format format-check deps clean \
    help FORCE $(FIGURES:%=figure-%)
.SECONDARY: $(call object,$(ALL))
-include $(patsubst %.o,%.d,$(call object,$(ALL)) $(CPU_KERNELS) $(CUDA_OBJECTS))
