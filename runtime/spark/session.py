"""Finds or makes the SparkSession that a job runs on.

A session that is there is used as it is. One of our own takes everything that spark-submit, PYSPARK_SUBMIT_ARGS
and spark-defaults.conf say; what we add comes first on the command line, so that any of them overrides it.
"""

from __future__ import annotations

import logging
import os
import shlex
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.errors import SparkUnavailableError
from opchain.runtime.spark.requirements import WITHOUT_SPARK, require_java, require_pyspark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_LOG = logging.getLogger("opchain.spark")

_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_SHELL = "pyspark-shell"


def active_or_new_session() -> SparkSession:
    """The active session as it is; else a new one, by Spark's own configuration or on `local[*]`.

    Raises:
        SparkUnavailableError: pyspark or Java is missing or too old, the cluster does not answer, or the
            session is one of Spark Connect, which has no RDDs.
    """
    require_pyspark()
    from pyspark import SparkContext  # noqa: PLC0415 - it may be missing
    from pyspark.sql import SparkSession  # noqa: PLC0415
    from pyspark.sql.utils import is_remote  # noqa: PLC0415

    if is_remote():
        raise SparkUnavailableError(
            "the session is a Spark Connect session, which has no RDDs: use a classic session (a "
            f"master instead of a remote), {WITHOUT_SPARK}"
        )
    session = SparkSession.getActiveSession()
    if session is None and SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no public question
        session = SparkSession.builder.getOrCreate()
    if session is None:
        _LOG.info("starting Spark")
        session = _new_session()
    if _LOG.isEnabledFor(logging.INFO):
        context = session.sparkContext
        page = context.uiWebUrl or "without a web page"
        _LOG.info("Spark is '%s' on %s, %s", context.appName, context.master, page)
    return session


def is_local(context: SparkContext) -> bool:
    """Whether tasks run on this machine, in the driver's JVM."""
    return _names_local_master(str(context.master))


def _new_session() -> SparkSession:
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415 - comes with pyspark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    keep_py4j_quiet()
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted and SparkContext._gateway is None:  # noqa: SLF001 - no JVM yet
        require_java()
    try:
        with _environment({} if is_submitted else launch_environment(os.environ)):
            SparkContext._ensure_initialized()  # noqa: SLF001 - only the JVM knows all settings
        interpreter = {}
        if _names_local_master(SparkConf().get("spark.master") or ""):
            interpreter = {"PYSPARK_PYTHON": os.environ.get("PYSPARK_PYTHON", sys.executable)}
        with _environment(interpreter):
            return SparkSession.builder.getOrCreate()
    except (Py4JError, PySparkException, ConnectionError) as error:
        java_error = getattr(error, "java_exception", None)
        if isinstance(error, (Py4JNetworkError, ConnectionError)):
            reason = "its JVM ended while it started"
        else:
            reason = str(error if java_error is None else java_error.toString()).splitlines()[0]
        raise SparkUnavailableError(
            f"cannot create a Spark session ({reason}): see Spark's own messages above, "
            f"{WITHOUT_SPARK}"
        ) from error


def keep_py4j_quiet() -> None:
    """Lets py4j log warnings only, unless its logger was configured.

    To a program that logs on INFO it tells each time that a connection to the JVM ends.
    """
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def launch_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables for starting a JVM that keeps quiet where the user has not said otherwise.

    Spark warns of host names, native libraries and its own defaults at each start; what a program prints
    should stand alone on the console. Errors of tasks are raised in the driver, and not logged besides.
    """
    submit_arguments = environment.get("PYSPARK_SUBMIT_ARGS", _SHELL)
    defaults = _configured_defaults(environment)
    said = f"{submit_arguments}\n{defaults}"
    ours = ["--name", "opchain"]
    if "spark.ui.showConsoleProgress" not in said:
        ours += ["--conf", f"spark.ui.showConsoleProgress={str(sys.stderr.isatty()).lower()}"]
    is_configured = any(
        word in said for word in ("log4j", "extraJavaOptions", "--driver-java-options")
    )
    if not is_configured and _LOG_CONFIGURATION.is_file():  # it is none inside a zip
        log4j = f"-Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}"
        ours += ["--conf", f"spark.driver.extraJavaOptions={log4j}"]
    variables = {"PYSPARK_SUBMIT_ARGS": f"{shlex.join(ours)} {submit_arguments}"}
    if "--master" not in said and "spark.master" not in said:
        # Else Spark warns that the host's name means the loopback address, where it does.
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


def _configured_defaults(environment: Mapping[str, str]) -> str:
    """The text of spark-defaults.conf, and the name of a log4j configuration beside it."""
    folder = environment.get("SPARK_CONF_DIR")
    if not folder:
        home = environment.get("SPARK_HOME")
        folder = str(Path(home, "conf")) if home else None
    if folder is None:
        return ""
    files = [Path(folder, name) for name in ("log4j2.properties", "spark-defaults.conf")]
    texts = [
        file.name if file.suffix == ".properties" else file.read_text("utf-8", "replace")
        for file in files
        if file.is_file()
    ]
    return "\n".join(
        line for text in texts for line in text.splitlines() if not line.startswith("#")
    )


def _names_local_master(master: str) -> bool:
    return master == "local" or master.startswith("local[")


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Within the block the process has these variables too."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
