import { create, createFileRegistry, type DescFile, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService } from "../../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { createGrpcTransport } from "../../src/client/index.ts";
import type {
  ServerReflectionRequest,
  ServerReflectionResponseSchema,
} from "../../../gateway/src/gen/grpc/reflection/v1/reflection_pb.ts";
import { createGateway } from "../../../gateway/src/index.ts";
import {
  type ReadReflectionOptions,
  readReflection,
  type ReflectedServices,
} from "../../src/forward/read-reflection.ts";
import {
  createReflectionService,
  ServerReflection,
  ServerReflectionV1Alpha,
} from "../../../gateway/src/reflection/index.ts";
import { KitchenSink } from "../../../testing/src/gen/kitchensink/v1/kitchen_sink_pb.ts";
import { within } from "../../../testing/src/deadline.ts";
import { startScriptedServer } from "../../../testing/src/gateway/scripted-http2-server.ts";

// What is read from a server by its reflection, and what is said of one that does not tell the truth.

type Answer = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;
type Question = ServerReflectionRequest["messageRequest"];

async function readFrom(baseUrl: string, options: Partial<ReadReflectionOptions> = {}): Promise<ReflectedServices> {
  await using transport = createGrpcTransport({ baseUrl, readMaxBytes: 1_000_000 });
  return await within(readReflection(transport, { isMeant: () => true, ...options }), "the reflection");
}

/** Reads from a server with these routes. */
async function read(
  routes: (router: ConnectRouter) => void,
  options?: Partial<ReadReflectionOptions>,
): Promise<ReflectedServices> {
  const gateway = createGateway({ routes });
  try {
    const { address, port } = await gateway.listen({ host: "127.0.0.1" });
    return await readFrom(`http://${address}:${String(port)}`, options);
  } finally {
    await gateway.close();
  }
}

/** Routes of a server that answers questions in its own way. */
function answering(answer: (question: Question) => Answer | Promise<Answer>) {
  return (router: ConnectRouter): void => {
    router.service(ServerReflection, {
      async *serverReflectionInfo(requests) {
        for await (const { messageRequest } of requests) yield { messageResponse: await answer(messageRequest) };
      },
    });
  };
}

function listing(...names: readonly string[]): Answer {
  return { case: "listServicesResponse", value: { service: names.map((name) => ({ name })) } };
}

function sending(...files: readonly (MessageInitShape<typeof FileDescriptorProtoSchema> | Uint8Array)[]): Answer {
  const fileDescriptorProto = files.map((file) =>
    file instanceof Uint8Array ? file : toBinary(FileDescriptorProtoSchema, create(FileDescriptorProtoSchema, file)),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

const notKnown: Answer = { case: "errorResponse", value: { errorCode: 5, errorMessage: "not\nknown" } };

/** A server with a service a.A, whose file imports others. */
function importing(dependency: readonly string[], others: (name: string) => Answer = () => notKnown) {
  return answering((question) => {
    if (question.case === "listServices") return listing("a.A");
    if (question.case === "fileByFilename") return others(question.value);
    return sending({ name: "a.proto", package: "a", service: [{ name: "A" }], dependency: [...dependency] });
  });
}

const own = createReflectionService([GreenhouseService, KitchenSink, ServerReflection]);

function filesOf(file: DescFile, into = new Set<string>()): Set<string> {
  file.dependencies.forEach((dependency) => filesOf(dependency, into));
  return into.add(file.proto.name);
}

test.each([
  { version: "v1", service: ServerReflection },
  { version: "v1alpha alone", service: ServerReflectionV1Alpha },
])("a server with reflection $version gives the services that are meant, and their files", async ({ service }) => {
  const { services, files } = await read((router) => void router.service(service, own), {
    isMeant: (name) => !name.startsWith("grpc."),
  });
  expect(services).toEqual([GreenhouseService.typeName, KitchenSink.typeName]);
  const names = files.file.map(({ name }) => name);
  expect(new Set(names)).toEqual(filesOf(GreenhouseService.file, filesOf(KitchenSink.file)));
  // Each after what it imports, as registries want them.
  expect(createFileRegistry(files).getService(KitchenSink.typeName)?.methods.length).toBe(KitchenSink.methods.length);
});

test("a server that sends one file at a time is asked until nothing is missing", async () => {
  // Each imports the next two: there are more ways through them than could ever be gone.
  const answer = (name: string): Answer => {
    const at = Number.parseInt(name, 10);
    const dependency = [at + 1, at + 2].filter((next) => next <= 120).map((next) => `${next}.proto`);
    return sending({ name, dependency });
  };
  const { files } = await read(importing(["1.proto"], answer));
  expect(files.file.length).toBe(121);
  expect(() => createFileRegistry(files)).not.toThrow();
});

test("files that everybody has need not come from the server", async () => {
  const common = ["google/api/annotations.proto", "google/api/httpbody.proto", "google/protobuf/field_mask.proto"];
  const { files } = await read(importing(common));
  expect(files.file.map(({ name }) => name)).toEqual([
    "google/api/http.proto",
    "google/protobuf/descriptor.proto",
    "google/api/annotations.proto",
    "google/protobuf/any.proto",
    "google/api/httpbody.proto",
    "google/protobuf/field_mask.proto",
    "a.proto",
  ]);
});

test.each([
  { name: "lacks it", answer: notKnown },
  { name: "sends another one instead", answer: sending({ name: "c.proto" }) },
])("a file that another imports is left out if the server $name", async ({ answer }) => {
  const { services, files } = await read(importing(["b.proto"], () => answer));
  expect(services).toEqual(["a.A"]);
  expect(files.file.map(({ name }) => name)).not.toContain("b.proto");
});

test("services that the server lists, but does not know, are left out with the reason", async () => {
  const { services, omitted } = await read(
    answering((question) => {
      if (question.case === "listServices") return listing("a.A", "a.B", "a.C");
      if (question.value === "a.B") return notKnown;
      return sending({ name: "a.proto", package: "a", service: [{ name: "A" }] });
    }),
  );
  expect(services).toEqual(["a.A"]);
  expect([...omitted]).toEqual([
    ["a.B", "its reflection does not tell a.B: not known"],
    ["a.C", "its reflection lists a.C, which no file of it declares"],
  ]);
});

test("the fields of a header are sent, such as a credential", async () => {
  const seen: (string | null)[] = [];
  const routes = (router: ConnectRouter): void =>
    void router.service(ServerReflection, {
      async *serverReflectionInfo(requests, { requestHeader }) {
        seen.push(requestHeader.get("authorization"));
        for await (const _ of requests) yield { messageResponse: listing() };
      },
    });
  await read(routes, { header: { authorization: "Bearer reader" } });
  expect(seen).toEqual(["Bearer reader"]);
});

const big = new Uint8Array(2_000_000);

test.each<{
  readonly name: string;
  readonly routes: (router: ConnectRouter) => void;
  readonly options?: Partial<ReadReflectionOptions>;
  readonly says: string;
}>([
  {
    name: "has none",
    routes: (router) => void router.service(GreenhouseService, {}),
    says: "it has no server reflection, neither grpc.reflection.v1 nor grpc.reflection.v1alpha",
  },
  {
    name: "refuses the caller",
    routes: answering(() => {
      throw new ConnectError("not for\nyou", Code.PermissionDenied);
    }),
    says: "its reflection fails: [permission_denied] not for you",
  },
  {
    name: "answers something else",
    routes: answering(() => sending()),
    says: "its reflection does not tell its services: an answer to something else",
  },
  {
    name: "answers nothing",
    routes: (router) =>
      void router.service(ServerReflection, {
        async *serverReflectionInfo() {
          yield { messageResponse: listing("a.A") };
        },
      }),
    says: "its reflection ends before it has answered everything",
  },
  {
    name: "never answers",
    routes: answering(() => new Promise(() => undefined)),
    options: { limits: { timeoutMs: 100, services: 1e9 } },
    says: "its reflection takes longer than 100 ms",
  },
  {
    name: "lists a service that it does not know",
    routes: answering(({ case: asks }) => (asks === "listServices" ? listing("a.A") : notKnown)),
    says: "its reflection does not tell a.A: not known",
  },
  {
    name: "lists a service that its files do not declare",
    routes: answering(({ case: asks }) =>
      asks === "listServices" ? listing("a.A") : sending({ name: "a.proto", service: [{ name: "A" }] }),
    ),
    says: "its reflection lists a.A, which no file of it declares",
  },
  {
    name: "lists too many services",
    routes: answering(() => listing(...Array.from({ length: 5_001 }, (_, index) => `a.A${index}`))),
    says: "its reflection lists more than 5000 services",
  },
  {
    name: "sends bytes that are no file",
    routes: answering(({ case: asks }) =>
      asks === "listServices" ? listing("a.A") : sending(Uint8Array.of(0x0a, 0x05, 0x61)),
    ),
    says: "its reflection sends a file that is no FileDescriptorProto",
  },
  {
    name: "sends a message of megabytes",
    routes: answering(({ case: asks }) => (asks === "listServices" ? listing("a.A") : sending(big))),
    says: "its reflection fails: [resource_exhausted] ",
  },
  {
    name: "sends too many bytes by the last of small messages",
    routes: importing(["0.proto"], (name) => {
      const at = Number.parseInt(name, 10);
      return sending({ name, dependency: at < 19 ? [`${at + 1}.proto`] : [], syntax: "x".repeat(990) });
    }),
    options: { limits: { bytes: 20_000 } },
    says: "its files have more than 20000 bytes",
  },
  {
    name: "imports one file more than it may have",
    routes: importing(["0.proto"], (name) => {
      const at = Number.parseInt(name, 10);
      return sending({ name, dependency: at < 299 ? [`${at + 1}.proto`] : [] });
    }),
    options: { limits: { files: 300 } },
    says: "it has more than 300 files",
  },
  {
    name: "nests imports too deep",
    routes: importing(["0.proto"], (name) => {
      const at = Number.parseInt(name, 10);
      return sending({ name, dependency: at < 250 ? [`${at + 1}.proto`] : [] });
    }),
    says: "imports are nested more than 200 levels deep, at 199.proto",
  },
  {
    name: "has files that import each other",
    routes: importing(["b.proto"], (name) =>
      sending({ name, dependency: [name === "b.proto" ? "c.proto" : "b.proto"] }),
    ),
    says: "import cycle: b.proto -> c.proto -> b.proto",
  },
  {
    name: "has two files of one name",
    routes: importing(["b.proto"], (name) => sending({ name }, { name, package: "other" })),
    says: "its reflection has two different files b.proto",
  },
  {
    name: "puts much text and lines into its error",
    routes: answering(() => ({
      case: "errorResponse",
      value: { errorCode: 7, errorMessage: "\u001b[31m\n".repeat(99) },
    })),
    says: `its services: ${" [31m".repeat(40)}`.slice(0, 200),
  },
])("a server whose reflection $name is named as such", async ({ routes, options, says }) => {
  const error: unknown = await read(routes, options).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: expect.stringContaining(says) });
  // The error of the call, if that has failed.
  expect(Reflect.get(Object(error), "cause") instanceof ConnectError).toBe(/fails|takes longer/.test(says));
});

test("a server that cannot be reached, or is none of gRPC, is named as such", async () => {
  await expect(readFrom("http://127.0.0.1:1")).rejects.toThrow("its reflection fails: [unavailable] cannot connect to");
  await using server = await startScriptedServer({ opening: Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n") });
  await expect(readFrom(server.baseUrl)).rejects.toThrow("its reflection fails: [unavailable] ");
});

test("whoever gives up is no longer kept waiting", async () => {
  const giveUp = new AbortController();
  const routes = answering(() => {
    giveUp.abort();
    return new Promise(() => undefined);
  });
  await expect(read(routes, { signal: giveUp.signal })).rejects.toThrow("its reflection fails: [canceled]");
});
