# The image scaletest with FFmpeg, the oneVPL tools and, on amd64, Intel's media drivers, all from Debian.
#   docker build -f dockerfiles/media.Dockerfile --build-arg SCALETEST=scaletest:0.1.0 -t scaletest-media:0.1.0 .
ARG SCALETEST=scaletest:latest

FROM ${SCALETEST}
LABEL org.opencontainers.image.title=scaletest-media
USER root
# What Debian has in main. Intel's: VA-API from Broadwell on, the runtimes of oneVPL for old and new graphics, its tools.
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt \
    if [ -e /run/secrets/apt.conf ]; then export APT_CONFIG=/run/secrets/apt.conf; fi && \
    export DEBIAN_FRONTEND=noninteractive && apt-get update -qq && \
    case "$(dpkg --print-architecture)" in amd64) intel="intel-media-va-driver libmfx-gen1.2 libmfx1 onevpl-tools" ;; *) intel= ;; esac && \
    apt-get install -y -qq --no-install-recommends ffmpeg vainfo $intel && \
    rm -rf /var/lib/apt/lists/* /var/cache/debconf/*-old /var/log/apt /var/log/dpkg.log /var/log/alternatives.log && \
    find / -xdev -type f -perm /6000 -exec chmod a-s {} +
USER 10001:10001
