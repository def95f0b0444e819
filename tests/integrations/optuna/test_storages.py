"""The sampler on every storage of Optuna, with workers in threads, in processes and under Dask."""

import contextlib
import multiprocessing
import socket

import optuna
import pytest
from optuna.storages import JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend

from tests.integrations.optuna.common import SQUARE, hill, quick, run, study_of

# gRPC and Dask storages still are experimental for Optuna
pytestmark = pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")


@contextlib.contextmanager
def over_grpc(storage):
    """Reach a storage by gRPC, as from other machines."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    from optuna.storages._grpc.server import make_server

    server = make_server(storage, "127.0.0.1", port)
    server.start()
    proxy = optuna.storages.GrpcStorageProxy(host="127.0.0.1", port=port)
    proxy.wait_server_ready(timeout=30)
    try:
        yield proxy
    finally:
        proxy.close()
        server.stop(None)


@pytest.fixture(params=["sqlite", "journal", "postgresql", "grpc"])
def storage(request, tmp_path):
    """Each storage that several workers can share."""
    if request.param == "journal":
        yield JournalStorage(JournalFileBackend(str(tmp_path / "study.log")))
        return
    url = f"sqlite:///{tmp_path / 'study.db'}"
    if request.param == "postgresql":
        server = request.getfixturevalue("postgres_url")
        url = server.replace("postgresql://", "postgresql+psycopg://")
    if request.param == "grpc":
        pytest.importorskip("grpc", reason="needs grpcio, which Optuna's gRPC storage is made with")
    database = RDBStorage(url, engine_kwargs={"pool_pre_ping": True})
    try:
        if request.param == "grpc":
            with over_grpc(database) as proxy:
                yield proxy
        else:
            yield database
    finally:
        database.engine.dispose()


def test_a_storage_makes_no_difference_and_another_worker_goes_on(storage, tmp_path):
    here = study_of(quick(), storage=storage, study_name=tmp_path.name)
    memory = study_of(quick())
    assert run(here, 5) == run(memory, 5)
    there = optuna.load_study(study_name=tmp_path.name, storage=storage, sampler=quick())
    assert run(there, 1) == run(memory, 1)


def test_threads_on_one_storage_choose_different_designs(storage, tmp_path):
    study = study_of(quick(n_startup_trials=2), storage=storage, study_name=tmp_path.name)

    def objective(trial):
        return hill({name: trial.suggest_float(name, 0, 1) for name in SQUARE})

    study.optimize(objective, n_trials=6, n_jobs=2)
    params = [tuple(trial.params.values()) for trial in study.trials]
    assert len(set(params)) == len(params) == 6


def _work(url, name, n):
    study = optuna.load_study(study_name=name, storage=url, sampler=quick(seed=None))
    run(study, n)


@pytest.mark.slow
def test_processes_on_one_storage_choose_different_designs(tmp_path):
    url = f"sqlite:///{tmp_path / 'study.db'}"
    optuna.create_study(storage=url, study_name="shared", direction="maximize")
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_work, args=(url, "shared", 4)) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0, 0]
    study = optuna.load_study(study_name="shared", storage=url)
    params = [tuple(trial.params.values()) for trial in study.trials]
    assert len(set(params)) == len(params) == 8


def test_dask_keeps_the_storage_for_its_workers():
    distributed = pytest.importorskip("distributed", reason="needs distributed: Dask's scheduler")
    dask = pytest.importorskip("optuna_integration.dask", reason="needs optuna-integration")
    settings = {"n_workers": 1, "processes": False, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        storage = dask.DaskStorage(client=client)
        study = study_of(quick(), storage=storage, study_name="dask")
        assert run(study, 5) == run(study_of(quick()), 5)
