"""Sweeps on the workers of a Dask cluster: each run is a task of `distributed`.

`connection.py` says where the workers are, `local.py` starts some here, `workers.py` hands runs out and takes outcomes
in, `task.py` and `files.py` are what happens at a worker.
"""
