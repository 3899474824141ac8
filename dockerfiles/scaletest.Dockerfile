# Worker, client, exporter and command line in one image, without compiler and pip.
#   docker build -f dockerfiles/scaletest.Dockerfile -t scaletest:0.1.0 .
# Runs as a user of its own on a read-only root; only /tmp is written. How to pin and to mirror: docs/how-to/images.md
#
# Settings of the machine that builds (package index, mirror, authorities) enter as secrets and stay in no layer; all of them
# may be left out: pip.conf, ca.crt (which pip.conf may name as /run/secrets/ca.crt), apt.conf, apt.list.
ARG BASE=debian:12-slim

FROM ${BASE} AS build
ENV DEBIAN_FRONTEND=noninteractive PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv && rm -rf /var/lib/apt/lists/*
# pip stays in an environment of its own
RUN python3 -m venv /opt/pip && python3 -m venv --without-pip /opt/scaletest
WORKDIR /src
COPY dockerfiles/requirements*.txt ./
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    export PIP_CONFIG_FILE=/run/secrets/pip.conf && options="--quiet --require-hashes --only-binary :all:" && \
    /opt/pip/bin/pip install $options -r requirements-build.txt && \
    /opt/pip/bin/pip --python /opt/scaletest/bin/python install $options -r requirements.txt && \
    # a second client of Kubernetes for asyncio, half of the package: nothing imports it
    rm -r /opt/scaletest/lib/python3*/site-packages/kubernetes/aio
COPY . ./
# the charts of the pages are in the wheel when they lie in the tree (python3 hatch_build.py fetches them with npm)
RUN SCALETEST_ASSETS=keep /opt/pip/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel . && \
    /opt/pip/bin/pip --python /opt/scaletest/bin/python install --quiet --no-deps --no-index /wheel/*.whl && \
    /opt/scaletest/bin/scaletest version

FROM ${BASE}
# The numeric user lets a kubelet see that it is not root. No program keeps a set-user-id bit: nothing here needs one.
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    export DEBIAN_FRONTEND=noninteractive && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends ca-certificates python3 && \
    rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /var/log/alternatives.log && \
    echo 'scaletest:x:10001:' >>/etc/group && \
    echo 'scaletest:x:10001:10001::/tmp:/usr/sbin/nologin' >>/etc/passwd && \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +
COPY --from=build /opt/scaletest /opt/scaletest
ENV PATH=/opt/scaletest/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    HOME=/tmp PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 10001:10001
ENTRYPOINT ["scaletest"]
CMD ["--help"]
# last: another revision keeps the layers above
ARG VERSION=unknown
ARG REVISION=unknown
LABEL org.opencontainers.image.title=scaletest \
      org.opencontainers.image.description="How far do device workloads scale, and what stops them?" \
      org.opencontainers.image.licenses=Apache-2.0 \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${REVISION}
