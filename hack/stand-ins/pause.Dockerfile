# The pause container of a kubelet, for tests where no registry can be reached.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends gcc libc6-dev
COPY pause.c /
RUN gcc -Os -Wall -Wextra -Werror -static -s -o /pause /pause.c

FROM scratch
COPY --from=build /pause /pause
USER 65535:65535
ENTRYPOINT ["/pause"]
