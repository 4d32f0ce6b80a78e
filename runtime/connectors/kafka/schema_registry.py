"""Messages with schemas in a Confluent schema registry, as Avro or JSON.

Such a message begins with a zero byte and the id of its schema in four bytes, followed by the content.
confluent-kafka's registry client fetches the schemas, with its settings for logins and certificates. fastavro reads and
writes Avro.
"""

from __future__ import annotations

import json
import struct
from abc import abstractmethod
from io import BytesIO
from typing import TYPE_CHECKING, Any

from opchain.runtime.connectors.kafka.client import KafkaConnectorError
from opchain.runtime.errors import imported, short_repr
from opchain.runtime.types.row import Row
from opchain.runtime.types.serialization import DeserializationSchema, SerializationSchema

if TYPE_CHECKING:
    from collections.abc import Mapping

_HEADER = struct.Struct(">bI")
_EXTRA = "schema-registry"
_UNKNOWN = 404
_REFERS = "a JSON schema that refers to other schemas can't be validated: leave out validate=True"

AUTO_REGISTER = "auto.register.schemas"


class _Registry:
    """A client of a schema registry. It is picklable, without its connection."""

    def __init__(self, url: str, properties: Mapping[str, Any] | None) -> None:
        if not isinstance(url, str) or not url.startswith(("http://", "https://")):
            raise ValueError(
                f"the URL of a schema registry is {url!r}; it takes one that begins with http:// or https://"
            )
        self.url = url
        self.properties = dict(properties or {})
        self._client: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Omits the connection."""
        return {**self.__dict__, "_client": None}

    def schema(self, schema_id: int) -> Any:
        """The schema with an id.

        Raises:
            ValueError: The registry has no such schema.
            KafkaConnectorError: The registry cannot be reached, or refuses the request.
        """
        return self._response(f"schema {schema_id}", lambda client: client.get_schema(schema_id))

    def version(self, subject: str, version: int) -> Any:
        """The schema of a version of a subject."""
        what = f"version {version} of {subject}"
        return self._response(what, lambda client: client.get_version(subject, version)).schema

    def id_of(self, subject: str, schema: str, kind: str, *, registers: bool) -> int:
        """The id of a schema. A new schema is registered, if this is allowed."""
        module = imported("confluent_kafka.schema_registry", _EXTRA, "A schema registry")
        described = module.Schema(schema, kind)
        if registers:
            what = f"register the schema of {subject}"
            return int(
                self._response(what, lambda client: client.register_schema(subject, described))
            )
        what = f"the schema of {subject}"
        found = self._response(what, lambda client: client.lookup_schema(subject, described))
        return int(found.schema_id)

    def _response(self, what: str, request: Any) -> Any:
        module = imported("confluent_kafka.schema_registry", _EXTRA, "A schema registry")
        try:
            if self._client is None:
                self._client = module.SchemaRegistryClient({"url": self.url, **self.properties})
            return request(self._client)
        except Exception as error:
            # The client also raises errors of other libraries, and does not document which.
            if isinstance(error, module.SchemaRegistryError) and error.http_status_code == _UNKNOWN:
                raise ValueError(
                    f"the schema registry at {self.url} does not have {what}: {error.error_message}"
                ) from error
            raise KafkaConnectorError(
                f"the schema registry at {self.url} can't be asked for {what}: {error}. Check its URL, that it runs, "
                "and its properties, such as basic.auth.user.info"
            ) from error


class _FromRegistry(DeserializationSchema[Any]):
    """The base class of both deserializers."""

    def __init__(self, url: str, properties: Mapping[str, Any] | None) -> None:
        self._registry = _Registry(url, properties)
        self._readers: dict[int, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Omits schemas that were fetched from the registry."""
        return {**self.__dict__, "_readers": {}}

    def deserialize(self, message: bytes) -> Any:
        """Returns the record of a message.

        Raises:
            ValueError: The message is malformed.
            KafkaConnectorError: The registry cannot be reached, or refuses the request.
        """
        if len(message) < _HEADER.size or message[0]:
            raise ValueError(
                f"{short_repr(message)} does not begin with a zero byte and the id of a schema: it was not written "
                "with a schema registry"
            )
        schema_id = _HEADER.unpack_from(message)[1]
        reader = self._readers.get(schema_id)
        if reader is None:
            reader = self._readers[schema_id] = self._reader(self._registry.schema(schema_id))
        return reader(message)

    @abstractmethod
    def _reader(self, schema: Any) -> Any:
        """The function that reads messages with this schema."""

    def _require(self, schema: Any, kind: str) -> None:
        if schema.schema_type != kind:
            raise ValueError(f"its schema is of the type {schema.schema_type}; {kind} was expected")


class ConfluentRegistryAvroDeserializationSchema(_FromRegistry):
    """Reads Avro messages with schemas in a schema registry. Records are dicts.

    Flink: ConfluentRegistryAvroDeserializationSchema.forGeneric (Java only).

    Args:
        url: The URL of the registry. Several URLs, separated by commas, are tried in turn.
        reader_schema: The Avro schema to convert records to. Default: the schema of the writer.
        properties: Settings of confluent-kafka's SchemaRegistryClient: `basic.auth.user.info`, `ssl.ca.location`, ...
    """

    def __init__(
        self,
        url: str,
        reader_schema: str | None = None,
        properties: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(url, properties)
        self._reader_schema = reader_schema

    def _reader(self, schema: Any) -> Any:
        self._require(schema, "AVRO")
        avro = imported("fastavro", _EXTRA, "Avro with a schema registry")
        written = avro.parse_schema(json.loads(schema.schema_str), self._named(schema, {}))
        wanted = None
        if self._reader_schema is not None:
            wanted = avro.parse_schema(json.loads(self._reader_schema))
        read = avro.schemaless_reader

        def reader(message: bytes) -> Any:
            stream = BytesIO(message)
            stream.seek(_HEADER.size)
            return read(stream, written, wanted)

        return reader

    def _named(self, schema: Any, named: dict[str, Any]) -> dict[str, Any]:
        """The schemas that a schema refers to, by name."""
        avro = imported("fastavro", _EXTRA, "Avro with a schema registry")
        for reference in schema.references or ():
            found = self._registry.version(reference.subject, reference.version)
            self._named(found, named)
            avro.parse_schema(json.loads(found.schema_str), named)
        return named


class ConfluentRegistryJsonDeserializationSchema(_FromRegistry):
    """Reads JSON messages with schemas in a schema registry. Records are the results of `json.loads`.

    Not in Flink. Java's KafkaJsonSchemaDeserializer does the same.

    Args:
        url: The URL of the registry. Several URLs, separated by commas, are tried in turn.
        validate: Whether a message that does not match its schema is malformed. Validation is much slower, and needs
            the library jsonschema.
        properties: Settings of confluent-kafka's SchemaRegistryClient: `basic.auth.user.info`, `ssl.ca.location`, ...
    """

    def __init__(
        self, url: str, *, validate: bool = False, properties: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(url, properties)
        self._validate = validate

    def _reader(self, schema: Any) -> Any:
        self._require(schema, "JSON")
        if not self._validate:
            return lambda message: json.loads(message[_HEADER.size :])
        if schema.references:
            raise KafkaConnectorError(_REFERS)
        library = imported("jsonschema", _EXTRA, "validate=True")
        unresolvable = imported("referencing", _EXTRA, "validate=True").exceptions.Unresolvable
        known = imported("jsonschema_specifications", _EXTRA, "validate=True").REGISTRY
        described = json.loads(schema.schema_str)
        # By default, jsonschema fetches the URLs of references, such as file:///etc/passwd.
        check = library.validators.validator_for(described)(described, registry=known).validate

        def reader(message: bytes) -> Any:
            value = json.loads(message[_HEADER.size :])
            try:
                check(value)
            except unresolvable as error:
                raise KafkaConnectorError(f"{_REFERS} ({error})") from error
            return value

        return reader


class _ToRegistry(SerializationSchema[Any]):
    """The base class of both serializers."""

    kind: str

    def __init__(
        self, subject: str, schema: str, url: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        json.loads(schema)  # fails at once if it is not JSON
        self._subject = subject
        self._schema = schema
        others = {key: value for key, value in (properties or {}).items() if key != AUTO_REGISTER}
        self._registers = str((properties or {}).get(AUTO_REGISTER, True)).lower() != "false"
        self._registry = _Registry(url, others)
        self._header = b""

    def open(self) -> None:
        """Requests the id of the schema from the registry."""
        schema_id = self._registry.id_of(
            self._subject, self._schema, self.kind, registers=self._registers
        )
        self._header = _HEADER.pack(0, schema_id)


class ConfluentRegistryAvroSerializationSchema(_ToRegistry):
    """Writes dicts, or rows with names, as Avro with a schema in a schema registry.

    Flink: ConfluentRegistryAvroSerializationSchema.forGeneric (Java only).

    Args:
        subject: The registry's name of the schema: "orders-value" for the values of the topic orders.
        schema: The Avro schema.
        url: The URL of the registry.
        properties: Settings of confluent-kafka's SchemaRegistryClient, and `auto.register.schemas`: "false" refuses a
            schema that is not registered yet.
    """

    kind = "AVRO"

    def __init__(
        self, subject: str, schema: str, url: str, properties: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(subject, schema, url, properties)
        self._parsed: Any = None

    def serialize(self, element: Any) -> bytes:
        """Returns the message for a record."""
        avro = imported("fastavro", _EXTRA, "Avro with a schema registry")
        if self._parsed is None:
            self._parsed = avro.parse_schema(json.loads(self._schema))
        stream = BytesIO()
        stream.write(self._header)
        avro.schemaless_writer(stream, self._parsed, _plain(element))
        return stream.getvalue()


class ConfluentRegistryJsonSerializationSchema(_ToRegistry):
    """Writes JSON values (as for `json.dumps`), or rows with names, as JSON with a schema in a schema registry.

    Records are not validated against the schema. Not in Flink.

    Args:
        subject: The registry's name of the schema: "orders-value" for the values of the topic orders.
        schema: The JSON schema.
        url: The URL of the registry.
        properties: See ConfluentRegistryAvroSerializationSchema.
    """

    kind = "JSON"

    def serialize(self, element: Any) -> bytes:
        """Returns the message for a record."""
        return self._header + json.dumps(_plain(element)).encode()


def _plain(record: Any) -> Any:
    return record.as_dict(recursive=True) if isinstance(record, Row) else record
