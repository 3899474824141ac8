# debian:N-slim from what debootstrap made, for machines that reach no registry. Built with --squash by hack/images.
FROM scratch
ARG SUITE
ARG MIRROR
ADD base.tar /
COPY debian-slim /tmp/
RUN --mount=type=secret,id=apt.conf --mount=type=secret,id=apt.list --mount=type=secret,id=ca.crt sh /tmp/debian-slim
CMD ["bash"]
