# Works with GNU make 3.81 (macOS) and newer. It needs Go; nothing else.

GO       ?= go
# More flags for go test, such as -race -shuffle=on (race needs a C compiler).
TESTFLAGS ?=
# Time for each fuzz target, and for all of them together.
FUZZTIME  ?= 60s
FUZZTOTAL ?= 60m
# The targets of every FUZZTURNS-th package only; FUZZTURN says which of these turns it is.
FUZZTURNS ?= 1
FUZZTURN  ?= 0
# Which benchmarks, and for how long each.
BENCH     ?= .
BENCHTIME ?= 1s

.PHONY: help check test test-cluster test-clients test-clients-all drift clients fuzz cast picture bench bench-store bench-recall bench-mcp bench-gateway bench-fleet bench-oracle bench-gate profile net soak fleet house generate uplot htmx fmt vet fix staticcheck tidy imports portable dist test-packaging test-dist

# The module of the product, and that of the benchmarks.
MODULES = . internal/dev/bench
# Run a command in each of them; the first that fails ends it.
in_each = for dir in $(MODULES); do (cd $$dir && $(1)) || exit 1; done
# The same with the module of releases, whose many dependencies are slow to compile.
in_all = for dir in $(MODULES) packaging; do (cd $$dir && $(1)) || exit 1; done

help:
	@echo 'make check     formatting, vet, fix, staticcheck, go.mod, import rules'
	@echo 'make test      all tests; says at the end what was skipped and why'
	@echo 'make test-cluster  faults of a Citus cluster, started by the script in FURL_CITUS (ROUNDS=200), and of Patroni'
	@echo 'make test-clients  real clients against the gateway, installed by make clients (npm)'
	@echo 'make test-clients-all  the same with more agents'
	@echo 'make drift     what the newest releases of the clients send that docs/internals/shapes.md does not list (npm)'
	@echo 'make fuzz      every fuzz target for FUZZTIME ($(FUZZTIME)) each'
	@echo 'make bench     benchmarks with allocations (BENCH=regexp, BENCHTIME=1s)'
	@echo 'make bench-store  the figures of docs/operate/stores.md (BENCHTIME=60s for sustained ones; STORE=postgres; STORE=all compares the stores)'
	@echo 'make bench-recall  what search finds, compared with FTS5, and its speed in a store of MESSAGES (1000000)'
	@echo 'make bench-mcp  furl mcp with 200 MB of copies of the recordings in FURL_RECORDINGS (MCP_BYTES=200000000)'
	@echo 'make bench-gateway  what furl serve adds to requests, compared with a plain proxy (REQUESTS=100)'
	@echo 'make bench-oracle  the cost of auto and of a plan that knows the future, for the recordings in FURL_RECORDINGS'
	@echo 'make bench-gate OLD=commit  compares what this source tree and an older commit cost: CPU, latency, memory, disk, start-up, size'
	@echo 'make profile   where the CPU time and the allocations of furl serve go (PROFILES=bin/profiles)'
	@echo 'make net OLD=commit  compares the bytes of this source tree with those of an older commit, for the recordings in FURL_RECORDINGS (NET=-quick for a minute of them)'
	@echo 'make soak      memory peaks, kills and whole replays in tests (SOAK_KILLS=100), then many agents at once through furl serve (SOAK_SESSIONS=200, SOAK_REQUESTS=50000)'
	@echo 'make fleet     conversations that change gateways with each request (SOAK_SESSIONS=200, SOAK_REQUESTS=50000)'
	@echo 'make bench-fleet  the figures of docs/operate/capacity.md, and what grows with a store (FURL_FLEET_ROWS=10000000)'
	@echo 'make cast      record furl chat for the README'
	@echo 'make picture   the animated picture of the ribbon, from a recording in FURL_RECORDINGS'
	@echo 'make house     how simple the code is, in figures'
	@echo 'make generate  generated files'
	@echo 'make dist      the files of a release: archives, deb, rpm and npm packages, a Homebrew formula (SYSTEMS=linux/amd64, RELEASE_URL=address)'
	@echo 'make test-packaging  a small release, and the manifests, alerts and dashboard in contrib'
	@echo 'make test-dist  builds a release twice, compares the bytes, and installs it (dpkg, rpm, npm)'
	@echo 'make uplot     fetches the chart library again, at the version that internal/uplot pins (npm)'
	@echo 'make htmx      fetches htmx again, at the version that internal/htmx pins (npm)'

check: fmt vet fix staticcheck tidy imports

# The sum of both modules is in the last line. A file in FURL_TEST_TOTALS collects several runs.
test:
	@totals=$$FURL_TEST_TOTALS; [ -n "$$totals" ] || { totals=`mktemp` && trap 'rm -f "$$totals"' EXIT; }; failed=; \
	$(GO) build -o bin/testreport ./internal/dev/testreport || exit 1; \
	for dir in $(MODULES); do (cd $$dir && FURL_TEST_TOTALS=$$totals $(CURDIR)/bin/testreport $(TESTFLAGS) ./...) || { failed=1; break; }; done; \
	[ "$$totals" = "$$FURL_TEST_TOTALS" ] || bin/testreport -total "$$totals"; [ -z "$$failed" ]

# ROUNDS is how often nodes of a Citus cluster are killed.
ROUNDS ?= 200
test-cluster:
	@FURL_NO_SKIP=1 FURL_KILL_ROUNDS=$(ROUNDS) $(GO) run ./internal/dev/testreport $(TESTFLAGS) -tags cluster -timeout 3h -v -run 'TestCitus|TestCluster' ./postgres ./internal/cli

# The npm packages are pinned by a lock file and stay where they are until it changes.
npm = internal/dev/clienttest/testdata
clients: $(npm)/node_modules/.package-lock.json
$(npm)/node_modules/.package-lock.json: $(npm)/package-lock.json
	@cd $(npm) && npm ci --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
	@touch $@

test-clients: clients
	@FURL_NO_SKIP=1 $(GO) run ./internal/dev/testreport $(TESTFLAGS) -timeout 20m ./internal/dev/clienttest

# More agents; with them it takes too long for .ci/run. npm ci refuses a lock file without the
# optional packages of other systems that the registry lacks.
test-clients-all: clients
	@cd $(npm)/all && npm install --no-save --ignore-scripts --no-audit --no-fund --prefer-offline --loglevel=error
	@FURL_NO_SKIP=1 $(GO) run ./internal/dev/testreport $(TESTFLAGS) -tags clients_all -timeout 1h -skip TestDrift ./internal/dev/clienttest

# What the newest releases of all clients send that docs/internals/shapes.md does not list.
drift:
	@dir=`mktemp -d` && trap 'rm -rf "$$dir"' EXIT && mkdir "$$dir/all" && cp $(npm)/*.mjs "$$dir" && \
	for sub in . all; do sed 's/": "[0-9][^"]*"/": "latest"/' $(npm)/$$sub/package.json >"$$dir/$$sub/package.json" && \
	(cd "$$dir/$$sub" && npm install --ignore-scripts --no-audit --no-fund --no-package-lock --loglevel=error) || exit 1; done && \
	FURL_CLIENTS="$$dir" $(GO) test -count=1 -tags clients_all -timeout 1h -run 'TestDrift$$' -v ./internal/dev/clienttest

fuzz:
	@$(GO) run ./internal/dev/fuzzall -time $(FUZZTIME) -total $(FUZZTOTAL) -turns $(FUZZTURNS) -turn $(FUZZTURN)

bench:
	@$(call in_each,$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem ./...)

# MESSAGES is the number of messages in the store that is searched.
MESSAGES ?= 1000000

# FURL_RECORDINGS names the recordings that measure the size of a store.
# STORE=all runs the same on all stores by turns, to compare them.
STORE ?= sqlite
bench-store:
ifeq ($(STORE),all)
	@$(GO) test -C internal/dev/bench -run '^$$' -bench 'Stores/$(BENCH)' -benchtime 1x -timeout 2h ./search -messages $(MESSAGES)
else
	@$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -timeout 30m ./$(STORE)
endif

bench-recall:
	@$(GO) test -C internal/dev/bench -run '^$$' -bench Recall -benchtime 1x -timeout 2h -v ./search -messages $(MESSAGES)

# MCP_BYTES is the size of the recordings that furl mcp imports, in bytes.
MCP_BYTES ?= 200000000
bench-mcp:
	@FURL_MCP_BYTES=$(MCP_BYTES) $(GO) test -run '^$$' -bench BenchmarkMCP -benchtime 1x -timeout 1h -v ./cmd/furl

# REQUESTS is how many requests with the smallest body each target gets in each phase.
REQUESTS ?= 100
bench-gateway:
	@$(GO) run -C internal/dev/bench ./gateway -n $(REQUESTS)

# FURL_RECORDINGS names the folder of recordings; ORACLE has flags, such as -json.
ORACLE ?=
bench-oracle:
	@$(GO) run -C internal/dev/bench ./oracle $(ORACLE) '$(FURL_RECORDINGS)'

# OLD is the commit that this source tree is compared with. FURL_RECORDINGS may be several folders
# here, separated by spaces; NET has flags, such as -quick.
OLD ?= HEAD
NET ?=
net:
	@$(GO) run -C internal/dev/bench ./gate -old '$(OLD)' $(NET) net $(FURL_RECORDINGS)

# GATE has flags, such as -sizes 57 for small requests only.
GATE ?=
bench-gate:
	@$(GO) run -C internal/dev/bench ./gate -old '$(OLD)' cost $(GATE)

PROFILES ?= $(CURDIR)/bin/profiles
profile:
	@$(GO) run -C internal/dev/bench ./gate profile '$(PROFILES)' $(GATE)

# What .ci/run does with fewer loads, rounds and recordings, with all of them; SOAK_KILLS is
# how often a process is killed. CONTRIBUTING.md lists these tests.
SOAK_KILLS ?= 100
soak_tests = MemoryPeak|^TestKill|^TestFleetIsReplaced$$|^TestFleetSurvivesKills$$|^TestCacheSensitivity$$|^TestAutoReadPrices$$|^TestFitEqualsGateway$$|^TestDefinitionsReachTheProvider$$|^TestBrowserScroll$$

# SOAK_SESSIONS is how many agents there are at once, SOAK_REQUESTS how many
# requests they send together.
SOAK_SESSIONS ?= 200
SOAK_REQUESTS ?= 50000
soak:
	@FURL_SOAK=1 FURL_MARKS=1 FURL_KILL_ROUNDS=$(SOAK_KILLS) FURL_KILL_ALL=1 $(GO) run ./internal/dev/testreport $(TESTFLAGS) -count=1 -p 1 -timeout 6h -run '$(soak_tests)' ./cmd/furl ./agent ./gateway ./policy ./replay ./sqlite ./postgres ./internal/web
	@$(GO) run -C internal/dev/bench ./gateway -soak -sessions $(SOAK_SESSIONS) -requests $(SOAK_REQUESTS)

# The same through four gateways on one PostgreSQL.
fleet:
	@FURL_FLEET_SESSIONS=$(SOAK_SESSIONS) FURL_FLEET_REQUESTS=$(SOAK_REQUESTS) $(GO) test -count=1 -timeout 3h -run 'TestFleet$$' -v ./cmd/furl

bench-fleet:
	@$(GO) test -C internal/dev/bench -run '^$$' -bench . -benchtime 1x -timeout 3h ./fleet
	@$(GO) run -C internal/dev/bench ./fleet

# The animated picture of the ribbon in the README.
picture:
	@$(GO) run ./internal/dev/house/ribbon -window 100000 '$(FURL_RECORDINGS)/entire-cli/8e-a9e4a4e751-0.jsonl.gz'

# The recording of furl chat in the README, and the picture made of it.
cast:
	@$(GO) run ./internal/dev/house/cast
	@npx --yes svg-term-cli@2.1.1 --in docs/use/chat.cast --out docs/use/chat.svg --window

# Lines, exported identifiers, words, and what one request runs.
house:
	@$(GO) run ./internal/dev/house

generate:
	@$(call in_each,$(GO) generate ./...)

# To update the library: change the version, run this, and put the new sums
# into SHA256SUMS when you have read what changed.
uplot:
	@cd internal/uplot && version=`sed -n 's/^const Version = "\(.*\)"/\1/p' uplot.go` && \
	npm pack --silent --ignore-scripts "uplot@$$version" >/dev/null && \
	tar xzf "uplot-$$version.tgz" && rm "uplot-$$version.tgz" && \
	mv package/LICENSE package/dist/uPlot.iife.min.js package/dist/uPlot.min.css . && rm -r package
	@$(GO) test ./internal/uplot

htmx:
	@cd internal/htmx && version=`sed -n 's/^const Version = "\(.*\)"/\1/p' htmx.go` && \
	npm pack --silent --ignore-scripts "htmx.org@$$version" >/dev/null && \
	tar xzf "htmx.org-$$version.tgz" && rm "htmx.org-$$version.tgz" && \
	mv package/LICENSE package/dist/htmx.min.js . && rm -r package
	@$(GO) test ./internal/htmx

fmt:
	@out=`"$$($(GO) env GOROOT)/bin/gofmt" -l .` || exit 1; \
	if [ -n "$$out" ]; then printf 'gofmt would change:\n%s\n' "$$out"; exit 1; fi

vet:
	@$(call in_all,$(GO) vet ./...)

fix:
	@out=`$(call in_all,$(GO) fix -diff ./... 2>&1)` || { printf 'go fix would change:\n%s\n' "$$out"; exit 1; }; \
	if [ -n "$$out" ]; then printf 'go fix would change:\n%s\n' "$$out"; exit 1; fi

# The tool's version is in the go.mod of the product alone.
staticcheck:
	@$(GO) tool staticcheck ./...
	@cd internal/dev/bench && $(GO) tool -modfile=../../../go.mod staticcheck ./...

tidy:
	@$(call in_all,$(GO) mod tidy -diff)

imports:
	@$(GO) test ./internal/dev/importtest

# What is written on one system must build on the others, tests included.
portable:
	@$(GO) build -o bin/portable ./internal/dev/portable
	@$(call in_each,$(CURDIR)/bin/portable darwin/arm64 windows/amd64)

# The files of a release, in bin/dist. Their version is that of git's tag. RELEASE_URL is
# the address that they are downloaded from: the Homebrew formula needs it.
SYSTEMS     ?=
RELEASE_URL ?=
dist:
	@$(GO) run -C packaging ./dist -source .. -out ../bin/dist -systems '$(SYSTEMS)' -release-url '$(RELEASE_URL)'

# Builds and installs a release; and the same with a small program in place of furl,
# with the tests of the files in contrib for servers.
test-dist:
	@$(GO) test -C packaging -count=1 -timeout 2h -v ./dist -whole

test-packaging:
	@$(GO) build -o bin/testreport ./internal/dev/testreport && cd packaging && $(CURDIR)/bin/testreport ./...
