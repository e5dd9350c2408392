//go:build cluster

package cli_test

import "testing"

// All commands of the scripts for PostgreSQL with a store on a Citus cluster.
func TestClusterScripts(t *testing.T) {
	runScripts(t, "testdata/postgres", onCluster(t))
}
