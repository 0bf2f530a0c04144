# The server in a container: what running needs, from the hashed lock, as a user without rights.
FROM python:3.13-slim AS built
WORKDIR /src
COPY requirements/bootstrap.txt requirements/build.txt requirements/all.txt requirements/
RUN python -m venv /opt/wakeful \
    && /opt/wakeful/bin/pip install --no-cache-dir --require-hashes -r requirements/all.txt \
    && python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/wakeful/bin/pip install --no-cache-dir --no-deps /dist/wakeful-*.whl

FROM python:3.13-slim
COPY --from=built /opt/wakeful /opt/wakeful
RUN useradd --uid 10001 --create-home wakeful && install -d -o wakeful -m 0700 /data
ENV PATH=/opt/wakeful/bin:$PATH WAKEFUL_HOME=/data WAKEFUL_HOST=0.0.0.0 PYTHONUNBUFFERED=1
USER wakeful
VOLUME /data
EXPOSE 8484
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8484/readyz', timeout=4)"]
CMD ["wakeful", "up"]
