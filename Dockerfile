# The image: one static binary on an empty base. `make image` writes the same layout without docker (tests/image.sh).
#   docker buildx build --platform linux/amd64,linux/arm64 --tag tablemount .
FROM rust:1.95-bookworm AS build
# The image's own toolchain, without the components that rust-toolchain.toml asks for.
ENV RUSTUP_TOOLCHAIN=1.95.0
WORKDIR /src
COPY . .
RUN cargo build --release --locked --workspace --bins
RUN mkdir -p /image/bin /image/etc/ssl/certs /image/tmp \
 && chmod 1777 /image/tmp \
 && cp target/*/release/tablemount /image/bin/ \
 && ln -s tablemount /image/bin/mount.tablemount \
 && ln -s tablemount /image/bin/kubectl-tablemount \
 && cp /etc/ssl/certs/ca-certificates.crt /image/etc/ssl/certs/ \
 && printf '%s\n' root:x:0:0::/:/bin/false nonroot:x:65532:65532::/:/bin/false > /image/etc/passwd

FROM scratch
COPY --from=build /image /
ENV PATH=/bin
USER 65532:65532
ENTRYPOINT ["/bin/tablemount"]
