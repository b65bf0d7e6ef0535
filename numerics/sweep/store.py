"""Results on disk: one SQLite file, one row a task, each written whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from numerics.sweep.outcome import FAILED, Outcome
from theory.errors import ParameterError
from theory.free_energy import FreeEnergy

APPLICATION = 0x7370696E  # "spin", in the header of the file
SCHEMA = 1
PATIENCE = 60.0  # seconds to wait for another process that writes

_TABLE = """
CREATE TABLE IF NOT EXISTS results (
    model TEXT NOT NULL,        -- hash of the model's fingerprint
    branch TEXT NOT NULL,       -- '' for the system without reduction to a branch
    accuracy REAL NOT NULL,
    version TEXT NOT NULL,      -- of the package
    point TEXT NOT NULL,        -- all parameters as JSON, by name, exact
    name TEXT NOT NULL,         -- of the model
    verdict TEXT NOT NULL,      -- found, absent, unsolved or failed
    kind TEXT,
    status TEXT,
    energy REAL,
    energy_error REAL,
    solution TEXT,              -- Solution.to_dict() as JSON
    failure TEXT,
    seconds REAL NOT NULL,
    finished TEXT NOT NULL,     -- UTC
    PRIMARY KEY (model, branch, accuracy, version, point)
)
"""

_ADVICE = {
    "SQLITE_NOTADB": "it is not a store; give another file",
    "SQLITE_CORRUPT": "it is damaged; restore a copy, or start another store",
    "SQLITE_CANTOPEN": "it cannot be opened; check that the folder exists and is writable",
    "SQLITE_READONLY": "it cannot be written; copy it to a writable folder",
    "SQLITE_BUSY": "another process has held it for too long",
    "SQLITE_FULL": "the disk is full; what was finished is kept, run again to resume",
    "SQLITE_IOERR": "reading or writing failed; what was finished is kept, run again to resume",
}


@dataclass(frozen=True)
class Key:
    """What determines a result: equal keys, equal results."""

    model: str
    branch: str
    accuracy: float
    version: str
    point: str
    name: str


def model_hash(model: FreeEnergy) -> str:
    """Short text that differs between models that differ in anything."""
    return hashlib.sha256(model.fingerprint.encode()).hexdigest()[:20]


def point_text(values: Mapping[str, float]) -> str:
    """Parameters as JSON in the order of their names; floats are exact."""
    return json.dumps({k: float(values[k]) + 0.0 for k in sorted(values)}, allow_nan=False)


class Store:
    """Results of any number of sweeps of any models.

    Parameters
    ----------
    path : path, optional
        Made if it is not there; without one the store lives in memory. A file on a local disk may
        be used by several processes at once.

    Raises
    ------
    ParameterError
        If the file is not a store, is damaged, has another format or cannot be written. Every
        method raises it too where the file fails.
    """

    def __init__(self, path: str | Path | None = None):
        self.path = None if path is None else Path(path)
        with self._guarded():
            where = ":memory:" if path is None else str(path)
            self._base = sqlite3.connect(where, timeout=PATIENCE, isolation_level=None)
        try:
            self._prepare()
        except BaseException:
            self._base.close()
            raise

    def _prepare(self) -> None:
        with self._guarded():
            with self._transaction(""):
                self._check()
            self._log_ahead()
            # a killed process loses nothing; a power cut at most the last rows, never the file
            self._base.execute("PRAGMA synchronous = NORMAL")
            with self._transaction("IMMEDIATE"):
                self._check()
                self._base.execute(_TABLE)
                self._base.execute(f"PRAGMA application_id = {APPLICATION}")
                self._base.execute(f"PRAGMA user_version = {SCHEMA}")

    @contextlib.contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        self._base.execute(f"BEGIN {kind}")
        try:
            yield
            self._base.execute("COMMIT")
        except BaseException:
            if self._base.in_transaction:
                self._base.execute("ROLLBACK")
            raise

    def _number(self, pragma: str) -> int:
        return self._base.execute(f"PRAGMA {pragma}").fetchone()[0]

    def _check(self) -> None:
        """In a transaction, for another process may be making the file at this moment."""
        application, schema = self._number("application_id"), self._number("user_version")
        tables = self._base.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if application == 0 and tables == 0:
            return
        if application != APPLICATION:
            raise ParameterError(f"{self} is a database, but not a store of spinodal")
        if schema != SCHEMA:
            raise ParameterError(
                f"{self} has format {schema}, this version of spinodal reads and writes {SCHEMA}; "
                "use the version that made it, or another store"
            )

    def _log_ahead(self) -> None:
        """Write-ahead log; the switch does not wait by itself where others open the file too."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                self._base.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > end:
                    raise
                time.sleep(0.01)

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "")
            advice = next((v for k, v in _ADVICE.items() if code.startswith(k)), "")
            why = f"{advice} ({error})" if advice else str(error)
            raise ParameterError(f"{self}: {why}") from error

    def __contains__(self, key: Key) -> bool:
        """Whether the task has finished; failed tasks have, too."""
        return self.get(key) is not None

    def get(self, key: Key) -> Outcome | None:
        """The outcome under a key, if there is one."""
        columns = ", ".join(f.name for f in fields(Outcome))
        with self._guarded():
            row = self._base.execute(
                f"SELECT {columns} FROM results WHERE model = ? AND branch = ? AND accuracy = ? "
                "AND version = ? AND point = ?",
                (key.model, key.branch, key.accuracy, key.version, key.point),
            ).fetchone()
        return None if row is None else Outcome(*row)

    def put(self, key: Key, outcome: Outcome) -> bool:
        """Write an outcome, in a transaction of its own.

        Returns
        -------
        bool
            False where a result was there already (from another process): the first one stays. Only
            a failure is replaced.
        """
        row = {**vars(key), **vars(outcome)}
        update = ", ".join(f"{c} = excluded.{c}" for c in (*vars(outcome), "finished"))
        with self._guarded():
            cursor = self._base.execute(
                f"INSERT INTO results ({', '.join(row)}, finished) "
                f"VALUES ({', '.join(f':{c}' for c in row)}, datetime('now')) "
                "ON CONFLICT (model, branch, accuracy, version, point) "
                f"DO UPDATE SET {update} WHERE results.verdict = '{FAILED}'",
                row,
            )
        return cursor.rowcount == 1

    def verdicts(self, like: Key) -> dict[str, str]:
        """Verdict of each point that is known of the model, branch, accuracy and version."""
        return {p: o.verdict for p, o in self._select(like, "verdict")}

    def outcomes(self, like: Key) -> dict[str, Outcome]:
        """Outcome of each point, as `verdicts`."""
        return dict(self._select(like, ", ".join(f.name for f in fields(Outcome))))

    def _select(self, like: Key, columns: str) -> Iterator[tuple[str, Outcome]]:
        with self._guarded():
            rows = self._base.execute(
                f"SELECT point, {columns} FROM results "
                "WHERE model = ? AND branch = ? AND accuracy = ? AND version = ?",
                (like.model, like.branch, like.accuracy, like.version),
            )
            for point, *values in rows:
                yield point, Outcome(*values)

    def __len__(self) -> int:
        """Number of results, whatever they belong to."""
        with self._guarded():
            return self._base.execute("SELECT count(*) FROM results").fetchone()[0]

    def close(self) -> None:
        self._base.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def __str__(self) -> str:
        return "store in memory" if self.path is None else f"store {self.path}"
