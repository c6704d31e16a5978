# SPDX-License-Identifier: Apache-2.0
# scale4d. `make help` lists the targets; V=1 shows the commands.
BUILD ?= build
CFLAGS ?= -O2 -g
WARN := -Wall -Wextra -Werror
COMMON := -I. -D_GNU_SOURCE -ffp-contract=off $(WARN) -MMD -MP -DS4D_DATA='"$(CURDIR)"'
PACKAGES := jansson yaml-0.1 simgrid
COMMON += $(shell pkg-config --cflags $(PACKAGES))
LIBS := $(shell pkg-config --libs $(PACKAGES)) -lm
Q := $(if $(V),,@)

LIB_SRC := $(wildcard support/*.c schedule/*.c schedule/layers/*.c workloads/*.c sim/*.c sim/*/*.c plots/*.c)
LIB_CXX := $(wildcard sim/*.cpp)
LIB_OBJ := $(LIB_SRC:%.c=$(BUILD)/%.o) $(LIB_CXX:%.cpp=$(BUILD)/%.o)
CLI_OBJ := $(patsubst %.c,$(BUILD)/%.o,$(wildcard cli/*.c))
UNIT := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(wildcard tests/unit/test_*.c))

all: $(BUILD)/scale4d
$(BUILD)/scale4d: $(CLI_OBJ) $(BUILD)/libscale4d.a
	$(Q)$(CXX) $(LDFLAGS) -o $@ $^ $(LIBS)
$(BUILD)/libscale4d.a: $(LIB_OBJ)
	$(Q)rm -f $@ && $(AR) rcs $@ $^
$(BUILD)/%.o: %.c
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(CFLAGS) $(COMMON) -c -o $@ $<
$(BUILD)/%.o: %.cpp
	@mkdir -p $(@D)
	$(Q)$(CXX) -std=c++17 $(CFLAGS) $(COMMON) -c -o $@ $<
TEST_LIB := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/lib/*.c))
$(BUILD)/tests/%: tests/unit/%.c $(TEST_LIB) $(BUILD)/libscale4d.a
	@mkdir -p $(@D)
	$(Q)$(CC) -std=c11 $(CFLAGS) $(COMMON) -c -o $@.o $<
	$(Q)$(CXX) $(LDFLAGS) -o $@ $@.o $(TEST_LIB) $(BUILD)/libscale4d.a $(LIBS) -lcmocka
unit: $(UNIT)
	@for t in $(UNIT); do $$t || exit 1; done
clean:
	rm -rf $(BUILD)
.PHONY: all unit clean
-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
