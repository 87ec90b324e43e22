# A CPU image that has the released wheel and its dependencies, each file by its hash. After step 5 of docs/release.md:
#   docker build --build-arg TORCH_INDEX=ADDRESS -t attention-repro .
#   docker run --rm -v "$PWD:/here" attention-repro run table3_A --scale smoke
# ADDRESS is the index that pytorch.org names for CPUs.
# By tag: step 7 of docs/release.md says how to pin it by its digest, @sha256:...
FROM python:3.11.14-slim-bookworm

ARG TORCH_INDEX
COPY requirements-locked.txt /tmp/
RUN pip install --no-cache-dir --require-hashes --extra-index-url "${TORCH_INDEX:?expected --build-arg TORCH_INDEX=ADDRESS}" \
    -r /tmp/requirements-locked.txt
COPY dist/attention_repro-*.whl /tmp/dist/
RUN pip install --no-cache-dir --no-deps /tmp/dist/*.whl

# runs, text and results go to the folder that is mounted here
WORKDIR /here
ENV MLFLOW_DISABLE_TELEMETRY=true OMP_NUM_THREADS=1
ENTRYPOINT ["repro"]
CMD ["run"]
