"""A real Kafka broker for the tests: one node, broker and controller in one Java process, on loopback.

`jars` fetches what is needed once (see pom.xml); `Broker` runs a broker as long as its `with` block lasts:

    with Broker() as broker:
        broker.create_topic("events", partitions=2)
        producer = broker.producer()
        ...
        records = broker.read("matches")

Each broker has its own folder, ports and cluster id, so several test processes can each have one at once.
"""

import base64
import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

POM = Path(__file__).with_name("pom.xml")
CACHE = Path(__file__).parents[3] / ".cache" / "kafka"

# One client thread's worth of everything: the tests send thousands of records, not millions.
SERVER_PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=BROKER://127.0.0.1:{port}
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=BROKER
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
num.network.threads=1
num.io.threads=2
background.threads=2
log.cleaner.enable=false
"""

LOG4J_PROPERTIES = """\
log4j.rootLogger=INFO, out
log4j.logger.kafka.server.KafkaConfig=WARN
log4j.logger.org.apache.kafka.common.config=WARN
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss,SSS} %p %c{1} %m%n
"""

# The first compiler only: the second one's work does not pay in a process that lives for seconds.
JAVA_FLAGS = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class KafkaSetUpError(RuntimeError):
    """A tool is missing, or the jars cannot be fetched, or the broker does not start."""


@dataclass(frozen=True)
class Jars:
    """The folders of jars: `connector` for Spark, `server` for the broker's process."""

    connector: Path
    server: Path

    @property
    def spark_jars(self) -> str:
        """The value of Spark's setting `spark.jars`."""
        return ",".join(map(str, sorted(self.connector.glob("*.jar"))))

    @property
    def class_path(self) -> str:
        """The server's class path; always in the same order, on which the archive of its classes relies."""
        return os.pathsep.join(map(str, sorted(self.server.glob("*.jar"))))


@dataclass(frozen=True)
class Record:
    """A record as a consumer sees it."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, str | bytes | None], ...] = ()


def jars(cache: Path = CACHE) -> Jars:
    """The jars that pom.xml lists, fetched by Maven at the first call and kept in `cache`, by the pom's hash."""
    folder = cache / hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    with _locked(cache):
        if not folder.exists():
            _fetch(folder)
    return Jars(folder / "connector", folder / "server")


def _fetch(folder: Path) -> None:
    mvn = shutil.which("mvn")
    if mvn is None:
        raise KafkaSetUpError(
            "Maven (mvn) was not found, and it fetches Kafka. On Debian and Ubuntu: apt install maven"
        )
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as unfinished:
        command = [mvn, "-q", "-B", "-f", str(POM), f"-Djars={unfinished}"]
        command += ["dependency:copy@connector", "dependency:copy-dependencies@server"]
        print(f"fetching Kafka and Spark's connector into {folder}:\n  {' '.join(command)}", file=sys.stderr)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            said = done.stdout[-3000:]
            raise KafkaSetUpError(
                f"Maven could not fetch what {POM} lists; is its repository in reach? It said:\n{said}"
            )
        os.rename(unfinished, folder)
        os.mkdir(unfinished)  # for the context manager, which removes it


@contextlib.contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """Let one process at a time change the cache: Maven's own store does not take two at once."""
    cache.mkdir(parents=True, exist_ok=True)
    (cache / ".gitignore").write_text("*\n")
    with open(cache / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Broker:
    """A broker that runs while its `with` block does.

    Parameters: `jars` to run (by default those that `jars()` gives), and the seconds that it may take to start.
    Within the block `servers` is what clients know as `bootstrap.servers`, and `pid` the process's id.
    """

    def __init__(self, jars: Jars | None = None, *, start_within: float = 60.0) -> None:
        self._jars = jars
        self._start_within = start_within
        self._java_flags: tuple[str, ...] = ()
        self._ends = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as ends:
            found = self._jars or jars()
            java = _java()
            flags = self._java_flags or _archive_flags(found, java)
            self.folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="penstock-kafka-")))
            self._start([java, *JAVA_FLAGS, *flags], found.class_path, ends)
            self._ends = ends.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ends.close()

    def _start(self, java: Sequence[str], class_path: str, ends: contextlib.ExitStack) -> None:
        """Start the process. Another process may take a free port before it does: then others are tried."""
        for attempt in range(3):
            folder = self.folder / str(attempt)
            port, cluster_id = _format(folder)
            log = folder / "log"
            with open(log, "wb") as output:
                command = [*java, f"-Dlog4j.configuration=file:{folder / 'log4j.properties'}", "-cp", class_path]
                command += ["kafka.Kafka", str(folder / "server.properties")]
                self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            ends.callback(_end, self._process)
            self.servers = f"127.0.0.1:{port}"
            self.pid = self._process.pid
            if self._answers(port, cluster_id):
                return
            said = log.read_text(errors="replace")
            code = self._process.poll()
            if code is None or "Address already in use" not in said:
                end = "\n".join(said.splitlines()[-30:])
                what = f"did not answer within {self._start_within:g} s" if code is None else f"ended with code {code}"
                raise KafkaSetUpError(f"The Kafka broker {what}. Its log ends:\n{end}")
        raise KafkaSetUpError("The Kafka broker found its ports taken, three times in a row")

    def _answers(self, port: int, cluster_id: str) -> bool:
        """Whether it takes requests in time: its socket is open, and what answers there is this broker."""
        deadline = time.monotonic() + self._start_within
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                if self.admin().list_topics(timeout=2).cluster_id == cluster_id:
                    return True
            except (OSError, KafkaException):
                pass
            time.sleep(0.02)
        return False

    def admin(self) -> AdminClient:
        """A client for administration."""
        return AdminClient({"bootstrap.servers": self.servers})

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic and wait until it is there."""
        topic = NewTopic(name, num_partitions=partitions, replication_factor=1)
        admin = self.admin()  # held by a name: a client that nobody holds drops its requests
        admin.create_topics([topic])[name].result(timeout=30)

    def producer(self, transactional_id: str | None = None) -> Producer:
        """A producer; with an id one that writes in transactions, ready for `begin_transaction`.

        A second producer with the same id ends the first one's open transaction and shuts the first one out.
        """
        settings: dict[str, str | int | float | bool] = {"bootstrap.servers": self.servers, "acks": "all"}
        if transactional_id is None:
            return Producer(settings)
        producer = Producer({**settings, "transactional.id": transactional_id})
        producer.init_transactions(30)
        return producer

    def read(self, topic: str, *, committed: bool = True, within: float = 30.0) -> list[Record]:
        """All records of a topic that a reader sees now, by partition and offset.

        A reader of what is `committed` sees no record of an aborted transaction, and none behind an open one's first.
        """
        found = self.admin().list_topics(topic, timeout=within).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": self.servers,
            "group.id": f"reader-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # a partition's end is told when a fetch at it has waited this long
            "auto.offset.reset": "error",
            "isolation.level": "read_committed" if committed else "read_uncommitted",
        }
        consumer = Consumer(settings)
        try:
            consumer.assign([TopicPartition(topic, partition, 0) for partition in found.partitions])
            return sorted(_read_to_end(consumer, len(found.partitions), within), key=lambda r: (r.partition, r.offset))
        finally:
            consumer.close()


def _read_to_end(consumer: Consumer, partitions: int, within: float) -> Iterator[Record]:
    deadline = time.monotonic() + within
    at_end: set[int] = set()
    while len(at_end) < partitions:
        if time.monotonic() > deadline:
            raise TimeoutError(f"the topic's end was not reached within {within:g} s")
        message = consumer.poll(0.1)
        if message is None:
            continue
        partition, offset, error = message.partition(), message.offset(), message.error()
        if error is not None and error.code() != KafkaError._PARTITION_EOF:
            raise KafkaException(error)
        if partition is None or offset is None:
            raise AssertionError(f"a message without a place: {message}")
        if error is not None:
            at_end.add(partition)
            continue
        headers = message.headers() or ()
        pairs = tuple(headers.items() if isinstance(headers, dict) else headers)
        yield Record(partition, offset, message.key(), message.value(), pairs)


def _format(folder: Path) -> tuple[int, str]:
    """Make a broker's folder with new ports and a new cluster id; give the port for clients, and the id.

    A formatted storage is a folder with meta.properties. Kafka's StorageTool writes the same, and a file that names
    the latest metadata version, which a broker takes anyway; but it takes a second of Java to do so.
    """
    data = folder / "data"
    data.mkdir(parents=True)
    cluster_id = _new_id()
    (data / "meta.properties").write_text(
        f"version=1\nnode.id=1\ncluster.id={cluster_id}\ndirectory.id={_new_id()}\n", encoding="ascii"
    )
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
        port, controller_port = one.getsockname()[1], other.getsockname()[1]
    properties = SERVER_PROPERTIES.format(port=port, controller_port=controller_port, data=data)
    (folder / "server.properties").write_text(properties)
    (folder / "log4j.properties").write_text(LOG4J_PROPERTIES)
    return port, cluster_id


def _new_id() -> str:
    """A random id in the form that Kafka writes them. It does not take those that begin with a dash."""
    while (new := base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return new


def _java() -> str:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME ({home})" if home else "(JAVA_HOME is not set, and it is not on the path)"
        raise KafkaSetUpError(f"Java was not found {where}. On Debian and Ubuntu: apt install default-jre-headless")
    return java


@functools.cache
def _archive_flags(jars: Jars, java: str) -> tuple[str, ...]:
    """The flag that names an archive of the broker's loaded classes, which halves the time it takes to start.

    The first call for a Java runs a broker to make the archive. A Java that cannot make one leaves an empty file.
    """
    name = hashlib.sha256(os.path.realpath(java).encode()).hexdigest()[:12]
    archive = jars.server.parent / f"classes-{name}.jsa"
    with _locked(jars.server.parent):
        if not archive.exists():
            print(
                f"running a Kafka broker once to make {archive}, which lets the next ones start fast", file=sys.stderr
            )
            unfinished = archive.with_suffix(".unfinished")
            broker = Broker(jars)
            broker._java_flags = (f"-XX:ArchiveClassesAtExit={unfinished}",)
            with broker:
                broker._process.terminate()
                broker._process.wait(timeout=60)
            unfinished.touch()
            unfinished.rename(archive)
    return (f"-XX:SharedArchiveFile={archive}",) if archive.stat().st_size else ()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process at once: its folder goes too, so there is nothing to save."""
    process.kill()
    process.wait()


def main() -> int:
    """Fetch what a broker needs, if it is not there; return 1, and say why, if that fails."""
    try:
        jars()
    except KafkaSetUpError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
