#!/bin/sh
# go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp 1.47.0 (Go): the exporter over HTTP links gRPC.
#
# It sends protobuf by net/http and calls no gRPC service. But its messages come from go.opentelemetry.io/proto/otlp, whose package
# of the collector has generated client stubs beside them, so google.golang.org/grpc and golang.org/x/net/trace, with html/template,
# are in every program that exports traces. A program that avoids gRPC for its size has to leave the exporter out.
#
# Output seen on 2026-11-28:
#   packages of google.golang.org/grpc: 50 or more
#   html/template: linked
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"context"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
)

func main() { _, _ = otlptracehttp.New(context.Background()) }
GO
cat >go.mod <<'MOD'
module finding

go 1.25

require go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp v1.47.0
MOD
go mod tidy >/dev/null 2>&1
grpc=$(go list -deps . | grep -c '^google.golang.org/grpc') || true
html=$(go list -deps . | grep -c '^html/template$') || true
[ "$grpc" -ge 50 ] && many='50 or more' || many=$grpc
[ "$html" = 1 ] && linked=linked || linked='not linked'
echo "packages of google.golang.org/grpc: $many"
echo "html/template: $linked"
[ "$grpc" -ge 50 ] && [ "$html" = 1 ]
