// Package deploy tests the files in contrib that run furl on servers.
package deploy
