"""Finds Spark, and finds or creates the SparkSession that a job runs on.

An active session is used unchanged. A new session takes the settings of spark-submit, PYSPARK_SUBMIT_ARGS and
spark-defaults.conf; opchain's settings come first on the command line, so that each of these overrides them. If Java
or pyspark is missing, the error names it before Spark's start script fails.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opchain.runtime.errors import SparkUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark import SparkContext
    from pyspark.sql import SparkSession


OLDEST_JAVA = 17
"""The oldest Java that Spark 4 supports."""

WITHOUT_SPARK = "or run in this process, without Spark: `opchain run --local FILE`, or set execution.target to local"

_VERSION = re.compile(r'(?:version|JAVA_VERSION)[ =]"(\d+)(?:\.(\d+))?')


def spark_home(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder that contains Spark's `bin`: SPARK_HOME, or the folder of the installed pyspark.

    Raises:
        SparkUnavailableError: There is neither, or SPARK_HOME is wrong.
    """
    named = environment.get("SPARK_HOME")
    if named:
        if not Path(named, "bin").is_dir():
            raise SparkUnavailableError(
                f"SPARK_HOME is '{named}', but it has no folder bin: set it to Spark's folder, "
                "or unset it to use the installed pyspark"
            )
        return Path(named)
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise SparkUnavailableError(
            "pyspark is not installed, and SPARK_HOME is not set: pip install 'opchain[spark]'"
        )
    return Path(next(iter(spec.submodule_search_locations)))


def require_pyspark() -> None:
    """Checks that pyspark is installed.

    Raises:
        SparkUnavailableError: pyspark is not installed.
    """
    if find_spec("pyspark") is None:
        raise SparkUnavailableError(
            f"pyspark is not installed: `pip install 'opchain[spark]'`, {WITHOUT_SPARK}"
        )


def require_java(environment: Mapping[str, str] = os.environ) -> None:
    """Checks that the Java that Spark's scripts would run exists, and is new enough.

    Raises:
        SparkUnavailableError: It is missing or too old.
    """
    java = _java(environment)
    version = _version_from_release(java) or _version_from_java(java)
    if version < OLDEST_JAVA:
        raise SparkUnavailableError(
            f"Java {version} at {java} is too old: Spark needs Java {OLDEST_JAVA} or newer; "
            f"install it and set JAVA_HOME to it, {WITHOUT_SPARK}"
        )


def _java(environment: Mapping[str, str]) -> Path:
    """The Java that Spark's scripts start: in JAVA_HOME, or the first one on the path."""
    home = environment.get("JAVA_HOME")
    if home:
        java = Path(home, "bin", "java")
        if os.access(java, os.X_OK) or java.with_suffix(".exe").exists():
            return java
        raise SparkUnavailableError(
            f"JAVA_HOME is '{home}', but it has no bin/java: set it to the folder of a Java "
            f"{OLDEST_JAVA} or newer, {WITHOUT_SPARK}"
        )
    found = shutil.which("java", path=environment.get("PATH"))
    if found is None:
        raise SparkUnavailableError(
            f"Spark needs Java, but none was found: install Java {OLDEST_JAVA} or newer, or set "
            f"JAVA_HOME; {WITHOUT_SPARK}"
        )
    return Path(found)


def _version_from_release(java: Path) -> int | None:
    """The version in Java's `release` file. Starting Java to ask it takes 50 ms or more."""
    try:
        return _version(java.resolve().parent.parent.joinpath("release").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None


def _version_from_java(java: Path) -> int:
    try:
        answer = subprocess.run(  # noqa: S603 - the user's own Java
            [str(java), "-version"], capture_output=True, text=True, check=False, timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkUnavailableError(
            f"Java at {java} does not start ({error}): set JAVA_HOME to a Java {OLDEST_JAVA} or "
            f"newer, "
            f"{WITHOUT_SPARK}"
        ) from error
    text = answer.stderr + answer.stdout
    version = _version(text)
    if version is None:
        said = " ".join(text.split())[:200] or f"nothing, with exit code {answer.returncode}"
        raise SparkUnavailableError(
            f"Java at {java} printed no version; it printed: {said}; set JAVA_HOME to a Java "
            f"{OLDEST_JAVA} or newer, {WITHOUT_SPARK}"
        )
    return version


def _version(text: str) -> int | None:
    """The major version: 17 for "17.0.15", and 8 for "1.8.0_392"."""
    found = _VERSION.search(text)
    if found is None:
        return None
    first, second = found.groups()
    return int(second) if first == "1" and second else int(first)


_LOG = logging.getLogger("opchain.spark")

_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")
_SHELL = "pyspark-shell"


def active_or_new_session() -> SparkSession:
    """The active session; without one, a new session by Spark's own configuration, or on `local[*]`.

    Raises:
        SparkUnavailableError: pyspark or Java is missing or too old, the cluster does not answer, or the session is a
            Spark Connect session, which has no RDDs.
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
    if session is None and SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no public method
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


def setting(context: SparkContext, name: str) -> str:
    """A setting of the context, or "". `getConf` would copy all settings, with several calls of the JVM for each."""
    value: str = context._conf.get(name, "")  # noqa: SLF001 - see above
    return value


def _new_session() -> SparkSession:
    from py4j.protocol import Py4JError, Py4JNetworkError  # noqa: PLC0415 - comes with pyspark
    from pyspark import SparkConf, SparkContext  # noqa: PLC0415
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    keep_py4j_quiet()
    is_submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    if not is_submitted and SparkContext._gateway is None:  # noqa: SLF001 - no JVM yet
        spark_home()
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
    """Makes py4j log only warnings, unless its logger was configured.

    At level INFO it logs the end of each connection to the JVM.
    """
    logger = logging.getLogger("py4j")
    if logger.level == logging.NOTSET:
        logger.setLevel(logging.WARNING)


def launch_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment variables for a JVM that logs little, unless the user has configured its logging.

    At each start Spark warns of host names, native libraries and its own defaults. This would hide the output of the
    program. Errors of tasks are raised in the driver, so they need not be logged too.
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
    if not is_configured and _LOG_CONFIGURATION.is_file():  # missing inside a zip
        log4j = f"-Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}"
        ours += ["--conf", f"spark.driver.extraJavaOptions={log4j}"]
    variables = {"PYSPARK_SUBMIT_ARGS": f"{shlex.join(ours)} {submit_arguments}"}
    if "--master" not in said and "spark.master" not in said:
        # Otherwise Spark may warn that the host name resolves to a loopback address.
        variables["SPARK_LOCAL_IP"] = environment.get("SPARK_LOCAL_IP", "127.0.0.1")
    return variables


def _configured_defaults(environment: Mapping[str, str]) -> str:
    """The text of spark-defaults.conf, and the name of the log4j configuration beside it, if there is one."""
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
    """Within the block the process also has these environment variables."""
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
