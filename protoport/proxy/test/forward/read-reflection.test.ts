import { create, createFileRegistry, type DescFile, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { GreenhouseService, KitchenSink, startScriptedServer } from "@protoport/testing/proxy";
import { createGrpcTransport } from "../../src/client/index.ts";
// oxfmt-ignore
import type { ServerReflectionRequest, ServerReflectionResponseSchema
} from "../../../gateway/src/protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { createGateway } from "../../../gateway/src/index.ts";
import type { ReadReflectionOptions, ReflectedServices } from "../../src/forward/read-reflection.ts";
import { readReflection } from "../../src/forward/read-reflection.ts";
// oxfmt-ignore
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha
} from "../../../gateway/src/reflection/index.ts";
import { within } from "@protoport/testing/process";

type ReflectionResponse = NonNullable<MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"]>;
type ReflectionRequest = ServerReflectionRequest["messageRequest"];

async function readFrom(baseUrl: string, options: Partial<ReadReflectionOptions> = {}): Promise<ReflectedServices> {
  await using transport = createGrpcTransport({ baseUrl, readMaxBytes: 1_000_000 });
  const { signal } = new AbortController();
  return await within(readReflection(transport, { isSelected: () => true, signal, ...options }), "the reflection");
}

type Routes = (router: ConnectRouter) => void;

async function read(routes: Routes, options?: Partial<ReadReflectionOptions>): Promise<ReflectedServices> {
  const gateway = createGateway({ routes });
  try {
    const { address, port } = await gateway.listen({ host: "127.0.0.1" });
    return await readFrom(`http://${address}:${String(port)}`, options);
  } finally {
    await gateway.close();
  }
}

function responding(respond: (request: ReflectionRequest) => ReflectionResponse | Promise<ReflectionResponse>) {
  return (router: ConnectRouter): void =>
    void router.service(ServerReflection, {
      async *serverReflectionInfo(requests) {
        for await (const { messageRequest } of requests) yield { messageResponse: await respond(messageRequest) };
      },
    });
}

function listing(...names: readonly string[]): ReflectionResponse {
  return { case: "listServicesResponse", value: { service: names.map((name) => ({ name })) } };
}

function sending(
  ...files: readonly (MessageInitShape<typeof FileDescriptorProtoSchema> | Uint8Array)[]
): ReflectionResponse {
  const fileDescriptorProto = files.map((file) =>
    file instanceof Uint8Array ? file : toBinary(FileDescriptorProtoSchema, create(FileDescriptorProtoSchema, file)),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

const notKnown: ReflectionResponse = { case: "errorResponse", value: { errorCode: 5, errorMessage: "not\nknown" } };

const importing = (dependency: readonly string[], others: (name: string) => ReflectionResponse = () => notKnown) =>
  responding((request) => {
    if (request.case === "listServices") return listing("a.A");
    if (request.case === "fileByFilename") return others(request.value);
    return sending({ name: "a.proto", package: "a", service: [{ name: "A" }], dependency: [...dependency] });
  });

const reflection = createReflectionService([GreenhouseService, KitchenSink, ServerReflection]);

function filesOf(file: DescFile, into = new Set<string>()): Set<string> {
  file.dependencies.forEach((dependency) => filesOf(dependency, into));
  return into.add(file.proto.name);
}

test.each([
  { version: "v1", service: ServerReflection },
  { version: "only v1alpha", service: ServerReflectionV1Alpha },
])("readReflection with $version returns the selected services and their files", async ({ service }) => {
  const { services, files } = await read((router) => void router.service(service, reflection), {
    isSelected: (name) => !name.startsWith("grpc."),
  });
  expect(services).toEqual([GreenhouseService.typeName, KitchenSink.typeName]);
  const names = files.file.map(({ name }) => name);
  expect(new Set(names)).toEqual(filesOf(GreenhouseService.file, filesOf(KitchenSink.file)));
  // Each file comes after its imports, as registries require.
  expect(createFileRegistry(files).getService(KitchenSink.typeName)?.methods.length).toBe(KitchenSink.methods.length);
});

test("imported files are requested until none is missing", async () => {
  // Each file imports the next two, so the number of import paths is exponential.
  const respond = (name: string): ReflectionResponse => {
    const at = Number.parseInt(name, 10);
    return sending({ name, dependency: [at + 1, at + 2].filter((next) => next <= 40).map((next) => `${next}.proto`) });
  };
  const { files } = await read(importing(["1.proto"], respond));
  expect(files.file.length).toBe(41);
  expect(() => createFileRegistry(files)).not.toThrow();
});

test("a file that the server first sent as a placeholder is requested", async () => {
  const file = { name: "b.proto", package: "b", messageType: [{ name: "B" }] };
  const main = { name: "a.proto", package: "a", service: [{ name: "A" }], dependency: ["b.proto"] };
  const respond = responding(({ case: kind }) => {
    if (kind === "listServices") return listing("a.A");
    return kind === "fileByFilename" ? sending(file) : sending({ name: "b.proto", syntax: "<unknown:0>" }, main);
  });
  const { files } = await read(respond);
  const sizes = files.file.map(({ name, messageType }) => `${name}: ${messageType.length}`);
  expect(sizes).toEqual(["b.proto: 1", "a.proto: 0"]);
});

test("well-known files that the server does not send are added", async () => {
  const common = ["google/api/annotations.proto", "google/api/httpbody.proto", "google/protobuf/field_mask.proto"];
  const { files } = await read(importing(common));
  const ofAnnotations = ["google/api/http.proto", "google/protobuf/descriptor.proto", "google/api/annotations.proto"];
  const others = ["google/protobuf/any.proto", "google/api/httpbody.proto", "google/protobuf/field_mask.proto"];
  expect(files.file.map(({ name }) => name)).toEqual([...ofAnnotations, ...others, "a.proto"]);
});

test.each([
  { name: "does not have", response: notKnown },
  { name: "replaces with another file", response: sending({ name: "c.proto" }) },
])("an imported file that the server $name is omitted", async ({ response }) => {
  const { services, files } = await read(importing(["b.proto"], () => response));
  expect(services).toEqual(["a.A"]);
  expect(files.file.map(({ name }) => name)).not.toContain("b.proto");
});

test("a service that the server lists but does not describe is omitted", async () => {
  const respond = responding((request) => {
    if (request.case === "listServices") return listing("a.A", "a.B", "a.C");
    if (request.value === "a.B") return notKnown;
    return sending({ name: "a.proto", package: "a", service: [{ name: "A" }] });
  });
  const { services, omitted } = await read(respond);
  expect(services).toEqual(["a.A"]);
  expect([...omitted]).toEqual([
    ["a.B", "server reflection does not describe a.B: not known"],
    ["a.C", "server reflection lists a.C, but none of its files declares it"],
  ]);
});

test("readReflection names the listed services, except grpc.*, if no service is selected", async () => {
  const routes = responding(() => listing("a.A", "grpc.health.v1.Health", "b.B"));
  const { omitted, ...rest } = await read(routes, { isSelected: (name) => name === "b.C" });
  expect([...omitted.values()]).toEqual(["a.A is not selected", "b.B is not selected"]);
  expect(rest).toMatchObject({ services: [], files: { file: [] } });
});

test("readReflection sends the given header fields, such as a credential", async () => {
  const credentials: (string | null)[] = [];
  const routes = (router: ConnectRouter): void =>
    void router.service(ServerReflection, {
      async *serverReflectionInfo(requests, { requestHeader }) {
        credentials.push(requestHeader.get("authorization"));
        for await (const _ of requests) yield { messageResponse: listing() };
      },
    });
  await read(routes, { header: { authorization: "Bearer reader" } });
  expect(credentials).toEqual(["Bearer reader"]);
});

const big = new Uint8Array(2_000_000);

test.each<[name: string, routes: Routes, problem: string, options?: Partial<ReadReflectionOptions>]>(
  // oxfmt-ignore
  [
    ["does not implement reflection", (router) => void router.service(GreenhouseService, {}),
      "server reflection is not supported, neither grpc.reflection.v1 nor grpc.reflection.v1alpha"],
    ["rejects the caller's credentials", responding(() => {
        throw new ConnectError("not for\nyou", Code.PermissionDenied);
      }), "server reflection failed: [permission_denied] not for you"],
    ["responds with another content type", responding(() => sending()),
      "server reflection does not describe the services: the response is of another type"],
    ["ends before all responses", (router) => void router.service(ServerReflection, { async *serverReflectionInfo() {
        yield { messageResponse: listing("a.A") };
      } }), "server reflection ended before responding to all requests"],
    ["lists a service that it does not describe",
      responding(({ case: kind }) => (kind === "listServices" ? listing("a.A") : notKnown)),
      "server reflection does not describe a.A: not known"],
    ["lists a service that its files do not declare", responding(({ case: kind }) =>
        kind === "listServices" ? listing("a.A") : sending({ name: "a.proto", service: [{ name: "A" }] }),
      ), "server reflection lists a.A, but none of its files declares it"],
    ["lists too many services",
      responding(() => listing(...Array.from({ length: 5_001 }, (_, index) => `a.A${index}`))),
      "server reflection lists more than 5000 services"],
    ["sends bytes that are not a file", responding(({ case: kind }) =>
        kind === "listServices" ? listing("a.A") : sending(Uint8Array.of(0x0a, 0x05, 0x61)),
      ), "server reflection returns a file that is not a FileDescriptorProto"],
    ["sends a message over the size limit",
      responding(({ case: kind }) => (kind === "listServices" ? listing("a.A") : sending(big))),
      "server reflection failed: [resource_exhausted] "],
    ["exceeds the total size with small messages", importing(["0.proto"], (name) => {
        const at = Number.parseInt(name, 10);
        return sending({ name, dependency: at < 19 ? [`${at + 1}.proto`] : [], package: "x".repeat(990) });
      }), "the files of server reflection are larger than 20000 bytes", { limits: { bytes: 20_000 } }],
    ["sends one file more than the limit", importing(["0.proto"], (name) => {
        const at = Number.parseInt(name, 10);
        return sending({ name, dependency: at < 29 ? [`${at + 1}.proto`] : [] });
      }), "server reflection returns more than 30 files", { limits: { files: 30 } }],
    ["imports more unknown files than the limit",
      importing(Array.from({ length: 31 }, (_, at) => `${at}.proto`), () => notKnown),
      "server reflection returns more than 30 files", { limits: { files: 30 } }],
    ["sends imports that are nested too deeply", importing(["0.proto"], (name) => {
        const at = Number.parseInt(name, 10);
        return sending({ name, dependency: at < 250 ? [`${at + 1}.proto`] : [] });
      }), "imports are nested more than 200 levels deep, at 199.proto"],
    ["sends files that import each other",
      importing(["b.proto"], (name) => sending({ name, dependency: [name === "b.proto" ? "c.proto" : "b.proto"] })),
      "import cycle: b.proto -> c.proto -> b.proto"],
    ["sends two different files with one name",
      importing(["b.proto"], (name) => sending({ name }, { name, package: "other" })),
      "server reflection returns two different files named b.proto"],
    ["sends an error with control characters and 99 lines",
      responding(() => ({ case: "errorResponse", value: { errorCode: 7, errorMessage: "\u001b[31m\n".repeat(99) } })),
      `the services: ${" [31m".repeat(40)}`.slice(0, 200)],
  ],
)("a server that %s is rejected by readReflection", async (_name, routes, problem, options) => {
  const error: unknown = await read(routes, options).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: expect.stringContaining(problem) });
  // If the call failed, its error is the cause.
  expect(Reflect.get(Object(error), "cause") instanceof ConnectError).toBe(problem.includes("failed"));
});

test("readReflection reports an unreachable server and a server without HTTP/2", async () => {
  const unreachable = "server reflection failed: [unavailable] cannot connect to";
  await expect(readFrom("http://127.0.0.1:1")).rejects.toThrow(unreachable);
  await using server = await startScriptedServer({ opening: Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n") });
  await expect(readFrom(server.baseUrl)).rejects.toThrow("server reflection failed: [unavailable] ");
});

test("readReflection stops when its signal is aborted", async () => {
  const controller = new AbortController();
  const routes = responding(() => {
    controller.abort();
    return new Promise(() => undefined);
  });
  await expect(read(routes, { signal: controller.signal })).rejects.toThrow("server reflection failed: [canceled]");
});
