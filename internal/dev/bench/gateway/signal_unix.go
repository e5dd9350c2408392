//go:build unix

package main

import "syscall"

// profileSignal makes a furl that package gate has built start its profiles, and end them.
const profileSignal = syscall.SIGUSR1
