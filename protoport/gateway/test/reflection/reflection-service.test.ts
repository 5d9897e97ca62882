import { create, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, createClient, createRouterTransport, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
// oxfmt-ignore
import { type ServerReflectionRequest, ServerReflectionRequestSchema, type ServerReflectionResponse
} from "../../src/protobuf/gen/grpc/reflection/v1/reflection_pb.ts";
import { GreenhouseService } from "../../../examples/gen/greenhouse/v1/greenhouse_pb.ts";
import { Health } from "../../src/health/index.ts";
import { type BoundAddress, createGateway } from "../../src/index.ts";
import { createReflectionService, ServerReflection, ServerReflectionV1Alpha } from "../../src/reflection/index.ts";
import { serviceIn } from "../../../testing/src/gateway/file-init.ts";
import { runProgram } from "@protoport/testing/process";

type Question = ServerReflectionRequest["messageRequest"];
const host = "garden";

const gateway = createGateway({
  routes: (router) => {
    const reflection = createReflectionService([GreenhouseService, Health, ServerReflection]);
    router.service(GreenhouseService, { getReading: ({ sensor }) => ({ sensor, degreesCelsius: 21 }) });
    router.service(ServerReflection, reflection);
    router.service(ServerReflectionV1Alpha, reflection);
  },
});
let at: BoundAddress;
beforeAll(async () => {
  at = await gateway.listen({ host: "127.0.0.1" });
});
afterAll(() => gateway.close());

async function ask(
  questions: readonly Question[],
  transport: Transport = createGrpcTransport({ baseUrl: `http://${at.address}:${String(at.port)}` }),
): Promise<ServerReflectionResponse[]> {
  async function* requests(): AsyncGenerator<ServerReflectionRequest> {
    for (const messageRequest of questions) yield create(ServerReflectionRequestSchema, { host, messageRequest });
  }
  const responses: ServerReflectionResponse[] = [];
  const answers = createClient(ServerReflection, transport).serverReflectionInfo(requests());
  for await (const response of answers) responses.push(response);
  return responses;
}

async function filesOf(question: Question): Promise<string[]> {
  const [response] = await ask([question]);
  const answer = response?.messageResponse;
  if (answer?.case !== "fileDescriptorResponse") return [];
  return answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name);
}

const greenhouseFiles = [
  "greenhouse/v1/greenhouse.proto",
  "google/api/annotations.proto",
  "google/api/http.proto",
  "google/protobuf/descriptor.proto",
];

test("services whose files have one name are found with their types", async () => {
  const services = ["a.v1", "b.v1"].map((packageName) => {
    const type = `.${packageName}.Message`;
    const service = [{ name: "Service", method: [{ name: "Get", inputType: type, outputType: type }] }];
    const file = { name: "service.proto", package: packageName, messageType: [{ name: "Message" }], service };
    return serviceIn(file, `${packageName}.Service`);
  });
  const transport = createRouterTransport(({ service }) => {
    service(ServerReflection, createReflectionService(services));
  });
  const names = ["a.v1.Service", "b.v1.Service", "a.v1.Message", "b.v1.Message"];
  const questions = names.map((value): Question => ({ case: "fileContainingSymbol", value }));
  const responses = await ask(questions, transport);
  const packages = responses.map(({ messageResponse: { case: kind, value } }) =>
    kind === "fileDescriptorResponse"
      ? value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes).package)
      : kind,
  );
  expect(packages).toEqual([["a.v1"], ["b.v1"], ["a.v1"], ["b.v1"]]);
});

test("listServices returns all services", async () => {
  const [response] = await ask([{ case: "listServices", value: "*" }]);
  const names = ["greenhouse.v1.GreenhouseService", "grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection"];
  const value = { service: names.map((name) => ({ name })) };
  expect(response?.messageResponse).toMatchObject({ case: "listServicesResponse", value });
});

test.each<[name: string, question: Question, want: string[]]>(
  // oxfmt-ignore
  [
    ["a file by its name", { case: "fileByFilename", value: "greenhouse/v1/greenhouse.proto" }, greenhouseFiles],
    ["a service", { case: "fileContainingSymbol", value: "greenhouse.v1.GreenhouseService" }, greenhouseFiles],
    ["a method", { case: "fileContainingSymbol", value: "greenhouse.v1.GreenhouseService.WaterBed" }, greenhouseFiles],
    ["one of several methods", { case: "fileContainingSymbol", value: "grpc.health.v1.Health.Watch" },
      ["grpc/health/v1/health.proto"]],
    ["a message", { case: "fileContainingSymbol", value: "greenhouse.v1.WaterBedRequest" }, greenhouseFiles],
    ["a field", { case: "fileContainingSymbol", value: "greenhouse.v1.WaterBedRequest.bed" }, greenhouseFiles],
    ["an enum", { case: "fileContainingSymbol", value: "grpc.health.v1.HealthCheckResponse.ServingStatus" },
      ["grpc/health/v1/health.proto"]],
    ["a value of an enum",
      { case: "fileContainingSymbol", value: "grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING" },
      ["grpc/health/v1/health.proto"]],
    ["an extension", { case: "fileContainingSymbol", value: "google.api.http" },
      ["google/api/annotations.proto", "google/api/http.proto", "google/protobuf/descriptor.proto"]],
  ],
)("a request for %s returns its file first, then the imported files", async (_, question, want) => {
  expect(await filesOf(question)).toEqual(want);
});

test("a request by message and extension number returns the extension's file", async () => {
  const extension = { containingType: "google.protobuf.MethodOptions", extensionNumber: 72_295_728 };
  const value = { $typeName: "grpc.reflection.v1.ExtensionRequest", ...extension } as const;
  expect((await filesOf({ case: "fileContainingExtension", value }))[0]).toBe("google/api/annotations.proto");
});

test.each([
  { baseTypeName: "google.protobuf.MethodOptions", extensionNumber: [72_295_728] },
  { baseTypeName: "google.protobuf.FieldOptions", extensionNumber: [] },
])("a request for $baseTypeName returns its extension numbers", async (value) => {
  const [response] = await ask([{ case: "allExtensionNumbersOfType", value: value.baseTypeName }]);
  expect(response?.messageResponse).toMatchObject({ case: "allExtensionNumbersResponse", value });
});

const unknownMembers = [
  "greenhouse.v1.GreenhouseService.Water",
  "greenhouse.v1.WaterBedRequest.gnome",
  "grpc.health.v1.HealthCheckResponse.ServingStatus.ASLEEP",
];

test.each<[name: string, question: Question, errorCode: Code]>([
  ["an unknown file", { case: "fileByFilename", value: "garden.proto" }, Code.NotFound],
  ["an unknown symbol", { case: "fileContainingSymbol", value: "garden.v1.Gnome" }, Code.NotFound],
  ...unknownMembers.map((value): [string, Question, Code] => {
    return [`an unknown member, ${value},`, { case: "fileContainingSymbol", value }, Code.NotFound];
  }),
  ["an empty symbol", { case: "fileContainingSymbol", value: "" }, Code.NotFound],
  ["an unknown extended message", { case: "allExtensionNumbersOfType", value: "garden.v1.Gnome" }, Code.NotFound],
  ["a request without message_request", { case: undefined }, Code.InvalidArgument],
])("%s gets an error response, and the stream continues", async (_name, question, errorCode) => {
  const responses = await ask([question, { case: "listServices", value: "" }]);
  const want = ["errorResponse", "listServicesResponse"];
  expect(responses.map(({ messageResponse }) => messageResponse.case)).toEqual(want);
  expect(responses[0]?.messageResponse.value).toMatchObject({ errorCode });
});

test("a response contains the original request", async () => {
  const messageRequest: Question = { case: "fileByFilename", value: "garden.proto" };
  const [response] = await ask([messageRequest]);
  expect(response).toMatchObject({ validHost: host, originalRequest: { messageRequest } });
});

test.each(["grpc-v1", "grpc-v1alpha"])("buf discovers and calls an RPC with %s", async (version) => {
  const procedure = `http://${at.address}:${String(at.port)}/greenhouse.v1.GreenhouseService/GetReading`;
  const result = await runProgram("buf", ["curl", "--reflect-protocol", version, "-d", '{"sensor":"palm"}', procedure]);
  expect(result).toMatchObject({ exitCode: 0, stderr: "" });
  expect(JSON.parse(result.stdout)).toEqual({ sensor: "palm", degreesCelsius: 21 });
});
