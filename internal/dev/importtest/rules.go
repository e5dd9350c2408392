// Package importtest defines which package of furl may import which, and what
// pure packages must not use. Its test checks the source. docs/internals/design.md,
// "Packages", has the diagram.
package importtest

// rule says what a package's files may use. Test files may use anything.
type rule struct {
	// imports lists the packages of this module it may import, by directory;
	// "." is the root. A name ending in "/..." allows a whole tree.
	imports []string
	// stdlibOnly forbids packages of other modules.
	stdlibOnly bool
	// pure forbids goroutines, the clock, randomness, files and sockets.
	pure bool
	// offline forbids sockets only.
	offline bool
}

// anything is for packages that connect all parts.
var anything = []string{"./..."}

// rules has one entry per directory with Go files; one ending in "/..."
// covers a tree. The order is the order of imports, lowest first.
var rules = map[string]rule{
	// Values and pure functions.
	".":              {stdlibOnly: true, pure: true},
	"internal/lexer": {stdlibOnly: true, pure: true},
	// pure but for the name of the process, by which tests are known.
	"internal/lazyregexp": {stdlibOnly: true, offline: true},
	"internal/toolscript": {imports: []string{".", "internal/rawjson"}, pure: true},
	"internal/namecount":  {imports: []string{".", "internal/lexer", "internal/toolscript"}, pure: true},

	// One package per subject, none of which knows the others.
	"policy":            {imports: []string{".", "event", "price", "token", "internal/fidelity", "internal/lexer", "internal/namecount", "internal/rawjson", "internal/toolscript"}, pure: true},
	"policy/agents":     {imports: []string{".", "policy", "internal/rawjson"}, stdlibOnly: true, pure: true},
	"token":             {imports: []string{"."}, offline: true},
	"catalog":           {imports: []string{".", "price", "internal/strictyaml", "internal/lazyregexp"}, offline: true},
	"recall":            {imports: []string{".", "storage", "internal/lexer"}, offline: true},
	"recall/embeddings": {stdlibOnly: true},
	"event":             {imports: []string{"."}, stdlibOnly: true, pure: true},
	"price":             {imports: []string{"."}, stdlibOnly: true, pure: true},
	"record":            {imports: []string{".", "protocol", "internal/rawjson"}, stdlibOnly: true, pure: true},
	"storage":           {imports: []string{"."}, stdlibOnly: true, pure: true},
	"protocol":          {imports: []string{"."}, stdlibOnly: true, pure: true},
	"wire/anthropic":    {imports: []string{".", "protocol", "internal/rawjson", "internal/imagesize", "internal/sse"}, pure: true},
	"wire/gemini":       {imports: []string{".", "protocol", "internal/rawjson", "internal/imagesize", "internal/sse"}, pure: true},
	"wire/openai":       {imports: []string{".", "protocol", "internal/rawjson", "internal/imagesize", "internal/sse", "internal/lazyregexp"}, pure: true},
	"transcript":        {imports: []string{".", "protocol", "storage", "record", "wire/anthropic", "wire/openai", "internal/rawjson", "internal/readable", "internal/rebuild", "internal/lazyregexp"}, offline: true},

	// The wire formats together, for all packages that handle any format:
	// nothing above compares formats.
	"wire": {imports: []string{".", "protocol", "wire/anthropic", "wire/gemini", "wire/openai", "internal/rawjson", "internal/sse"}, pure: true},

	// Stores implement the root's interfaces and do not import each other.
	"inmem":    {imports: []string{".", "record", "storage"}, offline: true},
	"sqlite":   {imports: []string{".", "record", "storage", "internal/filelock", "internal/rebuild"}, offline: true},
	"postgres": {imports: []string{".", "record", "storage"}},

	// The encryption of any store.
	"encrypted": {imports: []string{".", "record", "storage"}, offline: true},

	// What drives the core.
	"internal/billed":      {imports: []string{".", "price", "storage", "transcript"}, offline: true},
	"internal/tally":       {imports: []string{".", "storage", "internal/billed"}, pure: true},
	"internal/nextinput":   {imports: []string{".", "price", "storage", "internal/numbers"}, stdlibOnly: true, pure: true},
	"internal/account":     {imports: []string{".", "event", "price", "protocol", "token"}, offline: true},
	"internal/lost":        {imports: []string{".", "internal/lexer", "internal/toolscript", "recall"}, offline: true},
	"internal/clients":     {imports: []string{".", "protocol", "storage", "wire", "internal/membudget", "internal/rawjson"}, offline: true},
	"internal/open":        {imports: above("internal/account", "internal/clients", "internal/nextinput", "internal/numbers", "internal/membudget", "internal/fingerprint", "internal/rawjson", "internal/keepalive", "internal/rebuild")},
	"session":              {imports: above("internal/account", "internal/agents", "internal/fingerprint", "internal/lost", "internal/open", "internal/rebuild")},
	"tool":                 {imports: []string{"internal/numbers", "internal/unidiff", "internal/lazyregexp"}, offline: true},
	"tool/mcptool":         {imports: []string{"tool", "internal/lazyregexp"}},
	"internal/fingerprint": {imports: []string{"."}, pure: true},
	"internal/join":        {imports: []string{"."}, stdlibOnly: true, pure: true},
	"internal/summary":     {imports: []string{".", "policy", "price", "protocol", "wire", "internal/rawjson"}, pure: true},
	"internal/recalltext":  {imports: []string{".", "recall", "session"}, offline: true},
	"internal/exchange":    {imports: above("internal/clients", "internal/numbers", "session", "upstream", "internal/onereply", "internal/agents", "internal/fingerprint", "internal/rawjson", "internal/recalltext", "internal/membudget", "internal/open")},
	"upstream":             {imports: below},
	"internal/modelsapi":   {imports: []string{".", "protocol", "upstream", "wire"}},
	"internal/fit":         {imports: above("session", "inmem", "internal/exchange")},
	"internal/operation":   {imports: []string{".", "policy", "price", "recall", "session", "storage", "internal/numbers", "internal/open", "internal/summary", "internal/visible"}, offline: true},
	"furlhttp":             {imports: above("session", "internal/agents", "internal/exchange", "internal/rawjson")},
	"gateway":              {imports: above("internal/billed", "internal/nextinput", "internal/clients", "session", "upstream", "furlhttp", "internal/access", "internal/admission", "internal/audit", "internal/agents", "internal/exchange", "internal/fit", "internal/keepalive", "internal/operation", "internal/rawjson", "internal/origin", "internal/membudget", "internal/sessionjson", "internal/quota", "internal/spending", "internal/summary", "internal/open")},
	"agent":                {imports: above("session", "upstream", "tool", "internal/exchange", "internal/recalltext", "internal/summary", "internal/open")},
	"replay":               {imports: above("session", "sim", "internal/agents", "internal/billed", "internal/fidelity", "internal/keepalive", "internal/numbers", "internal/promptcache", "internal/rebuild", "internal/toolscript"), offline: true},
	"sim":                  {imports: above("wire/anthropic", "wire/openai", "internal/lexer", "internal/rawjson", "internal/promptcache")},
	"furltest":             {imports: []string{".", "protocol", "record", "storage", "inmem", "wire/anthropic", "wire/openai"}, offline: true},

	// Surfaces. Only internal/cli, its folder and cmd name a store.
	"internal/report":    {imports: []string{".", "replay", "internal/numbers", "internal/look", "internal/uplot"}, offline: true},
	"internal/web":       {imports: append(surface, "internal/nextinput", "internal/account", "internal/billed", "internal/tally", "internal/membudget", "internal/numbers", "internal/agents", "internal/chat", "internal/highlight", "internal/htmx", "internal/look", "internal/lost", "internal/operation", "internal/report", "internal/unidiff", "internal/visible")},
	"internal/chat":      {imports: []string{"internal/numbers", ".", "agent", "event", "tool"}},
	"internal/tui":       {imports: []string{"internal/numbers", ".", "agent", "tool", "event", "internal/chat", "internal/highlight", "internal/visible"}},
	"internal/mcpserver": {imports: above("session", "internal/agents", "internal/operation", "internal/origin", "internal/readable", "internal/recalltext")},
	"internal/filelock":  {imports: []string{"internal/fileowner"}, stdlibOnly: true, offline: true},
	"internal/fileowner": {stdlibOnly: true, offline: true},
	"internal/follow":    {imports: []string{".", "transcript"}, offline: true},
	"internal/eval":      {imports: []string{".", "event", "internal/fidelity", "internal/numbers", "internal/strictyaml", "internal/lazyregexp"}, offline: true},
	"internal/config":    {imports: []string{".", "policy", "policy/agents", "catalog", "internal/origin", "internal/strictyaml", "internal/lazyregexp"}},
	// What a configuration names on this machine.
	"internal/workspace":    {imports: above("encrypted", "internal/access", "internal/agents", "internal/audit", "internal/config", "internal/modelsapi", "internal/private", "postgres", "recall/embeddings", "session", "sqlite", "tool", "upstream")},
	"internal/recorded":     {imports: above("inmem", "internal/agents", "internal/billed", "internal/demo", "internal/index", "internal/join", "internal/packed", "internal/numbers", "internal/rebuild", "internal/usage", "internal/visible", "replay", "session")},
	"internal/launch":       {imports: []string{"internal/agents", "internal/config", "internal/setup", "internal/visible", "internal/workspace"}},
	"internal/serving":      {imports: anything},
	"internal/remote":       {imports: []string{"gateway", "internal/launch", "internal/numbers", "internal/private", "internal/serving", "internal/usage", "internal/visible"}},
	"internal/doctor":       {imports: []string{".", "storage", "internal/tenants", "gateway", "internal/access", "internal/audit", "internal/certs", "internal/config", "internal/launch", "internal/numbers", "internal/oidc", "internal/private", "internal/remote", "internal/serving", "internal/visible", "internal/workspace"}},
	"internal/models":       {imports: above("agent", "inmem", "internal/config", "internal/numbers", "internal/operation", "internal/tenants", "internal/usage", "internal/visible", "session")},
	"internal/conversation": {imports: above("internal/nextinput", "agent", "internal/chat", "internal/config", "internal/launch", "internal/models", "internal/numbers", "internal/open", "internal/usage", "internal/visible", "internal/workspace", "session", "sim", "tool", "tool/mcptool")},
	"internal/status":       {imports: above("internal/agents", "internal/billed", "internal/config", "internal/spending", "internal/tenants", "internal/usage", "internal/workspace", "postgres", "session", "sqlite")},
	"internal/sessionlist":  {imports: []string{".", "internal/agents", "storage"}, offline: true},
	"internal/tenants":      {imports: above("gateway", "internal/rebuild", "internal/numbers", "internal/recorded", "internal/usage", "internal/workspace")},
	// The map in docs/internals/design.md says which commands use others.
	"internal/cli":            {imports: anything},
	"internal/cli/chatcmd":    {imports: anything},
	"internal/cli/replaycmd":  {imports: anything},
	"internal/cli/storecmd":   {imports: anything},
	"internal/cli/gatewaycmd": {imports: anything},
	"internal/cli/cmdline":    {imports: anything},
	"command":                 {imports: []string{"policy", "internal/cli"}},
	"cmd/furl":                {imports: anything},

	// General helpers.
	"internal/access":      {imports: []string{".", "internal/lazyregexp"}, stdlibOnly: true},
	"internal/admission":   {imports: []string{".", "upstream", "internal/access", "internal/audit"}, stdlibOnly: true},
	"internal/agents":      {imports: []string{"internal/lazyregexp"}, stdlibOnly: true},
	"internal/audit":       {imports: []string{"internal/filelock", "internal/fileowner", "internal/numbers"}, stdlibOnly: true, offline: true},
	"internal/certs":       {stdlibOnly: true},
	"internal/setup":       {imports: []string{"contrib", "internal/agents", "internal/filelock", "internal/unidiff", "internal/lazyregexp"}, offline: true},
	"internal/index":       {imports: []string{"internal/packed"}, stdlibOnly: true, offline: true},
	"internal/packed":      {stdlibOnly: true, pure: true},
	"internal/unidiff":     {pure: true},
	"contrib":              {stdlibOnly: true, offline: true},
	"internal/demo":        {imports: []string{".", "storage", "transcript"}, offline: true},
	"internal/fidelity":    {imports: []string{".", "internal/lexer", "internal/toolscript"}, pure: true},
	"internal/keepalive":   {imports: []string{".", "price", "protocol"}, stdlibOnly: true, pure: true},
	"internal/promptcache": {imports: []string{"."}, stdlibOnly: true, pure: true},
	"internal/rebuild":     {imports: []string{".", "storage", "internal/rawjson"}, offline: true},
	"internal/readable":    {imports: []string{"internal/numbers", ".", "internal/look"}, offline: true},
	"internal/rawjson":     {stdlibOnly: true, pure: true},
	"internal/origin":      {imports: []string{"internal/lazyregexp"}, stdlibOnly: true, pure: true},
	"internal/strictyaml":  {imports: []string{"internal/lazyregexp"}, pure: true},
	"internal/sessionjson": {imports: []string{".", "storage", "internal/agents"}, stdlibOnly: true, pure: true},
	"internal/membudget":   {stdlibOnly: true, offline: true},
	"internal/oidc":        {imports: []string{"internal/access"}},
	"internal/onereply":    {imports: []string{".", "protocol", "wire", "internal/sse"}},
	"internal/imagesize":   {stdlibOnly: true, pure: true},
	"internal/quota":       {imports: []string{".", "storage"}},
	"internal/spending":    {imports: []string{".", "storage", "internal/access", "internal/numbers"}, offline: true},
	"internal/sse":         {stdlibOnly: true},
	"internal/highlight":   {offline: true},
	"internal/htmx":        {stdlibOnly: true, offline: true},
	"internal/look":        {stdlibOnly: true, offline: true},
	"internal/uplot":       {stdlibOnly: true, offline: true},
	"internal/numbers":     {stdlibOnly: true, pure: true},
	"internal/private":     {imports: []string{"internal/visible"}, stdlibOnly: true, offline: true},
	"internal/usage":       {stdlibOnly: true, pure: true},
	"internal/visible":     {stdlibOnly: true, pure: true},

	// Test kits, house tools and benchmarks. The program imports none of them: the map of
	// packages in docs/internals/design.md lacks them.
	"internal/dev/behaviours":  {stdlibOnly: true},
	"internal/dev/browsertest": {},
	"internal/dev/certstest":   {stdlibOnly: true},
	"internal/dev/chattest":    {stdlibOnly: true},
	"internal/dev/clienttest":  {},
	"internal/dev/embedtest":   {stdlibOnly: true},
	"internal/dev/fuzzall":     {stdlibOnly: true},
	"internal/dev/house/...":   {imports: []string{".", "gateway", "inmem", "internal/cli", "internal/numbers", "protocol", "session", "storage", "transcript", "upstream", "internal/web"}},
	"internal/dev/housetest":   {stdlibOnly: true},
	"internal/dev/importtest":  {stdlibOnly: true},
	"internal/dev/needs":       {stdlibOnly: true, offline: true},
	"internal/dev/oidctest":    {stdlibOnly: true},
	"internal/dev/procstat":    {stdlibOnly: true, offline: true},
	"internal/dev/pgtest":      {},
	"internal/dev/portable":    {},
	"internal/dev/racetest":    {stdlibOnly: true, offline: true},
	"internal/dev/recordings":  {stdlibOnly: true},
	"internal/dev/sdktest":     {},
	"internal/dev/sessiontest": {imports: []string{".", "inmem", "protocol", "session", "storage", "wire/anthropic", "internal/open"}},
	"internal/dev/testreport":  {imports: []string{"internal/dev/behaviours"}, stdlibOnly: true},
}

// below is what all packages that drive the core may use.
var below = []string{".", "protocol", "policy", "recall", "token", "catalog", "transcript", "wire", "event", "price", "record", "storage", "internal/lazyregexp", "internal/sse"}

// surface is what the page, the terminal and the MCP server may use.
var surface = above("session", "upstream", "gateway", "agent", "tool", "tool/...", "replay", "sim", "internal/config")

// above adds packages to below.
func above(names ...string) []string {
	return append(append([]string(nil), below...), names...)
}
