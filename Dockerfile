# pyonednn_q on Debian 13 with Debian's OpenMP build of oneDNN 3.7, the fast path:
#
#   docker build -t pyonednn_q .
#   docker run --rm pyonednn_q                                     # what was found, and whether it works
#   docker run --rm -v "$PWD:/work" pyonednn_q explain model.onnx
#   docker build --build-arg EXTRAS="onnx onnxruntime" -t pyonednn_q .
FROM debian:trixie-slim AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
        libdnnl-dev g++ cmake ninja-build python3-dev python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH
RUN pip install --no-cache-dir 'pybind11>=3' 'scikit-build-core>=0.11.2' numpy msgspec rich ml_dtypes
COPY . /source
RUN pip install --no-cache-dir --no-deps --no-build-isolation /source \
    && pip uninstall -y pybind11 scikit-build-core
ARG EXTRAS=onnx
RUN pip install --no-cache-dir $EXTRAS

# Without compilers and headers.
FROM debian:trixie-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends libdnnl3.6 python3 \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYONEDNN_Q_LIBDNNL=libdnnl.so.3.6
WORKDIR /work
ENTRYPOINT ["pyonednn-q"]
CMD ["doctor"]
