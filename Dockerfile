# An image with every kernel compiled, for use read-only and as a user without rights:
#
#   docker build -t evalengine .
#   docker run --rm --read-only --tmpfs /tmp -v "$PWD:/data:ro" evalengine score preds.parquet gts.parquet
#
# Workers of a cluster use the same image:
#
#   docker run --rm --entrypoint dask -v /mnt/common:/mnt/common evalengine worker tcp://10.0.0.7:8786 --nthreads 1
#
# Results go to a folder that is mounted to be written: -v "$PWD/runs:/runs", --out /runs/monday.
FROM python:3.12-slim AS made
COPY . /source
RUN python -m venv /opt/evalengine \
    && /opt/evalengine/bin/pip install --no-cache-dir -c /source/constraints.txt '/source[dask]'

FROM python:3.12-slim
COPY --from=made /opt/evalengine /opt/evalengine
ENV PATH=/opt/evalengine/bin:$PATH \
    EVALENGINE_CACHE_DIR=/opt/evalengine/kernels \
    PYTHONDONTWRITEBYTECODE=1
RUN evalengine warmup && useradd --system evalengine
USER evalengine
WORKDIR /data
ENTRYPOINT ["evalengine"]
CMD ["--help"]
