# Pins what the images install from the package index, for the Python of the base:
#   docker build -f dockerfiles/lock.Dockerfile -o dockerfiles .     (or: hack/images lock)
ARG BASE=debian:12-slim

FROM ${BASE} AS lock
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/pip
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY scaletest/__init__.py scaletest/
RUN --mount=type=secret,id=pip.conf --mount=type=secret,id=ca.crt \
    export PIP_CONFIG_FILE=/run/secrets/pip.conf && /opt/pip/bin/pip install --quiet pip-tools && mkdir /lock && \
    compile="/opt/pip/bin/pip-compile -q --generate-hashes --strip-extras --no-header --no-annotate --allow-unsafe \
      --no-emit-index-url --no-emit-trusted-host --no-emit-find-links pyproject.toml" && \
    $compile --extra operator --extra nvidia -o /lock/requirements.txt && \
    $compile --build-deps-for wheel --only-build-deps -o /lock/requirements-build.txt

FROM scratch
COPY --from=lock /lock/ /
