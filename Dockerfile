# docker build -t furl . && docker run -e FURL_CLIENT_KEYS=… -p 7410:7410 -v furl:/data furl
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags='-s -w' -o /furl ./cmd/furl && mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /furl /furl
COPY --from=build --chown=65532:65532 /data /data
COPY contrib/container.yaml /etc/furl/config.yaml
USER 65532:65532
ENV FURL_CONFIG=/etc/furl/config.yaml FURL_DATA=/data
VOLUME /data
EXPOSE 7410
ENTRYPOINT ["/furl"]
CMD ["serve"]
