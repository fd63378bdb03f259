# What a newcomer types more than once. `make` or `make help` lists it.
# With JSON=1 the tests are counted by internal/testkit/testsum instead of shown, and
# SKIPPED=FILE lists those that were skipped.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c

ifdef JSON
TEST = go test -json
SUM = | go run ./internal/testkit/testsum $(SKIPPED:%=-skipped %)
else
TEST = go test -v
endif

FUZZTIME ?= 30s
MINUTES ?= 1
PART ?= 1
SOAKTIME ?= 8h
SHELLFUZZ ?= 100000
RUN ?= .

# make test and make long try one of so many stories of the program and attacks, and make
# race crashes of so many, those that the commit picks.
STORIES ?= 4
SAMPLED = BELAY_SAMPLE="$(STORIES) $$(git rev-parse HEAD 2>/dev/null || date +%j)"

# Packages in which goroutines meet: make race has them under the race detector, which
# needs a C compiler.
RACED = ./internal/engine/... ./internal/store/... ./internal/effect/... ./internal/process/... ./internal/mcp/... ./internal/server/... ./internal/chat/...

# What attacks, kills or loads the program, or lets programs of others drive it.
LONG = $(addprefix ./script/,aimock attack claudesdk hostile inspector kill load mcpservers screens)

.PHONY: browser console shots web help check fmt vet lint dead test long rules race conformance openapi apifuzz shellfuzz reading mutants loops kill killserver hostile faults bench soak fuzz docs demo eval boundary reading full

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' Makefile | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

check: STORIES = 1
check: fmt vet lint dead test long race ## what must hold before a commit: format, vet, staticcheck, no dead code, all tests

fmt: ## files that gofmt would change
	@files=$$(gofmt -l .); if [ -n "$$files" ]; then echo "gofmt -w these:"; echo "$$files"; exit 1; fi

vet: ## go vet
	go vet ./...

lint: ## staticcheck, pinned in tools/go.mod
	go tool -modfile=tools/go.mod staticcheck ./...

dead: ## code that the program can't reach, beyond what tools/dead.txt lists
	tools/dead

test: ## the tests, and a sample of the stories, which STORIES=1 plays all; nothing but Go is needed
	@$(SAMPLED) go test -vet=off -timeout 20m $(if $(JSON),-json) $$(go list ./... | sort | comm -23 - <(go list $(LONG) | sort)) $(SUM)

long: ## attacks, kills, load, and programs of others as clients; a sample of the attacks, as of the stories
	@$(SAMPLED) go test -vet=off -timeout 30m $(if $(JSON),-json) $(LONG) $(SUM)

rules: ## what a package may import, and whether every promise has its test
	$(TEST) -count=1 -run 'Import|Guarantee|Law|Mutant|Surface' . ./internal/testkit/mutants $(SUM)

race: ## the race detector where goroutines meet; crash loops are smaller, and faults of disks, in which none meet, not there
	@$(SAMPLED) go test -vet=off -race -skip 'Fault|Damage' -timeout 60m $(if $(JSON),-json) $(RACED) $(SUM)

conformance: ## the vendors' own libraries as judges of the adapters, and the gym's scenarios; a module of its own, slow to build
	cd conformance && go run ./belay eval gym/testdata/gym | sed '/^pass /d'
	cd conformance && $(TEST) -count=1 ./... $(if $(JSON),| go run github.com/belay-run/belay/internal/testkit/testsum)

browser: ## the console in Chromium, against a real server; a module of its own
	cd web/build && $(TEST) -count=1 -timeout 20m -parallel 2 ./... $(if $(JSON),| go run -C ../.. ./internal/testkit/testsum)

console: ## the console whole: a million facts, 10,000 sessions, 200 kills, each page in all sizes and themes; half an hour
	cd web/build && BELAY_CONSOLE=full $(TEST) -count=1 -timeout 2h -parallel 1 ./browser

shots: ## the pictures of docs/console.md, which the tests of the console make
	cd web/build && BELAY_SHOTS=docs go test -count=1 -timeout 10m -run 'Answers$$|Conversation|Rehearsed|Pages|Saved' ./browser

web: ## build web/dist of web/src
	go generate ./web

openapi: ## docs/openapi.json against public linters, which npm installs at the first time
	tools/openapi/check

# What reads bytes of strangers: the package, the target, and how many inputs two
# cores try in a minute. They are counted and not timed, because a time that is up
# while an input runs fails the target (golang.org/issue/75804).
APIFUZZ = ./internal/server=FuzzDecode=90000 ./internal/view/feed=FuzzCursor=200000 ./internal/lib/sse=FuzzDecoder=200000 ./internal/config/agentfile=FuzzMarkdown=150000 ./internal/config/agentfile=FuzzYAML=100000

apifuzz: ## fuzz bodies, cursors, streams and files of agents side by side, MINUTES=1; 10 is a good while; PART=10 is a tenth
	@pids=""; for f in $(APIFUZZ); do \
		dir=$${f%%=*}; target=$${f#*=}; runs=$${target#*=}; target=$${target%=*}; \
		grep -q "^func $$target(" $$dir/*_test.go || { echo "$$dir has no $$target"; exit 1; }; \
		go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $$(($(MINUTES) * runs / $(PART)))x -fuzzminimizetime 10x -parallel 1 "$$dir" & pids="$$pids $$!"; \
	done; red=0; for p in $$pids; do wait $$p || red=1; done; exit $$red

mutants: ## break every law on purpose; each must be noticed. RUN=regexp picks some, SAMPLE=1 those of changed packages and an eighth of the others
	go run ./internal/testkit/mutants -run '$(RUN)' $(if $(SAMPLE),-sample)

loops: ## crash loops, interleavings and damage at their full size, which the race detector makes smaller
	$(TEST) -count=1 -timeout 60m ./internal/engine ./internal/app/read ./internal/store/sqlite $(SUM)
	BELAY_PAIRS=full $(TEST) -count=1 -timeout 30m -run Pairs ./internal/core/thread $(SUM)

day: ## an agent that reads a million tokens in a small context, and a crash at every point of shortening a conversation
	BELAY_DAY=full BELAY_FAMILY=full $(TEST) -count=1 -timeout 30m -run 'Day|Family' ./script/aimock $(SUM)
	BELAY_CRASH=full $(TEST) -count=1 -timeout 30m -run "Shortened|AFamilySurvives" ./internal/engine $(SUM)

kill: ## a real process, really killed at every point
	BELAY_KILL=full $(TEST) -count=1 -timeout 30m -run Kill ./script/kill $(SUM)

hostile: ## programs that want the machine for themselves, with the figures as they are promised
	BELAY_HOSTILE=full $(TEST) -count=1 -timeout 10m -run Hostile ./script/hostile $(SUM)

killserver: ## a server under twenty clients, killed at every point; half an hour
	BELAY_KILL_SERVER=all $(TEST) -count=1 -timeout 90m -run KillServer ./script/kill $(SUM)

boundary: ## 1,000 random boundaries, each held against what a program finds, and all that a later git would run; as root also as a user without rights
	BELAY_SANDBOX_ROUNDS=$${BELAY_SANDBOX_ROUNDS:-1000} $(TEST) -count=1 -timeout 30m -run 'IntendedIsApplied|WhatGitObeys|AsAPlainUser' ./internal/sandbox $(SUM)

faults: ## disks and system calls that fail
	BELAY_FAULTS=full $(TEST) -count=1 -timeout 30m -run Fault ./internal/store/sqlite $(SUM)

.PHONY: stories
stories: ## the stories of the program, all of them
	$(TEST) -count=1 -timeout 30m ./script $(SUM)

.PHONY: screens
screens: ## what a terminal has after 300 runs of blocks, live lines and resizes, in tmux and GNU screen, and after a long answer
	BELAY_SCREEN=full $(TEST) -count=1 -timeout 60m -run "KeepsEveryLine|ManySessions|AnyOutput|LongAnswer" ./internal/screen ./internal/cli ./script/load $(SUM)

.PHONY: load
load: ## a real server under load, each figure beside its goal; RUN=regexp picks some
	BELAY_LOAD=full go test -v -count=1 -timeout 30m -run '$(RUN)' ./script/load

.PHONY: blocked
blocked: ## what a thread whose model hangs costs a thousand others: five pairs, the ratio of their waits
	BELAY_BLOCKED=full go test -v -count=1 -timeout 30m -run TestABlockedThread ./internal/server

bench: ## benchmarks with memory; RUN=regexp picks some
	go test -run '^$$' -bench '$(RUN)' -benchmem ./...

shellfuzz: ## lines that bash, dash and busybox run among shims, against what is said of them; SHELLFUZZ=20s is a while of each
	BELAY_SHELLFUZZ=$(SHELLFUZZ) $(TEST) -count=1 -timeout 180m -run ShellsStart ./internal/policy/shell $(SUM)

reading: ## 20,000 random lines that only read, and every way in which such a line does more, in every mode
	BELAY_READINGS=20000 $(TEST) -count=1 -timeout 180m -run ReadOnlyHolds ./internal/sandbox $(SUM)
	BELAY_ATTACKS=full $(TEST) -count=1 -timeout 180m -run TestReading ./script/attack $(SUM)

full: STORIES = 1
full: stories long loops shellfuzz reading boundary hostile killserver kill day faults screens console mutants ## every long check, whole; some hours
	$(MAKE) race RACED=./... STORIES=1

soak: ## crash loops again and again for SOAKTIME (8h)
	@end=$$(( $$(date +%s) + $$(echo $(SOAKTIME) | sed -E 's/h$$/*3600/; s/m$$/*60/; s/s$$//') )); n=0; \
	while [ $$(date +%s) -lt $$end ]; do \
		go test -count=1 -timeout 30m -run 'Crash|Interrupt' ./internal/engine; \
		BELAY_KILL=full go test -count=1 -timeout 30m -run Kill ./script/kill; \
		n=$$((n+1)); echo "$$n rounds at $$(git rev-parse --short HEAD), $$(date -u +%FT%TZ)"; \
	done

fuzz: ## every fuzz target for FUZZTIME (30s)
	@grep -rl --include='*_test.go' '^func Fuzz' . | while read -r file; do \
		grep -oE '^func Fuzz\w+' "$$file" | sed 's/^func //' | while read -r target; do \
			echo "== $$target in $$(dirname "$$file")"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) "$$(dirname "$$file")"; \
		done; \
	done

docs: ## write the documents that are made from code
	go test -count=1 . -run GuaranteesAreShown -update
	go test -count=1 ./event -update
	go test -count=1 ./internal/cli -run ToolDocument -update
	go test -count=1 ./internal/server -run CheckedIn -update
	go generate ./web

demo: ## a session, killed and resumed, in a throw-away place
	go run ./cmd/belay demo

eval: ## the scenarios of evals, by the program itself; RUN=regexp picks some
	go run ./cmd/belay eval --run '$(RUN)' evals | sed '/^pass /d'
