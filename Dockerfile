# The explorer and JSON API of a model: docker build -t cogstage . && docker run -v ./model:/model:ro -p 8764:8764 cogstage
# Prediction needs no torch, so the image has none; models of the preset "paper" and training need it.
FROM python:3.12-slim-bookworm AS build
WORKDIR /build
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY locks ./locks
COPY src ./src
RUN python -m venv /opt/cogstage
RUN /opt/cogstage/bin/python -m pip install --no-cache-dir --no-deps --require-hashes --requirement locks/build.txt
RUN /opt/cogstage/bin/python -m pip install --no-cache-dir --no-deps --require-hashes --requirement locks/core.txt
RUN /opt/cogstage/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim-bookworm
COPY --from=build /opt/cogstage /opt/cogstage
ENV PATH=/opt/cogstage/bin:$PATH \
    NUMBA_CACHE_DIR=/tmp/numba \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /tmp
VOLUME /model
EXPOSE 8764
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8764/health/ready', timeout=4)"]
ENTRYPOINT ["cogstage"]
CMD ["serve", "/model", "--host", "0.0.0.0"]
