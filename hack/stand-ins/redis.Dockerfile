# Debian's Redis under the names of the programs that Valkey's image has, for tests where no registry can be reached.
# It is Redis 7.0, not Valkey: the two agree in all that is used here.
ARG BASE=debian:12-slim

FROM ${BASE}
LABEL org.opencontainers.image.title="Debian's Redis in place of Valkey, for tests"
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    echo 'valkey:x:999:' >>/etc/group && echo 'valkey:x:999:999::/data:/usr/sbin/nologin' >>/etc/passwd && \
    export DEBIAN_FRONTEND=noninteractive && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server && rm -rf /var/lib/apt/lists/* && \
    ln -s redis-server /usr/bin/valkey-server && ln -s redis-cli /usr/bin/valkey-cli && \
    install -d -o 999 -g 999 /data
WORKDIR /data
USER 999:999
EXPOSE 6379
CMD ["valkey-server", "--protected-mode", "no"]
