# docker build -t furl .
# docker run -e FURL_CLIENT_KEYS=… -e FURL_OPERATOR_KEY=… -p 7410:7410 -v furl:/data --read-only --tmpfs /tmp --stop-timeout 320 furl
#
# Streams get five minutes to end when the container is stopped, of which Docker
# grants ten seconds unless it is told. A folder of the host in place of the
# volume must be writable by user 65532. docker kill -s HUP has the configuration
# read anew.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w -buildid=' -o /furl ./cmd/furl && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /furl /furl
COPY --from=build --chown=65532:65532 /data /data
COPY contrib/container.yaml /etc/furl/config.yaml
USER 65532:65532
ENV FURL_CONFIG=/etc/furl/config.yaml FURL_DATA=/data HOME=/data
VOLUME /data
EXPOSE 7410
STOPSIGNAL SIGTERM
# There is no shell in here: furl asks itself.
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s CMD ["/furl", "doctor", "--gateway", "--ready"]
ENTRYPOINT ["/furl"]
CMD ["serve"]
